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
# Until somebody listens, without connecting: a server for one test would take that for it.
await() { # prefix, -t or -u, port
    for _ in $(seq 200); do
        [ -n "$($1 ss -Hln "$2" "sport = :$3")" ] && return
        sleep 0.02
    done
    echo "bench: nobody listens on port $3" >&2
    return 1
}

median() { sort -g | awk '{ v[NR] = $1 } END { printf "%.4f\n", (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
