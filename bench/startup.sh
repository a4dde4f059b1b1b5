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
# Connecting, cookie, parameters, two for the clocks, connecting a stream, its cookie, the data, the end of the test,
# results, and two for the clocks again and the server's half of the record. The data take more while the window grows.
trips=12
. bench/peers.sh
start_servers ""
ours=${servers[0]}
programs="linerate process iperf3 iperf3-often"
if has_peer iperf3-other; then
    programs="$programs iperf3-other"
    start "" other "${program[iperf3-other]}" -s -p 5303
    await "" -t 5303
fi

wall() { # command …: its wall time, ms
    local began=$EPOCHREALTIME ended
    "$@" >/dev/null || return
    ended=$EPOCHREALTIME
    awk -v us="$((${ended/./} - ${began/./}))" 'BEGIN { print us / 1e3 }'
}
port_of() { # one of $programs
    case $1 in
    iperf3-other) echo 5303 ;;
    iperf3*) echo 5302 ;;
    *) echo 5301 ;;
    esac
}
once() { # one of $programs
    case $1 in
    process) "$linerate" --version ;;
    linerate) "$linerate" test 127.0.0.1 -p 5301 -n 1M ;;
    iperf3) "$iperf3" -c 127.0.0.1 -p 5302 -n 1M ;;
    iperf3-often) "$iperf3" -c 127.0.0.1 -p 5302 -n 1M -i 0.1 ;;
    iperf3-other) "${program[iperf3-other]}" -c 127.0.0.1 -p 5303 -n 1M ;;
    esac
}
shown() { # one of $programs
    case $1 in
    linerate) echo "\`linerate test HOST -n 1M\`" ;;
    process) echo "\`linerate --version\`, the process alone" ;;
    iperf3-often) echo "\`iperf3 -c HOST -n 1M -i 0.1\`" ;;
    iperf3-other) echo "\`iperf3 -c HOST -n 1M\`, $(title_of "$1")" ;;
    *) echo "\`$1 -c HOST -n 1M\`" ;;
    esac
}
in_turn() {
    local name
    for _ in $(seq "$pairs"); do
        for name in $programs; do answered "$(port_of "$name")" wall once "$name" >>"$work/$name"; done
    done
}
row() { # one of $programs
    sort -g "$work/$1" >"$work/sorted"
    printf '| %s | **%.2f** | %.2f to %.2f | %.3f |\n' "$(shown "$1")" "$(median <"$work/sorted")" \
        "$(head -1 "$work/sorted")" "$(tail -1 "$work/sorted")" \
        "$(paste "$work/linerate" "$work/$1" | awk '{ print $1 / $2 }' | median)"
}

# Twice the uncertainty that a record gives of the offset of both clocks: the shortest of eight exchanges, ms.
round_trip() {
    rm -f "$work/round-trip.json"
    "$linerate" test 127.0.0.1 -p 5301 -n 1M -o "$work/round-trip.json" >/dev/null
    tr ',{' '\n\n' <"$work/round-trip.json" | awk -F: '/"uncertainty_ns"/ && !n++ { print 2 * $2 / 1e6 } END { exit !n }'
}
round_trips() { for _ in $(seq "$pairs"); do round_trip || return; done; }

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
in_a_row() { for _ in $(seq "$1"); do once linerate >/dev/null; done; }

cat <<TEXT

## Start-up

Wall time of the whole command over loopback, from before the process is created until it has ended; medians of $pairs
alternating runs each; the ratio is that of adjacent runs, above 1 linerate is slower. iperf3's streams have their own
threads since 3.16, and its main loop checks how much they sent when it wakes up, at the latest for the next interval of
its report. Run it alone: \`bench/startup.sh target/release/linerate\`.

| command | ms | range, ms | linerate / it |
|---|---|---|---|
TEXT
idle=$(state "$ours")
in_turn
for name in $programs; do row "$name"; done
has_peer iperf3-other || printf '\n- not measured: %s\n' "${how[iperf3-other]}"
round_trips >"$work/trips"
awk -v whole="$(median <"$work/linerate")" -v alone="$(median <"$work/process")" -v trip="$(median <"$work/trips")" \
    -v trips="$trips" 'BEGIN {
        beyond = whole - trips * trip
        printf "\nTwo linerates need %d round trips for it, plus those for the window to grow; one round trip took %.3f ms here. Beyond\n", trips, trip
        printf "these %d the command takes %.2f ms: ", trips, beyond
        printf "%.2f for a process that does nothing else, **%.2f** for the test.\n\n", alone, beyond - alone }'

before=$(settled "$idle")
in_a_row "$tests"
after=$(settled "$before")
cat <<TEXT
$tests such tests in a row against one linerate server, which had served $((2 * pairs)) before, and its resources after they ended:

| server | threads | descriptors | resident, KiB |
|---|---|---|---|
| before | ${before// / | } |
| after | ${after// / | } |
TEXT
if grew "$before" "$after"; then
    echo "bench: the server grew: threads, descriptors, KiB before: $before, after: $after" >&2
    exit 1
fi
