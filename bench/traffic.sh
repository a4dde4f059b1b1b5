# shellcheck shell=bash disable=SC2154
# Sourced after place.sh: one test by linerate, by iperf3 or by a loop that only moves bytes, and linerate in turn with
# another. A test prints a line: Gbit/s at the receiver, CPU seconds per gigabyte (10^9 bytes) of client and of server.
#
#   LIMIT=/path/to/limit     bench/limit.rs, built

prefix_of() { [ "$1" = 127.0.0.1 ] || echo "$there"; }

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
        END { printf "%.4f %.4f %.4f\n", rate / 1e9, client, server }'
}

run_iperf3() { # address, arguments …
    local address=$1
    shift
    "$iperf3" -c "$address" -p 5302 -t "$length" -J "$@" | of_iperf3
}
# The same line, of a document of iperf3's.
of_iperf3() {
    awk '
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
              printf "%.4f %.4f %.4f\n", rate / 1e9, host / 100 * seconds / gigabytes, remote / 100 * seconds / gigabytes }'
}

run_limit() { # address, -udp or nothing
    local limit address=$1 kind=${2-} protocol=-t prefix received sent port
    limit=${LIMIT:-$(dirname "$linerate")/examples/limit}
    prefix=$(prefix_of "$address")
    port=$(next_port)
    [ -z "$kind" ] || protocol=-u
    $prefix "$limit" "receive$kind" "$address:$port" >"$work/limit" &
    local receiver=$!
    await "$prefix" "$protocol" "$port"
    if ! sent=$("$limit" "send$kind" "$address:$port" "$length"); then
        kill "$receiver"
        echo "bench: bench/limit could not send to $address:$port" >&2
        return 1
    fi
    wait "$receiver" || return
    received=$(cat "$work/limit")
    echo "${received% *} $sent ${received#* }"
}

# Leaves the lines of linerate in $work/mine, of the other in $work/theirs; fails with the first test that does.
measure() { # address, linerate's arguments, command of the other …
    local both
    : >"$work/mine"
    : >"$work/theirs"
    for _ in $(seq "$runs"); do
        if ! both=$(least_stolen 0.02 pair "$@"); then
            echo "bench: a test failed: linerate test $1 $2, compared with ${*:3}" >&2
            return 1
        fi
        echo "${both% / *}" >>"$work/mine"
        echo "${both#* / }" >>"$work/theirs"
    done
}
pair() { # as measure's
    local address=$1 mine other
    # shellcheck disable=SC2086
    mine=$(run_linerate "$address" $2) || return
    shift 2
    other=$("$@") || return
    echo "$mine / $other"
}
column() { awk -v c="$2" '{ print $c }' "$work/$1"; }
# The median of the ratios of neighbouring runs.
ratio() { paste <(column mine 1) <(column theirs 1) | awk '{ print ($2 > 0 ? $1 / $2 : 0) }' | median; }
