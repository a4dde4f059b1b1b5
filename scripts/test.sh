#!/usr/bin/env bash
# Runs all tests, for `make test`: lints, the workspace with the fuzz targets on their seeds, the guests of QEMU. Then
# lists what was skipped and why, and ends with "1,221 passed, 0 failed, 6 skipped". Fails where one of them fails.
#   LINERATE_EXPECTED="userns veth": tests that lack one of these fail instead of being skipped
#   (their names: linerate_testing::Need).
set -uo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LINERATE_SKIPS="$folder/skips" LINERATE_TURNS="$folder/turns"
export CARGO_TERM_COLOR=never CARGO_TERM_QUIET=false CARGO_TERM_VERBOSE=false
log="$folder/log"
# Most tests wait rather than compute.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc)))}
touch "$LINERATE_SKIPS" "$LINERATE_TURNS" "$log"
status=0

step() {
    local begun=$SECONDS code out writer
    # Not a pipe to tee: a process that a test left behind would keep it open for ever.
    exec {out}> >(tee -a "$log")
    writer=$!
    "$@" >&"$out" 2>&1
    code=$?
    exec {out}>&-
    for _ in $(seq 50); do
        kill -0 "$writer" 2>/dev/null || break
        sleep 0.1
    done
    if kill "$writer" 2>/dev/null; then
        echo "make test: a process that $* started runs on and holds its output" | tee -a "$log"
    fi
    echo "make test: $* took $((SECONDS - begun)) s" | tee -a "$log"
    echo "make test: $* ended with $code" | tee -a "$log"
    [ "$code" -eq 0 ] || status=$code
    return "$code"
}

# What is not formatted or does not compile is not worth half an hour.
if step make --no-print-directory check; then
    test=(cargo test --workspace --locked --profile fast --no-fail-fast)
    step "${test[@]}" --lib --bins --test '[!iv]*'
    # These take turns: a thread for each that waits until it is alone (tests/it/harness/machine.rs).
    step env RUST_TEST_THREADS=128 "${test[@]}" --test it
    step "${test[@]}" --doc
    step make --no-print-directory test-vm
fi
echo "make test: the longest tests of the program, seconds, alone or beside others:"
sort -rn "$LINERATE_TURNS" | head -20
scripts/test-summary.sh "$LINERATE_SKIPS" "$log" || status=$((status > 0 ? status : 1))
exit "$status"
