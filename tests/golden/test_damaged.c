/*
 * What is said of each small slip in a file: every line of a file is left out and doubled, every
 * word and number of it replaced, one at a time, and what its reader says is held against
 * tests/golden/damaged.expect. Of a file it has how many slips were tried and how many were taken,
 * a digest of all that was said and of all that was read, and a refusal of each kind in full.
 *
 * With PODSIM_BLESS=yes it is written anew: look at the difference before you keep it.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/choose/tuner.h"
#include "sim/collective/msccl.h"
#include "sim/kernels/kernels.h"
#include "sim/mesh/mesh.h"
#include "sim/model/model_read.h"
#include "sim/report/show_levels.h"
#include "sim/scenario/program_file.h"
#include "sim/schedule/schedule_csv.h"
#include "tests/support/case.h"
#include "tests/support/sampling.h"

static const char expect_path[] = "tests/golden/damaged.expect";
static const uint64_t memory_limit_bytes = 256u << 20;
enum { PATH_BYTES = 128, SHAPES_MAX = 256 };

/* What was read, in words; a refusal is in case_error. */
typedef enum status read_fn(struct arena *arena, const struct strbuf *text, struct strbuf *said);

static enum status scenario_say(struct arena *arena, const struct strbuf *text, struct strbuf *said)
{
    struct scenario scenario;
    struct machine machine;
    struct mesh mesh;
    STATUS_TRY(scenario_read_text(arena, "damaged", text->bytes, text->size_bytes, NULL, 0,
                                  &scenario, &case_error));
    strbuf_add(said, "%s", scenario_text(arena, &scenario));
    STATUS_TRY(machine_build(arena, &scenario.machine, &machine, &case_error));
    show_levels(&machine, said);
    show_totals(&machine, said);
    return mesh_build(&scenario.mesh, &machine, &mesh, &case_error);
}

static uint64_t fact_of(const struct model *model, const struct model_fact *fact)
{
    const char *at = (const char *)model + fact->at;
    uint64_t number = 0;
    if (fact->size_bytes == sizeof(bool)) return *(const bool *)at;
    if (fact->size_bytes == sizeof(uint32_t)) return *(const uint32_t *)(const void *)at;
    assert_int_equal(fact->size_bytes, sizeof number);
    memcpy(&number, at, sizeof number);
    return number;
}

static enum status model_say(struct arena *arena, const struct strbuf *text, struct strbuf *said)
{
    struct json *document = NULL;
    struct model model = {.kind = MODEL_DECODER};
    STATUS_TRY(
        json_read_text(arena, "damaged", text->bytes, text->size_bytes, &document, &case_error));
    enum status const status = model_read_config(arena, document, "damaged", &model, &case_error);
    json_free(document);
    if (status != STATUS_OK) return status;
    /* A further fact, which these models do not have, changes no digest. */
    for (const struct model_fact *fact = model_facts; fact->name != NULL; fact++)
        if (fact_of(&model, fact) != 0)
            strbuf_add(said, " %s %llu", fact->name, (unsigned long long)fact_of(&model, fact));
    strbuf_add(said, " most %llu", (unsigned long long)model.positions.most);
    for (uint64_t layer = 0; layer < model.layers && layer < 128; layer++)
        strbuf_add(said, " %d%d", model_layer_kind(&model, layer, UINT64_MAX).windowed,
                   model_layer_kind(&model, layer, UINT64_MAX).borrows);
    return STATUS_OK;
}

static enum status kernels_say(struct arena *arena, const struct strbuf *text, struct strbuf *said)
{
    struct json *document = NULL;
    struct kernel_stack stack;
    STATUS_TRY(
        json_read_text(arena, "damaged", text->bytes, text->size_bytes, &document, &case_error));
    enum status const status = kernel_stack_read(arena, document, &stack, &case_error);
    json_free(document);
    if (status == STATUS_OK) strbuf_add(said, "%s %s %u", stack.chip, stack.name, stack.clock_ppm);
    return status;
}

static enum status script_say(struct arena *arena, const struct strbuf *text, struct strbuf *said)
{
    const struct msccl_script *script = NULL;
    STATUS_TRY(msccl_read(arena, "damaged", text->bytes, text->size_bytes, &script, &case_error));
    strbuf_add(said, "%s %u %u %u", script->name, script->rank_count, script->chunk_count,
               script->message_count);
    return STATUS_OK;
}

static enum status schedule_say(struct arena *arena, const struct strbuf *text, struct strbuf *said)
{
    struct schedule schedule;
    STATUS_TRY(
        schedule_csv_read(arena, text->bytes, text->size_bytes, "damaged", &schedule, &case_error));
    strbuf_add(said, "%u %u %u %u %u", schedule.rank_count, schedule.stage_count,
               schedule.microbatch_count, schedule.chunk_count, schedule.copy_count);
    for (uint32_t rank = 0; rank < schedule.rank_count; rank++)
        for (uint32_t i = 0; i < schedule.rank[rank].count; i++) {
            const struct schedule_pass *pass = &schedule.rank[rank].pass[i];
            strbuf_add(said, " %d %u %u", pass->kind, pass->stage, pass->microbatch);
        }
    return STATUS_OK;
}

static enum status tuner_say(struct arena *arena, const struct strbuf *text, struct strbuf *said)
{
    struct tuner tuner;
    STATUS_TRY(tuner_read(arena, "damaged", text->bytes, text->size_bytes, &tuner, &case_error));
    for (uint32_t i = 0; i < tuner.rule_count; i++) {
        const struct tuner_rule *rule = &tuner.rules[i];
        strbuf_add(said, " %d %llu %llu %s %d %lld %lld %d %lld %u", rule->kind,
                   (unsigned long long)rule->min_bytes, (unsigned long long)rule->max_bytes,
                   algorithm_text(&rule->algorithm).text, rule->protocol,
                   (long long)rule->node_count, (long long)rule->rank_count, rule->never,
                   (long long)rule->channel_count, rule->line);
    }
    return STATUS_OK;
}

static enum status program_say(struct arena *arena, const struct strbuf *text, struct strbuf *said)
{
    struct scenario scenario;
    struct machine machine;
    struct program program;
    struct program_file_rest rest;
    STATUS_TRY(program_file_read_scenario(arena, "damaged", text->bytes, text->size_bytes, NULL, 0,
                                          &scenario, &rest, &case_error));
    STATUS_TRY(machine_build(arena, &scenario.machine, &machine, &case_error));
    STATUS_TRY(program_file_read(arena, "damaged", &rest, &machine, &program, &case_error));
    return program_file_write(arena, &scenario, &machine, &program, said, &case_error);
}

/* A file that is damaged, one slip of every `stride` that there are. */
static const struct source {
    const char *path; /* NULL: `text`. */
    read_fn *say;
    uint32_t stride;
    const char *text;
} sources[] = {
    {"tests/fuzz/corpus/all_keys.json", scenario_say, 9, NULL},
    {"tests/fuzz/corpus/network.json", scenario_say, 9, NULL},
    {"tests/fuzz/corpus/overrides.json", scenario_say, 9, NULL},
    {"tests/fuzz/corpus/slices.json", scenario_say, 9, NULL},
    {"tests/fuzz/corpus/own_chip.json", scenario_say, 13, NULL},
    {"scenarios/decode/llama3-405b-decode-2d-v5e-8x8.json", scenario_say, 9, NULL},
    {"scenarios/pipeline/llama3-8b-pp4-fsdp-h100-32.json", scenario_say, 9, NULL},
    {"workloads/models/deepseek-v2-lite.json", model_say, 4, NULL},
    {"workloads/models/deepseek-v3.json", model_say, 4, NULL},
    {"workloads/models/gemma-7b.json", model_say, 4, NULL},
    {"workloads/models/glm-4-9b.json", model_say, 4, NULL},
    {"workloads/models/gpt-neox-20b.json", model_say, 4, NULL},
    {"workloads/models/gpt-oss-20b.json", model_say, 4, NULL},
    {"workloads/models/granite-3.1-8b.json", model_say, 4, NULL},
    {"workloads/models/mixtral-8x7b.json", model_say, 4, NULL},
    {"workloads/models/qwen1.5-moe-14b.json", model_say, 4, NULL},
    {"workloads/models/qwen2.5-7b.json", model_say, 4, NULL},
    {"workloads/models/qwen3-30b-a3b.json", model_say, 4, NULL},
    {"workloads/models/starcoder2-3b.json", model_say, 4, NULL},
    {"tests/fuzz/corpus/script_ring.xml", script_say, 11, NULL},
    {"tests/fuzz/corpus/script_sum.xml", script_say, 8, NULL},
    {"tests/fuzz/corpus/schedule_1f1b.csv", schedule_say, 1, NULL},
    {"tests/fuzz/corpus/schedule_dualpipev.csv", schedule_say, 3, NULL},
    {"tests/fuzz/corpus/schedule_messages.csv", schedule_say, 3, NULL},
    {"tests/fuzz/corpus/gather.program", program_say, 8, NULL},
    {"tests/fuzz/corpus/pipeline.program", program_say, 13, NULL},
    {NULL, tuner_say, 1,
     "# collective,least,most,algorithm,protocol,channels,nodes,ranks\n"
     "allreduce,0,65536,tree,ll,-1,2,-1\nallreduce,65537,4294967296,ring,simple,-1,-1,8\n"},
    {NULL, kernels_say, 3,
     "{\"podsim_kernels\": 1, \"chip\": \"c\", \"stack\": \"s\", \"title\": \"T\",\n"
     "\"matmul\": [{\"format\": \"bf16\", \"layout\": \"TN\", \"source\": \"x\",\n"
     "\"flop_rate\": \"1TFLOP/s\", \"hbm_rate\": \"1TB/s\", \"rows\": 8,\n"
     "\"error_median_ppm\": 0, \"error_ninetieth_ppm\": 0,\n"
     "\"m\": [1, 2], \"n\": [1, 2], \"k\": [1, 2],\n"
     "\"share_ppm\": [1, 2, 3, 4, 5, 6, 7, 8]}]}\n"},
};

/* A refusal's words, without what it quotes and counts: one of each kind is kept in full. */
static void shape_of(const char *message, char *ret_shape, size_t size)
{
    size_t count = 0;
    bool quoted = false;
    for (; *message != '\0' && count + 1 < size; message++) {
        if (*message == '"') quoted = !quoted;
        if (!quoted && !isdigit((unsigned char)*message)) ret_shape[count++] = *message;
    }
    ret_shape[count] = '\0';
}

struct course {
    const struct source *source;
    struct strbuf whole, kinds;
    char shapes[SHAPES_MAX][64];
    uint32_t shape_count, walked, tried, taken;
    uint64_t digest;
};

/* FNV-1a (Fowler, Noll, Vo; draft-eastlake-fnv-21, 64 bits). */
static void digest_add(struct course *course, const char *text)
{
    for (; *text != '\0'; text++)
        course->digest = (course->digest ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
}

static void refusal_add(struct course *course)
{
    char shape[sizeof *course->shapes];
    uint32_t i = 0;
    shape_of(case_error.message, shape, sizeof shape);
    while (i < course->shape_count && strcmp(course->shapes[i], shape) != 0) i++;
    if (i < course->shape_count || i == SHAPES_MAX) return;
    memcpy(course->shapes[course->shape_count++], shape, sizeof shape);
    strbuf_add(&course->kinds, "%s: %s\n", case_error.where, case_error.message);
}

/* The text with `with` in place of what lies from one byte to another. */
static void slip(struct course *course, uint64_t from, uint64_t to, const char *with, size_t length)
{
    struct strbuf text = {0}, said = {0};
    if (course->walked++ % course->source->stride != 0) return;
    struct arena *arena = arena_create(memory_limit_bytes);
    strbuf_add_bytes(&text, course->whole.bytes, from);
    strbuf_add_bytes(&text, with, length);
    strbuf_add_bytes(&text, course->whole.bytes + to, course->whole.size_bytes - to);
    case_error = (struct error){.status = STATUS_OK};
    enum status const status = course->source->say(arena, &text, &said);
    assert_int_equal(status, case_error.status);
    course->tried++;
    course->taken += status == STATUS_OK;
    if (said.size_bytes > 0) digest_add(course, said.bytes);
    digest_add(course, case_error.where);
    digest_add(course, case_error.message);
    if (status != STATUS_OK) refusal_add(course);
    strbuf_free(&text);
    strbuf_free(&said);
    arena_destroy(arena);
}

static void slip_to(struct course *course, uint64_t from, uint64_t to, const char *with)
{
    slip(course, from, to, with, strlen(with));
}

static bool is_word(char sign)
{
    return isalnum((unsigned char)sign) || strchr("_.+-*", sign) != NULL;
}

static void words_spoil(struct course *course)
{
    static const char *const numbers[] = {"0", "2", "-1", "99999999999", "x"};
    const char *bytes = course->whole.bytes;
    for (uint64_t at = 0, end = 0; at < course->whole.size_bytes; at = end + (end == at)) {
        for (end = at; end < course->whole.size_bytes && is_word(bytes[end]);) end++;
        if (end == at) continue;
        bool const quoted = at > 0 && bytes[at - 1] == '"' && bytes[end] == '"';
        /* A word that JSON does not know is refused wherever it stands. */
        size_t const count = sizeof numbers / sizeof *numbers - (bytes[0] == '{' && !quoted);
        for (size_t i = 0; i < count; i++) slip_to(course, at, end, numbers[i]);
        slip_to(course, end - 1, end, "");
        if (!quoted) continue;
        slip_to(course, at - 1, end + 1, "null");
    }
}

static void lines_spoil(struct course *course)
{
    const char *bytes = course->whole.bytes;
    for (uint64_t at = 0, end = 0; at < course->whole.size_bytes; at = end) {
        end = at + strcspn(bytes + at, "\n");
        end += bytes[end] == '\n';
        slip_to(course, at, end, "");
        if (bytes[0] != '{') slip(course, at, at, bytes + at, end - at);
    }
}

static void file_read(const char *path, struct strbuf *ret_text)
{
    char part[4096];
    size_t count = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL) fail_msg("%s: %s", path, strerror(errno));
    while ((count = fread(part, 1, sizeof part, file)) > 0) strbuf_add_bytes(ret_text, part, count);
    assert_int_equal(fclose(file), 0);
    assert_false(ret_text->failed);
}

/* What the file has of a source, from its title to the next one. */
static void source_hold(const struct strbuf *kept, const char *title, const struct strbuf *found)
{
    const char *begin = strstr(kept->bytes, title);
    const char *end = begin == NULL ? NULL : strstr(begin, "\n\n");
    if (end == NULL) fail_msg("%s has nothing of %s", expect_path, title);
    size_t const length = (size_t)(end + 2 - begin);
    if (length == found->size_bytes && memcmp(begin, found->bytes, length) == 0) return;
    fail_msg("it was\n%.*s\nand is\n%s\nif that is meant: PODSIM_BLESS=yes PODSIM_TEST_THIN=1 "
             "meson test -C build 'golden damaged'",
             (int)length, begin, found->bytes);
}

static void what_is_said_of_slips_stays_as_it_was(void **state)
{
    const char *const bless = getenv("PODSIM_BLESS");
    bool const is_blessing = bless != NULL && strcmp(bless, "yes") == 0;
    static struct course course;
    struct strbuf kept = {0}, all = {0};
    uint32_t walked = 0; /* Sanitizers take a sample. */
    (void)state, (void)walked;
    if (!is_blessing) file_read(expect_path, &kept);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        const struct source *source = &sources[i];
        char title[PATH_BYTES];
        struct strbuf found = {0};
#ifdef GUARD_WATCHED
        if (sampling_skips(&walked)) continue;
#endif
        course = (struct course){.source = source, .digest = UINT64_C(0xcbf29ce484222325)};
        if (source->path != NULL)
            file_read(source->path, &course.whole);
        else
            strbuf_add(&course.whole, "%s", source->text);
        slip_to(&course, 0, 0, ""); /* As it is, it is taken. */
        if (course.taken != 1) fail_msg("%s", course.kinds.bytes);
        lines_spoil(&course);
        words_spoil(&course);
        case_text(title, sizeof title, "== %s %zu: ", source->path == NULL ? "text" : source->path,
                  i);
        strbuf_add(&found, "%s%u slips, %u taken, %016llx\n%s\n", title, course.tried, course.taken,
                   (unsigned long long)course.digest,
                   course.kinds.size_bytes == 0 ? "" : course.kinds.bytes);
        if (!is_blessing) source_hold(&kept, title, &found);
        strbuf_add(&all, "%s", found.bytes);
        strbuf_free(&found);
        strbuf_free(&course.whole);
        strbuf_free(&course.kinds);
    }
    if (is_blessing) {
        FILE *file = fopen(expect_path, "w");
        assert_non_null(file);
        assert_true(fputs(all.bytes, file) >= 0);
        assert_int_equal(fclose(file), 0);
    }
    strbuf_free(&all);
    strbuf_free(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_of_slips_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
