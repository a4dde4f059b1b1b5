#!/usr/bin/env bash
# How much memory 128 streams take on each side, of linerate (as it is, and all but without samples) and of iperf3.
# Needs no root. Prints a section of docs/performance.md. bench/place.sh says which variables there are.
set -euo pipefail
. "$(dirname "$0")/place.sh"
port=5400
# Something that never has anything to read: waiting for it takes no process.
mkfifo "$work/never"
exec {never}<>"$work/never"

# Sets $peak: VmHWM of a process, KiB; empty when it has ended.
peak_of() { # process
    local key value _
    peak=
    while read -r key value _; do
        [ "$key" != VmHWM: ] || peak=$value
    done 2>/dev/null <"/proc/$1/status" || true
}
# Prints the peaks of client, server and the server before the test.
one() { # linerate or iperf3, its arguments …
    local name=$1 server client before most=0
    shift
    port=$((port + 1))
    case $name in
    linerate) start "" server "$linerate" serve -p "$port" && set -- "$linerate" test 127.0.0.1 -p "$port" "$@" ;;
    iperf3) start "" server "$iperf3" -s -p "$port" && set -- "$iperf3" -c 127.0.0.1 -p "$port" "$@" ;;
    esac
    server=${servers[-1]}
    await "" -t "$port"
    peak_of "$server"
    before=$peak
    "$@" >"$work/client" 2>&1 &
    client=$!
    while peak_of "$client" && [ -n "$peak" ]; do
        most=$peak
        read -rt 0.002 -u "$never" || true
    done
    if ! wait "$client"; then
        echo "bench: a test failed: $*: $(tail -1 "$work/client")" >&2
        exit 1
    fi
    peak_of "$server"
    echo "$most $peak $before"
    kill "$server"
    wait "$server" || true
    unset 'servers[-1]'
}
row() { # command, file, more of the command
    local column line="| \`$1 -P 128 -t 2$3\`"
    for column in 1 2 3; do
        line="$line | $(awk -v c=$column '{ print $c * 1.024 / 1e3 }' "$work/$2" | median | xargs printf %.1f)"
    done
    echo "$line |"
}

cat <<TEXT

## Memory

Peak resident memory (VmHWM, which includes pages of the program's file) with 128 TCP streams over loopback, MB, medians
of $runs alternating runs with a new server each time. The client is checked every few milliseconds while it runs, the
server after the test. To separate the samples: with \`--sample 1s\` there are two of each stream instead of two hundred.
Run it alone: \`bench/memory.sh target/release/linerate\`.

| test | client | server | server before it |
|---|---|---|---|
TEXT
for _ in $(seq "$runs"); do
    one linerate -P 128 -t 2 >>"$work/sampled"
    one linerate -P 128 -t 2 --sample 1s >>"$work/bare"
    one iperf3 -P 128 -t 2 >>"$work/iperf3"
done
row "linerate test HOST" sampled ""
row "linerate test HOST" bare " --sample 1s"
row "iperf3 -c HOST" iperf3 ""
