/* Programs as text: what is written is read back as the same program, whose run is the same. */
#include <stdio.h>
#include <string.h>

#include "sim/base/embed.h"
#include "sim/base/strbuf.h"
#include "sim/fold/fold.h"
#include "sim/program/program_text.h"
#include "sim/replay/replay.h"
#include "sim/scenario/program_file.h"
#include "sim/step/workload.h"
#include "tests/support/case.h"
#include "tests/support/sampling.h"

extern const struct embed_file embed_scenarios[];
extern const uint32_t embed_scenarios_count;

/* A scenario's program, or a program out of a text. */
struct made {
    struct arena *arena;
    struct scenario scenario;
    struct machine machine;
    struct mesh mesh;
    struct program program;
};

/* What takes a minute is played smaller. */
static const struct {
    const char *name, *setting;
} smaller[] = {
    {"deepseek-v3-h800-2048", "/machine/nodes=64"},
    {"deepseek-v3-h800-2048", "/mesh/pp=[\"node:4\"]"},
    {"deepseek-v3-h800-2048", "/workload/layout=\"Et*8|(t*8|)*6t*5mL\""},
    {"deepseek-v3-h800-2048", "/workload/accumulate=8"},
    {"deepseek-v3-h800-2048", "/workload/batch_tokens=4194304"},
};
enum { SMALLER_COUNT = sizeof smaller / sizeof *smaller };

static void parts_build(struct made *made)
{
    made->arena = made->arena == NULL ? arena_create(0) : made->arena;
    case_ok(machine_build(made->arena, &made->scenario.machine, &made->machine, &case_error));
    case_ok(mesh_build(&made->scenario.mesh, &made->machine, &made->mesh, &case_error));
    inference_stages_set(&made->scenario.workload, made->mesh.axis[MESH_PP].size);
}

static void lower(const struct embed_file *file, struct made *made)
{
    struct scenario_setting settings[SMALLER_COUNT];
    uint32_t count = 0;
    *made = (struct made){.arena = arena_create(0)};
    for (uint32_t i = 0; i < SMALLER_COUNT; i++)
        if (strcmp(file->name, smaller[i].name) == 0) settings[count++].text = smaller[i].setting;
    case_ok(scenario_read_text(made->arena, file->name, file->bytes, file->size_bytes, settings,
                               count, &made->scenario, &case_error));
    parts_build(made);
    case_ok(workload_lower(made->arena, &made->scenario.workload, &made->machine, &made->mesh,
                           &made->program, &case_error));
}

static void print(const struct made *made, struct strbuf *text)
{
    *text = (struct strbuf){.bytes = NULL};
    case_ok(program_file_write(made->arena, &made->scenario, &made->machine, &made->program, text,
                               &case_error));
}

static void read_back(const char *name, const struct strbuf *text, struct made *made)
{
    struct program_file_rest rest;
    *made = (struct made){.arena = arena_create(0)};
    case_ok(program_file_read_scenario(made->arena, name, text->bytes, text->size_bytes, NULL, 0,
                                       &made->scenario, &rest, &case_error));
    parts_build(made);
    case_ok(
        program_file_read(made->arena, name, &rest, &made->machine, &made->program, &case_error));
}

static uint64_t digest_of(struct made *made)
{
    struct fold fold;
    struct trace trace;
    struct replay_options const options = {.engine = made->scenario.run.engine,
                                           .arbitration = made->scenario.run.arbitration};
    case_ok(fold_build(made->arena, &made->machine, &made->program, false, &fold, &case_error));
    case_ok(replay_run(made->arena, &options, &made->machine, &made->program, &fold, &trace,
                       &case_error));
    return trace.digest;
}

static void what_is_written_is_read_and_written_again(void **state)
{
    uint32_t walked = 0;
    (void)state;
    for (uint32_t i = 0; i < embed_scenarios_count; i++) {
        const char *name = embed_scenarios[i].name;
        struct made made, again;
        struct strbuf text, second;
        lower(&embed_scenarios[i], &made);
        print(&made, &text);
        read_back(name, &text, &again);
        print(&again, &second);
        if (text.size_bytes != second.size_bytes ||
            memcmp(text.bytes, second.bytes, text.size_bytes) != 0)
            fail_msg("%s: what is read is printed otherwise", name);
        if (!sampling_skips(&walked) && digest_of(&made) != digest_of(&again))
            fail_msg("%s: what is read is played otherwise", name);
        strbuf_free(&text);
        strbuf_free(&second);
        arena_destroy(made.arena);
        arena_destroy(again.arena);
    }
}

/* Whether the first lines of a text, without the end of the last, are refused in that line. */
static bool cut_is_refused(const struct made *made, const struct program_file_rest *rest,
                           uint64_t text_bytes, uint32_t last_line)
{
    char where[64];
    struct program program;
    struct program_file_rest const cut = {rest->text, text_bytes, rest->line};
    struct arena *arena = arena_create(0);
    enum status const status =
        program_file_read(arena, "cut", &cut, &made->machine, &program, &case_error);
    (void)snprintf(where, sizeof where, "cut:%u:", last_line);
    bool const refused =
        status == STATUS_INVALID && strncmp(case_error.where, where, strlen(where)) == 0;
    arena_destroy(arena);
    return refused;
}

/* The end of each of 500 lines is tried, one of 1,024 in texts behind these. */
static void what_is_cut_off_is_refused_where_it_ends(void **state)
{
    uint32_t walked = 0, tried = 0;
    (void)state;
    for (uint32_t i = 0; i < embed_scenarios_count; i++) {
        struct program_file_rest rest;
        struct made made;
        struct strbuf text;
        if (sampling_skips(&walked)) continue;
        lower(&embed_scenarios[i], &made);
        print(&made, &text);
        case_ok(program_file_read_scenario(made.arena, "cut", text.bytes, text.size_bytes, NULL, 0,
                                           &made.scenario, &rest, &case_error));
        uint32_t line = rest.line, says = line;
        for (uint64_t at = 0; at + sizeof "end" < rest.text_bytes; at++) {
            if (rest.text[at] != '\n') continue;
            if (at > 0 && rest.text[at - 1] != '\n') says = line;
            if (line++ % 1024 != 0 && tried > 500) continue;
            if (!cut_is_refused(&made, &rest, at, says))
                fail_msg("%s, cut behind line %u: %s: %s", embed_scenarios[i].name, says,
                         case_error.where, case_error.message);
            tried++;
        }
        strbuf_free(&text);
        arena_destroy(made.arena);
    }
    assert_true(tried > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_cut_off_is_refused_where_it_ends),
        cmocka_unit_test(what_is_written_is_read_and_written_again),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
