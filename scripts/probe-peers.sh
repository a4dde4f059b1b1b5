#!/bin/sh
# probe-peers.sh [IOPS [BYTES]]: rates of the probe beside those of fio, in turn, on an ext4 image whose disk is throttled to so
# many requests and bytes a second (300 and 60,000,000), each way. Root, loop devices, control groups 1; five minutes, 8 GiB of
# disk, of which a probe takes a tenth at most. Leaves nothing.
set -eu
cd "$(dirname "$0")/.."
iops=${1:-300}
bytes=${2:-60000000}
# The test writes below the build's folder for tests, where the image is mounted for it alone.
if [ "${PROBE_PEERS:-}" != alone ]; then
    cargo test --locked --profile fast --workspace --test storage --no-run
    PROBE_PEERS=alone exec unshare --mount "$0" "$iops" "$bytes"
fi
folder=$(cargo metadata --locked --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/tmp
image=$(mktemp "${TMPDIR:-/var/tmp}/probe-peers.XXXXXX")
group=/sys/fs/cgroup/blkio/probe-peers.$$
device=
leave() {
    echo $$ > /sys/fs/cgroup/blkio/cgroup.procs || true
    umount "$folder" 2> /dev/null || true
    [ -z "$device" ] || losetup -d "$device"
    rm -f "$image"
    rmdir "$group" 2> /dev/null || true
}
trap leave EXIT
trap 'exit 1' INT TERM
fallocate -l 8G "$image"
device=$(losetup --direct-io=on --find --show "$image")
mkfs.ext4 -q -F "$device"
mount "$device" "$folder"
mkdir "$group"
number=$(cat "/sys/block/${device#/dev/}/dev")
for way in read write; do
    echo "$number $iops" > "$group/blkio.throttle.${way}_iops_device"
    echo "$number $bytes" > "$group/blkio.throttle.${way}_bps_device"
done
echo $$ > "$group/cgroup.procs"
cargo test --locked --profile fast --workspace --test storage -- --ignored --nocapture beside_fio
