#!/bin/bash
# What `podsim import megatron` reads of a script is what bash runs of it, or podsim says that it
# does not know: import_bash.sh PODSIM CASES
#
# The training command is the last line of each script, and bash has a function in its place that
# prints the arguments. CASES has scripts by subject, with what podsim must make of them. Then
# scripts are drawn: assignments, arrays, conditions, loops, functions, subshells, pipes, texts that
# follow a line, quotes, arithmetic; every third is the text of a `bash -c`. A number begins each
# drawing, so that a case can be run again: PODSIM_IMPORT_SEED=N PODSIM_IMPORT_CASES=1. With
# PODSIM_TEST_CASES=N every N-th script of CASES is run, with PODSIM_TEST_THIN=N every N-th that is
# drawn.
#
# A difference that podsim says is none: a row that something is left out or not run, a value with
# the "$", "~" or "{" of what is not known, or a refusal with its place.
set -u
podsim=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cases=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
every=${PODSIM_TEST_CASES:-1}
every_drawn=${PODSIM_TEST_THIN:-1}
count=${PODSIM_IMPORT_CASES:-100}
seed=${PODSIM_IMPORT_SEED:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

# --- One script by both ---

command='torchrun pretrain_gpt.py --num-layers 2 --hidden-size 256 --num-attention-heads 2'
command="$command --seq-length 256 --micro-batch-size 1 --vocab-size 1000"

# Blanks as in columns.
even() {
    tr -s ' ' | sed 's/= /=/; s/ $//'
}

# "key=value" lines of what bash gives to the program.
by_bash() {
    env -i PATH="$PATH" timeout 10 bash -c '
        torchrun() {
            local value=
            while [ "${1-}" != --va ]; do shift; done
            while [ $# -gt 0 ]; do
                value=$1=
                shift
                while [ $# -gt 0 ] && [[ $1 != --* ]]; do value="$value $1"; shift; done
                echo "result $value"
            done
        }
        export -f torchrun
        . ./script.sh' 2> /dev/null < /dev/null | sed -n 's/^result --v//p' | even
}

# The same lines of podsim's list; "refused: PLACE" where there is none.
by_podsim() {
    if ! "$podsim" import megatron script.sh --machine h100-sxm > out.json 2> list; then
        echo "refused: $(head -n 1 list)"
        return
    fi
    sed -n 's/^ *[0-9-]*  --v\([a-z]\)  *\(.*\)  podsim does not know the key.*/\1= \2/p' list |
        even
}

saying='is left out|does not (run it|know what it|assign it)'
saying="$saying|podsim (sets no|divides words|reads on)"

# What podsim makes of script.sh: "same", "said", or "differs". Sets $bash_has and $podsim_has.
compare() {
    bash_has=$(by_bash)
    podsim_has=$(by_podsim)
    if [ "$bash_has" = "$podsim_has" ]; then
        result=same
    elif [[ $podsim_has == refused:*script.sh* || $podsim_has == *[\$\`~{]* ]]; then
        result=said
    elif grep -qE "$saying" list; then
        result=said
    else
        result=differs
    fi
}

fail() {
    echo "$1" >&2
    { cat script.sh; echo "bash:"; echo "$bash_has"; echo "podsim:"; echo "$podsim_has"; } >&2
    failed=1
}

# --- Scripts by subject ---

# "RESULT SCRIPT", where RESULT is what podsim takes for $A: with "said" it differs from bash or is
# not known, with "bash" it is what bash takes.
walked=0
while IFS= read -r line; do
    [[ $line == '' || $line == '#'* ]] && continue
    walked=$((walked + 1))
    [ $((walked % every)) = 0 ] || continue
    wanted=${line%% *}
    text=${line#* }
    printf '%s\n%s --va $A\n' "${text//\\n/$'\n'}" "$command" > script.sh
    compare
    [ "$result" = "$wanted" ] || fail "$wanted is expected, but it is $result:"
done < "$cases"

# --- Scripts that are drawn ---

draw() {
    drawn=$((RANDOM % $1))
}

pick() {
    draw $#
    shift "$drawn"
    picked=$1
}

# A value as it is written behind "=". Most are known, so that most scripts are.
draw_value() {
    pick 1 2 8 2 8 x '""' '"a b"' "'x  y'" '$A' '"$B"' '$B' '${A:-2}' '${B:=4}' '${C:+8}' '${C-1}' \
        '$((2 * 4))' '"${L[@]}"' '${L[*]}' '"${L[*]}"' '"${B}x"' '${B}$A' '"${C:-"x y"}"' \
        '${C:-x y}' '"${C:-'"'x'"'}"' '"it'"'"'s"' 'a\ b' '${L[@]:-2}' '"$A $B"' '$C'
    if [ $((RANDOM % 12)) = 0 ]; then
        pick '$((A + 1))' '$(echo 2)' '`echo 8`' '${L[0]}' "'\$A'" '\$A' '"\$A"' '${#A}' \
            '${A%1}' '$((A > 1))' '${B:?}' '$?' '$((A++))' '"$(false)"' "\$'x'" '$HOSTNAME' \
            '{1,2}' '~'
    fi
    value=$picked
}

draw_name() {
    pick A A B C
    name=$picked
}

draw_test() {
    local left right
    draw_value
    left=$value
    draw_value
    right=$value
    pick "[ $left = $right ]" "[ \"$left\" = x ]" "[[ $left == $right ]]" "[[ $left != 1 ]]" \
        "[ -n $left ]" "[ -z $left ]" "[[ -n $left ]]" "[[ -z $left ]]" "[[ ! $left == $right ]]" \
        "[[ $left == 1 && $right == 2 ]]" "[[ -z $left || -n $right ]]" "test $left" "[ $left ]" \
        '(( A > 2 ))' '(( A == 1 ))' '(( A && 1 ))' '((A = 2))' true false 'grep -q x /dev/null' \
        'echo x | grep -q x' '[ "$A" -gt 1 ]' '[[ $A -le 2 ]]' '[ -d / ]' '[[ $A == 1* ]]' ':' \
        '[[ ( $A == 1 || $B == x ) && $C == x ]]' '[ "$A" = 1 -o "$B" = x ]' 'A=2' 'B=$(false)'
    if [ $((RANDOM % 6)) = 0 ]; then picked="! $picked"; fi
    condition=$picked
}

# A separator: of a line, or of a command in one.
draw_end() {
    pick '; ' $'\n' $'\n' $' # it\'s done\n'
    end=$picked
}

draw_list() {
    local depth=$1 more list=
    draw 2
    more=$((drawn + 1))
    while [ "$more" -gt 0 ]; do
        draw_statement "$depth"
        list="$list$statement"
        draw_end
        list="$list$end"
        more=$((more - 1))
    done
    text=$list
}

draw_simple() {
    local first
    draw_value
    first=$value
    draw_value
    draw_name
    pick "$name=$first" "$name=$first" "$name=$first" "$name=$first" "A=$first B=$value" \
        "L=($first $value)" "L+=($first)" "$name+=$first" "export $name=$first" "L=()" \
        "declare $name=$first" "$name=$first true" "$name=$first :" ": \"\${$name:=2}\"" \
        ": \${$name:=8}" 'echo done esac fi' "echo \"$first\"" "$name=$first > /dev/null" \
        "$name=$first &" "L=\"\${L[@]}\"" "$name=(\$$name)" "declare \"$name=2\"" \
        "echo x >| /dev/null" "typeset $name=$first" "export $name" "env $name=1 true" \
        "> /dev/null" "cat <<END"$'\n'"$name=8 done"$'\n\tEND\nEND' \
        "cat <<-END"$'\n'"$name=8"$'\n\tEND' "cat <<'END'"$'\n'"fi; $name=8"$'\nEND'
    if [ $((RANDOM % 12)) = 0 ]; then
        pick "L[0]=$first" "read $name <<< $first" "printf -v $name %s $first" "unset $name" \
            "eval $name=$first" "let $name=2" "(( $name = 2 ))" "(( $name++ ))" 'shift' \
            ": \$(( $name = 8 ))" "mapfile -t L <<< $first" 'command true' 'set -- 1 2' \
            "echo $first 2>&1 | read $name" 'IFS='
    fi
    simple=$picked
}

draw_statement() {
    local depth=$1 first second third kind condition name value simple
    draw_simple
    kind=0
    [ "$depth" -gt 0 ] && { draw 26; kind=$drawn; }
    if [ "$kind" -lt 10 ]; then
        statement=$simple
        return
    fi
    draw_list $((depth - 1))
    first=$text
    draw_list $((depth - 1))
    second=$text
    draw_test
    third=$condition
    draw_test
    draw_name
    case $kind in
    10 | 11) statement="if $third; then $first""fi" ;;
    12 | 13) statement="if $third; then $first""else $second""fi" ;;
    14) statement="if $third; then $first""elif $condition; then $second""fi" ;;
    15) statement="for $name in 1 2 x; do $first""done" ;;
    16) statement="while $third; do $first""break; done" ;;
    17) statement="until $third; do $first""break; done < /dev/null" ;;
    18) pick "case \$$name in 1|2) $first;; x*) $second;; esac" \
            "case x in (x) $first;; *) $second esac" \
            "case \"\$$name\" in"$'\n'"  1) echo esac;;"$'\n'"  *) $first;;"$'\n'esac
        statement=$picked ;;
    19) pick "($first)" "( $first) || true" "{ $first}" "{ $first} > /dev/null"
        statement=$picked ;;
    20) pick "f() { $first}" "f () { $first}; f" "function f { $first}; f" "f() ( $first)"
        statement=$picked ;;
    21) draw_value
        statement="$third && $name=$value" ;;
    22) draw_value
        statement="$third || $name=$value" ;;
    23) statement="$third && { $first} || $name=8" ;;
    24) pick "{ $first} | cat" "true | { $first}" "A=2 | cat" \
            "echo x | while read x; do $first""done"
        statement=$picked ;;
    25) pick "select x in 1 2; do $first""break; done" \
            "for ((i = 0; i < 2; i++)); do $first""done" \
            "time { $first}" "! { $first}"
        statement=$picked ;;
    esac
}

# Puts the script into a text of another shell, which the script's own shell runs.
in_text() {
    local text quote="'\\''"
    text=$(cat script.sh)
    printf "bash -c '%s'\n" "${text//\'/$quote}" > script.sh
}

same=0
said=0
for ((number = seed; number < seed + count; number++)); do
    [ $((number % every_drawn)) = 0 ] || [ "$count" = 1 ] || continue
    RANDOM=$number
    script=$'A=1; B=2; C=x; L=(y z)\n'
    for ((lines = RANDOM % 4; lines >= 0; lines--)); do
        draw_statement $((RANDOM % 3))
        script="$script$statement"$'\n'
    done
    printf '%s%s --va $A --vb "$B" --vc $C --vd x "${L[@]}" --ve $((A * 2))\n' \
        "$script" "$command" > script.sh
    bash -n script.sh 2> /dev/null || continue
    if [ $((number % 3)) = 0 ]; then in_text; fi
    compare
    case $result in
    same) same=$((same + 1)) ;;
    said) said=$((said + 1)) ;;
    *) fail "PODSIM_IMPORT_SEED=$number PODSIM_IMPORT_CASES=1 differs, and nothing says so:" ;;
    esac
done
echo "$same scripts are read as bash runs them; of $said podsim says what it does not know"
[ $((4 * same)) -ge "$said" ] || failed=1
exit "$failed"
