#!/bin/sh
# Every source is as clang-format would write it: format.sh ROOT. Versions differ in taste, so only
# the one that .clang-format was written for judges; with another one the test is skipped.
set -eu
root=$1
version=14
cd "$root"
found=$(clang-format --version 2> /dev/null | sed 's/.*version \([0-9]*\).*/\1/') || found=
if [ "$found" != "$version" ]; then
    echo "clang-format $version is not here (found: ${found:-none})"
    exit 77
fi
canary=$(mktemp --suffix=.c)
trap 'rm -f "$canary"' EXIT
printf 'int main( void ){return 0;}\n' > "$canary"
if clang-format --style=file:.clang-format --dry-run -Werror "$canary" 2> /dev/null; then
    echo "the canary passed: nothing is judged" >&2
    exit 1
fi
sources=$(find sim topology workloads tools tests -name '*.[ch]' | sort)
[ "$(echo "$sources" | wc -l)" -gt 100 ]
# shellcheck disable=SC2086
clang-format --dry-run -Werror $sources
echo "$(echo "$sources" | wc -l) sources"
