/*
 * main.c: a deterministic mutator: corpus, seed and number decide an input, whatever came before.
 *
 *     fuzz [--seed N] [--count N] [--only N]
 *
 * A failure prints the seed and the number, and --only plays that one input again.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/embed.h"
#include "tests/fuzz/fuzz.h"

extern const struct embed_file embed_scenarios[], chip_files[], model_files[], fuzz_corpus[];
extern const unsigned embed_scenarios_count, chip_files_count, model_files_count, fuzz_corpus_count;

enum { INPUT_BYTES_MAX = 64 * 1024, MUTATIONS_MAX = 6 };

static char input[INPUT_BYTES_MAX];
static uint64_t input_bytes;
static char crash_note[128]; /* Written before each input: a handler must not call printf(). */
static uint64_t random_state;

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t random_next(void)
{
    uint64_t x = random_state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t random_below(uint64_t end)
{
    return end == 0 ? 0 : random_next() % end;
}

static const struct embed_file *corpus_at(uint64_t index)
{
    if (index < embed_scenarios_count) return &embed_scenarios[index];
    index -= embed_scenarios_count;
    if (index < chip_files_count) return &chip_files[index];
    index -= chip_files_count;
    if (index < model_files_count) return &model_files[index];
    return &fuzz_corpus[index - model_files_count];
}

static uint64_t corpus_count(void)
{
    return embed_scenarios_count + chip_files_count + model_files_count + fuzz_corpus_count;
}

/* Values that readers compare, divide by, or copy. */
static const char *const tokens[] = {
    "0",
    "-1",
    "1",
    "2",
    "3",
    "0.5",
    "1e400",
    "-0.0",
    "1e-320",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551616",
    "4294967295",
    "4294967296",
    "1048577",
    "true",
    "false",
    "null",
    "NaN",
    "Infinity",
    "{}",
    "[]",
    "[[]]",
    "\"\"",
    "\"*\"",
    "\"x\"",
    "\"y\"",
    "\"z:4\"",
    "\"x:0\"",
    "\"x:4\"",
    "\"w\"",
    "\"x:99999999999\"",
    "\"1x1x1\"",
    "\"16x16\"",
    "\"0x4x4\"",
    "\"99999x99999x99999\"",
    "\"4x4x4x4\"",
    "\"x\"",
    "\"v5p-8192\"",
    "\"v5e-256\"",
    "\"v5p-7\"",
    "\"v5p-\"",
    "\"tpu-v6e\"",
    "\"gemma-7b\"",
    "\"90GB/s\"",
    "\"0B/s\"",
    "\"1.5us\"",
    "\"0ps\"",
    "\"1e99s\"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"\\u001b[2J\"",
    "\"%s%n\"",
    "\"..\"",
    "\"/\"",
    "\"ring\"",
    "\"line\"",
    "\"block\"",
    "\"fp8\"",
    "\"reference\"",
    "\"dx_first\"",
    "\"measured\"",
    "\"h100-sxm\"",
    "\"gb200-nvl72\"",
    "\"hash\"",
    "\"gpu\"",
    "\"slice\"",
    "576",
    "577",
    "{\"oversubscription\": 1.5}",
    "nodes=0",
    ",slices=7",
    ":gpus=100",
    "[\"x\", \"y\"]",
    "[\"z\"]",
    "[0, 0]",
    "1B0",
    "0I1",
    ",0W1",
    "\n1F0,",
    "(0F1;1B0)OVERLAP_F_B",
    "[\"x:2\", \"x:2\"]",
    "{\"kind\": \"mlp\", \"D\": 1, \"F\": 1, \"layers\": 1}",
    "{\"at\": [0, \"*\", \"*\"], \"math\": 0.5}",
    "{\"from\": [0, 0, 0], \"to\": [1, 0, 0], \"rate\": \"45GB/s\"}",
};

static const char *const keys[] = {
    "\"podsim\": ",    "\"title\": ",    "\"machine\": ",     "\"chip\": ",
    "\"shape\": ",     "\"wrap\": ",     "\"links\": ",       "\"chips\": ",
    "\"mesh\": ",      "\"dp\": ",       "\"fsdp\": ",        "\"tp\": ",
    "\"workload\": ",  "\"model\": ",    "\"zero\": ",        "\"accumulate\": ",
    "\"formats\": ",   "\"weights\": ",  "\"run\": ",         "\"seed\": ",
    "\"algorithm\": ", "\"head_dim\": ", "\"hidden_size\": ", "\"num_key_value_heads\": ",
    "\"nodes\": ",     "\"gpus\": ",     "\"slices\": ",      "\"network\": ",
    "\"leaf\": ",      "\"spine\": ",    "\"sharp\": ",       "\"switch_ports\": ",
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Puts `bytes` in place of input[from, to). */
static void input_replace(uint64_t from, uint64_t to, const char *bytes, uint64_t count)
{
    if (input_bytes - (to - from) + count > INPUT_BYTES_MAX) return;
    memmove(input + from + count, input + to, (size_t)(input_bytes - to));
    memmove(input + from, bytes, (size_t)count);
    input_bytes += count - (to - from);
}

/* Where the value at `from` ends: strings and brackets are matched, as far as they match. */
static uint64_t value_end(uint64_t from)
{
    uint32_t depth = 0;
    bool in_string = false;
    for (; from < input_bytes; from++) {
        char const c = input[from];
        if (c == '"') in_string = !in_string;
        if (in_string) continue;
        if (depth == 0 && (c == ',' || c == ']' || c == '}' || c == '\n')) return from;
        depth += c == '[' || c == '{';
        depth -= c == ']' || c == '}';
    }
    return from;
}

/* The JSON value that begins at or after `from`: roughly, as is enough to hit values often. */
static bool value_find(uint64_t from, uint64_t *ret_begin, uint64_t *ret_end)
{
    while (from < input_bytes && memchr(":[,", input[from], 3) == NULL) from++;
    from++;
    while (from < input_bytes && (input[from] == ' ' || input[from] == '\n')) from++;
    if (from >= input_bytes) return false;
    *ret_begin = from;
    *ret_end = value_end(from);
    return true;
}

/* The value of an attribute of XML. */
static void mutate_attribute(void)
{
    static const char *const values[] = {"-1", "0", "1",   "2",   "3",   "65536",    "4294967296",
                                         "s",  "r", "rrc", "rcs", "re",  "cpy",      "nop",
                                         "i",  "o", "",    "LL",  "1e9", "allgather"};
    const char *value = values[random_below(COUNT(values))];
    uint64_t at = random_below(input_bytes);
    while (at + 1 < input_bytes && (input[at] != '=' || input[at + 1] != '"')) at++;
    uint64_t end = at + 2;
    while (end < input_bytes && input[end] != '"') end++;
    if (end < input_bytes) input_replace(at + 2, end, value, strlen(value));
}

static void mutate_value(void)
{
    if (input_bytes > 0 && input[0] == '<') {
        mutate_attribute();
        return;
    }
    uint64_t begin = 0, end = 0;
    const char *token = tokens[random_below(COUNT(tokens))];
    if (value_find(random_below(input_bytes), &begin, &end))
        input_replace(begin, end, token, strlen(token));
}

static void mutate_key(void)
{
    char pair[256];
    uint64_t at = random_below(input_bytes);
    while (at < input_bytes && input[at] != '{' && input[at] != ',') at++;
    if (at >= input_bytes) return;
    const char *key = keys[random_below(COUNT(keys))];
    (void)snprintf(pair, sizeof pair, "%s%s,", key, tokens[random_below(COUNT(tokens))]);
    input_replace(at + 1, at + 1, pair, strlen(pair));
}

static void mutate_bytes(void)
{
    static const char odd[] = "\"\\{}[],: \n\0\xff\xc0\xed\x80/~0-e.*x";
    uint64_t const at = random_below(input_bytes);
    if (input_bytes == 0) return;
    if (random_below(2) == 0)
        input[at] = odd[random_below(sizeof odd - 1)];
    else
        input[at] = (char)(input[at] ^ (1 << random_below(8)));
}

static void mutate_range(void)
{
    uint64_t const from = random_below(input_bytes);
    uint64_t const to = from + random_below(input_bytes - from + 1);
    switch (random_below(4)) {
    case 0:
        input_replace(from, to, "", 0);
        break;
    case 1: /* Twice; the source lies before the place, so it is not moved. */
        if (to - from < 4096) input_replace(to, to, input + from, to - from);
        break;
    case 2:
        input_bytes = from;
        break;
    default:
        for (uint64_t i = 0; i < random_below(100); i++) input_replace(from, from, "[", 1);
        break;
    }
}

static void mutate_splice(void)
{
    const struct embed_file *other = corpus_at(random_below(corpus_count()));
    uint64_t const from = random_below(other->size_bytes);
    uint64_t const count = random_below(other->size_bytes - from);
    uint64_t const at = random_below(input_bytes);
    input_replace(at, at + random_below(input_bytes - at + 1), other->bytes + from, count);
}

static void input_make(uint64_t seed, uint64_t number)
{
    static void (*const mutations[])(void) = {mutate_value, mutate_value, mutate_value, mutate_key,
                                              mutate_bytes, mutate_range, mutate_splice};
    enum { MEANING = 4, ALL = 7 }; /* The first keep most inputs well formed. */
    random_state = seed * UINT64_C(0xd1342543de82ef95) + number;
    const struct embed_file *file = corpus_at(number % corpus_count());
    memcpy(input, file->bytes, file->size_bytes);
    input_bytes = file->size_bytes;
    if (number < corpus_count()) return; /* First as they are. */
    uint64_t const kinds = random_below(3) > 0 ? MEANING : ALL;
    for (uint64_t i = 1 + random_below(MUTATIONS_MAX); i > 0; i--) mutations[random_below(kinds)]();
}

static void on_crash(int signal_number)
{
    ssize_t const ignored = write(STDERR_FILENO, crash_note, strlen(crash_note));
    (void)ignored;
    (void)signal(signal_number, SIG_DFL);
    (void)raise(signal_number);
}

static int usage(void)
{
    (void)fprintf(stderr, "usage: fuzz [--seed N] [--count N] [--only N]\n");
    return 1;
}

int main(int argument_count, char **arguments)
{
    uint64_t seed = 1, first = 0, count = 20000;
    struct fuzz_taken taken = {0};
    for (int i = 1; i < argument_count; i += 2) {
        if (i + 1 == argument_count) return usage();
        uint64_t const value = strtoull(arguments[i + 1], NULL, 10);
        if (strcmp(arguments[i], "--seed") == 0)
            seed = value;
        else if (strcmp(arguments[i], "--count") == 0)
            count = value;
        else if (strcmp(arguments[i], "--only") == 0)
            first = value, count = 1;
        else
            return usage();
    }
    (void)signal(SIGABRT, on_crash);
    (void)signal(SIGSEGV, on_crash);
    (void)printf("seed %llu\n", (unsigned long long)seed);
    (void)fflush(stdout);
    for (uint64_t number = first; number < first + count; number++) {
        (void)snprintf(crash_note, sizeof crash_note,
                       "fuzz: play again with --seed %llu --only %llu\n", (unsigned long long)seed,
                       (unsigned long long)number);
        input_make(seed, number);
        fuzz_readers(input, input_bytes, &taken);
        if (count == 1) (void)printf("%.*s\n", (int)input_bytes, input);
    }
    (void)printf("taken: %llu json, %llu scenarios, %llu machines, %llu meshes, %llu chips, "
                 "%llu models, %llu settings, %llu quantities, %llu machine texts, "
                 "%llu scripts, %llu schedules, %llu programs\n",
                 (unsigned long long)taken.json, (unsigned long long)taken.scenarios,
                 (unsigned long long)taken.machines, (unsigned long long)taken.meshes,
                 (unsigned long long)taken.chips, (unsigned long long)taken.models,
                 (unsigned long long)taken.settings, (unsigned long long)taken.quantities,
                 (unsigned long long)taken.machine_texts, (unsigned long long)taken.scripts,
                 (unsigned long long)taken.schedules, (unsigned long long)taken.programs);
    /* Every reader was entered and passed: else the mutator only tests the parser. */
    bool const reached = taken.json > 0 && taken.scenarios > 0 && taken.machines > 0 &&
                         taken.meshes > 0 && taken.chips > 0 && taken.models > 0 &&
                         taken.settings > 0 && taken.quantities > 0 && taken.machine_texts > 0 &&
                         taken.scripts > 0 && taken.schedules > 0 && taken.programs > 0;
    return count == 1 || reached ? 0 : 1;
}
