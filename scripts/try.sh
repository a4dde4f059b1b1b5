#!/usr/bin/env bash
# Two hosts with a path of 1 Gbit/s and 60 ms between them, on this machine, and a receiver whose buffer is too small
# for it: measures that, says why it is slow, does what the findings advise until the path is full, and sets the first
# and the last test side by side. Needs no root; nothing stays behind, since the path lives only as long as the process
# that holds it.
set -euo pipefail
linerate=$(realpath "$1")
shown=${2:-try.html}
report=$(realpath "$shown")
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

# Holds a record's ledger against what the path counted, as the report of its run says. The path counts IP packets,
# the ledger segments; the rest is the control connection.
check_against_path() {
    local record=$1 report=$2 segments offered
    segments=$(figure "$record" segments)
    offered=$(sed -n 's/^  forward .* in \([0-9,]*\) packets.*/\1/p' "$report" | tr -d ,)
    awk -v offered="$offered" -v segments="$segments" 'BEGIN {
        off = 100 * (offered - segments) / segments
        printf "Check: the ledger has %d segments, the path was offered %d packets: %+.2f %%.\n", segments, offered, off
        if (off < -1 || off > 1) { print "The ledger and the path disagree by more than 1 %."; exit 1 }
    }'
}

echo "1. Measured and explained: linerate lab run try.toml"
echo
lab -- -o "$folder/before.json" | tee "$folder/before.txt"
# No path could be made: loopback was measured instead.
[ -s "$folder/before.json" ] || exit 0
echo
check_against_path "$folder/before.json" "$folder/before.txt"
echo
echo "2. Remedied and measured again, until the path is full: linerate lab run try.toml --remedy-of before.json --until path-full"
echo
lab --remedy-of "$folder/before.json" --until path-full -o "$folder/after.json" | tee "$folder/after.txt"
echo
check_against_path "$folder/after.json" "$folder/after.txt"
echo
before=$(figure "$folder/before.json" goodput_bps)
after=$(figure "$folder/after.json" goodput_bps)
awk -v before="$before" -v after="$after" 'BEGIN {
    printf "3. Before %.0f Mbit/s, after %.0f Mbit/s: %.1f times as much.\n", before / 1e6, after / 1e6, after / before
    if (after < before) { print "The remedies did not help."; exit 1 }
}'
echo
cd "$folder"
if "$linerate" compare --help | grep -q -e --html; then
    "$linerate" compare before.json after.json --html "$report"
    echo
    echo "Both in one report: $shown"
else
    "$linerate" compare before.json after.json
fi
