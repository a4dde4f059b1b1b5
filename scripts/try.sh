#!/usr/bin/env bash
# Two hosts with a path of 1 Gbit/s and 60 ms between them, on this machine: measures it, checks the ledger
# against the path's own counters, and shows the report. Needs no root; nothing stays behind, since the path
# lives only as long as the process that holds it.
set -euo pipefail
linerate=$(realpath "$1")
record=$(mktemp)
log=$(mktemp)
trap 'rm -f "$record" "$record.out" "$log"' EXIT

echo "Two hosts, and 1 Gbit/s with 60 ms between them: linerate lab run wan-60ms -- -t 8"
echo
if "$linerate" lab run wan-60ms -- -t 8 -o "$record" 2> >(tee "$log" >&2) | tee "$record.out"; then
    code=0
else
    code=$?
fi
report=$(cat "$record.out")

# The path counts IP packets, the ledger payload: 52 bytes of headers a segment (IPv4 20, TCP with
# timestamps 32).
check_against_path() {
    local json sent segments offered
    json=$("$linerate" show --json "$record")
    figure() { grep -o "\"$1\": *[0-9]*" <<<"$json" | head -1 | grep -o '[0-9]*$'; }
    sent=$(figure bytes_sent)
    segments=$(figure segments)
    offered=$(sed -n 's/^  forward .* in \([0-9,]*\) packets.*/\1/p' <<<"$report" | tr -d ,)
    lost=$(sed -n 's/^  forward .*, \([0-9,]*\) dropped by the full queue.*/\1/p' <<<"$report" | tr -d ,)
    again=$(figure retransmits)
    awk -v offered="$offered" -v segments="$segments" -v lost="${lost:-0}" -v again="$again" -v sent="$sent" 'BEGIN {
        off = 100 * (offered - segments) / segments
        printf "Check: the ledger has bytes_sent %d in %d segments; the path was offered %d packets: %+.2f %%.\n", sent, segments, offered, off
        printf "Check: the path dropped %d packets; the sender sent %d again.\n", lost, again
        if (off < -1 || off > 1) { print "The ledger and the path disagree by more than 1 %."; exit 1 }
        print "The ledger agrees with the path. (The rest is the control connection.)"
    }'
}

if [ "$code" -eq 0 ] && [ -s "$record" ]; then
    echo
    check_against_path
    exit
fi
# Code 3 with these words: this machine cannot make a path. All else is a failure.
if [ "$code" -ne 3 ] || ! grep -q -e 'needs user namespaces' -e 'needs packet queues' "$log"; then
    exit "$code"
fi
echo
echo "Measuring over loopback instead, which says what this host can do and nothing about a network."
"$linerate" serve -p 5201 --one-off >"$log" 2>&1 &
server=$!
for _ in $(seq 100); do
    grep -q listening "$log" && break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.05
done
"$linerate" test 127.0.0.1 -p 5201 -t 5
wait "$server"
