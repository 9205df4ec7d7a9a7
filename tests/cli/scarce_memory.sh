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
#
# Then the first thread cannot start, or all but the first; and the address space is limited, which
# stops threads, the stack and everything else. At last the first thread's stack is limited, which
# stops nothing.
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

# Whether a command that failed said one sentence of its own.
says_why() { [ "$(wc -l < "$work/err")" -eq 1 ] && grep -q '^podsim: ' "$work/err"; }

of=threads
while read -r command; do
    # shellcheck disable=SC2086
    run 0 $command
    cp "$work/out" "$work/whole_out"
    # shellcheck disable=SC2086
    run 1 $command && complain "$command: works without a thread"
    grep -q 'no thread can be started' "$work/err" || complain "$command: without a thread"
    # shellcheck disable=SC2086
    run 2 $command || complain "$command: fails with one thread"
    cmp -s "$work/out" "$work/whole_out" || complain "$command: differs with one thread"
done << 'END'
run mlp-fsdp-v5p-16
pipeline --stages 4 -j 3
regimes --machine tpu-v5e:2x4 --op all_gather -j 3
collective --machine tpu-v5e:2x4 --op all_reduce -b 1K -e 1M -f 32 -j 3
END

# A small stack moves the command to a thread.
(
    ulimit -s 200
    run 1 --version
) && complain "--version: works with a small stack and no thread"
grep -q 'no thread can be started' "$work/err" || complain "--version: a small stack, no thread"

# A refusal says which models have what is refused, or that there is no memory.
cat > "$work/refused.json" << 'END'
{"podsim": 1, "machine": {"chip": "tpu-v5e", "shape": "4x4"}, "mesh": {"dp": ["x", "y"]},
 "workload": {"kind": "train_step", "batch_tokens": 65536, "sequence_length": 4096, "model":
 {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 768,
  "num_hidden_layers": 8, "vocab_size": 32000, "attn_logit_softcapping": 50}}}
END
of=all
run 0 check "$work/refused.json" && complain "check: a model is not refused"
count=$(cat "$work/count")
grep -q 'it is in those of' "$work/err" || complain "check: a model is refused otherwise"
at=$((count > 60 ? count - 60 : 1))
while [ "$at" -le "$count" ]; do
    run "$at" check "$work/refused.json"
    [ $? -eq 1 ] && grep -q 'it is in those of\|memory' "$work/err" ||
        complain "check of a refused model: allocation $at of $count"
    at=$((at + 1))
done

ulimit -c 0
while read -r command; do
    for megabytes in 10 12 16 18 20 22 24 28 32 40; do
        (
            ulimit -v $((megabytes * 1024))
            # shellcheck disable=SC2086
            exec "$podsim" $command
        ) > "$work/out" 2> "$work/err"
        status=$?
        if grep -q 'error while loading shared libraries' "$work/err"; then continue; fi
        [ "$status" -eq 0 ] || { [ "$status" -eq 1 ] && says_why; } ||
            complain "$command: $megabytes MB, status $status"
    done
done << 'END'
run mlp-fsdp-v5p-16 --quiet
pipeline --stages 4
regimes --machine tpu-v5e:2x4 --op all_gather
collective --machine tpu-v5e:2x4 --op all_reduce
show program llama3-8b-pp4-h100-32
roofline llama3-8b-pp4-h100-32
check llama3-8b-pp4-h100-32
END

while read -r command; do
    # shellcheck disable=SC2086
    "$podsim" $command > "$work/whole_out" 2> "$work/err"
    for kilobytes in 24 64 200 1000; do
        (
            ulimit -s "$kilobytes"
            # shellcheck disable=SC2086
            exec "$podsim" $command
        ) > "$work/out" 2> "$work/err" || complain "$command: a stack of $kilobytes KB"
        cmp -s "$work/out" "$work/whole_out" ||
            complain "$command: differs with a stack of $kilobytes KB"
    done
done << 'END'
--version
run llama3-8b-decode-h100-1
show graph llama3-8b-pp4-h100-32
roofline llama3-8b-pp4-h100-32
regimes --machine tpu-v5e:2x4 --op all_gather -j 3
END
exit "$failed"
