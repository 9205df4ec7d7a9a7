#!/bin/sh
# The batch that a result says is the largest fits, and the next one does not, for both readings of
# a data sheet's GB and whatever batch was asked for: drawn steps of inference.
# largest_batch.sh PODSIM ROOT
#
# With PODSIM_TEST_THIN=N every N-th step is run. Where a step is too
# long for its peak the result is an estimate, and only the same from both batches.
set -u
podsim=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
every=${PODSIM_TEST_THIN:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$2" || exit 1

# Each line is a step: machine, mesh, workload without batch and braces, whether chunk by chunk, two
# batches, and a number whose multiples are batches that no rank refuses.
awk -v steps=120 '
function drawn(from, to) {
    seed = (seed * 16807) % 2147483647
    return from + seed % (to - from + 1)
}
function one(text, parts, count) { count = split(text, parts, ";"); return parts[drawn(1, count)] }
BEGIN {
    seed = 14
    h100 = "{\"tp\":[\"gpu\"]};{\"dp\":[\"gpu:2\"],\"tp\":[\"gpu:4\"]};{\"dp\":[\"gpu\"]}" \
        ";{\"tp\":[\"gpu:4\"],\"pp\":[\"gpu:2\"]};{\"cp\":[\"gpu:2\"],\"tp\":[\"gpu:4\"]}"
    v5e = "{\"tp\":[\"x\",\"y\"]};{\"tp\":[\"x\"],\"dp\":[\"y\"]}" \
        ";{\"tp\":[\"x\"],\"fsdp\":[\"y\"]}" \
        ";{\"tp\":[\"x\"],\"pp\":[\"y\"]};{\"tp\":[\"x\"],\"tp_d\":[\"y\"]}"
    for (i = 0; i < steps; i++) {
        gpus = drawn(0, 1)
        machine = "{\"chip\":\"tpu-v5e\",\"shape\":\"4x4\"}"
        if (gpus) machine = "{\"chip\":\"h100-sxm\",\"gpus\":8}"
        mesh = one(gpus ? h100 : v5e)
        kind = one("decode;decode;prefill;mixed;generate")
        model = one("llama-3-8b;gpt-oss-20b;qwen3-32b;llama-2-13b")
        work = "\"kind\":\"" kind "\",\"model\":\"" model "\""
        if (kind == "decode" || kind == "mixed") work = work ",\"context\":" drawn(1, 4000)
        if (kind == "mixed" && drawn(0, 1))
            work = work ",\"prompts\":2,\"prompt\":[" drawn(1, 3000) "," drawn(1, 300) "]"
        else if (kind != "decode")
            work = work ",\"prompt\":" drawn(1, 3000)
        if (kind == "generate") work = work ",\"output\":50,\"page\":50"
        if (kind == "prefill" && drawn(0, 1)) work = work ",\"chunk\":512"
        if (drawn(0, 1)) work = work ",\"formats\":{\"weights\":\"int8\"}"
        apart = drawn(0, 2) == 0 && mesh ~ /"tp"/ && kind != "mixed" ? 16 : 1
        if (apart > 1) work = work ",\"activations\":\"tokens\""
        print machine, mesh, work, drawn(0, 1) ? "true" : "false", apart * drawn(1, 9), \
            apart * drawn(10, 99), apart
    }
}' > "$work/steps"

# run BATCH [OPTION]...: of the step of the line.
run() {
    batch=$1
    shift
    "$podsim" run llama3-8b-decode-h100-1 --quiet --set "/machine=$machine" --set "/mesh=$mesh" \
        --set "/workload={$workload,\"batch\":$batch}" --set "/run/collective_matmul=$chunks" \
        "$@" 2> "$work/errors"
}

# Both readings, and whether they are estimates; nothing if the step cannot be so.
said() {
    run "$1" --json "$work/result" || return
    sed -n 's/^ *"max_batch": \([0-9]*\),$/\1/p; s/^ *"max_batch_is_estimate": \([a-z]*\),$/\1/p' \
        "$work/result" | head -n 2 | paste -sd' ' -
    sed -n 's/^ *"hbm_gib": {"max_batch": \([0-9]*\),.*/\1/p' "$work/result"
    rm -f "$work/result"
}

# fits BATCH READING: what the exit status says, and where that is an error, another reason.
fits() {
    run "$1" --set "/machine/hbm_gib=$2" > /dev/null && echo fits && return
    grep -q 'does not fit the memory' "$work/errors" && echo full || echo refused
}

found=0 failures=0 count=0
while read -r machine mesh workload chunks low high every_batch; do
    count=$((count + 1))
    [ $((count % every)) -eq 0 ] || continue
    one=$(said "$low" | paste -sd' ' -)
    other=$(said "$high" | paste -sd' ' -)
    [ -n "$one" ] || continue
    step="$machine $mesh $workload $chunks"
    if [ -n "$other" ] && [ "$one" != "$other" ]; then
        echo "$step: batch $low says $one, batch $high $other"
        failures=$((failures + 1))
    fi
    set -- $one
    [ "$2" = false ] || continue
    found=$((found + 1))
    for reading in "$1 false" "$3 true"; do
        most=${reading% *}
        fit="$(fits "$most" "${reading#* }") $(fits $((most + 1)) "${reading#* }")"
        case $fit in
            "fits full") continue ;;
            "fits refused")
                next=$((most / every_batch * every_batch + every_batch))
                [ "$(fits "$next" "${reading#* }")" != fits ] && continue
                fit="$fit, but $next fits"
                ;;
        esac
        echo "$step: hbm_gib ${reading#* }, largest batch $most: it and the next $fit"
        failures=$((failures + 1))
    done
done < "$work/steps"
echo "$found largest batches of $((count / every)) steps, $failures wrong"
[ "$failures" -eq 0 ] && [ $((4 * found)) -ge $((count / every)) ]
