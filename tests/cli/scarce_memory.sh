#!/bin/sh
# Whichever allocation fails, a command does its whole work or says that there is no memory:
#
#   scarce_memory.sh PODSIM LIBRARY ROOT
#
# LIBRARY (scarce_memory.c) is loaded before the command and lets one allocation fail. The command
# then ends with status 0 and the bytes that it always writes, or with status 1, a sentence on
# standard error, and whole files or none: never by a signal, never with part of its output.
#
# 12 of all allocations are tried, and 12 of those that make a text longer. PODSIM_TEST_THIN=N tries
# 12/N, at least 4.
set -u
podsim=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
library=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
tries=$((12 / ${PODSIM_TEST_THIN:-1}))
[ "$tries" -ge 4 ] || tries=4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$3" || exit 1
failed=0

# run AT COMMAND...: writes to $work/out; files of the command are $work/made*.
run() {
    at=$1
    shift
    rm -f "$work"/made*
    SCARCE_MEMORY_AT=$at SCARCE_MEMORY_OF=$of SCARCE_MEMORY_COUNT=$work/count LD_PRELOAD=$library \
        "$podsim" "$@" > "$work/out" 2> "$work/err"
}

complain() {
    echo "scarce_memory: podsim $*" >&2
    head -3 "$work/err" >&2
    failed=1
}

# check STATUS WHAT
check() {
    if [ "$1" -eq 0 ]; then
        for file in "$work"/whole/*; do
            cmp -s "$file" "$work/$(basename "$file")" || complain "$2: $(basename "$file") differs"
        done
    elif [ "$1" -ne 1 ] || [ ! -s "$work/err" ]; then
        complain "$2: status $1"
    else
        for file in "$work"/made*; do
            [ ! -e "$file" ] || cmp -s "$file" "$work/whole/$(basename "$file")" ||
                complain "$2: a part of $(basename "$file")"
        done
    fi
}

while read -r command; do
    command=$(echo "$command" | sed "s|MADE|$work/made|g")
    of=all
    # shellcheck disable=SC2086 # Words of a command.
    run 0 $command || complain "$command: fails with memory enough"
    rm -rf "$work/whole"
    mkdir "$work/whole"
    cp "$work/out" "$work"/made* "$work/whole" 2> /dev/null
    for of in all growing; do
        # shellcheck disable=SC2086
        run 0 $command
        count=$(cat "$work/count")
        i=0
        while [ "$i" -lt "$tries" ]; do
            at=$((1 + i * count / tries))
            # shellcheck disable=SC2086
            run "$at" $command
            check $? "$command: $of, allocation $at of $count"
            i=$((i + 1))
        done
    done
done << 'END'
run llama3-8b-fsdp-v5e-16x16
run mlp-fsdp-v5p-16 --json MADE.json --trace MADE.trace
run llama3-8b-pp4-h100-32-short --trace MADE.gz --json MADE.json
show program mlp-fsdp-v5p-16 --format text
show scenario mlp-fsdp-v5p-16
show machine mlp-fsdp-v5p-16 --svg MADE.svg
collective --machine tpu-v5e:4x4 --op all_reduce -b 1K -e 1M -f 32 --csv MADE.csv
pipeline --stages 4 --schedules auto --svg MADE.svg
calibrate tests/cli/calibrate/h100.rows --chip h100-sxm -o MADE.json
calibrate --script jax
list models
END
exit "$failed"
