#!/usr/bin/env bash
# Two hosts with a path of 1 Gbit/s and 60 ms between them, on this machine, and a receiver whose buffer is too small
# for it: measures that, says why it is slow, does what the finding advises, measures again, and sets both side by
# side. Needs no root; nothing stays behind, since the path lives only as long as the process that holds it.
set -euo pipefail
linerate=$(realpath "$1")
report=${2:-try.html}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/try.toml" <<'SCENARIO'
name = "try"
about = "1 Gbit/s and 60 ms, and a receiver whose buffer is smaller than the path needs"
[path]
rate = "1G"
rtt = "60ms"
queue = "1x"
[sender]
tcp_wmem = "4096 16384 67108864"
[receiver]
tcp_rmem = "4096 131072 1048576"
[test]
args = "-t 8"
SCENARIO

# Runs the path; on a machine that cannot make one, says so and measures loopback instead.
lab() {
    local code=0
    "$linerate" lab run "$folder/try.toml" "$@" 2> >(tee "$folder/log" >&2) || code=$?
    [ "$code" -eq 0 ] && return
    # Code 3 with these words: this machine cannot make a path. All else is a failure.
    if [ "$code" -eq 3 ] && grep -q -e 'needs user namespaces' -e 'needs packet queues' "$folder/log"; then
        loopback
    fi
    exit "$code"
}

loopback() {
    echo
    echo "Measuring over loopback instead, which says what this host can do and nothing about a network."
    "$linerate" serve -p 5201 --one-off >"$folder/log" 2>&1 &
    local server=$!
    for _ in $(seq 100); do
        grep -q listening "$folder/log" && break
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    "$linerate" test 127.0.0.1 -p 5201 -t 5
    wait "$server"
    exit 0
}

# A figure of a record's document, by its key: the first one.
figure() { "$linerate" show --json "$1" | grep -o "\"$2\": *[0-9.]*" | head -1 | grep -o '[0-9.]*$'; }

echo "1. Measured and explained: linerate lab run try.toml"
echo
lab -- -o "$folder/before.json"
echo
echo "2. Remedied and measured again: linerate lab run try.toml --remedy-of before.json"
echo
lab --remedy-of "$folder/before.json" -- -o "$folder/after.json"

echo
before=$(figure "$folder/before.json" goodput_bps)
after=$(figure "$folder/after.json" goodput_bps)
expected=$(figure "$folder/before.json" rate_bps)
awk -v before="$before" -v after="$after" -v expected="$expected" 'BEGIN {
    printf "3. Before %.0f Mbit/s, after %.0f Mbit/s: %.1f times as much. Foretold were %.0f Mbit/s: %+.0f %%.\n",
        before / 1e6, after / 1e6, after / before, expected / 1e6, 100 * (after / expected - 1)
    if (after < before) { print "The remedy did not help."; exit 1 }
}'
if "$linerate" compare --help >/dev/null 2>&1; then
    "$linerate" compare "$folder/before.json" "$folder/after.json" --html "$report"
    echo "Both in one report: $report"
fi
