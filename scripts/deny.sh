#!/usr/bin/env bash
# Licences, sources and advisories of all dependencies, by cargo-deny and deny.toml. What cannot be checked here is
# skipped, which `make test` counts: all of it without cargo-deny (scripts/test-deps.sh installs it), the advisories
# without their database, which is fetched from https://github.com/RustSec/advisory-db by git. A mirror of it serves
# too: git config --global url.MIRROR.insteadOf https://github.com/RustSec/advisory-db
set -euo pipefail
cd "$(dirname "$0")/.."
if ! cargo deny --version >/dev/null 2>&1; then
    scripts/skipped.sh cargo-deny "licences and advisories" "cargo-deny is not installed (scripts/test-deps.sh)"
    exit
fi
cargo deny --locked check licenses sources
if why=$(GIT_TERMINAL_PROMPT=0 timeout 60 cargo deny --locked fetch db 2>&1); then
    cargo deny --locked --offline check advisories
else
    why=$(tail -1 <<<"$why")
    scripts/skipped.sh advisories "security advisories" "${why:-their database did not arrive within 60 s}"
fi
