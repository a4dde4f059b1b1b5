# shellcheck shell=bash
# Sourced by the scripts beside it, which need bash and no root: the programs, a user and a network namespace of their
# own, servers in it, and what takes all of it down again.
#
#   IPERF3=/path/to/iperf3   the iperf3 to compare with (default: the one on the PATH)
#   RUNS=7                   runs of each cell
#   SECONDS_EACH=3           length of a run, whole seconds
script=$(realpath "$0")
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
linerate=$(realpath "${1:?the path of linerate}")
if ! iperf3=$(command -v "${IPERF3:-iperf3}"); then
    echo "bench: no ${IPERF3:-iperf3} (apt-get install iperf3, or IPERF3=/path/to/iperf3)" >&2
    exit 2
fi
iperf3=$(realpath "$iperf3")
runs=${RUNS:-7}
length=${SECONDS_EACH:-3}
export IPERF3=$iperf3 RUNS=$runs SECONDS_EACH=$length LC_ALL=C
[ "${2-}" = inside ] || exec unshare --user --map-root-user --net --kill-child "$script" "$linerate" inside

work=$(mktemp -d)
servers=()
hold=
cleanup() {
    for server in "${servers[@]}"; do kill "$server" 2>/dev/null || true; done
    [ -z "$hold" ] || exec {hold}>&-
    rm -rf "$work"
}
trap cleanup EXIT
ip link set lo up

# A second namespace, which "$there COMMAND" is run in, and two veth pairs to it: 192.0.2.2 behind an MTU of 1500,
# 192.0.2.6 behind one of 9000.
there=
make_paths() {
    exec {hold}> >(exec unshare --net cat)
    local holder=$!
    for _ in $(seq 100); do
        [ "$(readlink "/proc/$holder/ns/net")" != "$(readlink /proc/self/ns/net)" ] && break
        sleep 0.05
    done
    there="nsenter --net=/proc/$holder/ns/net"
    veth_pair 0 1500 192.0.2.1 192.0.2.2 "$holder"
    veth_pair 1 9000 192.0.2.5 192.0.2.6 "$holder"
    # One congestion control for both, as the default: where that is BBR, a socket that is told to use another after
    # it has connected stays paced. Reno is the one that every namespace may choose.
    local reno="echo reno >/proc/sys/net/ipv4/tcp_congestion_control"
    if ! sh -c "$reno" || ! $there sh -c "$reno"; then
        echo "bench: Reno cannot be made the default in the network namespaces" >&2
        exit 1
    fi
}
veth_pair() { # number, MTU, address here, address there, process that holds the other namespace
    ip link add "here$1" mtu "$2" type veth peer name "there$1" mtu "$2" netns "$5"
    ip address add "$3/30" dev "here$1" && ip link set "here$1" up
    $there ip address add "$4/30" dev "there$1"
    $there ip link set "there$1" up
}

# Its process id is then the last one of ${servers[@]}.
start() { # prefix, name, command …
    local prefix=$1 log="$work/$2.${#servers[@]}.log"
    shift 2
    # shellcheck disable=SC2086
    $prefix "$@" >"$log" 2>&1 &
    servers+=($!)
}
# Both programs' servers, 5301 and 5302.
start_servers() { # prefix
    start "$1" linerate "$linerate" serve -p 5301
    start "$1" iperf3 "$iperf3" -s -p 5302
    await "$1" -t 5301
    await "$1" -t 5302
}
# A port that none had before; also for a shell within this one.
next_port() {
    local next
    next=$(($(cat "$work/port" 2>/dev/null || echo 5310) + 1))
    echo "$next" >"$work/port"
    echo "$next"
}
# Until somebody listens, without connecting: a server for one test would take that for it.
await() { # prefix, -t or -u, port
    for _ in $(seq 200); do
        [ -n "$($1 ss -Hln "$2" "sport = :$3")" ] && return
        sleep 0.02
    done
    echo "bench: nobody listens on port $3" >&2
    return 1
}

# Prints what the command does. An iperf3 server closes its listener after a test and opens another: a client that comes in
# between is refused, and comes again.
answered() { # port, command …
    local printed
    for _ in 1 2 3 4 5; do
        await "" -t "$1"
        printed=$("${@:2}" 2>"$work/refused") && echo "$printed" && return
    done
    cat "$work/refused" >&2
    return 1
}

# CPU time of this machine so far that its hypervisor gave to others, and that with what was used here, in ticks of 10 ms.
stolen() { awk '$1 == "cpu" { for (i = 2; i <= 9; i++) if (i < 5 || i > 6) used += $i; print $9, used }' /proc/stat; }

# Prints what the command does. Where more than that share of the CPU time was stolen meanwhile it is made again, twice at
# most; the time during which the least was stolen counts, and its share goes to $work/stolen.
least_stolen() { # share, command …
    local most=$1 before printed share kept least=2
    shift
    for _ in 1 2 3; do
        before=$(stolen)
        printed=$("$@") || return
        share=$(echo "$before $(stolen)" | awk '{ print ($4 > $2) ? ($3 - $1) / ($4 - $2) : 0 }')
        if is_below "$share" "$least"; then
            kept=$printed least=$share
        fi
        is_below "$most" "$share" || break
    done
    echo "$least" >>"$work/stolen"
    echo "$kept"
}
# A sentence on what was stolen since the last one.
print_stolen() {
    sort -g "$work/stolen" | awk '{ v[NR] = 100 * $1 } END { if (NR) printf "Of the CPU time the hypervisor took %.1f %% from the median run that counts, and %.1f %% from the worst.\n", v[int((NR + 1) / 2)], v[NR] }'
    : >"$work/stolen"
}
is_below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

median() { sort -g | awk '{ v[NR] = $1 } END { printf "%.4f\n", (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
