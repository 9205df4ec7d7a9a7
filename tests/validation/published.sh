#!/bin/sh
# Holds docs/accuracy-published.md, from its tables on, to what podsim prints, and its picture:
#
#   published.sh PODSIM ROOT            compares
#   published.sh PODSIM ROOT --write    writes both anew
#
# With PODSIM_TEST_THIN above 1 only a sample of tests is simulated, and each of its lines has to be
# on the page.
set -eu
podsim=$1
page=$2/docs/accuracy-published.md
picture=$2/docs/accuracy-published.svg
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "${3:-}" = --write ]; then
    "$podsim" validate --published --markdown "$work/tables" --svg "$picture" > "$work/text"
    sed '/^## Tests$/,$d' "$page" > "$work/page"
    cat "$work/page" "$work/tables" > "$page"
    exit
fi
if [ "${PODSIM_TEST_THIN:-1}" -gt 1 ]; then
    "$podsim" validate --published --test T10 --test T17 --test maxtext-v4 \
        --markdown "$work/tables" > "$work/text"
    grep '^| [a-zA-Z]' "$work/tables" > "$work/lines"
    test "$(wc -l < "$work/lines")" -gt 20
    while IFS= read -r line; do
        grep -qxF -- "$line" "$page" || { echo "not on the page: $line"; exit 1; }
    done < "$work/lines"
    exit
fi
"$podsim" validate --published --markdown "$work/tables" --svg "$work/picture" > "$work/text"
sed -n '/^## Tests$/,$p' "$page" | diff - "$work/tables"
cmp "$picture" "$work/picture"
