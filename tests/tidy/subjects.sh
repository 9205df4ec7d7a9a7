#!/bin/sh
# Subjects of commits have at most 72 columns: subjects.sh ROOT. Commits up to `base` were made
# before this test; where the history is not here, as in an archive or a shallow clone, it is
# skipped.
set -eu
root=$1
base=d59564a0be8ff98b6a1a13ffdce7f43f0387c454
columns=72
cd "$root"

# too_long: prints lines "COMMIT SUBJECT" of standard input whose subject is too long.
too_long() {
    LC_ALL=C.UTF-8 grep -E "^[^ ]* .{$((columns + 1)),}" || true
}

canary=$(printf 'canary %0*d' $((columns + 1)) 0)
if [ "$(printf '%s\n' "$canary" | too_long)" != "$canary" ]; then
    echo "the canary passed: nothing is judged" >&2
    exit 1
fi
if [ "$(printf 'short %0*d\n' "$columns" 0 | too_long)" != "" ]; then
    echo "a subject of $columns columns is refused" >&2
    exit 1
fi
# An archive may lie inside another repository, which is not judged.
if [ "$(git rev-parse --show-prefix 2> /dev/null || echo none)" != "" ] ||
    ! git merge-base --is-ancestor "$base" HEAD 2> /dev/null; then
    echo "the history since $base is not here"
    exit 77
fi
subjects=$(git log --no-merges --format='%h %s' "$base..HEAD")
found=$(printf '%s\n' "$subjects" | too_long)
if [ "$found" != "" ]; then
    printf '%s\n' "$found" >&2
    echo "these subjects have more than $columns columns (CONTRIBUTING.md)" >&2
    exit 1
fi
git rev-list --no-merges --count "$base..HEAD"
