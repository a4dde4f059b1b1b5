# shellcheck shell=bash disable=SC2034,SC2154
# Sourced after traffic.sh: other programs, where they can be had, with one TCP stream. Each test has a server of its
# own; CPU is user and system time of client and server as the shell's `time` tells it, for the whole of both processes
# and their children, because not all of them report it.
peers="iperf2 nuttcp neper riperf3 xfr iperf3-other"
declare -A program serve ask typed how
program[iperf2]=${IPERF2:-iperf}
serve[iperf2]="-s -p PORT -P 1 -y C"
ask[iperf2]="-c HOST -p PORT -t TIME"
typed[iperf2]="iperf -c HOST"
how[iperf2]="apt-get install iperf, or IPERF2=/path/to/iperf"
program[nuttcp]=${NUTTCP:-nuttcp}
serve[nuttcp]="-S -1 --nofork -P PORT"
ask[nuttcp]="-P PORT -p DATA -T TIME -fparse HOST"
typed[nuttcp]="nuttcp HOST"
how[nuttcp]="apt-get install nuttcp, or NUTTCP=/path/to/nuttcp"
program[neper]=${NEPER:-tcp_stream}
serve[neper]="-C PORT -P DATA"
ask[neper]="-c -H HOST -C PORT -P DATA -l TIME"
typed[neper]="tcp_stream -c -H HOST"
how[neper]="make tcp_stream in https://github.com/google/neper, NEPER=/path/to/tcp_stream"
program[riperf3]=${RIPERF3:-riperf3}
serve[riperf3]="-s -1 -p PORT"
ask[riperf3]="-c HOST -p PORT -t TIME -J"
typed[riperf3]="riperf3 -c HOST"
how[riperf3]="cargo install riperf3-cli, or RIPERF3=/path/to/riperf3"
program[xfr]=${XFR:-xfr}
serve[xfr]="serve --one-off -p PORT"
ask[xfr]="HOST -p PORT -t TIMEs --json --no-tui"
typed[xfr]="xfr HOST"
how[xfr]="cargo install xfr, or XFR=/path/to/xfr"
program[iperf3-other]=${IPERF3_OTHER:-iperf3}
serve[iperf3-other]="-s -1 -p PORT"
ask[iperf3-other]="-c HOST -p PORT -t TIME -J"
typed[iperf3-other]="iperf3 -c HOST"
how[iperf3-other]="a second iperf3, IPERF3_OTHER=/path/to/iperf3"

# Whether it is there; "other" is what is not $iperf3.
has_peer() {
    local path
    path=$(command -v "${program[$1]}") || return 1
    [ "$1" != iperf3-other ] || [ "$(realpath "$path")" != "$iperf3" ]
}
# Its name and version, as far as it tells one.
title_of() {
    case $1 in
    neper) echo neper ;;
    nuttcp) "${program[nuttcp]}" -V ;;
    *) "${program[$1]}" --version 2>&1 | sed -n '1s/ *(.*//; 1p' ;;
    esac
}

# Keeps output, process id, and user and system seconds; files that the program makes go the way of $work.
timed() { # name, prefix, command …
    local name=$1 prefix=$2 TIMEFORMAT='%3U %3S'
    shift 2
    # shellcheck disable=SC2016,SC2086
    { time $prefix sh -c 'cd "$0" && echo $$ >'"$name"'.pid && exec "$@"' "$work" "$@" >"$work/$name.out" 2>&1; } 2>"$work/$name.cpu"
}
cpu_of() { awk '/^[0-9.]+ [0-9.]+$/ { seconds = $1 + $2 } END { print seconds + 0 }' "$work/$1.cpu"; }

# Gbit/s at the receiver, from what both printed.
rate_of() {
    case $1 in
    iperf2) awk -F, 'NF >= 9 { bps = $9 } END { print bps / 1e9 }' "$work/server.out" ;;
    nuttcp) sed -n 's/.*rate_Mbps=\([0-9.]*\).*/\1/p' "$work/client.out" | awk '{ print $1 / 1e3 }' ;;
    neper) sed -n 's/^remote_throughput=//p' "$work/client.out" | awk '{ print $1 / 1e9 }' ;;
    xfr) sed -n 's/^  "throughput_mbps": *\([0-9.]*\).*/\1/p' "$work/client.out" | awk '{ print $1 / 1e3 }' ;;
    *) of_iperf3 <"$work/client.out" | cut -d' ' -f1 ;;
    esac
}

# Fails where the peer does; its output is in $work then.
run_peer() { # address, name
    local address=$1 name=$2 path prefix server words rate port
    path=$(realpath "$(command -v "${program[$name]}")")
    prefix=$(prefix_of "$address")
    port=$(next_port)
    words="HOST=$address PORT=$port DATA=$(next_port) TIME=$length"
    # shellcheck disable=SC2046
    timed server "$prefix" "$path" $(filled "${serve[$name]}" "$words") &
    server=$!
    await "$prefix" -t "$port" || true
    # shellcheck disable=SC2046
    timed client "" timeout "$((length + 30))" "$path" $(filled "${ask[$name]}" "$words") || true
    finish "$server"
    rate=$(rate_of "$name")
    awk -v rate="${rate:-0}" -v length_s="$length" -v client="$(cpu_of client)" -v server="$(cpu_of server)" 'BEGIN {
        if (rate <= 0) exit 1
        gigabytes = rate * length_s / 8
        printf "%.4f %.4f %.4f\n", rate, client / gigabytes, server / gigabytes }'
}
filled() { # words, NAME=value …
    local words=$1 pair
    for pair in $2; do words=${words//${pair%%=*}/${pair#*=}}; done
    echo "$words"
}
end_peer() { [ ! -e "$work/server.pid" ] || kill "$(cat "$work/server.pid")" 2>/dev/null || true; }
trap 'end_peer; cleanup' EXIT
# A server for one test ends with it; another is ended.
finish() { # the shell that waits for the server
    for _ in $(seq 40); do
        kill -0 "$1" 2>/dev/null || break
        sleep 0.05
    done
    end_peer
    wait "$1" || true
    rm -f "$work/server.pid"
}
