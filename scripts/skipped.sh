#!/usr/bin/env bash
# Reports that a step of `make test` did not run, as linerate_testing::skipped does for a test:
#   scripts/skipped.sh NEED WHAT WHY
# Fails where LINERATE_EXPECTED names NEED.
set -euo pipefail
case " ${LINERATE_EXPECTED:-} " in
*" $1 "*)
    echo "$2: $3: this machine is expected to have $1 (LINERATE_EXPECTED)" >&2
    exit 1
    ;;
esac
echo "skipped: $2: $3" >&2
[ -z "${LINERATE_SKIPS:-}" ] || printf 'step\t%s\t%s\t%s\t%s\n' "$2" "$1" "$2" "$3" >>"$LINERATE_SKIPS"
