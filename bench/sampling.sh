#!/usr/bin/env bash
# What sampling costs: pairs of runs over loopback in random order, one with a sample every millisecond,
# one with a sample every second. Prints the mean ratio with its 95 % interval, and the CPU time that
# was spent in sampling. PAIRS=20 SECONDS_EACH=2 ARGS="-C cubic".
set -euo pipefail
linerate=$(realpath "${1:-target/release/linerate}")
pairs=${PAIRS:-20}
length=${SECONDS_EACH:-2}
args=${ARGS:-}
work=$(mktemp -d)
"$linerate" serve -B 127.0.0.1 -p 5311 >"$work/log" &
server=$!
trap 'kill "$server"; rm -rf "$work"' EXIT
for _ in $(seq 100); do
    grep -q listening "$work/log" && break
    sleep 0.05
done
rate() { # sampling interval
    # shellcheck disable=SC2086
    "$linerate" test 127.0.0.1 -p 5311 -t "$length" $args --sample "$1" -o "$work/$1.json" --json |
        sed -n 's/^ *"summary": *{.*"whole_run_bps": *\([0-9]*\).*/\1/p' | head -1
}
for _ in $(seq "$pairs"); do
    if [ $((RANDOM % 2)) -eq 0 ]; then
        often=$(rate 1ms)
        seldom=$(rate 1s)
    else
        seldom=$(rate 1s)
        often=$(rate 1ms)
    fi
    echo "$often $seldom"
done | awk '
    { ratio = log($1 / $2); sum += ratio; squares += ratio * ratio; n++ }
    END {
        mean = sum / n
        spread = sqrt((squares - n * mean * mean) / (n - 1) / n)
        half = (2 + 2.5 / n) * spread
        printf "rate with 1 ms samples / rate with 1 s samples: %.4f (95 %% interval %.4f to %.4f, %d pairs)\n",
            exp(mean), exp(mean - half), exp(mean + half), n
    }'
tr ',' '\n' <"$work/1ms.json" | sed -n 's/.*"sampling_ns":\([0-9]*\).*/\1/p' |
    awk -v length_s="$length" '{ printf "CPU time in 1 ms sampling: %.3f %% of wall time\n", 100 * $1 / (length_s * 1e9) }'
