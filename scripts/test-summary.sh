#!/usr/bin/env bash
# Sums up a log of `cargo test`, and the skips that tests and steps wrote down:
#   scripts/test-summary.sh SKIPS LOG
# Lists what was ignored, what was skipped, and what failed with the beginning of what it said, and ends with
# "1,221 passed, 0 failed, 6 skipped". A test that skipped a part of itself counts as skipped, not as passed.
# Fails where something failed, or where nothing passed.
#
# Counted as failed besides failed tests: a test binary that ended without its result, a filter that chose no test, and
# a step that failed although no test of it did ("make test: STEP ended with CODE", which scripts/test.sh writes).
set -euo pipefail
awk -F '\t' '
function fail(what) { failed++; failures[++reasons] = what }
function with_commas(number, text) {
    for (; number >= 1000; number = int(number / 1000)) text = sprintf(",%03d", number % 1000) text
    return number text
}
function end_binary() {
    if (binary != "") fail(binary ": ended without a result")
    binary = ""
}

# The skips: test or step, its name, the need, what did not run, why.
FILENAME == ARGV[1] && NF == 5 {
    group = $5 " [" $3 "]"
    line = "\n    " $2 (index($2, $4) ? "" : ": " $4)
    if (!(group in listed)) order[++groups] = group
    if (!((group, line) in seen)) listed[group] = listed[group] line
    seen[group, line] = 1
    if (!($2 in kinds)) skipped++
    kinds[$2] = $1
}
FILENAME == ARGV[1] { next }

/^ +Running [^`]/ || /^ +Doc-tests / { end_binary(); binary = $0; sub(/^ +(Running )?/, "", binary) }
/^test .* \.\.\. FAILED$/ { name = $0; sub(/^test /, "", name); sub(/ \.\.\. FAILED$/, "", name); broken[name] = 1 }
/^---- .* stdout ----$/ { saying = $0; gsub(/^---- | stdout ----$/, "", saying); next }
/^failures:$/ || /^stack backtrace:$/ { saying = "" }
saying != "" && NF && lines[saying] < 12 { lines[saying]++; said[saying] = said[saying] "\n        " substr($0, 1, 600) }
/^test .* \.\.\. ignored/ { ignored++; text = $0; sub(/^test /, "", text); ignores[ignored] = text }
/^test result: / {
    split($0, word, /[ ;.]+/)
    for (i = 1; i in word; i++) {
        if (word[i] == "passed") ran = word[i - 1]
        if (word[i] == "failed") lost = word[i - 1]
        if (word[i] == "filtered") filtered = word[i - 1]
    }
    passed += ran
    failed += lost
    if (ran + lost == 0 && filtered > 0) fail(binary ": the filter chose no test")
    binary = ""
}
/^make test: .* ended with [0-9]+$/ {
    end_binary()
    if ($0 !~ / with 0$/ && failed == before) { text = $0; sub(/^make test: /, "", text); fail(text) }
    before = failed
}

END {
    end_binary()
    for (key in kinds) {
        name = key; sub(/^[^ ]* /, "", name)
        if (name in broken) skipped--
        else if (kinds[key] == "test") passed--
    }
    if (ignored) print "\nignored, for other commands to run:"
    for (i = 1; i <= ignored; i++) print "    " ignores[i]
    if (groups) print "\nskipped, in whole or in part:"
    for (i = 1; i <= groups; i++) print "  " order[i] listed[order[i]]
    if (failed) print "\nfailed:"
    for (name in broken) print "    " name said[name]
    for (i = 1; i <= reasons; i++) print "    " failures[i]
    printf "\n%s passed, %s failed, %s skipped\n", with_commas(passed + 0), with_commas(failed + 0), with_commas(skipped + 0)
    exit failed > 0 || passed <= 0
}
' "$1" "$2"
