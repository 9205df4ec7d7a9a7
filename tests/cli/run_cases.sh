#!/bin/sh
# Runs the cases of a file against a built podsim:
#
#   run_cases.sh PODSIM ROOT FILE.cases          and compares standard error with FILE.err
#   run_cases.sh --bless PODSIM ROOT FILE.cases  writes FILE.err; the difference is a review
#
#   A sentence that names the case
#   $ shell command; several such lines are one script; podsim is in PATH, the folder is fresh and
#   $ holds base.json, and staged.json with pp; $ROOT is the repository, $TRAIN its scenarios/train;
#   $ show_timeline prints what a timeline says
#   status 1              (0 if it is left out)
#   out: PATTERN          some line of standard output matches the shell pattern, wholly
#   err: PATTERN          the same of standard error
#   out= , err=           nothing at all was printed there
#   file: NAME            exists afterwards
#   no file: PATTERN      nothing matches afterwards
#
# A blank line ends a case. All that a case prints on standard error is held against FILE.err, in
# which WORK and ROOT stand for the two folders. The exit status is 0 if all that were run held.
# With PODSIM_TEST_CASES=N the first case and every N-th are run, else all of them: each says
# something of its own, so only builds that repeat what another one has shown leave some out.
set -u
bless=no
if [ "$1" = --bless ]; then
    bless=yes
    shift
fi
podsim=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
ROOT=$(cd "$2" && pwd)
cases=$3
TRAIN=$ROOT/scenarios/train
export ROOT TRAIN
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
PATH=$(dirname "$podsim"):$(dirname "$podsim")/tests/cli:$PATH
export PATH
every=${PODSIM_TEST_CASES:-1}
if [ $bless = yes ]; then every=1; fi
: > "$work/ran"
: > "$work/said"
: > "$work/kept"
walked=0
count=0
failures=0

some_line_matches() { # FILE PATTERN
    while IFS= read -r some_line || [ -n "$some_line" ]; do
        # shellcheck disable=SC2254 # The pattern is meant as one.
        case $some_line in $2) return 0 ;; esac
    done < "$1"
    return 1
}

complain() {
    if [ "$held" = yes ]; then
        echo "not held: $title"
        echo "  \$ $(cat "$work/script")"
        echo "  status $got; standard output, then error:"
        head -c 2000 "$work/out" | sed 's/^/  | /'
        head -c 2000 "$work/err" | sed 's/^/  ! /'
        failures=$((failures + 1))
    fi
    held=no
    echo "  expected $1"
}

none_exists() {
    for some_file in $1; do
        if [ -e "$some_file" ]; then return 1; fi
    done
}

judge() {
    walked=$((walked + 1))
    [ $(((walked - 1) % every)) -eq 0 ] || return 0
    count=$((count + 1))
    held=yes
    rm -rf "$work/here"
    mkdir "$work/here"
    cp "$ROOT/tests/cli/base.json" "$ROOT/tests/cli/staged.json" "$work/here/"
    (cd "$work/here" && sh "$work/script" > "$work/out" 2> "$work/err" < /dev/null)
    got=$?
    echo "== $title" >> "$work/ran"
    # gcov, too, says where it cannot write.
    sed '/^libgcov /d' "$work/err" > "$work/words"
    [ ! -s "$work/words" ] || { echo "== $title" && cat "$work/words"; } >> "$work/said"
    [ "$got" -eq "$status" ] || complain "status $status"
    while IFS= read -r expectation; do
        rest=${expectation#*[:=] }
        case $expectation in
        "out: "*) some_line_matches "$work/out" "$rest" || complain "$expectation" ;;
        "err: "*) some_line_matches "$work/err" "$rest" || complain "$expectation" ;;
        "out="*) [ ! -s "$work/out" ] || complain "nothing on standard output" ;;
        "err="*) [ ! -s "$work/err" ] || complain "nothing on standard error" ;;
        "file: "*) [ -s "$work/here/$rest" ] || complain "$expectation" ;;
        "no file: "*) (cd "$work/here" && none_exists "$rest") || complain "$expectation" ;;
        *) complain "a rule that is known, not: $expectation" ;;
        esac
    done < "$work/expectations"
}

start() {
    title=
    status=0
    : > "$work/script"
    : > "$work/expectations"
}

start
while IFS= read -r line || [ -n "$line" ]; do
    case $line in
    "#"*) ;;
    "")
        [ -z "$title" ] || judge
        start
        ;;
    "\$ "*) printf '%s\n' "${line#"\$ "}" >> "$work/script" ;;
    "status "*) status=${line#status } ;;
    *)
        if [ -z "$title" ]; then title=$line; else printf '%s\n' "$line" >> "$work/expectations"; fi
        ;;
    esac
done < "$cases"
[ -z "$title" ] || judge

# All cases at once: a comparison for each would cost more than the cases.
kept=${cases%.cases}.err
sed -e "s|$work|WORK|g" -e "s|$ROOT|ROOT|g" "$work/said" > "$work/found"
if [ $bless = yes ]; then cp "$work/found" "$kept"; fi
[ ! -e "$kept" ] || awk 'NR == FNR { ran[$0] = 1; next }
    /^== / { is_of_one = $0 in ran }
    is_of_one' "$work/ran" "$kept" > "$work/kept"
if ! diff -u "$work/kept" "$work/found"; then
    echo "standard error has changed; if that is meant:"
    echo "tests/cli/run_cases.sh --bless build/podsim . ${cases#"$ROOT/"}"
    failures=$((failures + 1))
fi

echo "$count of $walked cases, $failures not held"
[ "$count" -gt 0 ] && [ "$failures" -eq 0 ]
