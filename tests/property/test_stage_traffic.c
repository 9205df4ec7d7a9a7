/*
 * Weights of pipeline stages that are gathered for a pass, for a run of passes or for the step, as
 * a policy or as a file says: how often, how much is held, what is reduced; and that nothing is
 * left at the end, folded or not.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/schedule/schedule_csv.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1600, WIDTH = 1024, WIDE = 4096, LAYERS = 32, RANKS = 4, SHARDS = 4 };

static const char square[] = "\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"";

static void mlp_write(char text[TEXT_BYTES], const char *schedule, const char *regather,
                      uint32_t microbatches, const char *more)
{
    case_text(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"title\": \"traffic\", \"machine\": {%s, \"profile\": \"ideal\"}, "
        "\"mesh\": {\"pp\": [\"x\"], \"fsdp\": [\"y\"]}, \"workload\": {\"kind\": \"train_step\", "
        "\"model\": {\"kind\": \"mlp\", \"D\": %d, \"F\": %d, \"layers\": %d, \"matrices\": 2}, "
        "\"batch_tokens\": %u, \"accumulate\": %u, \"schedule\": \"%s\", \"regather\": \"%s\", "
        "\"allow_oversubscription\": true%s}}",
        square, WIDTH, WIDE, LAYERS, 4096 * microbatches, microbatches, schedule, regather, more);
}

/* What a rank gathers of weights and reduces of gradients in a step, in arrays of a layer; and
 * every byte that is taken is given back. */
struct moved {
    uint64_t gathers, reductions;
};

static struct moved moved_of(const struct play *play, uint32_t rank)
{
    const struct program *program = &play->program;
    struct moved moved = {0};
    int64_t left[PROGRAM_MEMORY_COUNT] = {0};
    for (uint32_t b = 0; b < program->roles[rank].block_count; b++) {
        const struct program_block *block = &program->roles[rank].block[b];
        const struct program_template *template = &program->templates[block->template_index];
        for (uint32_t i = 0; i < template->op_count; i++) {
            const struct program_op *op = &template->op[i];
            for (uint32_t e = 0; e < op->effect_count; e++)
                left[op->effect[e].memory] += block->repeat * op->effect[e].bytes;
            if (op->kind != PROGRAM_OP_COLLECTIVE) continue;
            enum collective_kind const kind = program->plans[op->index].kind;
            if (kind == COLLECTIVE_ALL_GATHER) moved.gathers += block->repeat;
            if (kind == COLLECTIVE_REDUCE_SCATTER) moved.reductions += block->repeat;
        }
    }
    for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++) assert_int_equal(left[m], 0);
    return moved;
}

/* Bytes over all links of an axis. */
static uint64_t axis_bytes(const struct play *play, uint32_t axis)
{
    return play->trace.link[2 * axis].sum_bytes + play->trace.link[2 * axis + 1].sum_bytes;
}

static void each_microbatch_moves_what_a_step_does(void **state)
{
    (void)state;
    static const char *const names[] = {"gpipe", "1f1b", "interleaved:2",
                                        "zb-h1", "zb-v", "dualpipe"};
    uint64_t const layer_bytes = UINT64_C(2) * 2 * WIDTH * WIDE;
    for (uint32_t n = 0; n < sizeof names / sizeof *names; n++)
        for (uint32_t microbatches = 4; microbatches <= 8; microbatches += 4) {
            char text[TEXT_BYTES];
            struct play each, once;
            /* Each of two copies is for half of the microbatches. */
            uint32_t const copies = strcmp(names[n], "dualpipe") == 0 ? 2 : 1;
            if (microbatches < 4 * copies) continue;
            mlp_write(text, names[n], "microbatch", microbatches, "");
            play_run(&each, text, NULL);
            mlp_write(text, names[n], "step", microbatches, "");
            play_run(&once, text, NULL);
            uint64_t const layers = copies * LAYERS / RANKS;
            for (uint32_t r = 0; r < RANKS; r++) {
                struct moved const more = moved_of(&each, r), less = moved_of(&once, r);
                assert_int_equal(less.gathers, layers);
                assert_int_equal(less.reductions, layers);
                assert_int_equal(more.gathers, 2 * microbatches / copies * less.gathers);
                assert_int_equal(more.reductions, microbatches / copies * less.reductions);
                const struct trace_role *held = &once.trace.roles[r];
                assert_int_equal(held->memory.each_peak_bytes[PROGRAM_MEMORY_GATHERED],
                                 layers * layer_bytes);
                /* Whole gradients instead of shards. */
                assert_int_equal(
                    once.program.roles[r].resident_bytes[PROGRAM_MEMORY_GRADIENTS],
                    SHARDS * each.program.roles[r].resident_bytes[PROGRAM_MEMORY_GRADIENTS]);
                assert_true(each.trace.roles[r].memory.each_peak_bytes[PROGRAM_MEMORY_GATHERED] <=
                            3 * layer_bytes);
            }
            /* A gather and a reduction move the same number of elements. */
            enum format const gradients = once.scenario.workload.formats.gradients;
            uint64_t const weight = 2, gradient = format_bits(gradients) / 8;
            assert_int_equal(axis_bytes(&each, 1) * (weight + gradient),
                             axis_bytes(&once, 1) * microbatches / copies *
                                 (2 * weight + gradient));
            /* Activations and gradients between stages are what they were. */
            assert_int_equal(axis_bytes(&each, 0), axis_bytes(&once, 0));
            assert_true(once.trace.step_ps <= each.trace.step_ps);
            play_close(&each);
            play_close(&once);
        }
}

/* Breadth first, a stage's microbatches follow each other: of four chunks a rank, three are kept,
 * so that only the first is gathered again. */
static void breadth_first_gathers_least(void **state)
{
    (void)state;
    static const char *const names[] = {"looped-bfs:4", "interleaved:4"};
    uint64_t const layer_bytes = UINT64_C(2) * 2 * WIDTH * WIDE, chunk = LAYERS / RANKS / 4;
    uint64_t gathers[2][RANKS];
    for (uint32_t n = 0; n < 2; n++) {
        char text[TEXT_BYTES];
        struct play play;
        mlp_write(text, names[n], "stage", 8, "");
        play_run(&play, text, NULL);
        for (uint32_t r = 0; r < RANKS; r++) {
            struct moved const moved = moved_of(&play, r);
            gathers[n][r] = moved.gathers;
            assert_int_equal(moved.reductions, LAYERS / RANKS);
            const struct trace_role *role = &play.trace.roles[r];
            assert_int_equal(role->memory.each_peak_bytes[PROGRAM_MEMORY_GATHERED],
                             3 * chunk * layer_bytes);
        }
        play_close(&play);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_int_equal(gathers[0][r], 5 * chunk);
        assert_true(gathers[1][r] > gathers[0][r]);
    }
}

static struct schedule schedule_read(struct arena *arena, const char *text)
{
    struct schedule schedule;
    case_ok(schedule_csv_read(arena, text, strlen(text), "mine.csv", &schedule, &case_error));
    return schedule;
}

/* A schedule written with what it gathers is, read again, the policy that writes it so. */
static void a_file_is_the_policy_it_says(void **state)
{
    (void)state;
    static const char *const names[] = {"1f1b",  "interleaved:2", "interleaved:4", "looped-bfs:4",
                                        "zb-h1", "zb-v",          "dualpipev"};
    static const char *const policies[] = {"step", "stage"};
    for (uint32_t n = 0; n < sizeof names / sizeof *names; n++)
        for (uint32_t p = 0; p < 2; p++) {
            char text[TEXT_BYTES];
            struct play kept, file;
            struct strbuf csv = {0};
            mlp_write(text, names[n], policies[p], 8, "");
            play_run(&kept, text, NULL);
            struct schedule plain;
            case_ok(workload_schedule(kept.arena, &kept.scenario.workload, &kept.machine,
                                      &kept.mesh, &plain, &case_error));
            case_ok(
                schedule_csv_write(kept.arena, &plain, SCHEDULE_COMPUTE_COMMS, &csv, &case_error));
            struct schedule const given = schedule_read(kept.arena, csv.bytes);
            struct play_options const options = {.schedule = &given};
            mlp_write(text, "1f1b", "microbatch", 8, "");
            play_run(&file, text, &options);
            assert_int_equal(file.trace.step_ps, kept.trace.step_ps);
            assert_int_equal(axis_bytes(&file, 1), axis_bytes(&kept, 1));
            for (uint32_t r = 0; r < RANKS; r++)
                assert_int_equal(file.trace.roles[r].memory.peak_bytes,
                                 kept.trace.roles[r].memory.peak_bytes);
            strbuf_free(&csv);
            play_close(&kept);
            play_close(&file);
        }
}

/* One that has no policy is written as PyTorch would gather. */
static void a_file_without_a_policy_gathers_as_pytorch(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    struct strbuf csv[2] = {{0}, {0}};
    for (uint32_t i = 0; i < 2; i++) {
        struct play play;
        struct schedule schedule;
        mlp_write(text, "interleaved:4", i == 0 ? "microbatch" : "stage", 8, "");
        play_run(&play, text, NULL);
        case_ok(workload_schedule(play.arena, &play.scenario.workload, &play.machine, &play.mesh,
                                  &schedule, &case_error));
        assert_true(schedule.has_gathers == (i == 1));
        case_ok(schedule_csv_write(play.arena, &schedule, SCHEDULE_COMPUTE_COMMS, &csv[i],
                                   &case_error));
        play_close(&play);
    }
    assert_string_equal(csv[0].bytes, csv[1].bytes);
    strbuf_free(&csv[0]);
    strbuf_free(&csv[1]);
}

/* What a file says of rank 0's gathers, between passes of 1F1B with two microbatches. */
static const struct {
    const char *line;
    uint32_t gathers; /* Of the stage. */
} files[] = {
    {"0UNSHARD,0F0,0F1,0B0,0B1,0RESHARD,0REDUCE_GRAD", 1},
    {"0UNSHARD,0F0,0F1,0RESHARD,0UNSHARD,0B0,0B1,0RESHARD,0REDUCE_GRAD", 2},
    {"0UNSHARD,0F0,0F1,0I0,0I1,0RESHARD,0UNSHARD,0W0,0W1,0RESHARD", 2},
    {"0UNSHARD,0F0,0RESHARD,0UNSHARD,0F1,0RESHARD,0UNSHARD,0B0,0B1,0RESHARD,0REDUCE_GRAD", 3},
    {"0F0,0F1,0B0,0B1,0REDUCE_GRAD", 4},
};

static void file_write(char text[TEXT_BYTES], uint32_t index)
{
    bool const gathers = strstr(files[index].line, "UNSHARD") != NULL;
    int length = snprintf(text, TEXT_BYTES, "%s\n", files[index].line);
    for (uint32_t r = 1; r < RANKS; r++)
        length += gathers ? snprintf(text + length, TEXT_BYTES - (size_t)length,
                                     "%uUNSHARD,%uF0,%uB0,%uF1,%uB1\n", r, r, r, r, r)
                          : snprintf(text + length, TEXT_BYTES - (size_t)length,
                                     "%uF0,%uB0,%uF1,%uB1\n", r, r, r, r);
}

static void what_a_file_gathers_travels(void **state)
{
    (void)state;
    static const struct play_options full = {.full = true};
    uint32_t walked = 0;
    for (uint32_t i = 0; i < sizeof files / sizeof *files; i++) {
        char text[TEXT_BYTES], csv[TEXT_BYTES];
        struct play folded, whole;
        if (sampling_skips(&walked)) continue;
        struct arena *arena = arena_create(0);
        file_write(csv, i);
        struct schedule const given = schedule_read(arena, csv);
        struct play_options options = {.schedule = &given};
        mlp_write(text, "1f1b", "microbatch", 2, "");
        play_run(&folded, text, &options);
        struct moved const moved = moved_of(&folded, 0);
        assert_int_equal(moved.gathers, files[i].gathers * LAYERS / RANKS);
        assert_int_equal(moved.reductions, LAYERS / RANKS);
        options = full;
        options.schedule = &given;
        play_run(&whole, text, &options);
        assert_int_equal(whole.trace.step_ps, folded.trace.step_ps);
        for (uint32_t r = 0; r < RANKS; r++)
            assert_int_equal(whole.trace.roles[r].memory.peak_bytes,
                             folded.trace.roles[r].memory.peak_bytes);
        play_close(&folded);
        play_close(&whole);
        arena_destroy(arena);
    }
}

/* A file that says only when gradients are reduced leaves gathers to the scenario: as if it said
 * those as well. */
static void reductions_alone_leave_gathers_to_the_scenario(void **state)
{
    (void)state;
    static const char *const policies[] = {"step", "stage"};
    char alone[TEXT_BYTES], whole[TEXT_BYTES], text[TEXT_BYTES];
    int alone_length = 0, whole_length = 0;
    for (uint32_t r = 0; r < RANKS; r++) {
        alone_length += snprintf(alone + alone_length, TEXT_BYTES - (size_t)alone_length,
                                 "%uF0,%uB0,%uF1,%uB1,%uREDUCE_GRAD\n", r, r, r, r, r);
        whole_length += snprintf(whole + whole_length, TEXT_BYTES - (size_t)whole_length,
                                 "%uUNSHARD,%uF0,%uB0,%uF1,%uB1,%uREDUCE_GRAD,%uRESHARD\n", r, r, r,
                                 r, r, r, r);
    }
    for (uint32_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct arena *arena = arena_create(0);
        struct schedule const one = schedule_read(arena, alone),
                              other = schedule_read(arena, whole);
        struct play_options const options[] = {{.schedule = &one}, {.schedule = &other}};
        struct play play[2];
        mlp_write(text, "1f1b", policies[i], 2, "");
        play_run(&play[0], text, &options[0]);
        mlp_write(text, "1f1b", "microbatch", 2, "");
        play_run(&play[1], text, &options[1]);
        assert_int_equal(moved_of(&play[0], 0).gathers, LAYERS / RANKS);
        assert_int_equal(play[0].trace.digest, play[1].trace.digest);
        for (uint32_t r = 0; r < RANKS; r++)
            assert_int_equal(play[0].trace.roles[r].memory.peak_bytes,
                             play[1].trace.roles[r].memory.peak_bytes);
        play_close(&play[0]);
        play_close(&play[1]);
        arena_destroy(arena);
    }
}

/* Weights that are given up behind a pass without ops are given back with the last that has some,
 * before they are gathered again. */
static void a_pass_without_ops_gives_up_weights(void **state)
{
    (void)state;
    /* Stage 1 has no layers: only its weight gradients send and receive nothing. */
    static const char layout[] = ", \"layout\": \"t*8||t*8|t*8|t*8\"";
    static const char others[] = "2UNSHARD,2F0,2F1,2I0,2I1,2W0,2W1\n"
                                 "3UNSHARD,3F0,3F1,3I0,3I1,3W0,3W1\n"
                                 "4UNSHARD,4F0,4F1,4I0,4I1,4W0,4W1\n";
    static const char *const lines[] = {
        "0UNSHARD,1UNSHARD,0F0,1F0,0F1,1F1,1I0,0I0,1I1,0I1,0RESHARD,0UNSHARD,1W0,1W1,0W0,0W1,"
        "0RESHARD",
        "0UNSHARD,1UNSHARD,0F0,1F0,0F1,1F1,1I0,0I0,1I1,0I1,1W0,0RESHARD,0UNSHARD,0W0,1W1,0W1,"
        "0RESHARD",
        "0UNSHARD,1UNSHARD,0F0,1F0,0F1,1F1,1I0,0I0,1I1,0I1,1W0,1W1,0RESHARD,1RESHARD,0UNSHARD,0W0,"
        "0W1,0RESHARD",
    };
    uint64_t const layer_bytes = UINT64_C(2) * 2 * WIDTH * WIDE;
    for (uint32_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[TEXT_BYTES], csv[TEXT_BYTES];
        struct play play;
        struct arena *arena = arena_create(0);
        (void)snprintf(csv, sizeof csv, "%s\n%s", lines[i], others);
        struct schedule const given = schedule_read(arena, csv);
        struct play_options const options = {.schedule = &given};
        mlp_write(text, "1f1b", "microbatch", 2, layout);
        play_run(&play, text, &options);
        assert_int_equal(moved_of(&play, 0).gathers, 2 * 8);
        assert_int_equal(play.trace.roles[0].memory.each_peak_bytes[PROGRAM_MEMORY_GATHERED],
                         8 * layer_bytes);
        play_close(&play);
        arena_destroy(arena);
    }
}

/* An embedding has no gradient of its input: the input gradients of a stage that has nothing else
 * are passes without ops. However often the stage is unsharded for them, it gives up once. */
static void an_embedding_alone_gives_up_its_weights_once(void **state)
{
    (void)state;
    static const char text[] =
        "{\"podsim\": 1, \"title\": \"traffic\", "
        "\"machine\": {\"chip\": \"tpu-v5e\", \"shape\": \"4x4\", \"profile\": \"ideal\"}, "
        "\"mesh\": {\"pp\": [\"x\"], \"fsdp\": [\"y\"]}, "
        "\"workload\": {\"kind\": \"train_step\", \"model\": \"llama-3-8b\", "
        "\"batch_tokens\": 16384, \"sequence_length\": 2048, \"accumulate\": 2, "
        "\"layout\": \"E|t*8|t*8|t*8|t*8L\", \"allow_oversubscription\": true}}";
    static const char csv[] =
        "0UNSHARD,1UNSHARD,0F0,1F0,0F1,1F1,1I0,1I1,0RESHARD,0UNSHARD,0I0,0RESHARD,0UNSHARD,0I1,"
        "0RESHARD,0UNSHARD,0W0,0W1,0RESHARD,1W0,1W1,1RESHARD\n"
        "2UNSHARD,2F0,2F1,2I0,2I1,2W0,2W1\n"
        "3UNSHARD,3F0,3F1,3I0,3I1,3W0,3W1\n"
        "4UNSHARD,4F0,4F1,4I0,4I1,4W0,4W1\n";
    struct play play;
    struct arena *arena = arena_create(0);
    struct schedule const given = schedule_read(arena, csv);
    struct play_options const options = {.schedule = &given};
    play_run(&play, text, &options);
    (void)moved_of(&play, 0);
    play_close(&play);
    arena_destroy(arena);
}

static void files_that_gather_wrongly_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"0F0,0B0\n1UNSHARD,1F0,1B0", "line 1, cell 1: stage 0 computes and is not unsharded"},
        {"0UNSHARD,0F0,0RESHARD,0B0\n1UNSHARD,1F0,1B0",
         "line 1, cell 4: stage 0 computes and is not unsharded"},
        {"0UNSHARD,0F0,0B0\n1UNSHARD,1UNSHARD,1F0,1B0",
         "line 2, cell 2: stage 1 is unsharded already"},
        {"0UNSHARD,0F0,0B0\n1RESHARD,1UNSHARD,1F0,1B0", "line 2, cell 1: stage 1 is not unsharded"},
        {"0UNSHARD,0RESHARD,0UNSHARD,0F0,0B0\n1UNSHARD,1F0,1B0",
         "but no pass of the stage followed"},
        {"0UNSHARD,0F0,0REDUCE_GRAD,0B0\n1UNSHARD,1F0,1B0",
         "line 1, cell 3: stage 0 gets more gradients later"},
        {"0F0,0B0,0REDUCE_GRAD,0REDUCE_GRAD\n1F0,1B0", "has its gradients reduced already"},
        {"0F0,0B0,1REDUCE_GRAD\n1F0,1B0", "line 1, cell 3: stage 1 has no pass in this line"},
        {"0F0,0B0,7REDUCE_GRAD\n1F0,1B0", "line 1, cell 3: stage 7 has no pass in this line"},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct arena *arena = arena_create(0);
        struct schedule schedule;
        case_refused(schedule_csv_read(arena, rows[i].text, strlen(rows[i].text), "mine.csv",
                                       &schedule, &case_error),
                     STATUS_INVALID, "mine.csv", rows[i].words);
        arena_destroy(arena);
    }
}

/* A stage without layers computes nothing in its slot: the gather behind it waits otherwise. */
static void a_gather_behind_an_idle_slot_begins(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    struct play play;
    mlp_write(text, "interleaved:2", "microbatch", 4,
              ", \"layout\": \"t*4|t*4|t*4|t*4||t*8|t*4|t*4\"");
    play_run(&play, text, NULL);
    for (uint32_t r = 0; r < RANKS; r++) (void)moved_of(&play, r);
    play_close(&play);
}

static void policies_are_the_same_however_they_are_played(void **state)
{
    (void)state;
    static const char *const names[] = {"1f1b", "interleaved:2", "looped-bfs:4",
                                        "zb-v", "dualpipev",     "dualpipe"};
    static const char *const policies[] = {"step", "stage"};
    uint32_t walked = 0;
    for (uint32_t n = 0; n < sizeof names / sizeof *names; n++)
        for (uint32_t i = 0; i < 2; i++) {
            char text[TEXT_BYTES];
            struct play folded;
            if (sampling_skips(&walked)) continue;
            mlp_write(text, names[n], policies[i], 8, "");
            play_run(&folded, text, NULL);
            walk_alike(&folded, text, "reference");
            for (uint32_t r = 0; r < RANKS; r++) (void)moved_of(&folded, r);
            play_close(&folded);
        }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_microbatch_moves_what_a_step_does),
        cmocka_unit_test(breadth_first_gathers_least),
        cmocka_unit_test(a_file_is_the_policy_it_says),
        cmocka_unit_test(a_file_without_a_policy_gathers_as_pytorch),
        cmocka_unit_test(what_a_file_gathers_travels),
        cmocka_unit_test(reductions_alone_leave_gathers_to_the_scenario),
        cmocka_unit_test(a_pass_without_ops_gives_up_weights),
        cmocka_unit_test(an_embedding_alone_gives_up_its_weights_once),
        cmocka_unit_test(files_that_gather_wrongly_are_refused),
        cmocka_unit_test(a_gather_behind_an_idle_slot_begins),
        cmocka_unit_test(policies_are_the_same_however_they_are_played),
    };
    return cmocka_run_group_tests_name("stage traffic", tests, NULL, NULL);
}
