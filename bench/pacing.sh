#!/usr/bin/env bash
# How even UDP is at 1 Gbit/s and 100 Mbit/s over loopback: linerate (sleeping and spinning) and iperf3 in turn, with
# bench/pacing.rs watching what arrives in each millisecond; medians. Needs no root. Prints a table.
# bench/place.sh says which variables there are; besides these
#
#   PACING=/path/to/pacing   bench/pacing.rs, built
set -euo pipefail
. "$(dirname "$0")/place.sh"
pacing=$(realpath "${PACING:-$(dirname "$linerate")/examples/pacing}")
# Who receives and who watches keep off the sender's CPU, as where the receiver is another host.
on= others=
if [ "$(nproc)" -gt 1 ]; then
    on="-A 0" others="taskset -c 1-$(($(nproc) - 1))"
fi
start_servers "$others"

# Prints what bench/pacing.rs does, and the sender's share of a core in per cent.
one() { # port, command …
    local port=$1 watcher share
    shift
    $others "$pacing" "$port" "$length" >"$work/flow" &
    watcher=$!
    # shellcheck disable=SC2086
    if ! answered "$port" "$@" $on >"$work/document"; then
        kill "$watcher"
        return 1
    fi
    wait "$watcher" || return
    if [ "$port" = 5301 ]; then
        share=$(grep -o '"core_share": *[0-9.]*' "$work/document" | head -1 | sed 's/.*: *//' | awk '{ print 100 * $1 }')
    else
        share=$(grep '"host_total"' "$work/document" | sed 's/.*: *//; s/,.*//')
    fi
    echo "$(cat "$work/flow") ${share:-0}"
}

echo "| requested | sender | Mbit/s | variation of milliseconds, % | empty milliseconds, % | fullest / mean | CPU of the sender, % of a core | buffers not seen |"
echo "|---|---|---|---|---|---|---|---|"
for rate in 1G 100M; do
    for name in sleep spin iperf3; do : >"$work/$name"; done
    for _ in $(seq "$runs"); do
        time=$((length + 1))
        for pace in sleep spin; do
            least_stolen 0 one 5301 "$linerate" test 127.0.0.1 -p 5301 -u -b "$rate" -l 1460 -t "$time" --pace "$pace" --json >>"$work/$pace"
        done
        least_stolen 0 one 5302 "$iperf3" -c 127.0.0.1 -p 5302 -u -b "$rate" -l 1460 -t "$time" -J >>"$work/iperf3"
    done
    for name in sleep spin iperf3; do
        case $name in
        iperf3) command="iperf3 -c HOST -u -b $rate -l 1460${on:+ $on}" ;;
        *) command="linerate test HOST -u -b $rate -l 1460 --pace $name${on:+ $on}" ;;
        esac
        row="| $rate | \`$command\`"
        for column in 1 2 3 4 6 5; do
            row="$row | $(awk -v c=$column '{ print $c }' "$work/$name" | median | sed 's/\.\{0,1\}0*$//')"
        done
        echo "$row |"
    done
done
echo
print_stolen
