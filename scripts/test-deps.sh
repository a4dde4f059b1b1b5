#!/usr/bin/env bash
# Installs the programs that tests need. Where it cannot, it says what is missing and how to get it;
# the tests that need it then say that they were skipped.
set -u
packages=()
need() { command -v "$1" >/dev/null 2>&1 || packages+=("$2"); }
need iperf3 iperf3
need ip iproute2
need unshare util-linux
need setpriv util-linux
need tc iproute2
need ethtool ethtool
need openssl openssl
need chromium chromium
need python3 python3
need curl curl
need git git
need nodeset clustershell
need promtool prometheus
need prometheus prometheus
need prometheus-alertmanager prometheus-alertmanager
need ssh openssh-client
need strip binutils
[ -x /usr/sbin/sshd ] || packages+=(openssh-server)
# Without optimization and optional features: two minutes on two CPUs.
if ! cargo deny --version >/dev/null 2>&1; then
    cargo install cargo-deny --version 0.20.2 --locked --quiet --debug --no-default-features ||
        echo "test-deps: cargo does not install cargo-deny here; licences and advisories will not be checked" >&2
fi
[ ${#packages[@]} -eq 0 ] && exit 0
mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
line="apt-get install -y ${packages[*]}"
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "test-deps: missing: ${packages[*]}; as root: $line" >&2
    exit 0
fi
echo "test-deps: $line"
# Only the programs of sshd, Prometheus and Alertmanager are wanted: a service that is installed is not started.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    printf '#!/bin/sh\nexit 101\n' > $policy && chmod 755 $policy
fi
apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${packages[@]}" >/dev/null
