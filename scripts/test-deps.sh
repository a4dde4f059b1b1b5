#!/usr/bin/env bash
# Installs the programs that tests need. Where it cannot, it says what is missing and how to get it;
# the tests that need it then say that they were skipped.
set -u
packages=()
need() { command -v "$1" >/dev/null 2>&1 || packages+=("$2"); }
need iperf3 iperf3
need iperf iperf
need ip iproute2
need unshare util-linux
need setpriv util-linux
need tc iproute2
need ethtool ethtool
need openssl openssl
need chromium chromium
need chromedriver chromium-driver
need python3 python3
need curl curl
need git git
need nodeset clustershell
need promtool prometheus
need prometheus prometheus
need prometheus-alertmanager prometheus-alertmanager
need ssh openssh-client
need iostat sysstat
need strip binutils
[ -x /usr/sbin/mkfs.ext4 ] || packages+=(e2fsprogs)
[ -x /usr/sbin/mkfs.xfs ] || packages+=(xfsprogs)
[ -x /usr/sbin/mkfs.btrfs ] || packages+=(btrfs-progs)
need fio fio
need slurmctld slurmctld
need slurmd slurmd
need sinfo slurm-client
need munged munge
need fuse2fs fuse2fs
[ -x /usr/sbin/glusterd ] || packages+=(glusterfs-server)
need mkfs.ext4 e2fsprogs
[ -x /usr/sbin/sshd ] || packages+=(openssh-server)
# The packages of the distribution first: what follows may need some of them.
install_packages() {
    [ ${#packages[@]} -eq 0 ] && return
    local line policy=/usr/sbin/policy-rc.d
    mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
    line="apt-get install -y ${packages[*]}"
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        echo "test-deps: missing: ${packages[*]}; as root: $line" >&2
        return
    fi
    echo "test-deps: $line"
    # Only the programs of sshd, Prometheus, Alertmanager and glusterd are wanted: a service that is installed is not started.
    if [ ! -e $policy ]; then
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        printf '#!/bin/sh\nexit 101\n' > $policy && chmod 755 $policy
    fi
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${packages[@]}" >/dev/null ||
        echo "test-deps: apt does not install them here; what needs them will be skipped" >&2
}
install_packages
# Without optimization and optional features: two minutes on two CPUs.
if ! cargo deny --version >/dev/null 2>&1; then
    cargo install cargo-deny --version 0.20.2 --locked --quiet --debug --no-default-features ||
        echo "test-deps: cargo does not install cargo-deny here; licences and advisories will not be checked" >&2
fi
# axe-core judges whether pages are accessible. It is a test's tool under another licence (MPL 2.0): neither kept in this
# repository nor part of any program. npm compares it with the registry's checksum, and this script with its own.
axe=${XDG_CACHE_HOME:-$HOME/.cache}/linerate-test/axe-core-4.14.1.js
axe_sum=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c
if [ ! -e "$axe" ]; then
    folder=$(mktemp -d)
    if (cd "$folder" && npm pack --silent axe-core@4.14.1 && tar xzf axe-core-4.14.1.tgz package/axe.min.js &&
        sha256sum --check --quiet <<<"$axe_sum  package/axe.min.js" && mkdir -p "${axe%/*}" &&
        mv package/axe.min.js "$axe") >/dev/null 2>&1; then
        echo "test-deps: $axe"
    else
        echo "test-deps: npm does not fetch axe-core 4.14.1 here; whether pages are accessible will not be tested" >&2
    fi
    rm -rf "$folder"
fi
# DuckDB and pyarrow read the Parquet files that `linerate archive export` writes. pip compares them with the checksums of
# its index.
readers=${XDG_CACHE_HOME:-$HOME/.cache}/linerate-test/parquet-readers
if [ ! -e "$readers" ]; then
    if python3 -m venv "$readers.part" && "$readers.part/bin/pip" install --quiet --disable-pip-version-check \
        --only-binary :all: duckdb==2.0.0 pyarrow==26.0.1 && mv "$readers.part" "$readers"; then
        echo "test-deps: $readers"
    else
        echo "test-deps: pip does not install duckdb and pyarrow here; no other program will read Parquet files" >&2
        rm -rf "$readers.part"
    fi
fi
