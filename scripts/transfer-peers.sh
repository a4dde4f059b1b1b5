#!/bin/sh
# transfer-peers.sh LINERATE [MIB [RUNS]]: one file from disk to disk over loopback by linerate, iperf3 -F, rsync and scp, in turn.
# Seconds until the program ended and until the file was on disk (sync), medians; whether the file arrived whole. Leaves nothing.
set -eu
linerate=$(realpath "$1")
mib=${2:-512}
runs=${3:-5}
work=$(mktemp -d "${TMPDIR:-/var/tmp}/transfer-peers.XXXXXX")
pids=
made=
trap 'kill $pids 2>/dev/null || true; rm -rf "$work"; [ -z "$made" ] || rmdir $made' EXIT
trap 'exit 1' INT TERM
for program in iperf3 rsync scp sshd ssh-keygen ss; do
    PATH=$PATH:/usr/sbin command -v $program > "$work/found" || { echo "transfer-peers: $program is not installed" >&2; exit 2; }
done
mkdir "$work/in" "$work/out"
head -c $((mib << 20)) /dev/urandom > "$work/in/file"

"$linerate" serve -B 127.0.0.1 -p 5391 --allow-target "$work/out" > "$work/serve.log" 2>&1 & pids="$pids $!"
printf 'port = 5392\naddress = 127.0.0.1\nuse chroot = false\n[out]\npath = %s\nread only = false\nuid = %s\ngid = %s\n' \
    "$work/out" "$(id -u)" "$(id -g)" > "$work/rsyncd.conf"
rsync --daemon --no-detach --config="$work/rsyncd.conf" & pids="$pids $!"
ssh-keygen -q -t ed25519 -N '' -f "$work/host"
ssh-keygen -q -t ed25519 -N '' -f "$work/key"
chmod 700 "$work"
printf 'Port 5393\nListenAddress 127.0.0.1\nHostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nPidFile none\nUsePAM no\nSubsystem sftp internal-sftp\n' \
    "$work/host" "$work/key.pub" > "$work/sshd.conf"
# Where sshd, as root, wants a folder that its unit would have made.
[ "$(id -u)" != 0 ] || [ -d /run/sshd ] || { mkdir /run/sshd && made=/run/sshd; }
"$(PATH=$PATH:/usr/sbin command -v sshd)" -D -f "$work/sshd.conf" -E "$work/sshd.log" & pids="$pids $!"
for port in 5391 5392 5393; do
    until ss -ltn "sport = :$port" | grep -q LISTEN; do
        kill -0 $pids || { cat "$work"/*.log >&2; exit 1; }
    done
done

# The page cache holds neither the source nor what the last one left.
cold() {
    rm -f "$work/out/file"
    sync -f "$work"
    dd of="$work/in/file" oflag=nocache conv=notrunc,fdatasync count=0 status=none
}
now() { date +%s%N; }
# NAME COMMAND…: a line of name, ns until it ended, ns until on disk, and whether the file is whole.
once() {
    name=$1
    shift
    cold
    began=$(now)
    "$@" > "$work/said" 2>&1 || { echo "$name failed:" >&2; cat "$work/said" >&2; exit 1; }
    ended=$(now)
    sync "$work/out/file"
    stored=$(now)
    if cmp -s "$work/in/file" "$work/out/file"; then whole=whole; else whole="$(stat -c %s "$work/out/file") bytes"; fi
    echo "$name $((ended - began)) $((stored - began)) $whole" >> "$work/lines"
}
iperf3_once() {
    iperf3 -c 127.0.0.1 -p 5394 -F "$work/in/file" -n "$((mib << 20))"
}
for run in $(seq "$runs"); do
    once linerate "$linerate" test 127.0.0.1 -p 5391 --no-cells --source "$work/in/file" --target "$work/out"
    iperf3 -s -1 -B 127.0.0.1 -p 5394 -F "$work/out/file" > "$work/iperf3.log" 2>&1 & server=$!
    until ss -ltn "sport = :5394" | grep -q LISTEN; do kill -0 $server; done
    once iperf3 iperf3_once
    wait $server || true
    once rsync rsync -W "$work/in/file" rsync://127.0.0.1:5392/out/
    once scp scp -q -P 5393 -i "$work/key" -o StrictHostKeyChecking=no -o UserKnownHostsFile="$work/known" \
        "$work/in/file" "127.0.0.1:$work/out/"
done
echo "$mib MiB from disk to disk over loopback, $runs runs of each in turn, medians"
echo "program     s until it ended  s until on disk   MB/s on disk  the file"
for name in linerate iperf3 rsync scp; do
    median() { grep "^$name " "$work/lines" | cut -d' ' -f"$1" | sort -n | sed -n "$(((runs + 1) / 2))p"; }
    wholes=$(grep "^$name " "$work/lines" | cut -d' ' -f4- | sort | uniq -c | sed 's/^ *//' | paste -sd, -)
    awk -v name="$name" -v ended="$(median 2)" -v stored="$(median 3)" -v mib="$mib" -v whole="$wholes" \
        'BEGIN { printf "%-10s %17.2f %16.2f %14.0f  %s\n", name, ended / 1e9, stored / 1e9, mib * 1048576 / stored * 1e3, whole }'
done
