#!/bin/sh
# Every header compiles alone, and twice: headers.sh ROOT COMPILER [FLAG...].
set -eu
root=$1
shift
cd "$root"
failed=0
count=0
for header in $(find sim topology workloads tools tests -name '*.h' | sort); do
    count=$((count + 1))
    if ! printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
        "$@" -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Wconversion \
            -Wstrict-prototypes -Werror -fsyntax-only -I. -x c -; then
        echo "$header does not compile alone" >&2
        failed=1
    fi
done
echo "$count headers"
[ "$count" -gt 10 ] && [ "$failed" -eq 0 ]
