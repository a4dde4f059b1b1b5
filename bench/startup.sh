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
. bench/peers.sh
start_servers ""
ours=${servers[0]}
programs="linerate iperf3 iperf3-often"
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
once() { # one of $programs
    case $1 in
    linerate) "$linerate" test 127.0.0.1 -p 5301 -n 1M ;;
    iperf3) "$iperf3" -c 127.0.0.1 -p 5302 -n 1M ;;
    iperf3-often) "$iperf3" -c 127.0.0.1 -p 5302 -n 1M -i 0.1 ;;
    iperf3-other) "${program[iperf3-other]}" -c 127.0.0.1 -p 5303 -n 1M ;;
    esac
}
shown() { # one of $programs
    case $1 in
    linerate) echo "\`linerate test HOST -n 1M\`" ;;
    iperf3-often) echo "\`iperf3 -c HOST -n 1M -i 0.1\`" ;;
    iperf3-other) echo "\`iperf3 -c HOST -n 1M\`, $(title_of "$1")" ;;
    *) echo "\`$1 -c HOST -n 1M\`" ;;
    esac
}
in_turn() {
    local name
    for _ in $(seq "$pairs"); do
        for name in $programs; do answered "$name" >>"$work/$name"; done
    done
}
# An iperf3 server closes its listener after a test and opens another: a client that comes in between is refused, and
# comes again.
answered() { # one of $programs
    local took
    for _ in 1 2 3 4 5; do
        [ "$1" = linerate ] || await "" -t "$([ "$1" = iperf3-other ] && echo 5303 || echo 5302)"
        took=$(wall once "$1" 2>"$work/refused") && echo "$took" && return
    done
    cat "$work/refused" >&2
    return 1
}
row() { # one of $programs
    sort -g "$work/$1" >"$work/sorted"
    printf '| %s | **%.2f** | %.2f to %.2f | %.3f |\n' "$(shown "$1")" "$(median <"$work/sorted")" \
        "$(head -1 "$work/sorted")" "$(tail -1 "$work/sorted")" \
        "$(paste "$work/linerate" "$work/$1" | awk '{ print $1 / $2 }' | median)"
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
in_a_row() { for _ in $(seq "$1"); do once linerate >/dev/null; done; }

cat <<TEXT

## Start-up

Wall time of the whole command over loopback, from before its process is made until it has ended; $pairs runs of each, in
turn, medians; the ratio is that of neighbouring runs, above 1 linerate is slower. iperf3's streams have threads of their own since
3.16, and its main loop looks at how much they sent when it wakes up, at the latest for the next interval of its report. Run it
alone: \`bench/startup.sh target/release/linerate\`.

| command | ms | range, ms | linerate / it |
|---|---|---|---|
TEXT
idle=$(state "$ours")
in_turn
for name in $programs; do row "$name"; done
has_peer iperf3-other || printf '\n- not measured: %s\n' "${how[iperf3-other]}"
echo

before=$(settled "$idle")
in_a_row "$tests"
after=$(settled "$before")
cat <<TEXT
$tests such tests in a row against one server of linerate's, which had had $pairs before, and what it holds once they ended:

| server | threads | descriptors | resident, KiB |
|---|---|---|---|
| before | ${before// / | } |
| after | ${after// / | } |
TEXT
if grew "$before" "$after"; then
    echo "bench: the server grew: threads, descriptors, KiB before: $before, after: $after" >&2
    exit 1
fi
