#!/bin/sh
# Compares what a command prints with what it printed when someone last looked at it:
#
#   golden.sh PODSIM ROOT NAME            one line of goldens.txt against NAME.expect
#   golden.sh --bless PODSIM ROOT [NAME]  writes it, or all of them; the difference is a review
#
# The digest of each run is in these files, and every build (compilers, optimisation levels,
# sanitizers) is held against the same ones. With PODSIM_TEST_CASES=N the lines of the first
# scenario, model or collective and of every N-th are compared; PODSIM_TEST_DIGESTS=N sets N for
# scenarios alone.
set -eu
bless=no
if [ "$1" = --bless ]; then
    bless=yes
    shift
fi
podsim=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$2
wanted=${3:-}
folder=$root/tests/golden
cd "$root"

# Digests of templates are held, and written, by tests of their own.
if [ $bless = yes ]; then
    case $wanted in
    "" | templates)
        for test in golden/test_templates unit/test_workload_counts \
            unit/test_workload_counts_experts; do
            PODSIM_TEST_THIN=1 PODSIM_BLESS=yes "$(dirname "$podsim")/tests/$test"
        done
        [ "$wanted" = "" ] || exit 0
        ;;
    esac
fi
work=$(mktemp -d)
output=$work/output
trap 'rm -rf "$work"' EXIT
sum() { cksum < "$1" | cut -d ' ' -f 1; }
# taken NAME: prints N, where one of N lines of NAME is compared.
taken() {
    [ $bless = yes ] && echo 1 && return
    case $1 in
    digests) echo "${PODSIM_TEST_DIGESTS:-${PODSIM_TEST_CASES:-1}}" ;;
    *) echo "${PODSIM_TEST_CASES:-1}" ;;
    esac
}
found=0
failed=0

# A few scenarios under `fifo`: name, digest and step.
print_fifo_digests() {
    for path in context/llama3-70b-fsdp-tp-v5p-16x16x32 gpu/llama3-70b-fsdp-tp-gb200-512 \
        gpu/mlp-fsdp-h100-16 megatron/megatron-39.1b-a100-512 moe/mixtral-8x7b-dp-ep8-h100-32 \
        pipeline/llama3-8b-pp4-h100-a100-32 train/llama2-13b-fsdp-v5p-16x16x16 \
        train/llama3-70b-dp-v5p-16x16x16 train/llama3-8b-fsdp-v5e-8x8; do
        set -- "$("$podsim" run "scenarios/$path.json" --json - --quiet \
            --set /run/arbitration=fifo --set /workload/allow_oversubscription=true)"
        digest=$(printf '%s\n' "$1" | sed -n 's/^ *"digest": "\{0,1\}\([^",]*\).*/\1/p')
        step=$(printf '%s\n' "$1" | sed -n 's/^ *"step_time_ps": \([0-9]*\).*/\1/p')
        echo "$(basename "$path") $digest $step"
    done
}

# All scenarios in one table: name, digest, step, and of pipelines the period of each; in another,
# outputs.expect, checksums of the whole JSON and of the whole text of these runs. None may need
# more memory than its chips have, but for one whose question says so. Left out are two that take
# seconds, whose steps the validation of docs/megatron.md plays anyway. One of 16 pipeline ranks and
# 120 microbatches takes a minute, and is played with 4 and 8. Four are of a single step: their
# periods take most of the time, others of the same kind have theirs, and docs/pipeline.md has the
# one of 405B.
print_digests() {
    walked=0
    for file in scenarios/*/*.json; do
        set --
        case $file in
        *llama3-70b-dp-v5p-16x16x16* | *deepseek-v3-h800-2048*)
            set -- --set /workload/allow_oversubscription=true
            ;;
        esac
        case $file in *megatron-529.6b* | *megatron-1008b*) continue ;; esac
        walked=$((walked + 1))
        [ $(((walked - 1) % every)) -eq 0 ] || continue
        case $file in
        *deepseek-v3-h800-2048*)
            set -- "$@" --set /machine/nodes=64 --set '/mesh/pp=["node:4"]' \
                --set '/workload/layout="Et*8|(t*8|)*6t*5mL"' --set /workload/accumulate=8 \
                --set /workload/batch_tokens=4194304
            ;;
        esac
        case $file in
        *llama3-405b-pp16* | *llama3-8b-pp4-h100-1024* | *llama3-8b-pp4-fsdp16* | *megatron-310.1b*)
            set -- "$@" --set /run/steps=1
            ;;
        esac
        rm -f "$work/json"
        "$podsim" run "$file" --json "$work/json" "$@" > "$work/text" || true
        digest=$(sed -n 's/^ *"digest": "\{0,1\}\([^",]*\).*/\1/p' "$work/json")
        step=$(sed -n 's/^ *"step_time_ps": \([0-9]*\).*/\1/p' "$work/json")
        period=$(sed -n 's/^ *"period_time_ps": \([0-9]*\).*/\1/p' "$work/json")
        echo "$(basename "$file" .json) $digest $step${period:+ $period}"
        echo "$(basename "$file" .json) json $(sum "$work/json") text $(sum "$work/text")" \
            >> "$work/outputs"
    done
}

# What is said of every scenario without a run: a checksum of each product.
print_products() {
    walked=0
    for file in scenarios/*/*.json; do
        walked=$((walked + 1))
        [ $(((walked - 1) % every)) -eq 0 ] || continue
        sums=$(basename "$file" .json)
        for product in 'show scenario' 'show machine' 'show mesh' 'show graph' 'show program'; do
            # shellcheck disable=SC2086 # A verb is two words.
            "$podsim" $product "$file" > "$work/text" 2>&1 || true
            sums="$sums $product $(sum "$work/text")"
        done
        echo none > "$work/json"
        "$podsim" roofline "$file" --json "$work/json" > "$work/text" 2>&1 || true
        sums="$sums roofline $(sum "$work/text")"
        "$podsim" show op "$file" --format json > "$work/text" 2>&1 || true
        sums="$sums ops $(sum "$work/text")"
        echo "$sums roofline json $(sum "$work/json")"
    done
}

# The same of every model, in one step on GPUs: its blocks, its times on the roofline, and its
# kernels between matmuls.
print_models() {
    walked=0
    for model in $("$podsim" list models | awk 'NF == 0 { exit } NR > 1 { print $1 }'); do
        walked=$((walked + 1))
        [ $(((walked - 1) % every)) -eq 0 ] || continue
        set -- llama3-70b-fsdp-tp-h100-1024 --set /workload/model="$model"
        "$podsim" show graph "$@" > "$work/graph" 2>&1 || true
        "$podsim" roofline "$@" > "$work/text" 2>&1 || true
        "$podsim" show op "$@" --format json --set /machine/profile=measured \
            --set /machine/stack=torch-eager > "$work/json" 2>&1 || true
        echo "$model graph $(sum "$work/graph") roofline $(sum "$work/text")" \
            "ops $(sum "$work/json")"
    done
}

# Each collective on links that it shares with itself: grids with and without a ring, with a twist,
# slices, networks of nodes and of leaves. Sizes lie around the choice of another way or algorithm.
print_collectives() {
    walked=0
    for machine in tpu-v5p:4x4x4 tpu-v5e:4x8 v4p:4x4x8_twisted tpu-v5e:2x4,slices=3 \
        h100-sxm:nodes=3 h100-sxm:nodes=8,leaf.oversubscription=4 mi300x:nodes=2; do
        for op in all_gather reduce_scatter all_reduce all_to_all broadcast reduce gather \
            scatter sendrecv host_load; do
            walked=$((walked + 1))
            [ $(((walked - 1) % every)) -eq 0 ] || continue
            rm -f "$work/json"
            "$podsim" collective --machine $machine --op "$op" -b 64K -e 8M -i 1233K --full \
                --json "$work/json" > "$work/text" 2>&1 || cp "$work/text" "$work/json"
            echo "$machine $op $(cksum < "$work/json") $(cksum < "$work/text")"
        done
    done
}

# What nobody reads as text, drawings of machines and of points, and timelines: name, checksum and
# bytes of each. A timeline names the version, which is blanked.
print_pictures() {
    drawn=$work/drawn
    version=$("$podsim" --version | sed 's/.* //')
    for machine in tpu-v5e:8x16 tpu-v5p:4x4x8,slices=2 v4p:4x4x8_twisted h100-sxm:nodes=128 \
        gb200-nvl72:nodes=4 gb200-nvl72:gpus=144,nodes=8 mi300x:nodes=2; do
        echo "$machine $("$podsim" show machine --machine $machine --svg - | cksum)"
    done
    "$podsim" pareto llama3-8b-decode-h100-1 --context 1K,4K --svg "$drawn" > /dev/null
    echo "llama3-8b-decode-h100-1 $(cksum < "$drawn")"
    for path in tests/cli/base tests/cli/staged scenarios/multislice/mlp-dp-v5p-4x2x2x1 \
        scenarios/pipeline/llama3-8b-pp4-fsdp-h100-32 \
        scenarios/train/llama3-8b-fsdp-offload-v5e-2x4 \
        scenarios/moe/mixtral-8x7b-dp-ep8-h100-32; do
        "$podsim" run $path.json --quiet --trace "$drawn"
        echo "$(basename $path) $(LC_ALL=C sed "s/$version/0.0.0/g" "$drawn" | cksum)"
    done
    "$podsim" run tests/cli/staged.json --quiet --trace "$drawn" --trace-chips all
    echo "staged, all chips $(LC_ALL=C sed "s/$version/0.0.0/g" "$drawn" | cksum)"
}

# The JSON Schema, a key a line.
print_schema() {
    "$podsim" show schema | sed 's/"[a-z_]*": {"description"/\
&/g'
}

# The catalogues, and an entry or two of each: a checksum of what is said.
print_lists() {
    for list in chips shapes collectives models blocks ops recipes presets schedules \
        scenarios 'recipes current' 'chips gb200-nvl72' 'chips tpu-v5p' 'shapes v5p-8192' \
        'collectives all_reduce_double_tree' 'models deepseek-v3' 'models llama-3-70b' \
        'blocks experts' 'ops attention' \
        'kernels h100-sxm.trtllm' 'presets megatron' 'schedules zb-v' 'schedules dualpipe'; do
        # shellcheck disable=SC2086 # A catalogue, or with an entry.
        echo "$list $("$podsim" list $list | cksum)"
    done
}

# held NAME FILE EVERY: against NAME.expect, of which the first line and every EVERY-th are there.
held() {
    if [ $bless = yes ]; then
        cp "$2" "$folder/$1.expect"
        return
    fi
    awk -v every="$3" 'every == 1 || NR % every == 1' "$folder/$1.expect" > "$work/expected"
    diff -u "$work/expected" "$2" && return
    echo "$1: podsim $arguments prints something else than it did;"
    echo "if that is meant: tests/golden/golden.sh --bless build/podsim . $name"
    failed=1
}

while IFS= read -r line; do
    case $line in "#"* | "") continue ;; esac
    name=${line%%: *}
    arguments=${line#*: }
    if [ -n "$wanted" ] && [ "$wanted" != "$name" ]; then continue; fi
    found=$((found + 1))
    every=$(taken "$name")
    case $arguments in
    digests)
        : > "$work/outputs"
        print_digests > "$output"
        held "$name" "$output" "$every"
        held outputs "$work/outputs" "$every"
        ;;
    products)
        print_products > "$output"
        held "$name" "$output" "$every"
        ;;
    models)
        print_models > "$output"
        held "$name" "$output" "$every"
        ;;
    digests-fifo)
        print_fifo_digests > "$output"
        held "$name" "$output" 1
        ;;
    collectives)
        print_collectives > "$output"
        held "$name" "$output" "$every"
        ;;
    pictures | schema | lists)
        "print_$name" > "$output"
        held "$name" "$output" 1
        ;;
    *)
        # shellcheck disable=SC2086 # The arguments are several words.
        "$podsim" $arguments > "$output" || failed=1
        held "$name" "$output" 1
        ;;
    esac
done < "$folder/goldens.txt"
[ "$found" -gt 0 ] && [ "$failed" -eq 0 ]
