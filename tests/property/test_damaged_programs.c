/* Texts of programs with lines that are damaged, or with counts that are one off: each is refused
 * with a sentence and a place, or is a program that can be played for several steps, or of which
 * the run says why not, and where. Never an assertion. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/embed.h"
#include "sim/base/strbuf.h"
#include "sim/fold/fold.h"
#include "sim/replay/replay.h"
#include "sim/scenario/program_file.h"
#include "sim/step/workload.h"
#include "tests/support/case.h"
#include "tests/support/sampling.h"

extern const struct embed_file embed_scenarios[];
extern const uint32_t embed_scenarios_count;

/* Steps with sends, copies, exchanges, several levels; small, so that many can be tried. */
static const struct {
    const char *name, *setting;
} sources[] = {
    {"mlp-fsdp-tp-v5p-4x4x4", NULL},
    {"mlp-dp-v5p-4x2x2x1", NULL},
    {"llama3-8b-fsdp-offload-v5e-2x4", "/workload/accumulate=1"},
    {"llama3-8b-pp4-fsdp-h100-32", "/workload/accumulate=4"},
    {"qwen3-30b-a3b-ep32-h100-32", NULL},
    {"tests/fuzz/corpus/pipeline.program", NULL},
    {"tests/fuzz/corpus/inbox.program", NULL},
};
enum { SOURCES = sizeof sources / sizeof *sources, TRIES = 1500 };

/* A text of which every line can be damaged. */
struct damaged {
    char *bytes;
    uint64_t size_bytes, capacity_bytes;
};

static void replace(struct damaged *of, uint64_t from, uint64_t to, const char *with)
{
    uint64_t const count = strlen(with);
    if (of->size_bytes - (to - from) + count > of->capacity_bytes) return;
    memmove(of->bytes + from + count, of->bytes + to, of->size_bytes - to);
    memcpy(of->bytes + from, with, count);
    of->size_bytes += count - (to - from);
}

/* The number, or the word, at or behind a place. */
static bool token_find(const struct damaged *of, uint64_t from, uint64_t *ret_begin,
                       uint64_t *ret_end)
{
    while (from < of->size_bytes && of->bytes[from] != '=' && of->bytes[from] != ' ') from++;
    *ret_begin = ++from;
    while (from < of->size_bytes && strchr("= \n", of->bytes[from]) == NULL) from++;
    *ret_end = from;
    return *ret_begin < of->size_bytes;
}

/* One count of slots, messages or parts at or behind a place becomes one more, one less, or twice
 * as many. */
static void count_alter(struct damaged *of, uint64_t from, uint64_t *random)
{
    static const char *const keys[] = {" repeat=", " arrivals=", " part=", " slot="};
    const char *key = keys[case_random(random) % (sizeof keys / sizeof *keys)];
    uint64_t const key_bytes = strlen(key);
    while (from + key_bytes < of->size_bytes && memcmp(of->bytes + from, key, key_bytes) != 0)
        from++;
    uint64_t begin = 0, end = 0;
    char text[32] = "";
    if (from + key_bytes >= of->size_bytes || !token_find(of, from + 1, &begin, &end)) return;
    if (end - begin >= sizeof text) return;
    memcpy(text, of->bytes + begin, end - begin);
    long long const count = strtoll(text, NULL, 10);
    long long const altered[] = {count + 1, count - 1, 2 * count};
    (void)snprintf(text, sizeof text, "%lld", altered[case_random(random) % 3]);
    replace(of, begin, end, text);
}

static void damage(struct damaged *of, uint64_t *random)
{
    static const char *const values[] = {"0",
                                         "1",
                                         "2",
                                         "3",
                                         "7",
                                         "-1",
                                         "16",
                                         "63",
                                         "255",
                                         "65535",
                                         "1e9",
                                         "none", /* numbers */
                                         "99999999",
                                         "1152921504606846976",
                                         "18446744073709551615", /* large ones */
                                         "since",
                                         "done",
                                         "begun",
                                         "ring",
                                         "line",
                                         "switches",
                                         "machine",
                                         "end", /* words */
                                         "yes",
                                         "auto",
                                         "AllToAll",
                                         "Permute",
                                         "AllGather",
                                         "send",
                                         "copy",
                                         "\"x\""};
    uint64_t begin = 0, end = 0, at = case_random(random) % of->size_bytes;
    uint64_t const kind = case_random(random) % 11;
    if (kind >= 8) {
        count_alter(of, at, random);
        return;
    }
    if (kind < 5) {
        const char *value = values[case_random(random) % (sizeof values / sizeof *values)];
        if (token_find(of, at, &begin, &end)) replace(of, begin, end, value);
        return;
    }
    while (at > 0 && of->bytes[at - 1] != '\n') at--; /* A whole line, left out or twice. */
    for (end = at; end < of->size_bytes && of->bytes[end] != '\n';) end++;
    if (end == of->size_bytes) return;
    char line[512] = "";
    if (end + 1 - at < sizeof line) memcpy(line, of->bytes + at, end + 1 - at);
    if (kind == 5) {
        replace(of, at, end + 1, "");
    } else if (kind == 6) {
        replace(of, at, at, line);
    } else {
        uint64_t const place = at + case_random(random) % (end - at + 1);
        of->bytes[place] ^= (char)(1 << case_random(random) % 7);
    }
}

static bool few_events(void *owner, const struct replay_progress *progress)
{
    (void)owner;
    return progress->events < 100000;
}

/* A line of the text, or a key of its head. */
static bool has_place(const struct error *error)
{
    return strncmp(error->where, "damaged:", strlen("damaged:")) == 0 || error->where[0] == '/' ||
           strstr(error->message, "is missing") != NULL;
}

/* Whether it was taken: what is, can be played, or the run says why not. */
static bool is_taken(const struct damaged *of)
{
    struct error error = {0};
    struct program_file_rest rest;
    struct fold fold;
    struct trace trace;
    struct scenario scenario;
    struct machine machine;
    struct program program;
    struct arena *arena = arena_create(UINT64_C(1) << 31);
    enum status status = program_file_read_scenario(arena, "damaged", of->bytes, of->size_bytes,
                                                    NULL, 0, &scenario, &rest, &error);
    if (status == STATUS_OK) status = machine_build(arena, &scenario.machine, &machine, &error);
    if (status == STATUS_OK && machine.chip_count > 1024) status = STATUS_LIMIT;
    bool const taken = status == STATUS_OK && program_file_read(arena, "damaged", &rest, &machine,
                                                                &program, &error) == STATUS_OK;
    struct replay_options const options = {
        .engine = "fast", .arbitration = ARBITRATION_FIFO, .steps_max = 3, .watch = few_events};
    if (!taken && status != STATUS_LIMIT && (error.message[0] == '\0' || !has_place(&error)))
        fail_msg("%s: no place: %s", error.where, error.message);
    if (taken) {
        status = fold_build(arena, &machine, &program, false, &fold, &error);
        if (status == STATUS_OK)
            status = replay_run(arena, &options, &machine, &program, &fold, &trace, &error);
        if (status == STATUS_INVALID || status == STATUS_STUCK)
            if (strncmp(error.where, "damaged:", strlen("damaged:")) != 0)
                fail_msg("%s: no line: %s", error.where, error.message);
        if (status != STATUS_OK && error.message[0] == '\0') fail_msg("nothing is said of a run");
    }
    arena_destroy(arena);
    return taken;
}

static void file_print(const char *path, struct strbuf *text)
{
    char line[512];
    FILE *file = fopen(path, "r");
    if (file == NULL) fail_msg("%s: cannot be read", path);
    while (fgets(line, sizeof line, file) != NULL) strbuf_add(text, "%s", line);
    assert_int_equal(fclose(file), 0);
}

/* The text of a source's program. */
static void source_print(uint32_t index, struct strbuf *text)
{
    if (strchr(sources[index].name, '/') != NULL) {
        file_print(sources[index].name, text);
        return;
    }
    struct arena *arena = arena_create(0);
    struct scenario_setting const setting = {sources[index].setting};
    const struct embed_file *file = embed_scenarios;
    struct scenario scenario;
    struct machine machine;
    struct mesh mesh;
    struct program program;
    while (strcmp(file->name, sources[index].name) != 0) file++;
    case_ok(scenario_read_text(arena, file->name, file->bytes, file->size_bytes, &setting,
                               setting.text != NULL, &scenario, &case_error));
    case_ok(machine_build(arena, &scenario.machine, &machine, &case_error));
    case_ok(mesh_build(&scenario.mesh, &machine, &mesh, &case_error));
    inference_stages_set(&scenario.workload, mesh.axis[MESH_PP].size);
    case_ok(workload_lower(arena, &scenario.workload, &machine, &mesh, &program, &case_error));
    case_ok(program_file_write(arena, &scenario, &machine, &program, text, &case_error));
    arena_destroy(arena);
}

static char crash_note[64];

static void on_crash(int signal_number)
{
    ssize_t const ignored = write(STDERR_FILENO, crash_note, strlen(crash_note));
    (void)ignored;
    (void)signal(signal_number, SIG_DFL);
    (void)raise(signal_number);
}

static void what_is_damaged_is_refused_or_played(void **state)
{
    const char *const only = getenv("PODSIM_DAMAGED"); /* "SOURCE:TRY", of one that failed. */
    uint32_t walked = 0, taken = 0, tried = 0;
    (void)state;
    (void)signal(SIGABRT, on_crash);
    for (uint32_t i = 0; i < SOURCES; i++) {
        struct strbuf text = {0};
        source_print(i, &text);
        struct damaged of = {NULL, 0, 2 * text.size_bytes};
        of.bytes = test_malloc(of.capacity_bytes);
        for (uint32_t t = 0; t < TRIES; t++) {
            char number[32];
            uint64_t random = (uint64_t)i * TRIES + t + 1;
            (void)snprintf(number, sizeof number, "%u:%u", i, t);
            if (only == NULL ? sampling_skips(&walked) : strcmp(only, number) != 0) continue;
            memcpy(of.bytes, text.bytes, text.size_bytes);
            of.size_bytes = text.size_bytes;
            for (uint64_t d = 1 + case_random(&random) % 3; d > 0; d--) damage(&of, &random);
            (void)snprintf(crash_note, sizeof crash_note, "\nagain with PODSIM_DAMAGED=%s\n",
                           number);
            if (only != NULL) (void)fwrite(of.bytes, 1, of.size_bytes, stdout);
            taken += is_taken(&of);
            tried++;
        }
        test_free(of.bytes);
        strbuf_free(&text);
    }
    if (only == NULL && taken * 20 < tried) /* Else only the reader is tried. */
        fail_msg("only %u of %u are taken", taken, tried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_damaged_is_refused_or_played),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
