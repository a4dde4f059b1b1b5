#!/usr/bin/env bash
# linerate beside iperf3, alternating in one run, on loopback and over a veth pair between two network
# namespaces (MTU 1500); medians. Needs no root. Writes docs/performance.md.
#
#   IPERF3=/path/to/iperf3   the iperf3 to compare with (default: the one on the PATH)
#   LIMIT=/path/to/limit     bench/limit.rs, built: a loop that only moves bytes
#   RUNS=7                   runs of each cell
#   SECONDS_EACH=3           length of a run
#   OUT=docs/performance.md  where the table goes
set -euo pipefail
cd "$(dirname "$0")/.."
linerate=$(realpath "$1")
iperf3=$(realpath "$(command -v "${IPERF3:-iperf3}")")
limit=$(realpath "${LIMIT:-$(dirname "$linerate")/examples/limit}")
runs=${RUNS:-7}
length=${SECONDS_EACH:-3}
out=$(realpath -m "${OUT:-docs/performance.md}")

if [ "${2-}" != inside ]; then
    exec unshare --user --map-root-user --net --kill-child "$0" "$linerate" inside
fi

work=$(mktemp -d)
exec {hold}> >(exec unshare --net cat)
holder=$!
for _ in $(seq 100); do
    [ "$(readlink "/proc/$holder/ns/net")" != "$(readlink /proc/self/ns/net)" ] && break
    sleep 0.05
done
there="nsenter --net=/proc/$holder/ns/net"
ip link set lo up
ip link add here0 type veth peer name there0 netns "$holder"
ip address add 192.0.2.1/30 dev here0 && ip link set here0 up
$there ip address add 192.0.2.2/30 dev there0
$there ip link set there0 up
# One congestion control for both, as the default: where that is BBR, a socket that is told to use another after
# it has connected stays paced. Reno is the one that every namespace may choose.
reno="echo reno >/proc/sys/net/ipv4/tcp_congestion_control"
if ! sh -c "$reno" || ! $there sh -c "$reno"; then
    echo "bench: Reno cannot be made the default in the network namespaces" >&2
    exit 1
fi
servers=()
cleanup() {
    for server in "${servers[@]}"; do kill "$server" 2>/dev/null || true; done
    exec {hold}>&-
    rm -rf "$work"
}
trap cleanup EXIT

start() { # prefix, name, command …
    local prefix=$1 log="$work/$2.log"
    shift 2
    # shellcheck disable=SC2086
    $prefix "$@" >"$log" 2>&1 &
    servers+=($!)
}
start "" la "$linerate" serve -p 5301
start "" ia "$iperf3" -s -p 5302
start "$there" lb "$linerate" serve -p 5301
start "$there" ib "$iperf3" -s -p 5302
for port in 5301 5302; do
    for address in 127.0.0.1 192.0.2.2; do
        for _ in $(seq 100); do
            (exec 3<>"/dev/tcp/$address/$port") 2>/dev/null && break
            sleep 0.05
        done
    done
done

# Prints: Gbit/s at the receiver, CPU seconds per gigabyte of the client, of the server.
run_linerate() { # address, arguments …
    local address=$1
    shift
    "$linerate" test "$address" -p 5301 -t "$length" --json "$@" | sed -n 's/^ *"summary": *{//p' | awk '
        function first(name, from,   at) {
            at = match(substr($0, from), "\"" name "\": *[0-9.e+-]+")
            if (!at) return 0
            found = substr($0, from + at - 1, RLENGTH)
            next_at = from + at + RLENGTH
            sub(/.*: */, "", found)
            return found
        }
        { rate = first("whole_run_bps", 1); client = first("seconds_per_gigabyte", 1); server = first("seconds_per_gigabyte", next_at) }
        END { printf "%.3f %.4f %.4f\n", rate / 1e9, client, server }'
}
run_iperf3() { # address, arguments …
    local address=$1
    shift
    "$iperf3" -c "$address" -p 5302 -t "$length" -J "$@" | awk '
        function value(line) { sub(/.*:[ \t]*/, "", line); sub(/,.*/, "", line); return line + 0 }
        /"end":/ { end = 1 }
        end && /"sum_received":/ { sum = 1 }
        sum && /"seconds":/ { seconds = value($0) }
        sum && /"bytes":/ { bytes = value($0) }
        sum && /"bits_per_second":/ { rate = value($0); }
        sum && /}/ { sum = 0 }
        /"host_total":/ { host = value($0) }
        /"remote_total":/ { remote = value($0) }
        END { gigabytes = bytes / 1e9; if (gigabytes == 0) gigabytes = 1e-9
              printf "%.3f %.4f %.4f\n", rate / 1e9, host / 100 * seconds / gigabytes, remote / 100 * seconds / gigabytes }'
}
run_limit() { # address, -udp or nothing
    local address=$1 kind=${2-} prefix="" received sent=""
    [ "$address" = 127.0.0.1 ] || prefix=$there
    port=$((port + 1))
    $prefix "$limit" "receive$kind" "$address:$port" >"$work/limit" &
    local receiver=$!
    # Datagrams meet a receiver or nobody: it must stand before they are sent.
    if [ -n "$kind" ]; then
        for _ in $(seq 100); do
            [ -n "$($prefix ss -Hlun "sport = :$port")" ] && break
            sleep 0.02
        done
    fi
    for _ in $(seq 100); do
        sent=$("$limit" "send$kind" "$address:$port" "${length%.*}" 2>/dev/null) && break
        sleep 0.02
    done
    if [ -z "$sent" ]; then
        kill "$receiver"
        echo "bench: bench/limit could not send to $address:$port" >&2
        exit 1
    fi
    wait "$receiver"
    received=$(cat "$work/limit")
    echo "${received% *} $sent ${received#* }"
}
port=5310
median() { sort -g | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
column() { awk -v c="$2" '{ print $c }' "$work/$1"; }

cell() { # title, address, linerate's arguments, iperf3's arguments; or "limit", "limit-udp" for these
    local title=$1 address=$2 mine=$3 theirs=$4 peer="iperf3 -c HOST $4"
    [ "${theirs%-udp}" = limit ] && peer=bench/limit
    : >"$work/mine"
    : >"$work/theirs"
    for _ in $(seq "$runs"); do
        # shellcheck disable=SC2086
        run_linerate "$address" $mine >>"$work/mine"
        if [ "${theirs%-udp}" = limit ]; then
            run_limit "$address" "${theirs#limit}" >>"$work/theirs"
        else
            # shellcheck disable=SC2086
            run_iperf3 "$address" $theirs >>"$work/theirs"
        fi
    done
    local a b ratio cpu_a cpu_b low high
    a=$(column mine 1 | median)
    b=$(column theirs 1 | median)
    ratio=$(paste <(column mine 1) <(column theirs 1) | awk '{ print $1 / $2 }' | median)
    low=$(column mine 1 | sort -g | head -1)
    high=$(column mine 1 | sort -g | tail -1)
    cpu_a=$(awk '{ print $2 + $3 }' "$work/mine" | median)
    cpu_b=$(awk '{ print $2 + $3 }' "$work/theirs" | median)
    awk -v t="$title" -v a="$a" -v l="$low" -v h="$high" -v b="$b" -v r="$ratio" -v ca="$cpu_a" -v cb="$cpu_b" \
        -v am="linerate test HOST $mine" -v bm="$peer" 'BEGIN {
        gsub(/ +$/, "", am); gsub(/ +$/, "", bm)
        printf "| %s | `%s` | %.1f (%.1f to %.1f) | `%s` | %.1f | **%.2f** | %.3f | %.3f | %.2f |\n", t, am, a, l, h, bm, b, r, ca, cb, ca / cb }' | tee -a "$work/table"
}

for path in "loopback 127.0.0.1" "veth,_MTU_1500 192.0.2.2"; do
    read -r name address <<<"$path"
    name=${name//_/ }
    cell "$name, TCP" "$address" "" ""
    cell "$name, TCP, iperf3 with 1 MiB writes" "$address" "" "-l 1M"
    cell "$name, TCP, iperf3 with sendfile" "$address" "" "-l 1M -Z"
    cell "$name, TCP, a loop that only moves bytes" "$address" "" limit
    cell "$name, TCP, reverse" "$address" "-R" "-R"
    cell "$name, TCP, 2 streams" "$address" "-P 2" "-P 2"
    cell "$name, TCP, 8 streams" "$address" "-P 8" "-P 8"
    cell "$name, TCP, received without copying" "$address" "--skip-rx-copy" "-l 1M -Z --skip-rx-copy"
    cell "$name, UDP, 1460-byte datagrams" "$address" "-u -b 0" "-u -b 0 -l 1460"
    cell "$name, UDP, iperf3 with --gsro" "$address" "-u -b 0" "-u -b 0 -l 1460 --gsro"
    cell "$name, UDP, a loop that only moves bytes" "$address" "-u -b 0" limit-udp
done

{
    cat "$(dirname "$0")/head.md"
    echo "Made with \`IPERF3=$(basename "$iperf3") RUNS=$runs SECONDS_EACH=$length make bench\`:"
    echo "$("$linerate" --version), $("$iperf3" --version | head -1), Linux $(uname -r), $(nproc) CPUs."
    echo
    echo "| path and traffic | linerate | Gbit/s (range) | peer | Gbit/s | ratio | CPU s/GB linerate | CPU s/GB peer | CPU ratio |"
    echo "|---|---|---|---|---|---|---|---|---|"
    cat "$work/table"
    cat "$(dirname "$0")/pacing.md"
    IPERF3=$iperf3 RUNS=$runs SECONDS_EACH=${length%.*} bench/pacing.sh "$linerate"
} >"$out"
