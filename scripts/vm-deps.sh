#!/usr/bin/env bash
# Installs the programs that the tests in virtual machines need: QEMU and what makes a disk with Debian on it.
# No kernel is installed on this machine: scripts/vm-images.sh only unpacks the packages of kernels.
# Where it cannot install, it says what is missing; those tests then say that they were skipped.
set -u
packages=()
need() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || packages+=("$2"); }
need qemu-system-x86_64 qemu-system-x86
need qemu-img qemu-utils
need mmdebstrap mmdebstrap
need mkfs.ext4 e2fsprogs
need busybox busybox-static
need cpio cpio
need depmod kmod
need strip binutils
need unshare util-linux
need ip iproute2
need ssh openssh-client
[ ${#packages[@]} -eq 0 ] && exit 0
line="apt-get install -y --no-install-recommends ${packages[*]}"
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "vm-deps: missing: ${packages[*]}; as root: $line" >&2
    exit 0
fi
echo "vm-deps: $line"
apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null ||
    echo "vm-deps: apt does not install them here; the tests in virtual machines will be skipped" >&2
exit 0
