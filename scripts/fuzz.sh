#!/usr/bin/env bash
# Runs every fuzz target, or those named, for so many seconds each, PARALLEL of them at once, and prints a table.
# Fails when an input makes a target panic, take more than 10 s or use more than 2 GiB; the table names that input.
#   scripts/fuzz.sh SECONDS [TARGET...]
# rustup installs nightly Rust and cargo installs cargo-fuzz where they are missing.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=${1:-600}
shift || true
parallel=${PARALLEL:-$(nproc)}

cargo +nightly --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal
command -v cargo-fuzz >/dev/null 2>&1 || cargo install --locked cargo-fuzz
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cargo +nightly fuzz list)
cargo +nightly fuzz build --features libfuzzer

host=$(rustc +nightly --version --verbose | sed -n 's/^host: //p')
export BINARIES="${CARGO_TARGET_DIR:-../target}/$host/release" SECONDS_EACH="$seconds"

# One target: its log and its row of the table go to artifacts/TARGET/.
run() {
    local target=$1 folder="artifacts/$1" result=passed status=0 input
    mkdir -p "corpus/$target" "$folder"
    rm -f "$folder/row"
    "$BINARIES/$target" "corpus/$target" "seeds/$target" -artifact_prefix="$folder/" -max_total_time="$SECONDS_EACH" \
        -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 >"$folder/log" 2>&1 || status=$?
    if [ "$status" -ne 0 ]; then
        input=$(sed -n 's/.*Test unit written to //p' "$folder/log" | tail -1)
        result="FAILED: ${input:-no input, see $folder/log}"
    fi
    printf '| %s | %s | %s | %s |\n' "$target" "$SECONDS_EACH" \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/log" | tail -1)" "$result" | tee "$folder/row"
}
export -f run
printf '%s\n' "${targets[@]}" | xargs -P "$parallel" -I{} bash -c 'run {}' >/dev/null

echo "| target | seconds | executions | result |"
echo "|---|---:|---:|---|"
failed=0
for target in "${targets[@]}"; do
    cat "artifacts/$target/row"
    if grep -q FAILED "artifacts/$target/row"; then failed=1; fi
done
if [ "$failed" -ne 0 ]; then
    echo "fuzz: a target failed; its log is fuzz/artifacts/TARGET/log, and" >&2
    echo "  cd fuzz && cargo +nightly fuzz run --features libfuzzer TARGET INPUT   feeds the input again" >&2
fi
exit "$failed"
