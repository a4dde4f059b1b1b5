#!/usr/bin/env bash
# How long the whole command of a short test takes, linerate and iperf3 in turn over loopback, and what many such tests
# in a row leave behind in one server. Needs no root. Prints a section of docs/performance.md; ends with 1 where the
# server has more threads or descriptors than before. bench/place.sh says which variables there are; besides these
#
#   PAIRS=31     runs of each
#   TESTS=1000   tests in a row
set -euo pipefail
. "$(dirname "$0")/place.sh"
pairs=${PAIRS:-31}
tests=${TESTS:-1000}
start_servers ""
ours=${servers[0]}

wall() { # command …: its wall time, ms
    local began=$EPOCHREALTIME ended
    "$@" >/dev/null
    ended=$EPOCHREALTIME
    awk -v us="$((${ended/./} - ${began/./}))" 'BEGIN { print us / 1e3 }'
}
ours_once() { "$linerate" test 127.0.0.1 -p 5301 -n 1M; }
theirs_once() { "$iperf3" -c 127.0.0.1 -p 5302 -n 1M; }
in_turn() {
    local name
    for _ in $(seq "$pairs"); do
        for name in ours theirs; do wall "${name}_once" >>"$work/$name"; done
    done
}
row() { # ours or theirs, command
    sort -g "$work/$1" >"$work/sorted"
    # shellcheck disable=SC2016
    printf '| `%s` | **%.2f** | %.2f to %.2f |\n' "$2" "$(median <"$work/sorted")" \
        "$(head -1 "$work/sorted")" "$(tail -1 "$work/sorted")"
}

# Threads, descriptors and resident KiB of a process.
state() {
    local descriptors=("/proc/$1/fd/"*)
    awk -v descriptors="${#descriptors[@]}" '
        $1 == "Threads:" { threads = $2 }
        $1 == "VmRSS:" { resident = $2 }
        END { print threads, descriptors, resident }' "/proc/$1/status"
}
grew() { # state, later state
    awk -v a="$1" -v b="$2" 'BEGIN { split(a, x, " "); split(b, y, " "); exit !(y[1] > x[1] || y[2] > x[2]) }'
}
# The state once all of it ended, or after ten seconds.
settled() { # state to come back to
    local now
    for _ in $(seq 200); do
        now=$(state "$ours")
        grew "$1" "$now" || break
        sleep 0.05
    done
    echo "$now"
}
in_a_row() { for _ in $(seq "$1"); do ours_once >/dev/null; done; }

cat <<TEXT

## Start-up

Wall time of the whole command over loopback, from before its process is made until it has ended; $pairs runs of each, in
turn, medians. Run it alone: \`bench/startup.sh target/release/linerate\`.

| command | ms | range, ms |
|---|---|---|
TEXT
idle=$(state "$ours")
in_turn
row ours "linerate test HOST -n 1M"
row theirs "iperf3 -c HOST -n 1M"
echo
printf 'The median of the ratios of neighbouring runs is **%.3f**.\n' "$(paste "$work/ours" "$work/theirs" | awk '{ print $1 / $2 }' | median)"
echo

before=$(settled "$idle")
in_a_row "$tests"
after=$(settled "$before")
cat <<TEXT
$tests such tests in a row against one server of linerate's, which had $pairs before, and what it holds once they ended:

| server | threads | descriptors | resident, KiB |
|---|---|---|---|
| before | ${before// / | } |
| after | ${after// / | } |
TEXT
if grew "$before" "$after"; then
    echo "bench: the server grew: threads, descriptors, KiB before: $before, after: $after" >&2
    exit 1
fi
