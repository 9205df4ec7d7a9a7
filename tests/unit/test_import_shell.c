/*
 * Which arguments a script of the shell gives to the program that it runs, line by line. What is
 * expected follows from bash's manual.
 */
#include <stdio.h>
#include <string.h>

#include "tests/unit/import_case.h"

static void read_as(const char *text, const char *expected)
{
    import_case_reads(settings_read_shell, text, expected);
}

static void refused(const char *text, const char *expected)
{
    import_case_refuses(settings_read_shell, text, expected);
}

static void arguments_follow_the_program(void **state)
{
    (void)state;
    read_as("torchrun --nnodes 2 train.py --num-layers 32 --swiglu --lr=1e-4 --list a b c\n",
            "1 --nnodes=2\n1 --num-layers=32\n1 --swiglu\n1 --lr=1e-4\n1 --list=a b c\n");
    read_as(
        "srun --nodes 2 -n 4 --exclusive -x y bash -c 'torchrun --nnodes=2 a.py --num-layers 3'\n",
        "1 --nodes=2\n1 --exclusive\n1 --nnodes=2\n1 --num-layers=3\n");
    read_as("a.py --list a b c --hook x.py --num-layers 3\n",
            "1 --list=a b c\n1 --hook\n1 --num-layers=3\n");
    read_as("--num-layers 32 \\\n  --swiglu # a comment --not-this\n",
            "1 --num-layers=32\n2 --swiglu\n");
    read_as("--num-layers 1\n--swiglu\n\n# --no\n--lr 3\n",
            "1 --num-layers=1\n2 --swiglu\n5 --lr=3\n");
    read_as("python train.py --num-layers 1 > log.txt 2>&1 | tee x --not-this\n",
            "1 --num-layers=1\n");
    read_as("cd here && python train.py --num-layers 1; echo --not-this\n", "1 --num-layers=1\n");
}

static void variables_and_arrays_keep_their_lines(void **state)
{
    (void)state;
    read_as("A=8\nARGS=(\n  --num-layers $A\n  # --no\n  --q \"x y\"\n)\n"
            "ARGS+=(--more)\nrun.py \"${ARGS[@]}\"\n",
            "3 --num-layers=8\n5 --q=x y\n7 --more\n");
    read_as("ARGS=\" \\\n --num-layers 4 \\\n --b 1\"\nARGS=\"$ARGS --c\"\npython a.py $ARGS\n",
            "2 --num-layers=4\n3 --b=1\n4 --c\n");
    read_as("export N=$((2 * (3 + 1)))\na.py --num-layers ${N} --x ${UNSET:-7} --y $UNSET\n",
            "2 --num-layers=8\n2 --x=7\n2 --y=$UNSET\n");
    read_as("declare -a ARGS=(--num-layers 2)\na.py ${ARGS[*]} --one '$N' --path \"$(pwd)/x\"\n",
            "1 --num-layers=2\n2 --one=$N\n2 --path=$(pwd)/x\n");
    read_as("RUN=\"cd x; python a.py --num-layers 3\"\nsrun bash -c \"$RUN\"\n",
            "1 --num-layers=3\n");
    read_as("A=\" \\\n --num-layers 3\"\nB=(--x)\nC=other\n", "2 --num-layers=3\n3 --x\n");
    read_as("RUN=\"python a.py --num-layers 3\"\nsbatch <<EOF\nsrun $RUN --not-this\nEOF\n",
            "1 --num-layers=3\n");
}

/* Words are whole, whatever they have of characters that are operators of bash. */
static void words_with_operators_are_words(void **state)
{
    (void)state;
    read_as(
        "a.py --path \"<your path>\" --a '|x' --b \"&\" --c ';' --d \\> --e '2>' --num-layers 3\n",
        "1 --path=<your path>\n1 --a=|x\n1 --b=&\n1 --c=;\n1 --d=>\n1 --e=2>\n"
        "1 --num-layers=3\n");
    read_as("X=$(show \"$N\" | head -n 1)\na.py --addr $X --num-layers 3\n",
            "2 --addr=$(show \"$N\" | head -n 1)\n2 --num-layers=3\n");
    read_as("X=`show | head --lines 1`\na.py --addr $X --num-layers 3\n",
            "2 --addr=`show | head --lines 1`\n2 --num-layers=3\n");
    read_as("X=$(show | head -n 1)\nD=\"--addr $X\"\nE=(--more $X)\n"
            "a.py $D ${E[@]} --num-layers 3\n",
            "2 --addr=$(show | head -n 1)\n3 --more=$(show | head -n 1)\n4 --num-layers=3\n");
    read_as("V='a ; b'\nW='a > b'\nX='a && b'\na.py --v $V --w $W --x $X --num-layers 3\n",
            "4 --v=a ; b\n4 --w=a > b\n4 --x=a && b\n4 --num-layers=3\n");
    read_as("V='a ; <b>'\nA=\"--num-layers 3 --v $V --x\"\n",
            "2 --num-layers=3\n2 --v=a ; <b>\n2 --x\n");
    read_as("a.py --note 'see b.py | c' --num-layers 3\n",
            "1 --note=see b.py | c\n1 --num-layers=3\n");
}

/* `eval` and `bash -c` read a text as a command, with bash's operators and quotes. */
static void commands_in_texts_end_at_operators(void **state)
{
    (void)state;
    read_as("C=\"cd x && python a.py --num-layers 3 2>&1 --more | tee log --not-this\"\neval $C\n",
            "1 --num-layers=3\n1 --more\n");
    read_as("bash -c \"cd x --no; python a.py --num-layers 3 >log; echo --not-this\"\n",
            "1 --num-layers=3\n");
    read_as(
        "X=$(show | head -n 1)\nC=\"a.py --addr $X --num-layers 3\"\neval $C '2>&1' '|' tee x\n",
        "2 --addr=$(show | head -n 1)\n2 --num-layers=3\n");
    read_as("bash -c \"a.py --path '<your path>' --num-layers 3 &> log\"\n",
            "1 --path=<your path>\n1 --num-layers=3\n");
}

/* What a redirection names is a word of bash, with quotes, or a command. */
static void redirections_in_texts_have_quotes(void **state)
{
    (void)state;
    read_as("bash -c 'a.py --num-layers 3 > \"my log.txt\" 2>&1 --more'\n",
            "1 --num-layers=3\n1 --more\n");
    read_as("bash -c \"a.py --num-layers 3 2> logs/'a; b'.txt --more\"\n",
            "1 --num-layers=3\n1 --more\n");
    read_as("bash -c 'a.py --num-layers 3 > my\\ log --more'\n", "1 --num-layers=3\n1 --more\n");
    read_as("bash -c 'a.py --num-layers 3 > >(tee --not-this log) 2>&1 --more'\n",
            "1 --num-layers=3\n1 --more\n");
}

/* A command in a word of a text has blanks, and an open quote is an error, as in bash. */
static void words_of_texts_end_where_those_of_bash_do(void **state)
{
    (void)state;
    read_as("bash -c 'a.py --num-layers 3 > $(date +%s).log 2> `date +%s`; b'\n",
            "1 --num-layers=3\n");
    read_as("bash -c 'a.py --num-layers 3 --at $(date +%s; c) --to \"a\\\"b c\"'\n",
            "1 --num-layers=3\n1 --at=$(date +%s; c)\n1 --to=a\"b c\n");
    refused("bash -c \"a.py --num-layers 3 > 'my log\"\n", "script:1: a text in ' is open*");
    refused("bash -c 'a.py --num-layers 3\n\"x'\n", "script:2: a text in \" is open*");
    refused("bash -c 'a.py --num-layers 3 > $(date +%s'\n", "script:1: $( is open*");
    refused("bash -c 'a.py --num-layers 3 > `date +%s'\n", "script:1: a command in ` is open*");
}

/* Conditions and loops of a text are those of a script: what they leave out is no command, and a
 * command beside them is one. */
static void conditions_of_texts_are_those_of_scripts(void **state)
{
    static const char *const refusing[] = {
        "if false; then a.py --num-layers 3; fi",    "for i in 1 2; do a.py --num-layers 3; done",
        "while true; do a.py --num-layers 3; done",  "until true; do a.py --num-layers 3; done",
        "case x in a) a.py --num-layers 3;; esac",   "select x in a; do a.py --num-layers 3; done",
        "f(){ a.py --num-layers 3; }; echo hi",      "f () { a.py --num-layers 3; }; echo hi",
        "function f { a.py --num-layers 3; }",       "[[ -f x ]] && a.py --num-layers 3",
        "if [ -f x ]; then a.py --num-layers 3; fi", "test 1 = 2 && a.py --num-layers 3",
        "[ 1 = 1 ] || a.py --num-layers 3",
    };
    static const char *const reading[] = {
        "cd x && if true; then a.py --num-layers 3; fi",
        "! if true; then a.py --num-layers 3; fi",
        "{ a.py --num-layers 3; }",
        "(a.py --num-layers 3)",
        "if true; then echo x; fi; a.py --num-layers 3",
        "for i in 1 2; do echo $i; done; a.py --num-layers 3",
        "f() { echo x; }; f; a.py --num-layers 3",
        "a.py --num-layers 3; if [ -f x ]; then echo x; fi",
        "[ 1 = 1 ] && a.py --num-layers 3",
        "test 1 = 2 || a.py --num-layers 3",
        "if [ 2 -gt 1 ]; then a.py --num-layers 3; else a.py --num-layers 4; fi",
    };
    (void)state;
    for (size_t i = 0; i < sizeof refusing / sizeof *refusing; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "bash -c \"%s\"\n", refusing[i]);
        refused(text, "script:1: the command that runs a Python program stands in a function, in a "
                      "loop or under a condition that is false or not known, *");
    }
    for (size_t i = 0; i < sizeof reading / sizeof *reading; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "bash -c '%s'\n", reading[i]);
        read_as(text, "1 --num-layers=3\n");
    }
    read_as("bash -c 'if [ -f x ]; then A=--x; fi; a.py --num-layers 3 $A'\n",
            "1 if [ -f x ]\n1 --num-layers=3\n1 $A\n");
    refused("bash -c 'cat <<E\na.py --num-layers 3\nE\n'\n", "script: no command runs a Python *");
    read_as("bash -c 'a.py --if if --num-layers 3 <<< if; echo if'\n",
            "1 --if=if\n1 --num-layers=3\n");
    read_as("bash -c 'a.py --num-layers 3\n--lost 4\n--more'\n",
            "2 --lost=4\n3 --more\n1 --num-layers=3\n");
}

/* What stands behind a text is $0, $1 and so on of it, and no argument of the program. */
static void texts_have_arguments(void **state)
{
    (void)state;
    read_as("bash -c 'a.py --num-layers 3' --x 4\n", "1 --x\n1 4\n1 --num-layers=3\n");
    read_as("bash -c 'a.py --num-layers 3' name --x\n", "1 --x\n1 --num-layers=3\n");
    read_as("bash -c 'a.py --num-layers $1 --b ${2:-5} --c \"${3:-6}\"' name 3 ''\n",
            "1 --num-layers=3\n1 --b=5\n1 --c=6\n");
    read_as("bash -c 'a.py --num-layers 3 \"$@\"' _ --x 'a b'\n", "1 --num-layers=3\n1 --x=a b\n");
    read_as("bash -c 'a.py --num-layers 3 $0 --b $# --c \"$*\"' --x p q\n",
            "1 --num-layers=3\n1 --x\n1 --b=2\n1 --c=p q\n");
    read_as("bash -c 'shift; a.py --num-layers 3 $@' _ --x 4\n", "1 --num-layers=3\n1 $@\n");
    read_as("bash -c 'bash -c \"a.py --num-layers \\$1\" x $1' y 3\n", "1 --num-layers=3\n");
    /* In double quotes "$1" is of the shell around the text, which has expanded it. */
    read_as("bash -c \"a.py --num-layers 3 --b $1 --c $@ --d \\$1\" x 4\n",
            "1 --num-layers=3\n1 --b=$1\n1 --c=$@\n1 --d=4\n");
    read_as("bash -c \"A=1; a.py --num-layers 3 --b $A --c ${A+2} --d \\$A\"\n",
            "1 --num-layers=3\n1 --b=$A\n1 --c=${A+2}\n1 --d=1\n");
    read_as("T=\"a.py --num-layers 3 --b $1\"\nbash -c \"$T\" x 4\n",
            "2 4\n1 --num-layers=3\n1 --b=$1\n");
    read_as("bash -c \"A=6 bash -c 'a.py --num-layers 3 --b $A'\"\n",
            "1 --num-layers=3\n1 --b=$A\n");
    read_as("ssh host 'cd x; a.py --num-layers 3' --x 4\n", "1 --num-layers=3\n1 --x=4\n");
}

/* A text of another shell has what is exported, and what it assigns ends with it. */
static void texts_have_the_environment(void **state)
{
    (void)state;
    read_as("export N=3\nbash -c 'a.py --num-layers $N'\n", "2 --num-layers=3\n");
    read_as("N=3\nexport N\nbash -c 'a.py --num-layers $N'\n", "3 --num-layers=3\n");
    read_as("declare -x N=3\nbash -c 'a.py --num-layers $N'\n", "2 --num-layers=3\n");
    read_as("set -a\nN=3\nbash -c 'a.py --num-layers $N'\n", "3 --num-layers=3\n");
    read_as("N=2\nN=3 bash -c 'a.py --num-layers $N'\n", "2 --num-layers=3\n");
    read_as("N=3\nbash -c 'a.py --num-layers $N'\n", "2 N\n2 --num-layers=$N\n");
    read_as("N=3\nbash -c \"a.py --num-layers $N\"\n", "2 --num-layers=3\n");
    read_as("N=3\neval 'a.py --num-layers $N'\n", "2 --num-layers=3\n");
    read_as("bash -c 'export N=3; a.py --lr 1'\na.py --num-layers $N\n", "2 --num-layers=$N\n");
    read_as("export C='a.py --num-layers 3'\nbash -c '$C --x'\n", "1 --num-layers=3\n2 --x\n");
}

/* What "&&", "||" and `exit` leave out is no command. */
static void commands_of_texts_run_as_those_of_scripts(void **state)
{
    static const char *const left_out[] = {
        "true || a.py --num-layers 3",          "false && a.py --num-layers 3",
        "! true && a.py --num-layers 3",        "cd x || a.py --num-layers 3",
        "[ -f x ] && a.py --num-layers 3",      "false &&\na.py --num-layers 3",
        "false && echo x | a.py --num-layers 3"};
    (void)state;
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "bash -c '%s'\n", left_out[i]);
        refused(text, "script:*: the command that runs a Python program stands *condition*");
    }
    refused("bash -c 'exit 0; a.py --num-layers 3'\n",
            "script:1: the text of a command ends here*");
    refused("bash -c 'exec b\na.py --num-layers 3'\n", "script:1: the text of a command ends *");
    read_as("bash -c 'a.py --num-layers 3; exit $?\nb.py --x'\n", "1 exit\n1 --num-layers=3\n");
    read_as("bash -c 'cd x && exit 1; a.py --num-layers 3'\n", "1 exit\n1 --num-layers=3\n");
    read_as("bash -c 'cd x || exit 1; false || a.py --num-layers 3; exit 2'\n",
            "1 --num-layers=3\n");
    read_as("bash -c 'exec 2> log; exit 1 | true; a.py --num-layers 3'\n", "1 --num-layers=3\n");
    read_as("bash -c 'a.py --num-layers 3 || b.py --x'\n",
            "1 a.py --num-layers 3 || b.py --x\n1 --num-layers=3\n");
    read_as("bash -c 'echo b.py --num-layers 1; a.py --num-layers 3; echo c.py --x'\n",
            "1 --num-layers=3\n");
}

/* Commands of a text are those of a script: the one with a model counts, wherever it stands. */
static void of_commands_in_texts_the_one_with_a_model_counts(void **state)
{
    (void)state;
    read_as("srun bash -c 'python convert.py --in x; torchrun train.py --num-layers 3'\n",
            "1 --num-layers=3\n");
    read_as("bash -c 'train.py --num-layers 3 && test.py --in x'\n", "1 --num-layers=3\n");
    read_as("bash -c 'train.py --lr 3; b.py --in x'\n", "1 b.py\n1 --lr=3\n");
    read_as("a.py --lr 3\nb.py --in x\n", "2 b.py\n1 --lr=3\n");
    read_as("a.py --lr 3\nb.py --in x\nc.py --num-layers 3\n", "3 --num-layers=3\n");
    refused("bash -c 'a.py --num-layers 3; b.py --num-layers 4'\n",
            "script:1: a second command with a model; the first is in line 1, and a file of one "
            "command makes one scenario");
}

static void conditions_are_evaluated_or_said(void **state)
{
    (void)state;
    read_as("F=fp8\nA=()\nif [ \"$F\" = fp8 ]; then A+=(--fp8); else A+=(--bf16); fi\n"
            "a.py --num-layers 1 ${A[@]}\n",
            "4 --num-layers=1\n3 --fp8\n");
    read_as("N=4\nif [[ $N -gt 8 || -z $U ]]; then X=1\nelif true; then X=2; fi\n"
            "a.py --num-layers $X\n",
            "3 elif true\n4 --num-layers=1\n");
    read_as("if [ -d /data ]; then A=--x; fi\na.py --num-layers 1\n",
            "1 if [ -d /data ]\n2 --num-layers=1\n");
    read_as("[ -n \"$U\" ] && A=--x\na.py --num-layers 1 $A\n",
            "1 [ -n \"$U\" ] && A=--x\n2 --num-layers=1\n2 $A\n");
    read_as("for i in 1 2; do\n A=--x\ndone\na.py --num-layers 1\n",
            "1 for i in 1 2\n4 --num-layers=1\n");
}

/* One row of what is left out, and one of what is not run. */
static void arithmetic_is_said_once(void **state)
{
    (void)state;
    read_as("if (( TP > 2 && 1 )); then TP=8; fi\na.py --num-layers 1\n",
            "1 if (( TP > 2 && 1 ))\n2 --num-layers=1\n");
    read_as("TP=2\n(( TP > 2 && 1 ))\n(( TP *= 2 ))\na.py --num-layers 1\n",
            "3 (( TP *= 2 ))\n4 --num-layers=1\n");
    read_as("(( (2) > (1) )) && X=1\na.py --num-layers $X\n", "2 --num-layers=1\n");
}

/* What a command, a pipe or a shell of its own assigns ends with it. */
static void assignments_end_with_their_shell(void **state)
{
    (void)state;
    read_as("X=1\nX=2 a.py --num-layers $X\n", "2 --num-layers=1\n");
    read_as("X=1\n(X=2; a.py --num-layers $X) | tee log\n", "2 --num-layers=2\n");
    read_as("X=1\n{ X=2; Y=3; } &\n(A=(1); A+=(2))\na.py --num-layers $X ${A[@]} --y $Y\n",
            "4 --num-layers=1\n4 --y=$Y\n");
    read_as("A=(--a 1)\nB=(--x ${C:-2})\na.py --num-layers ${D:=3} \"${E[@]}\" --d $D ${A[*]}\n",
            "3 --num-layers=3\n3 --d=3\n1 --a=1\n");
    read_as("cd x && X=1 && a.py --num-layers $X\n", "1 cd x && X=1 && a.py --num-layers $X\n"
                                                     "1 --num-layers=1\n");
}

/* What podsim does not know of a word's text, it does not know of the arguments either. */
static void arguments_that_are_not_known_are_said(void **state)
{
    (void)state;
    read_as("a.py --num-layers 1 --lr 1 `more` --x {--a,--b}\n",
            "1 --num-layers=1\n1 --lr=1\n1 `more`\n1 --x={--a,--b}\n");
    read_as("for X in 1 2; do :; done\na.py --num-layers 1 --x 0 $X\n",
            "2 --num-layers=1\n2 --x=0\n1 $X\n");
    read_as("a.py --num-layers 1 --x 0 '$X'\n", "1 --num-layers=1\n1 --x=0 $X\n");
}

static void wrong_texts_are_refused_at_their_line(void **state)
{
    (void)state;
    refused("a.py --num-layers 1\nX=\"open\n", "script:2: a text in \" is open at the end*");
    refused("X='open\n", "script:1: a text in ' is open*");
    refused("\nX=(a b\n", "script:2: an array is open*");
    refused("X=${A\n", "script:1: ${ is open*");
    refused("X=$(a\n", "script:1: $( is open*");
    refused("if [ a = b ]; then\n", "script:1: if is open at the end of the file");
    refused("for i in 1; do\n", "script:1: for is open*");
    refused("for i in 1; do\nif true; then\n", "script:2: if is open*");
    refused("{ echo x\n", "script:1: { is open*");
    refused("case x in\na) echo;;\n", "script:1: case is open*");
    refused("[[ a == a\n", "script:1: \\[\\[ is open*");
    refused("a.py --num-layers 1\ndone\n", "script:2: \"done\" without what it belongs to");
    refused("a.py --num-layers 1\n}\n", "script:2: \"}\" without what it belongs to");
    refused("a.py --num-layers 1 )\n", "script:1: \")\" is not expected here");
    refused("a.py --num-layers 1;; b\n", "script:1: \";\" is not expected here");
    refused("for i in 1\necho x\n", "script:2: \"do\" is expected here, but there is \"echo\"");
    refused("case x in\n) ;; esac\n", "script:2: \") ;; esac\" is no pattern of a case*");
    refused("f() echo x\n", "script:1: a function whose body does not stand in { }");
    refused("[ a = b\n", "script:1: \"\\[\" without what closes it");
    refused("A=([2]=x)\n", "script:1: \"\\[2]=\": podsim reads arrays whose elements *");
    read_as("A=\"--num-layers 2\"\nexit 0\n", "1 --num-layers=2\n");
    refused("X=1\nexit 0\na.py --num-layers 1\n", "script:2: the script ends here, before *");
    refused("echo nothing\n", "script: no command runs a Python program*");
    refused("a.py --num-layers 1\nb.py --num-layers 2\n", "script:2: a second command*line 1*");
}

static void repeat(struct strbuf *text, const char *part, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) strbuf_add(text, "%s", part);
}

/* A text that is doubled thirty times, and brackets within one another. */
static void hostile_texts_meet_limits(void **state)
{
    (void)state;
    struct strbuf doubled = {.bytes = NULL}, braces = {.bytes = NULL};
    struct strbuf conditions = {.bytes = NULL}, sum = {.bytes = NULL}, expected = {.bytes = NULL},
                  open = {.bytes = NULL};
    repeat(&doubled, "X=0123456789\n", 1);
    repeat(&doubled, "X=$X$X\n", 30);
    refused(doubled.bytes, "script:*: variables expand to more than 4 MiB");
    repeat(&braces, "${A:-", 200);
    repeat(&braces, "}", 200);
    refused(braces.bytes, "script:1: variables within one another more than 32 deep");
    repeat(&conditions, "if [ a = a ]; then ", 100);
    refused(conditions.bytes, "script:1: conditions within one another more than 32 deep");
    repeat(&sum, "a.py --num-layers $((", 1);
    repeat(&sum, "(", 200);
    repeat(&sum, ")", 202);
    strbuf_add(&expected, "1 --num-layers=%s\n", strchr(sum.bytes, '$'));
    read_as(sum.bytes, expected.bytes); /* No number: it stays as it is written. */
    repeat(&open, "X='", 1);
    repeat(&open, "$(", 1 << 18);
    repeat(&open, "'$(b c)\na.py", 1);
    repeat(&open, " $X", 10);
    refused(open.bytes, "script:*: variables expand to more than 4 MiB");
    strbuf_free(&open);
    strbuf_free(&doubled);
    strbuf_free(&braces);
    strbuf_free(&conditions);
    strbuf_free(&sum);
    strbuf_free(&expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_follow_the_program),
        cmocka_unit_test(variables_and_arrays_keep_their_lines),
        cmocka_unit_test(words_with_operators_are_words),
        cmocka_unit_test(commands_in_texts_end_at_operators),
        cmocka_unit_test(redirections_in_texts_have_quotes),
        cmocka_unit_test(words_of_texts_end_where_those_of_bash_do),
        cmocka_unit_test(conditions_of_texts_are_those_of_scripts),
        cmocka_unit_test(texts_have_arguments),
        cmocka_unit_test(texts_have_the_environment),
        cmocka_unit_test(commands_of_texts_run_as_those_of_scripts),
        cmocka_unit_test(of_commands_in_texts_the_one_with_a_model_counts),
        cmocka_unit_test(conditions_are_evaluated_or_said),
        cmocka_unit_test(arithmetic_is_said_once),
        cmocka_unit_test(assignments_end_with_their_shell),
        cmocka_unit_test(arguments_that_are_not_known_are_said),
        cmocka_unit_test(wrong_texts_are_refused_at_their_line),
        cmocka_unit_test(hostile_texts_meet_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
