#!/usr/bin/env bash
# Makes what virtual machines boot from, once: vm-images.sh FOLDER
#   kernel-cloud, kernel-generic        Debian's kernels
#   kernel-oldest                       the oldest one that Debian's archive still has; without it, oldest-missing says why
#   initrd-cloud, …                     a first stage that finds the disks and goes on to the real system
#   debian.ext4                         Debian's smallest system with systemd, networkd, iproute2, ethtool, iperf3, mdadm, lvm2,
#                                       sysstat, drbd-utils, xfsprogs, btrfs-progs, kexec-tools and sshd, for all kernels; no sshd runs until a test starts it
# The suite is this machine's, so that a program built here finds its libraries there. No root is needed, and nothing
# is installed on this machine.
set -eu
folder=${1:?vm-images.sh FOLDER}
PATH=$PATH:/usr/sbin:/sbin
die() { echo "vm-images: $*" >&2; exit 1; }
for program in qemu-img mmdebstrap mkfs.ext4 busybox cpio depmod dpkg-deb; do
    command -v "$program" >/dev/null || die "$program is missing (scripts/vm-deps.sh installs it)"
done
suite=$(. /etc/os-release && [ "${ID:-}" = debian ] && echo "${VERSION_CODENAME:-}") || true
[ -n "$suite" ] || die "this machine is not a release of Debian, whose kernels and packages the guests are made of"
[ "$(dpkg --print-architecture)" = amd64 ] || die "the guests are made for amd64 only"
here=$(cd "$(dirname "$0")" && pwd)

# Whatever decides what the images are is part of their name.
stamp=$(cat "$0" "$here"/vm/* | sha256sum | cut -c1-16)-$suite
if [ "$(cat "$folder/stamp" 2>/dev/null)" = "$stamp" ]; then exit 0; fi
mkdir -p "$folder"
rm -f "$folder/stamp"
work=$(mktemp -d "$folder/making.XXXXXX")
trap 'chmod -R u+rwX "$work"; rm -rf "$work"' EXIT

# A kernel's package, unpacked: KIND META-PACKAGE [OPTION OF APT …]
kernel() {
    local kind=$1 meta=$2 package
    shift 2
    package=$(apt-cache "$@" depends "$meta" | awk '/Depends:/ { print $2; exit }')
    [ -n "$package" ] || { echo "vm-images: apt knows no $meta (apt-get update?)" >&2; return 1; }
    mkdir -p "$work/$kind"
    (cd "$work" && apt-get "$@" -o APT::Sandbox::User=root -qq download "$package") ||
        { echo "vm-images: cannot download $package" >&2; return 1; }
    dpkg-deb -x "$work/$package"_*.deb "$work/$kind" || return 1
    cp "$work/$kind"/boot/vmlinuz-* "$folder/kernel-$kind" || return 1
    [ -d "$work/$kind/lib/modules" ] || mv "$work/$kind/usr/lib" "$work/$kind/lib"
}

# The first stage: KIND
initrd() {
    local root=$work/initrd-$1 version module file
    version=$(ls "$work/$1/lib/modules")
    depmod -b "$work/$1" "$version"
    mkdir -p "$root"/{bin,dev,proc,sys,modules,system}
    cp "$(command -v busybox)" "$root/bin/busybox"
    cp "$here/vm/first-stage" "$root/init"
    chmod 755 "$root/init"
    # In the order in which they are to be loaded.
    for module in virtio_pci virtio_blk ext4 virtio_console; do
        modprobe -d "$work/$1" -S "$version" --show-depends "$module" | awk '/^insmod/ { print $2 }'
    done | awk '!seen[$0]++' > "$work/order"
    while read -r file; do
        cp "$file" "$root/modules/"
        basename "$file" >> "$root/modules/order"
    done < "$work/order"
    (cd "$root" && find . | cpio --quiet -o -H newc -R 0:0 | gzip -1) > "$folder/initrd-$1"
}

# The oldest kernel: that of the oldest release which this machine's mirror still serves, by lists of apt that only this
# script uses. A machine that does not reach it goes without.
oldest() {
    local mirror=$1 state=$work/apt release
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
    for release in buster bullseye; do
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main" > "$state/sources"
        set -- -o "Dir::Etc::sourcelist=$state/sources" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$state/lists" \
            -o "Dir::Cache=$state/cache" -o Acquire::Languages=none -o APT::Sandbox::User=root
        # It ends well, too, where it kept old lists for want of new ones.
        apt-get "$@" -qq --error-on=any update 2> "$state/said" && kernel oldest linux-image-cloud-amd64 "$@" && return
    done
    return 1
}

kinds="cloud generic"
kernel cloud linux-image-cloud-amd64 || exit 1
kernel generic linux-image-amd64 || exit 1
rm -f "$folder/kernel-oldest" "$folder/initrd-oldest" "$folder/oldest-missing"
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
if [ -n "$mirror" ] && oldest "$mirror"; then
    kinds="$kinds oldest"
else
    rm -rf "$folder/kernel-oldest" "$work/oldest"
    echo "${mirror:-no mirror of Debian in the sources of apt}: no kernel older than $suite's" > "$folder/oldest-missing"
fi
for kind in $kinds; do initrd $kind; done

# Of the modules only the network's, those of disks, and what they need: the whole tree is ten times as large.
modules=$work/modules/usr/lib/modules
for kind in $kinds; do
    version=$(ls "$work/$kind/lib/modules")
    mkdir -p "$modules/$version/kernel/drivers"
    from=$work/$kind/lib/modules/$version
    cp "$from"/modules.builtin* "$from"/modules.order "$modules/$version/"
    for part in net lib crypto arch drivers/virtio drivers/block drivers/md drivers/char drivers/net/virtio_net.ko drivers/net/net_failover.ko \
        net/core drivers/net/veth.ko drivers/net/dummy.ko drivers/net/bonding drivers/net/ethernet/intel/e1000e drivers/net/ethernet/intel/e1000 \
        drivers/net/tun.ko drivers/ptp drivers/pps fs/ext4 fs/jbd2 fs/mbcache.ko fs/xfs fs/btrfs; do
        [ -e "$from/kernel/$part" ] || continue
        mkdir -p "$modules/$version/kernel/$(dirname "$part")"
        cp -r "$from/kernel/$part" "$modules/$version/kernel/$part"
    done
    depmod -b "$work/modules/usr" "$version" 2>/dev/null || depmod -b "$work/modules" -m /usr/lib/modules "$version"
done

# Cards on tap devices, where nobody answers DHCP: see Card::Queues of the tests.
for card in 0 1 2 3; do
    printf '[Match]\nMACAddress=52:54:00:09:00:0%s\n\n[Network]\nAddress=10.9.%s.2/24\nGateway=10.9.%s.1\nLinkLocalAddressing=no\n' \
        $card $card $card > "$work/10-tap$card.network"
done

mode=unshare
[ "$(id -u)" -eq 0 ] && mode=root
mmdebstrap --quiet --mode=$mode --variant=minbase \
    --include=systemd,systemd-sysv,udev,dbus,iproute2,ethtool,kmod,procps,iputils-ping,iperf3,openssh-server,mdadm,lvm2,sysstat,drbd-utils,xfsprogs,btrfs-progs,kexec-tools \
    --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt=path-exclude='/usr/share/man/*' --dpkgopt=path-exclude='/usr/share/doc/*' --dpkgopt=path-exclude='/usr/share/locale/*' \
    --customize-hook='mkdir -p "$1/usr/lib/modules" "$1/opt/linerate" "$1/usr/local/lib/linerate-vm"' \
    --customize-hook="cp -r '$modules/.' \"\$1/usr/lib/modules/\"" \
    --customize-hook="install -m 755 '$here/vm/agent' '$here/vm/small-init' \"\$1/usr/local/lib/linerate-vm/\"" \
    --customize-hook="install -m 644 '$here/vm/linerate-vm-agent.service' \"\$1/etc/systemd/system/\"" \
    --customize-hook="install -m 644 '$here/vm/20-wired.network' '$work'/10-tap*.network \"\$1/etc/systemd/network/\"" \
    --customize-hook='ln -s /opt/linerate/linerate "$1/usr/local/bin/linerate"' \
    --customize-hook='chroot "$1" systemctl --quiet enable linerate-vm-agent systemd-networkd' \
    --customize-hook='chroot "$1" systemctl --quiet mask ssh.service ssh.socket systemd-networkd-wait-online getty@tty1 serial-getty@ttyS0 apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer fstrim.timer' \
    --customize-hook='chroot "$1" passwd -q -d root; echo guest > "$1/etc/hostname"; rm -rf "$1"/etc/ssh/ssh_host_* "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/*' \
    "$suite" "$work/debian.tar"
if [ "$mode" = root ]; then
    mkdir "$work/tree"
    tar -xf "$work/debian.tar" -C "$work/tree" --numeric-owner
    mkfs.ext4 -q -F -L linerate-vm -d "$work/tree" "$work/debian.ext4" 1G
else
    unshare --map-root-user --map-auto sh -c 'mkdir "$1/tree" && tar -xf "$1/debian.tar" -C "$1/tree" --numeric-owner --exclude="./dev/*" \
        && mkfs.ext4 -q -F -L linerate-vm -d "$1/tree" "$1/debian.ext4" 1G; status=$?; rm -rf "$1/tree"; exit $status' sh "$work"
fi
mv "$work/debian.ext4" "$folder/debian.ext4"
echo "$stamp" > "$folder/stamp"
