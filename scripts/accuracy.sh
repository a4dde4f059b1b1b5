#!/usr/bin/env bash
# Grades all scenarios, applies the remedies, and writes docs/accuracy.md. An hour and a half with three runs each.
#   scripts/accuracy.sh LINERATE
#   RUNS=3      runs of each scenario, each with another seed
#   SEEDS=0     what is added to each seed
#   KEEP=DIR    where the runs are kept; those that are there are not made again
#   KEPT=DIR    runs nothing and judges what an earlier KEEP left
#   REMEDIES=0  grades only; what an earlier run says of remedies stays
set -euo pipefail
cd "$(dirname "$0")/.."
linerate=$(realpath "$1")
runs=${RUNS:-3}
seeds=${SEEDS:-0}
arguments=(lab grade scenarios --runs "$runs" --seeds-from "$seeds")
[ "${REMEDIES:-1}" = 0 ] || arguments+=(--remedies)
said=$(mktemp)
trap 'rm -f "$said"' EXIT

kept=()
if [ -n "${KEPT:-}" ]; then
    kept=(--kept "$KEPT")
elif [ -n "${KEEP:-}" ]; then
    kept=(--keep "$KEEP" --resume)
fi
# Code 1 says that something missed: that is what the table is for. All else is a failure.
"$linerate" "${arguments[@]}" "${kept[@]}" >"$said" || [ $? -eq 1 ]

# What was measured by other commands stays.
from='## Published policer traces'
[ "${REMEDIES:-1}" = 1 ] || from='## Remedies'
others=$(sed -n "/^$from/,\$p" docs/accuracy.md 2>/dev/null || true)
{
    cat <<HEAD
# Accuracy

How often the first finding is right, how often a healthy path raises a false alarm, and how accurately findings predict
the rate after a remedy. Made by \`make accuracy\`, which runs

    linerate ${arguments[*]}

Every scenario of \`scenarios/\` runs on a path that this machine makes, once for each seed ($runs of them), and each run's
findings are compared with what the scenario expects. With \`--remedies\`, each remedy with an expected rate is then
applied to its scenario, which runs again with another seed (1,000,000 more); a prediction is correct if the plateau's
goodput lies within 15 % of it. Not counted, but listed: remedies that a lab cannot apply, those without a rate, and
those that are further off in a run that the machine disturbed, which proves nothing. [The lab's guide](guides/lab.md)
explains the signs.

On Linux $(uname -r), $(nproc) CPUs, $("$linerate" --version), $(date -u +%F), seeds from $seeds.

HEAD
    [ -z "${KEPT:-}" ] || printf 'The runs were made and saved earlier (`--keep`); this build only judged them (`--kept`).\n\n'
    echo '```'
    cat "$said"
    echo '```'
    [ -z "$others" ] || printf '\n%s\n' "$others"
} >docs/accuracy.md
echo "docs/accuracy.md is written:"
tail -n 12 "$said"
