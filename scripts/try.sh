#!/usr/bin/env bash
# Two hosts and a slow path between them, in user and network namespaces of this machine: measures the
# path, checks the ledger against the queue's own counters, and shows the report. Needs no root; nothing
# stays behind, since the namespaces live only as long as the processes in them.
set -euo pipefail
linerate=$(realpath "$1")
port=5201

serve_and_test() { # the server's prefix, then the client's arguments
    local prefix=$1
    shift
    local log
    log=$(mktemp)
    # shellcheck disable=SC2086
    $prefix "$linerate" serve -p "$port" --one-off >"$log" 2>&1 &
    local server=$!
    for _ in $(seq 100); do
        grep -q listening "$log" && break
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    if ! grep -q listening "$log"; then
        cat "$log" >&2
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
    "$linerate" test "$@"
    wait "$server"
}

inside() {
    local record
    record=$(mktemp)
    # The second host: a network namespace held by a process that ends with us.
    exec {hold}> >(exec unshare --net cat)
    local host=$!
    for _ in $(seq 100); do
        [ "$(readlink "/proc/$host/ns/net")" != "$(readlink /proc/self/ns/net)" ] && break
        sleep 0.05
    done
    local there="nsenter --net=/proc/$host/ns/net"
    ip link add client0 type veth peer name server0 netns "$host"
    ip address add 192.0.2.1/30 dev client0
    ip link set client0 up
    ip link set lo up
    $there ip address add 192.0.2.2/30 dev server0
    $there ip link set server0 up
    # The slow queue: 200 Mbit/s, and room for 100 ms.
    tc qdisc replace dev client0 root tbf rate 200mbit burst 64kb latency 100ms
    echo "Two hosts, and a queue of 200 Mbit/s between them (tc qdisc … tbf). On them:"
    echo "    host B: linerate serve"
    echo "    host A: linerate test 192.0.2.2 -t 5"
    echo
    serve_and_test "$there" 192.0.2.2 -p "$port" -t 5 -o "$record"
    echo
    check_against_queue "$record"
    rm -f "$record"
    exec {hold}>&-
}

# The queue counts every packet that passed it, with headers of 66 bytes (Ethernet 14, IPv4 20, TCP 32)
# each; the ledger's bytes_sent are payload.
check_against_queue() {
    local json queue sent segments
    json=$("$linerate" show --json "$1")
    queue=$(tc -s qdisc show dev client0 | awk '/Sent/ { print $2; exit }')
    figure() { grep -o "\"$1\": *[0-9]*" <<<"$json" | head -1 | grep -o '[0-9]*$'; }
    sent=$(figure bytes_sent)
    segments=$(figure segments)
    awk -v queue="$queue" -v sent="$sent" -v segments="$segments" 'BEGIN {
        wanted = sent + 66 * segments
        off = 100 * (queue - wanted) / wanted
        printf "Check: the queue passed %d bytes; the ledger has bytes_sent %d, and %d segments with 66 bytes of headers make %d: %+.2f %%.\n", queue, sent, segments, wanted, off
        if (off < -1 || off > 1) { print "The ledger and the queue disagree by more than 1 %."; exit 1 }
        print "The ledger agrees with the queue. (The rest is the control connection and ARP.)"
    }'
}

if [ "${2-}" = inside ]; then
    inside
    exit
fi
missing=
for tool in unshare nsenter ip tc; do
    command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
done
if [ -n "$missing" ]; then
    why="missing:$missing (Debian: apt-get install iproute2 util-linux)"
elif ! unshare --user --map-root-user --net true 2>/dev/null; then
    why="this machine forbids user namespaces (see kernel.unprivileged_userns_clone, user.max_user_namespaces, or AppArmor's restrictions)"
else
    exec unshare --user --map-root-user --net --kill-child "$0" "$linerate" inside
fi
echo "No path can be made here: $why."
echo "Measuring over loopback instead, which says what this host can do and nothing about a network."
serve_and_test "" 127.0.0.1 -p "$port" -t 5
