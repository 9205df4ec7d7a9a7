#!/bin/sh
# Runs every command that a page shows: docs.sh PODSIM ROOT PAGE.md
#
# Each fenced block marked `sh` is run by sh -e where build/podsim, scenarios/ and tools/ are. If a
# block marked `text` follows it at once, its lines must come out in that order; a line `...` stands
# for any lines.
#
# With PODSIM_TEST_CASES=N, or else PODSIM_TEST_THIN=N, the first block and every N-th are run, and
# all that write files, which others may need.
set -eu
podsim=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$2
page=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/here" "$work/here/build"
ln -s "$podsim" "$work/here/build/podsim"
for entry in scenarios tools topology workloads tests; do
    ln -s "$root/$entry" "$work/here/$entry"
done
export PODSIM_BUILT=1 # tools/run takes build/podsim as it is.

# NUMBER.sh and, where it has one, NUMBER.text
awk -v folder="$work" '
    /^```sh$/ { number++; out = folder "/" number ".sh"; printf "" > out; follows = 0; next }
    /^```text$/ && follows { out = folder "/" number ".text"; printf "" > out; follows = 0; next }
    /^```/ { if (out != "") { close(out); follows = out ~ /sh$/ } else follows = 0; out = ""; next }
    out != "" { print > out; next }
    /[^ ]/ { follows = 0 }
' "$page"

# Lines of the first file in the second, in order.
in_order='
    NR == FNR { want[++wanted] = $0; next }
    { while (at < wanted && want[at + 1] == "...") at++
      if (at < wanted && $0 == want[at + 1]) at++ }
    END { while (at < wanted && want[at + 1] == "...") at++
          if (at < wanted) { print "missing: " want[at + 1]; exit 1 } }'

# Whether a block is run.
thin=${PODSIM_TEST_CASES:-${PODSIM_TEST_THIN:-1}}
walked=0
is_run() { # BLOCK.sh
    if grep -qE '(^|[^0-9<])>|-out|--(svg|json|trace) |(^| )(cp|mv|tee|mkdir) ' "$1"; then
        return 0
    fi
    walked=$((walked + 1))
    [ $(((walked - 1) % thin)) -eq 0 ]
}

count=0
run=0
failed=0
while [ -e "$work/$((count + 1)).sh" ]; do
    count=$((count + 1))
    is_run "$work/$count.sh" || continue
    run=$((run + 1))
    if ! (cd "$work/here" && sh -e "$work/$count.sh" > "$work/out" 2> "$work/err" < /dev/null); then
        echo "$page: block $count fails:"
        cat "$work/$count.sh" "$work/err"
        failed=1
    elif [ -e "$work/$count.text" ] &&
        ! awk "$in_order" "$work/$count.text" "$work/out" > "$work/missing"; then
        echo "$page: block $count prints something else:"
        cat "$work/$count.sh" "$work/out" "$work/missing"
        failed=1
    fi
done
echo "$page: $run of $count blocks"
exit $failed
