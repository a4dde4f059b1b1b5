#!/usr/bin/env bash
# Runs each fuzz target for so many seconds. Needs nightly Rust and cargo-fuzz (cargo install cargo-fuzz).
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=${1:-600}
for target in $(cargo +nightly fuzz list); do
    echo "== $target, $seconds s"
    mkdir -p "corpus/$target"
    seeds=()
    [ -d "seeds/$target" ] && seeds=("seeds/$target")
    cargo +nightly fuzz run "$target" "corpus/$target" "${seeds[@]}" -- -max_total_time="$seconds" -print_final_stats=1 2>&1 | tail -4
done
