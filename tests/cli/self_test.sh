#!/bin/sh
# The runner of cases itself: what does not hold must be noticed. self_test.sh ROOT
set -u
root=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '#!/bin/sh\necho "on output"\necho "on error" >&2\n[ $# -eq 0 ] || touch "$1"\nexit 1\n' \
    > "$folder/podsim"
chmod +x "$folder/podsim"
failed=0
run_cases() { # [--bless]
    "$root/tests/cli/run_cases.sh" "$@" "$folder/podsim" "$root" "$folder/x.cases" \
        > "$folder/log" 2>&1
}

expect() { # STATUS EXPECTATION...
    expected=$1
    shift
    { echo "a case"; echo "\$ podsim made"; printf '%s\n' "$@"; } > "$folder/x.cases"
    run_cases
    got=$?
    if [ "$got" -ne "$expected" ]; then
        echo "status $got instead of $expected for: $*"
        cat "$folder/log"
        failed=1
    fi
}

printf '== a case\non error\n' > "$folder/x.err"
expect 0 "status 1" "out: on output" "err: on *" "no file: *.tmp*"
expect 1 "status 0"
expect 1 "status 1" "out: on error"
expect 1 "status 1" "out: on"
expect 1 "status 1" "err: on output"
expect 1 "status 1" "err="
expect 1 "status 1" "out="
expect 1 "status 1" "file: other"
expect 1 "status 1" "file: made"
expect 1 "status 1" "no file: ma*"
expect 1 "status 1" "something else"

# What was kept of standard error: another text, less, more, of a case that is no longer there.
for kept in 'on terror\n' '' 'on error\non error\n'; do
    # shellcheck disable=SC2059 # The lines are the format.
    printf "== a case\n$kept" > "$folder/x.err"
    expect 1 "status 1"
done
rm "$folder/x.err"
expect 1 "status 1"

: > "$folder/x.cases"
if run_cases; then
    echo "no case at all is taken for success"
    failed=1
fi

# One of three cases: the first and the fourth of five, and not the second, which does not hold. Of
# what was kept, only what these two said is compared, in which no folder's name stands.
for number in 1 2 3 4 5; do
    # shellcheck disable=SC2016 # The case has these words, for its own shell.
    printf 'case %s\n$ echo "in $PWD of $ROOT" >&2; podsim\n' $number
    [ $number -eq 2 ] || echo "status 1"
    echo
done > "$folder/x.cases"
run_cases --bless
kept='== case 5 in WORK/here of ROOT on error '
if [ "$(sed -n 13,15p "$folder/x.err" | tr '\n' ' ')" != "$kept" ]; then
    echo "what is kept of standard error:"
    cat "$folder/x.err"
    failed=1
fi
for every in 1 3; do
    got=0
    PODSIM_TEST_CASES=$every run_cases || got=1
    if [ "$every $got $(tail -n 1 "$folder/log")" != "1 1 5 of 5 cases, 1 not held" ] &&
        [ "$every $got $(tail -n 1 "$folder/log")" != "3 0 2 of 5 cases, 0 not held" ]; then
        echo "one of $every cases: status $got"
        cat "$folder/log"
        failed=1
    fi
done
exit $failed
