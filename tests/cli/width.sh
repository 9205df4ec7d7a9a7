#!/bin/sh
# No line of any verb is wider than a terminal of 80 or 72 columns, nor of help than one of 60 or 40
# but for a word that is, and at 80 no row of a table is broken:
# width.sh PODSIM ROOT
#
# A row that is broken leaves a line of figures alone, far from the left; a heading that is cut at a
# label's end leaves a part of a word.
#
# All commands run under one pseudo terminal; characters are counted, not bytes. Where no terminal
# can be made (a container without devpts) the test is skipped.
set -u
podsim=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$2" || exit 1
script -qec true /dev/null < /dev/null > "$work/probe" 2>&1 || exit 77

cat > "$work/commands" << 'END'
run nothing
nothing
run
list
list chips
list shapes
list collectives
list models
list scenarios
list schedules
list ops
list blocks
list chips h100-sxm
list chips tpu-v5p
list collectives all_gather_ring
list models deepseek-v3
list ops lookup
list blocks head
list schedules dualpipe
run mlp-fsdp-v5p-16 --set /mesh/xx=1
run llama3-8b-fsdp-v5e-16x16 --set /workload/batch_tokens=1234567
run llama3-8b-fsdp-v5e-16x16
run llama3-8b-pp4-h100-32 --advise
run llama3-70b-dp-v5p-16x16x16 --set /machine/shape=4x4x4 --set /workload/batch_tokens=64K
run llama3-70b-generate-h100-8 --set /workload/page=500
run llama3-8b-pp4-h100-32 --set /machine/profile=measured --set /machine/stack=te --uncertainty
roofline llama3-8b-fsdp-v5e-16x16
roofline llama3-8b-pp4-h100-32
show machine llama3-8b-pp4-h100-32
show machine llama3-8b-fsdp-v5e-16x16
show mesh llama3-8b-pp4-h100-32
show graph llama3-8b-fsdp-v5e-16x16
show program llama3-8b-fsdp-v5e-16x16
show op llama3-8b-fsdp-v5e-16x16
show program llama3-8b-pp4-h100-32
check scenarios/train/mlp-fsdp-v5p-16.json
import megatron tests/cli/import/megatron-llama3-8b.sh --machine h100-sxm
collective --machine h100-sxm:nodes=4 --op all_reduce -b 1K -e 16G -f 256
collective --machine tpu-v5e:4x4 --op all_gather -b 1M -e 16M -f 4
collective --machine tpu-v5p:8x8x8 --op all_reduce --axes x --concurrent 4 -b 1M -e 2M
collective --machine h100-sxm:nodes=4 --op all_to_all --experts 256 --top-k 8 -b 1M -e 1M
pareto llama3-70b-decode-int8-v5e-4x4 --batch 1:512:x8 --shape 2x4,4x4,3x3
pareto llama3-70b-decode-h100-8 --batch 1M --context 16M --mesh {"tp":["gpu","node"]}
regimes --machine h100-sxm:nodes=2 --op all_reduce -b 1K -e 64M -f 64
regimes --machine tpu-v5e:8x16 --op all_gather --axes y -b 1K -e 64M -f 64
pipeline llama3-8b-pp4-h100-32 --schedules 1f1b,zb-v --microbatches 4
pipeline llama3-8b-pp4-h100-32 --schedules 1f1b --microbatches 4
pipeline --stages 8
pipeline --stages 16 --schedules 1f1b,zb-v --microbatches 32,64
pipeline --stages 4 --schedules auto
pipeline --stages 4 --sort bubbel
END
for verb in run roofline list show collective regimes pareto pipeline bench check; do
    echo "help $verb"
done >> "$work/commands"

{
    echo 'stty cols 80'
    while IFS= read -r line; do echo "echo '@ $line'; '$podsim' $line"; done < "$work/commands"
    # A report of settings, whose reasons stand in a column.
    line="import megatron tests/cli/import/megatron-llama3-8b.sh --machine h100-sxm"
    line="$line -o $work/made.json"
    echo "echo '@ $line'; '$podsim' $line"
    # The least width of docs/command-line.md; import prints JSON, which stays whole.
    echo 'stty cols 72'
    grep -v '^import' "$work/commands" |
        while IFS= read -r line; do echo "echo '@72 $line'; '$podsim' $line"; done
    # Help goes on narrower ones, where a sentence is wrapped and an option keeps its argument.
    for columns in 60 40; do
        echo "stty cols $columns"
        for line in '' 'help run' 'help pipeline' 'help collective'; do
            echo "echo '@$columns $line'; '$podsim' $line"
        done
    done
} > "$work/session"
script -qec "sh $work/session" /dev/null < /dev/null > "$work/screen" 2>&1

# JSON is the same bytes on a terminal as in a file: no line may end within a string.
cut=0
for line in 'show scenario llama3-8b-pp4-h100-32' 'list scenarios llama3-8b-pp4-h100-32'; do
    # shellcheck disable=SC2086 # The words of a command.
    "$podsim" $line > "$work/file"
    script -qec "stty cols 80; '$podsim' $line" /dev/null < /dev/null | tr -d '\r' > "$work/shown"
    cmp -s "$work/file" "$work/shown" && continue
    echo "$line: not the JSON of a file"
    cut=1
done

# Progress is written over itself ("\r ... \033[K"), and colours take no column.
tr '\r' '\n' < "$work/screen" | sed "s/$(printf '\033')\[[0-9;]*[mK]//g" | LC_ALL=C awk '
    /^@/ {
        command = $0; commands++
        most = substr($1, 2) + 0
        if (most == 0) most = 80
        next
    }
    { line = $0; gsub(/[\200-\277]/, "", line) } # What continues a character.
    length(line) > most && line ~ /[^ ] +[^ ]/ {
        print command ": " length(line) " columns: " $0; wide++ }
    most == 72 { next }
    line ~ /^# [0-9]+ at once: *[^s ]/ || line ~ /^# [0-9]+ at once: *$/ {
        print command ": a sentence is cut: " $0; broken++ }
    command ~ /^@ import/ && line ~ /^        [^ ]/ {
        print command ": a reason has left its column: " $0; broken++ }
    line ~ /^          *N\/A  .*N\/A/ { print command ": a row is broken: " $0; broken++ }
    line ~ /[.%A-Za-z]/ && line ~ /^          *([0-9.]+[KMGT%]?( [a-zA-Z\/]+)?(   *|$))+$/ {
        print command ": a row is broken: " $0; broken++ }
    line ~ /microbatche?$/ && line !~ / 1 microbatch$/ { print command ": cut: " $0; broken++ }
    line ~ /\(est\.$/ || line ~ /^(op|name)  share/ { print command ": cut: " $0; broken++ }
    line ~ /^(collective|model| +batch) +(busbw|experts|formula)$/ {
        print command ": a table for one column: " $0; broken++ }
    line ~ /^ .*\[--[a-z-]*$/ { print command ": an option without its argument: " $0; broken++ }
    END {
        print commands " commands, " wide + 0 " lines too wide, " broken + 0 " broken"
        exit wide + broken > 0 || commands < 40
    }' && [ "$cut" -eq 0 ]
