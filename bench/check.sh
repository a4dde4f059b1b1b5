#!/usr/bin/env bash
# Whether linerate is still ahead: ratios to iperf3 over a veth pair in one run, never rates. Ends with 1 and says which
# where one is below its bound twice, the second time with twice the runs, because a busy machine makes single figures.
# Needs no root. bench/place.sh says which variables there are.
set -euo pipefail
export RUNS=${RUNS:-5} SECONDS_EACH=${SECONDS_EACH:-1}
. "$(dirname "$0")/place.sh"
. bench/traffic.sh
address=192.0.2.2
make_paths
start_servers "$there"
below=()

below_bound() { awk -v ratio="$1" -v bound="$2" 'BEGIN { exit !(ratio < bound) }'; }
hold() { # what, bound, linerate's arguments, iperf3's
    local ratio
    ratio=$(ratio_to_iperf3 "$3" "$4")
    if below_bound "$ratio" "$2"; then
        echo "$1: $ratio, below $2; again with $((2 * runs)) runs"
        ratio=$(runs=$((2 * runs)) && ratio_to_iperf3 "$3" "$4")
    fi
    echo "$1: $ratio times \`iperf3 -c HOST${4:+ $4}\`, bound $2"
    if below_bound "$ratio" "$2"; then below+=("$1 ($ratio, bound $2)"); fi
}
ratio_to_iperf3() { # linerate's arguments, iperf3's
    # shellcheck disable=SC2086
    measure "$address" "$1" run_iperf3 "$address" $2 && ratio
}

# By default iperf3 copies 128 KiB a call, on both sides, and so comes to two thirds of what a loop that only moves bytes
# does: this is what being close to that loop is worth.
hold "one TCP stream, default" 1.5 "" ""
# Large writes and sendfile are the best that iperf3 has: what is left to win are its reads.
hold "one TCP stream, iperf3's best flags" 1.05 "" "-l 1M -Z"
# Here the CPUs are the limit rather than one thread: nothing to win for sure, but nothing may be lost.
hold "2 TCP streams" 1.0 "-P 2" "-P 2"
# Both hand the kernel many datagrams at once; telling each one's loss and delay may not cost any rate.
hold "UDP" 1.0 "-u -b 0" "-u -b 0 -l 1460 --gsro"

[ ${#below[@]} -eq 0 ] && exit
printf 'bench: below its bound: %s\n' "${below[@]}" >&2
exit 1
