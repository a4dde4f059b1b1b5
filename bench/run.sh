#!/usr/bin/env bash
# linerate compared with iperf3 and, where they can be had, other programs, in alternating runs, on loopback and over veth
# pairs between two network namespaces (MTU 1500 and 9000); medians. Needs no root. Writes docs/performance.md.
# bench/place.sh, traffic.sh and peers.sh say which variables there are; besides these
#
#   OUT=docs/performance.md  where the document goes
set -euo pipefail
. "$(dirname "$0")/place.sh"
. bench/traffic.sh
. bench/peers.sh
out=$(realpath -m "${OUT:-docs/performance.md}")
make_paths
start_servers ""
start_servers "$there"

# Adds a line to $work/rows: what was sent, both commands, and for each the median and range of Gbit/s and the CPU
# seconds per gigabyte of both ends; at last the ratio.
cell() { # title, address, linerate's arguments, what the other types, command of the other …
    local title=$1 address=$2 mine=$3 other=$4
    shift 4
    measure "$address" "$mine" "$@" || return
    printf '%s\t' "$title" "linerate test HOST${mine:+ $mine}" "$other" >>"$work/rows"
    { summary mine && summary theirs && ratio; } | paste -s >>"$work/rows"
    tail -1 "$work/rows" >&2
}
summary() { # mine, theirs
    column "$1" 1 | median
    column "$1" 1 | sort -g | sed -n '1p; $p'
    awk '{ print $2 + $3 }' "$work/$1" | median
}
beside_iperf3() { # title, address, linerate's arguments, iperf3's
    # shellcheck disable=SC2086
    cell "$1" "$2" "$3" "iperf3 -c HOST${4:+ $4}" run_iperf3 "$2" $4
}
beside_limit() { # title, address, linerate's arguments, -udp or nothing
    cell "$1" "$2" "$3" bench/limit run_limit "$2" "$4"
}

tcp_cells() { # address
    beside_iperf3 "TCP" "$1" "" ""
    beside_iperf3 "TCP, iperf3 with 1 MiB writes" "$1" "" "-l 1M"
    beside_iperf3 "TCP, iperf3 with sendfile" "$1" "" "-l 1M -Z"
    beside_limit "TCP, a loop that only moves bytes" "$1" "" ""
    beside_iperf3 "TCP, reverse" "$1" "-R" "-R"
    beside_iperf3 "TCP, 2 streams" "$1" "-P 2" "-P 2"
    beside_iperf3 "TCP, 8 streams" "$1" "-P 8" "-P 8"
    beside_iperf3 "TCP, 128 streams" "$1" "-P 128" "-P 128"
    beside_iperf3 "TCP, received without copying" "$1" "--skip-rx-copy" "-l 1M -Z --skip-rx-copy"
}
udp_cells() { # address, bytes of a datagram
    local mine="-u -b 0"
    [ "$2" = 1460 ] || mine="$mine -l $2"
    beside_iperf3 "UDP, $2-byte datagrams" "$1" "$mine" "-u -b 0 -l $2"
    beside_iperf3 "UDP, $2-byte datagrams, iperf3 with --gsro" "$1" "$mine" "-u -b 0 -l $2 --gsro"
}
peer_cells() { # path, address
    local name
    for name in $peers; do
        if ! has_peer "$name"; then
            echo "not measured: $name (${how[$name]})"
        elif ! cell "$1, TCP, $(title_of "$name")" "$2" "" "${typed[$name]}" run_peer "$2" "$name"; then
            echo "not measured: $name, whose test failed: $(tail -qn 1 "$work/client.out" "$work/server.out" | paste -sd' ' | grep . || echo no message)"
        fi
    done >>"$work/absent"
}

table() {
    echo
    echo "| traffic | linerate | Gbit/s (range) | other | Gbit/s (range) | ratio | CPU s/GB linerate | CPU s/GB other | CPU ratio |"
    echo "|---|---|---|---|---|---|---|---|---|"
    awk -F'\t' '
        function figure(v) { return sprintf(v < 1 ? "%.3f" : v < 10 ? "%.2f" : "%.1f", v) }
        { printf "| %s | `%s` | %s (%s to %s) | `%s` | %s (%s to %s) | **%s** | %.3f | %.3f | %.2f |\n", $1, $2,
              figure($4), figure($5), figure($6), $3, figure($8), figure($9), figure($10), figure($12), $7, $11, ($11 > 0 ? $7 / $11 : 0) }' "$work/rows"
}
# Two bars a row, the longest of 50 characters.
chart() {
    printf '\n```\n'
    awk -F'\t' '
        function bar(v,   text, i) { text = ""; for (i = 0; i < 50 * v / most - 0.5; i++) text = text "█"; return text }
        NR == FNR { if ($4 > most) most = $4; if ($8 > most) most = $8; next }
        { printf "%-46s linerate %6.1f %s\n%46s    other %6.1f %s\n", $1, $4, bar($4), "", $8, bar($8) }' "$work/rows" "$work/rows"
    echo '```'
}
section() { # title; the rows since the last one
    echo
    echo "## $1"
    table
    chart
    echo
    print_stolen
    : >"$work/rows"
}

: >"$work/rows"
: >"$work/absent"
failed=0
{
    cat bench/head.md
    echo "Made with \`IPERF3=$(basename "$iperf3") RUNS=$runs SECONDS_EACH=$length make bench\`:"
    echo "$("$linerate" --version), $("$iperf3" --version | head -1), Linux $(uname -r), $(nproc) CPUs."
    for path in "Loopback 127.0.0.1" "veth,_MTU_1500 192.0.2.2"; do
        read -r name address <<<"$path"
        tcp_cells "$address"
        udp_cells "$address" 1460
        beside_limit "UDP, a loop that only moves bytes" "$address" "-u -b 0" -udp
        udp_cells "$address" 64
        section "${name//_/ }"
    done
    tcp_cells 192.0.2.6
    udp_cells 192.0.2.6 8948
    section "veth, MTU 9000"
    peer_cells loopback 127.0.0.1
    peer_cells "veth, MTU 1500" 192.0.2.2
    section "Other programs"
    [ ! -s "$work/absent" ] || { echo && sort -u "$work/absent" | sed 's/^/- /'; }
    cat bench/pacing.md
    bench/pacing.sh "$linerate"
    bench/startup.sh "$linerate" || failed=1
    bench/memory.sh "$linerate"
} >"$work/document"
cp "$work/document" "$out"
exit "$failed"
