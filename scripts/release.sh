#!/usr/bin/env bash
# Builds linerate as one file that needs no library of its host, for this machine's architecture and, where a linker can
# be had, for aarch64: what `--on` copies to hosts. They are written to release/linerate and release/linerate-ARCH.
#   PROFILE=release   the profile of Cargo
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${PROFILE:-release}
host=$(rustc -vV | sed -n 's/^host: //p')
folder=release
mkdir -p "$folder"

# With --target, the flags are not those of build scripts and procedural macros, which cannot be static.
static() {
    local target=$1 to=$2 built
    RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" \
        cargo build --profile "$profile" --locked --target "$target" -p linerate
    built=${CARGO_TARGET_DIR:-target}/$target/$profile/linerate
    install -m 755 "$built" "$to"
    strip "$to" 2>/dev/null || true
    check "$to"
}

# A binary that needs nothing of its host has no interpreter and no needed library.
check() {
    if readelf -ld "$1" | grep -e 'INTERP' -e '(NEEDED)'; then
        echo "release: $1 is not static" >&2
        exit 1
    fi
    echo "release: $1: static, $(stat -c %s "$1" | numfmt --grouping) bytes"
}

static "$host" "$folder/linerate"
"$folder/linerate" --version >/dev/null

other=aarch64-unknown-linux-gnu
if [ "$host" = "$other" ]; then
    exit 0
fi
skip() { echo "release: aarch64 skipped: $1"; }
linker=aarch64-linux-gnu-gcc
if ! command -v "$linker" >/dev/null 2>&1; then
    skip "there is no $linker (Debian: gcc-aarch64-linux-gnu)"
elif ! [ -d "$(rustc --print sysroot)/lib/rustlib/$other" ] && ! rustup target add "$other" >/dev/null 2>&1; then
    skip "Rust's library for $other cannot be installed (rustup target add $other)"
else
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$linker CC_aarch64_unknown_linux_gnu=$linker
    # strip of this machine knows only its own architecture.
    strip() { aarch64-linux-gnu-strip "$@"; }
    static "$other" "$folder/linerate-aarch64"
fi
