#!/usr/bin/env bash
# Two hosts with a path of 1 Gbit/s and 60 ms between them, on this machine, and a receiver whose buffer is too small
# for it: measures that, says why it is slow, does what the findings advise until the path is full, and sets the first
# and the last test side by side. Then a hub tests between three hosts regularly, and one path gets worse. Needs no root;
# nothing stays behind, since the paths live only as long as the processes that hold them.
set -euo pipefail
linerate=$(realpath "$1")
shown=${2:-try.html}
report=$(realpath "$shown")
folder=$(mktemp -d)
hub=
end() {
    if [ -n "$hub" ]; then
        kill "$hub" 2>/dev/null || true
        wait "$hub" 2>/dev/null || true
    fi
    XDG_RUNTIME_DIR=$folder "$linerate" lab down --all >/dev/null 2>&1 || true
    rm -rf "$folder"
}
trap end EXIT
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

echo
echo "4. Watched: linerate hub watch.toml, and a path that gets worse"
echo
PATH=$(dirname "$linerate"):$PATH:/usr/sbin:/sbin
export XDG_RUNTIME_DIR=$folder
command -v tc >/dev/null || { echo "Left out: a star's path is changed with tc (package iproute2), which is not here."; exit 0; }
cat >star.toml <<'STAR'
name = "three"
about = "three hosts of 100 Mbit/s"
[star]
rate = "100M"
[[star.switch]]
name = "rack1"
hosts = "node[1-3]"
STAR
cat >watch.toml <<'WATCH'
[[host]]
names = "node[1-3]"
reach = "ssh"
[[task]]
name = "ring"
pairs = [["node1", "node2"], ["node2", "node3"], ["node3", "node1"]]
test = "-t 1"
every = "10s"
expect = ">= 80M"
WATCH
code=0
linerate lab up three --scenario star.toml >/dev/null 2>log || code=$?
if [ "$code" -eq 3 ]; then
    cat log
    echo "Left out: this machine cannot make a star of hosts."
    exit 0
fi
[ "$code" -eq 0 ] || { cat log; exit "$code"; }
linerate hub watch.toml --listen 127.0.0.1:0 --folder hub --via 'linerate lab exec three {host} -- sh -c' >hub.out 2>log &
hub=$!

# Waits at most so many seconds until what the hub says of itself has a line like this for each of these words.
until_status() {
    local seconds=$1 word all
    shift
    for _ in $(seq "$seconds"); do
        sleep 1
        kill -0 "$hub" 2>/dev/null || { cat hub.out log; echo "The hub ended."; exit 1; }
        linerate watch status --folder hub >status 2>/dev/null || continue
        all=yes
        for word in "$@"; do
            grep -q -e "$word" status || all=no
        done
        [ "$all" = no ] || return 0
    done
    cat status log
    echo "The hub did not say this within $seconds s."
    exit 1
}

until_status 60 'node1 > node2 .*bit/s' 'node2 > node3 .*bit/s' 'node3 > node1 .*bit/s'
echo "The page, while this runs: $(sed -n 's/^linerate hub: //p' hub.out)"
echo "All three paths were tested. Now the switch sends node3 40 Mbit/s instead of 100."
linerate lab exec three rack1 -- tc qdisc replace dev to-node3 root handle 2: stab overhead 24 tbf rate 40mbit burst 20000 limit 50000
echo
until_status 60 '^firing: '
cat status
