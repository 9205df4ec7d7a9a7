#!/bin/sh
# Holds docs/accuracy-published.md, from its tables on, to what podsim prints, and in the same way
# its picture and workloads/residuals.json, of which `podsim run --uncertainty` makes intervals:
#
#   published.sh PODSIM ROOT            compares
#   published.sh PODSIM ROOT --write    writes all three anew; the residuals are built in
#
# The rows of README's table are held to the page.
#
# With PODSIM_TEST_THIN above 1 only a sample of tests is simulated. Each line of their tables has
# to be on the page, and each of their residuals in the file.
set -eu
podsim=$1
page=$2/docs/accuracy-published.md
picture=$2/docs/accuracy-published.svg
residuals=$2/workloads/residuals.json
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "${3:-}" = --write ]; then
    "$podsim" validate --published --markdown "$work/tables" --svg "$picture" \
        --residuals "$residuals" > "$work/text"
    sed '/^## Tests$/,$d' "$page" > "$work/page"
    cat "$work/page" "$work/tables" > "$page"
    exit
fi
# The row's name, and the first number of its last column.
sed -n 's/^| \([A-Za-z0-9]*\) | .* | \([0-9.]* %\)[^|]*|$/\1 | \2/p' "$2/README.md" > "$work/short"
test "$(wc -l < "$work/short")" -ge 8
while IFS= read -r row; do
    awk -F ' [|] ' -v row="$row" '$1 == "| " substr(row, 1, index(row, " ") - 1) {
        if (row == substr($1, 3) " | " $6) found = 1 } END { exit !found }' "$page" ||
        { echo "README.md: not on the page: $row"; exit 1; }
done < "$work/short"
if [ "${PODSIM_TEST_THIN:-1}" -gt 1 ]; then
    "$podsim" validate --published --test T10 --test T17 --test maxtext-v4 \
        --markdown "$work/tables" --residuals "$work/residuals" > "$work/text"
    grep '"ratio_ppm"' "$work/residuals" | grep -o '{.*}' > "$work/rows"
    test "$(wc -l < "$work/rows")" -ge 4
    while IFS= read -r row; do
        grep -qF -- "$row" "$residuals" || { echo "not in workloads/residuals.json: $row"; exit 1; }
    done < "$work/rows"
    grep '^| [a-zA-Z]' "$work/tables" > "$work/lines"
    test "$(wc -l < "$work/lines")" -gt 20
    while IFS= read -r line; do
        grep -qxF -- "$line" "$page" || { echo "not on the page: $line"; exit 1; }
    done < "$work/lines"
    exit
fi
"$podsim" validate --published --markdown "$work/tables" --svg "$work/picture" \
    --residuals "$work/residuals" > "$work/text"
cmp "$residuals" "$work/residuals"
sed -n '/^## Tests$/,$p' "$page" | diff - "$work/tables"
cmp "$picture" "$work/picture"
