#!/usr/bin/env bash
# Whether linerate is still ahead: ratios to iperf3, and to bench/limit.rs, over a veth pair in one run, never rates. Ends
# with 1 and says which where one is below its bound twice, the second time with twice the runs, because a busy machine
# makes single figures. Needs no root. bench/place.sh says which variables there are.
set -euo pipefail
export RUNS=${RUNS:-5} SECONDS_EACH=${SECONDS_EACH:-1}
. "$(dirname "$0")/place.sh"
. bench/traffic.sh
address=192.0.2.2
make_paths
start_servers "$there"
below=()

hold() { # what, bound, linerate's arguments, what the other is called, command of the other …
    local what=$1 bound=$2 mine=$3 other=$4 ratio
    shift 4
    ratio=$(measure "$address" "$mine" "$@" && ratio)
    if is_below "$ratio" "$bound"; then
        echo "$what: $ratio, below $bound; again with $((2 * runs)) runs"
        ratio=$(runs=$((2 * runs)) && measure "$address" "$mine" "$@" && ratio)
    fi
    echo "$what: $ratio times $other, bound $bound"
    if is_below "$ratio" "$bound"; then below+=("$what ($ratio, bound $bound)"); fi
}
beside_iperf3() { # what, bound, linerate's arguments, iperf3's
    # shellcheck disable=SC2086
    hold "$1" "$2" "$3" "\`iperf3 -c HOST${4:+ $4}\`" run_iperf3 "$address" $4
}

# By default iperf3 copies 128 KiB a call, on both sides. What that costs it depends on the machine's memory: from 1.4 times
# to 1.7 was seen on one machine in one day.
beside_iperf3 "one TCP stream, default" 1.35 "" ""
# Large writes and sendfile are the best that iperf3 has: what is left to win are its reads, and what they read. Some of its
# runs carry two fifths more than others, at twice the sender's CPU time, so this median says less than the others.
beside_iperf3 "one TCP stream, iperf3's best flags" 1.0 "" "-l 1M -Z"
hold "one TCP stream, the limit" 0.93 "" "a loop that only moves bytes" run_limit "$address"
beside_iperf3 "2 TCP streams" 1.0 "-P 2" "-P 2"
# Both hand the kernel many datagrams at once; telling each one's loss and delay may not cost any rate.
beside_iperf3 "UDP" 1.0 "-u -b 0" "-u -b 0 -l 1460 --gsro"

[ ${#below[@]} -eq 0 ] && exit
printf 'bench: below its bound: %s\n' "${below[@]}" >&2
exit 1
