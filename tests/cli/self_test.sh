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

expect() { # STATUS EXPECTATION...
    expected=$1
    shift
    { echo "a case"; echo "\$ podsim made"; printf '%s\n' "$@"; } > "$folder/x.cases"
    "$root/tests/cli/run_cases.sh" "$folder/podsim" "$root" "$folder/x.cases" > "$folder/log" 2>&1
    got=$?
    if [ "$got" -ne "$expected" ]; then
        echo "status $got instead of $expected for: $*"
        cat "$folder/log"
        failed=1
    fi
}

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
: > "$folder/x.cases"
if "$root/tests/cli/run_cases.sh" "$folder/podsim" "$root" "$folder/x.cases" > /dev/null; then
    echo "no case at all is taken for success"
    failed=1
fi
exit $failed
