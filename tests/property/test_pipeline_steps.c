/*
 * Training steps over pipeline stages, with the real ops of their layers: where stages are alike,
 * math is what bounds them and messages are short, every rank ends to the picosecond when the
 * schedule, played with the times of its passes and a hop, says so; activations, parameters and
 * bytes sent are those that the schedule announces; folded or not, instants are the same.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/schedule/schedule.h"
#include "sim/schedule/schedule_play.h"
#include "sim/step/counts.h"
#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1400, WIDTH = 8192, WIDE = 32768, ROWS = 8192, LAYERS = 16 };

static const char ring[] = "\"chip\": \"tpu-v5p\", \"shape\": \"4\", \"unrealisable\": true, "
                           "\"wrap\": {\"x\": true}";

/* `rows` tokens a microbatch and data rank of the bare MLP. */
static void mlp_write(char text[TEXT_BYTES], const char *machine, const char *mesh,
                      const char *schedule, uint32_t microbatches, uint64_t tokens,
                      const char *more)
{
    case_text(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"title\": \"stages\", \"machine\": {%s, \"profile\": \"ideal\"}, "
        "\"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": {\"kind\": \"mlp\", "
        "\"D\": %d, \"F\": %d, \"layers\": %d, \"matrices\": 2}, \"batch_tokens\": %llu, "
        "\"accumulate\": %u, \"schedule\": \"%s\", \"allow_oversubscription\": true%s}}",
        machine, mesh, WIDTH, WIDE, LAYERS, (unsigned long long)tokens * microbatches, microbatches,
        schedule, more);
}

static struct schedule schedule_of(struct play *play)
{
    struct schedule schedule;
    case_ok(workload_schedule(play->arena, &play->scenario.workload, &play->machine, &play->mesh,
                              &schedule, &case_error));
    return schedule;
}

/* Microbatches for 4 ranks. */
static uint32_t least_of(const char *name)
{
    return strncmp(name, "dualpipe", 8) == 0 ? 8 : 1;
}

static void unpair(const struct schedule *schedule)
{
    for (uint32_t r = 0; r < schedule->rank_count; r++)
        for (uint32_t i = 0; i < schedule->rank[r].count; i++)
            schedule->rank[r].pass[i].paired = false;
}

static bool has_kind(const struct schedule *schedule, enum schedule_kind kind)
{
    for (uint32_t i = 0; i < schedule->rank[0].count; i++)
        if (schedule->rank[0].pass[i].kind == kind) return true;
    return false;
}

/* Passes of a chunk take equal times on all ranks; what they take follows from the phases' sums. */
static struct schedule_times times_of(const struct play *play, const struct schedule *schedule)
{
    const struct trace_role *role = &play->trace.roles[0];
    int64_t counts[SCHEDULE_KIND_COUNT] = {0};
    struct schedule_times times = {0};
    for (uint32_t i = 0; i < schedule->rank[0].count; i++) counts[schedule->rank[0].pass[i].kind]++;
    int64_t const forward_ps = role->phase[PROGRAM_PHASE_FORWARD].compute_ps;
    int64_t const backward_ps = role->phase[PROGRAM_PHASE_BACKWARD].compute_ps;
    int64_t const weight_ps = role->phase[PROGRAM_PHASE_WEIGHT].compute_ps;
    times.forward = forward_ps / counts[SCHEDULE_FORWARD];
    assert_int_equal(times.forward * counts[SCHEDULE_FORWARD], forward_ps);
    if (counts[SCHEDULE_WEIGHT] > 0) {
        times.weight = weight_ps / counts[SCHEDULE_WEIGHT];
        times.input = (backward_ps - counts[SCHEDULE_BACKWARD] * times.weight) /
                      (counts[SCHEDULE_BACKWARD] + counts[SCHEDULE_INPUT]);
        assert_int_equal(counts[SCHEDULE_BACKWARD] * (times.weight + times.input) +
                             counts[SCHEDULE_INPUT] * times.input,
                         backward_ps);
    } else {
        times.backward = backward_ps / counts[SCHEDULE_BACKWARD];
        times.input = times.backward;
    }
    /* A message of the rows' activations over one link: 90 GB/s and a microsecond. */
    times.hop =
        units_duration_ps((uint64_t)ROWS * WIDTH * 2, UINT64_C(90000000000)) + TIME_PS_PER_US;
    return times;
}

static void ranks_end_when_the_schedule_says_so(void **state)
{
    (void)state;
    static const char *const names[] = {
        "none",          "gpipe",        "1f1b", "eager-1f1b", "interleaved:2", "zb-h1",   "zb-h2",
        "interleaved:4", "looped-bfs:2", "zb-v", "v-half",     "v-min",         "dualpipe"};
    uint32_t walked = 0;
    for (uint32_t n = 0; n < sizeof names / sizeof *names; n++)
        for (uint32_t microbatches = 4; microbatches <= 12; microbatches += 4) {
            char text[TEXT_BYTES];
            struct play play;
            struct schedule_played played;
            if (microbatches < least_of(names[n]) || sampling_skips(&walked)) continue;
            mlp_write(text, ring, "{\"pp\": [\"x\"]}", names[n], microbatches, ROWS, "");
            play_run(&play, text, NULL);
            struct schedule const schedule = schedule_of(&play);
            unpair(&schedule); /* Nothing stands between their ops to overlap with. */
            struct schedule_times const times = times_of(&play, &schedule);
            case_ok(schedule_play(play.arena, &schedule, &times, NULL, "/", &played, &case_error));
            for (uint32_t r = 0; r < 4; r++) {
                assert_int_equal(play.trace.roles[r].last_end_ps, played.lane[r].last);
                assert_int_equal(play.trace.roles[r].first_begin_ps, played.lane[r].first);
            }
            play_close(&play);
        }
}

/* A rank's two passes of a pair do not overlap op by op, but neither does one wait for what only
 * the other needs: never later than as one. */
static void pairs_end_no_later_than_as_one(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    struct play play;
    struct schedule_played played;
    mlp_write(text, ring, "{\"pp\": [\"x\"]}", "dualpipev", 16, ROWS, "");
    play_run(&play, text, NULL);
    struct schedule const schedule = schedule_of(&play);
    struct schedule_times const times = times_of(&play, &schedule);
    case_ok(schedule_play(play.arena, &schedule, &times, NULL, "/", &played, &case_error));
    int64_t last_ps = 0;
    for (uint32_t r = 0; r < 4; r++)
        if (play.trace.roles[r].last_end_ps > last_ps) last_ps = play.trace.roles[r].last_end_ps;
    assert_true(last_ps <= played.makespan);
    assert_true(last_ps >= played.makespan * 9 / 10);
    play_close(&play);
}

/* Borders of a rank's stages with other ranks', of all copies. */
static uint64_t borders_of(const struct schedule *schedule, uint32_t rank)
{
    uint64_t borders = 0;
    for (uint32_t i = 0; i < schedule->copy_count * schedule->stage_count; i++) {
        uint32_t const stage = i % schedule->stage_count;
        if (schedule->rank_of[i] != rank) continue;
        borders += stage > 0 && schedule->rank_of[i - 1] != rank;
        borders += stage + 1 < schedule->stage_count && schedule->rank_of[i + 1] != rank;
    }
    return borders;
}

/* The bare MLP saves its input and what is between its matmuls: 2·(D + F) bytes a token and layer;
 * of a pass that is split, the gradients of both stay until the weight gradient, with what was
 * saved: twice as much. */
static void memory_and_traffic_are_as_announced(void **state)
{
    (void)state;
    static const char *const names[] = {"gpipe",    "1f1b",  "interleaved:2", "looped-bfs:2",
                                        "dualpipe", "zb-h1", "zb-h2",         "zb-v",
                                        "v-half",   "v-min"};
    for (uint32_t n = 0; n < sizeof names / sizeof *names; n++) {
        char text[TEXT_BYTES];
        struct play play;
        mlp_write(text, ring, "{\"pp\": [\"x\"]}", names[n], 8, ROWS, "");
        play_run(&play, text, NULL);
        struct schedule const schedule = schedule_of(&play);
        uint64_t const layers = LAYERS / schedule.stage_count;
        uint64_t const chunk_bytes = layers * 2 * (WIDTH + WIDE) * ROWS;
        uint64_t const message_bytes = UINT64_C(2) * WIDTH * ROWS;
        for (uint32_t r = 0; r < 4; r++) {
            const struct trace_role *role = &play.trace.roles[r];
            uint64_t const ppm = schedule_peak_ppm(&schedule, r, 2 * PPM_ONE);
            uint64_t const held = role->memory.each_peak_bytes[PROGRAM_MEMORY_ACTIVATIONS];
            uint64_t const whole = UINT64_C(2) * WIDTH * WIDE * LAYERS / 4; /* Of one stage. */
            uint64_t const copies = schedule.copy_count;
            assert_int_equal(held, ppm / PPM_ONE * chunk_bytes);
            if (copies > 1) assert_int_equal(ppm, 5 * PPM_ONE); /* p + 1, on every rank. */
            uint64_t const sends = borders_of(&schedule, r);
            uint64_t const gradients = copies == 1 ? 0 : copies * whole * 2;
            assert_int_equal(role->sent_bytes, sends * 8 / copies * message_bytes + gradients);
            assert_int_equal(play.program.roles[r].resident_bytes[PROGRAM_MEMORY_PARAMETERS],
                             copies * 2 * whole);
        }
        play_close(&play);
    }
}

static void split_passes_compute_what_whole_ones_do(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"1f1b", "zb-h1"}, {"dualpipev", "zb-v"}};
    for (uint32_t i = 0; i < 2; i++) {
        int64_t compute_ps[2];
        for (uint32_t k = 0; k < 2; k++) {
            char text[TEXT_BYTES];
            struct play play;
            mlp_write(text, ring, "{\"pp\": [\"x\"]}", pairs[i][k], 8, ROWS, "");
            play_run(&play, text, NULL);
            struct schedule const schedule = schedule_of(&play);
            assert_int_equal(has_kind(&schedule, SCHEDULE_WEIGHT), i == 1 || k == 1);
            const struct trace_role *role = &play.trace.roles[1];
            compute_ps[k] = role->compute_ps - role->phase[PROGRAM_PHASE_UPDATE].compute_ps;
            play_close(&play);
        }
        assert_int_equal(compute_ps[0], compute_ps[1]);
    }
}

/* Between its first pass and the end of its last a rank works, waits for collectives, or neither:
 * what it has waited for before, its first weights, is told apart. */
static void a_rank_s_work_lies_between_its_first_and_its_last_pass(void **state)
{
    (void)state;
    static const char *const names[] = {"1f1b", "zb-h1", "interleaved:2", "dualpipev"};
    static const char *const keeps[] = {"microbatch", "step", "stage"};
    for (uint32_t n = 0; n < 4; n++)
        for (uint32_t k = 0; k < 3; k++) {
            char text[TEXT_BYTES], more[40];
            struct play play;
            int64_t before_ps = 0;
            (void)snprintf(more, sizeof more, ", \"regather\": \"%s\"", keeps[k]);
            mlp_write(text, "\"chip\": \"h100-sxm\", \"nodes\": 4",
                      "{\"pp\": [\"node\"], \"fsdp\": [\"gpu\"]}", names[n], 8, 4096, more);
            play_run(&play, text, NULL);
            for (uint32_t r = 0; r < 4; r++) {
                const struct trace_role *role = &play.trace.roles[r];
                int64_t work_ps = -role->exposed_before_ps;
                for (uint32_t phase = 0; phase < PROGRAM_PHASE_COUNT; phase++)
                    if (phase != PROGRAM_PHASE_UPDATE)
                        work_ps += role->phase[phase].compute_ps + role->phase[phase].exposed_ps;
                assert_true(role->exposed_before_ps >= 0);
                assert_true(role->exposed_before_ps <= role->first_begin_ps);
                assert_true(work_ps <= role->last_end_ps - role->first_begin_ps);
                assert_true(work_ps >=
                            role->compute_ps - role->phase[PROGRAM_PHASE_UPDATE].compute_ps);
                before_ps += role->exposed_before_ps;
            }
            assert_true(before_ps > 0);
            play_close(&play);
        }
}

/* With TP, FSDP and DP beside the stages, on grids, through NVLink and between nodes. */
static void it_is_the_same_however_it_is_played(void **state)
{
    (void)state;
    static const struct {
        const char *machine, *mesh, *more;
    } rows[] = {
        {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
         "{\"pp\": [\"x\"], \"fsdp\": [\"y\"], \"tp\": [\"z\"]}", ""},
        {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
         "{\"tp\": [\"z\", \"y:2\"], \"pp\": [\"x:2\"], \"dp\": [\"x:2\", \"y:2\"]}",
         ", \"zero\": 1"},
        {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"", "{\"pp\": [\"y\"], \"fsdp\": [\"x\"]}", ""},
        {"\"chip\": \"h100-sxm\", \"nodes\": 4", "{\"pp\": [\"node\"], \"tp\": [\"gpu\"]}", ""},
        {"\"chip\": \"h100-sxm\", \"nodes\": 4",
         "{\"tp\": [\"gpu:4\"], \"pp\": [\"gpu:2\"], \"dp\": [\"node\"]}", ", \"zero\": 1"},
        {"\"chip\": \"h100-sxm\", \"nodes\": 4",
         "{\"tp\": [\"gpu:4\"], \"fsdp\": [\"gpu:2\", \"node:2\"], \"pp\": [\"node:2\"]}", ""},
    };
    static const char *const names[] = {"1f1b", "interleaved:2", "zb-v", "dualpipe"};
    uint32_t walked = 0;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t n = 0; n < sizeof names / sizeof *names; n++) {
            char text[TEXT_BYTES];
            struct play folded;
            if (sampling_skips(&walked)) continue;
            uint32_t const microbatches = least_of(names[n]) > 4 ? least_of(names[n]) : 4;
            mlp_write(text, rows[i].machine, rows[i].mesh, names[n], microbatches, 4096 * 16,
                      rows[i].more);
            play_run(&folded, text, NULL);
            walk_alike(&folded, text, "reference");
            play_close(&folded);
        }
}

static const char *const layers[] = {
    "{\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\", \"profile\": \"ideal\"}, \"mesh\": {\"pp\": "
    "[\"x\"], \"fsdp\": [\"y\"], \"tp\": [\"z\"]}",
    "{\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\", \"profile\": \"ideal\"}, \"mesh\": {\"pp\": "
    "[\"y\"], \"dp\": [\"x\"], \"tp\": [\"z\"]}",
    "{\"chip\": \"h100-sxm\", \"nodes\": 4, \"profile\": \"ideal\"}, \"mesh\": {\"pp\": "
    "[\"node\"], \"cp\": [\"gpu:2\"], \"tp\": [\"gpu:4\"], \"order\": [\"pp\", \"cp\", \"tp\"]}",
    "{\"chip\": \"h100-sxm\", \"nodes\": 4, \"profile\": \"ideal\"}, \"mesh\": {\"pp\": "
    "[\"node\"], \"ep\": [\"gpu:4\"], \"tp\": [\"gpu:2\"], \"order\": [\"pp\", \"ep\", \"tp\"]}",
    "{\"chip\": \"h100-sxm\", \"nodes\": 4, \"profile\": \"ideal\"}, \"mesh\": {\"pp\": "
    "[\"node\"], \"ep\": [\"gpu:4\"], \"fsdp\": [\"gpu:2\"]}",
    "{\"chip\": \"h100-sxm\", \"nodes\": 4, \"profile\": \"ideal\"}, \"mesh\": {\"pp\": "
    "[\"node\"], \"ep\": [\"gpu:4\"], \"tp\": [\"gpu:2\"], \"order\": [\"pp\", \"ep\", \"tp\"]}",
};

static const char *const layer_models[] = {"llama-3-8b",   "llama-3-8b",    "llama-3-8b",
                                           "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3"};

/* 61 layers, on four stages and on eight. */
static const char *deepseek_more(bool eight)
{
    return eight ? ", \"mtp\": false, \"layout\": \"Et*7|(t*8|)*6t*6L\""
                 : ", \"mtp\": false, \"layout\": \"E(t*15|)*3t*16L\"";
}

struct sums {
    double matmul_flop, vector_flop, hbm_bytes, useful_flop, compute_count;
    double exchanged_bytes; /* By AllToAlls. */
};

/* Over all ranks. */
static struct sums sums_of(const struct program *program)
{
    struct sums sums = {0};
    struct walk_op walk = {.program = program};
    while (walk_next(&walk)) {
        const struct program_op *op = walk.op;
        double const times = walk.times;
        if (op->kind == PROGRAM_OP_COLLECTIVE &&
            program->plans[op->index].kind == COLLECTIVE_ALL_TO_ALL)
            sums.exchanged_bytes += times * (double)program->plans[op->index].size_bytes;
        if (op->kind != PROGRAM_OP_COMPUTE) continue;
        const struct work *work = &program->works[op->index];
        sums.compute_count += times;
        sums.matmul_flop += times * (double)work_matmul_flop(work);
        sums.vector_flop += times * (double)work->vector_flop;
        sums.hbm_bytes += times * (double)(work->hbm_read_bytes + work->hbm_write_bytes);
        sums.useful_flop += times * (double)work->useful_flop;
    }
    return sums;
}

/* The rooflines count a mean rank by formulas of which only the memory knows a schedule. */
static void all_ranks_together_do_what_the_formulas_count(void **state)
{
    (void)state;
    static const char *const remats[] = {"none", "norms", "big_matmuls", "block", "layer"};
    static const char *const names[] = {"1f1b", "interleaved:2", "zb-h1", "zb-v", "dualpipe"};
    static const struct play_options lower_only = {.lower_only = true, .engine = "fast"};
    for (uint32_t l = 0; l < sizeof layers / sizeof *layers; l++)
        for (uint32_t k = 0; k < 20; k++) {
            char text[TEXT_BYTES];
            struct play play;
            struct workload_counts counts;
            case_text(text, TEXT_BYTES,
                      "{\"podsim\": 1, \"title\": \"stages\", \"machine\": %s, \"workload\": "
                      "{\"kind\": \"train_step\", \"model\": \"%s\", \"batch_tokens\": "
                      "524288, \"sequence_length\": 4096, \"accumulate\": 8, \"remat\": \"%s\", "
                      "\"schedule\": \"%s\"%s}}",
                      layers[l], layer_models[l], remats[k % 5], names[k / 4],
                      strcmp(layer_models[l], "deepseek-v3") == 0 ? deepseek_more(k / 4 % 2 == 1)
                                                                  : "");
            play_run(&play, text, &lower_only);
            counts_make(&play.scenario.workload, &play.machine, &play.mesh, &counts);
            struct sums const sums = sums_of(&play.program);
            /* A router's two gradients are one op in a whole pass, and two in its halves, which
             * both read the gradient of its logits. */
            bool const halves = k / 4 >= 2 && model_has_experts(&play.scenario.workload.model);
            case_near(counts.matmul_flop * 4, sums.matmul_flop, 1e-12);
            case_near(counts.vector_flop * 4, sums.vector_flop, 1e-9);
            case_near(counts.hbm_bytes * 4, sums.hbm_bytes, halves ? 1e-3 : 1e-9);
            if (model_has_experts(&play.scenario.workload.model))
                case_near(counts.role[MESH_EP].all_to_all_bytes * 4, sums.exchanged_bytes, 1e-9);
            case_near(counts.matmul_useful * 4, sums.useful_flop, 1e-9);
            case_near(counts.ops.count * 4, sums.compute_count, halves ? 0.04 : 1e-12);
            play_close(&play);
        }
}

/* A stage without layers hands on what it gets, no earlier: also where the next stage lies on the
 * same rank. */
static void empty_stages_wait_for_their_messages(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    struct play play;
    mlp_write(text, ring, "{\"pp\": [\"x\"]}", "zb-v", 8, ROWS,
              ", \"layout\": \"tt|tt|tt||tt|tt|tt|t*4\"");
    play_run(&play, text, NULL);
    for (uint32_t r = 1; r < 4; r++)
        assert_true(play.trace.roles[r].first_begin_ps > play.trace.roles[r - 1].first_begin_ps);
    play_close(&play);
}

/* More streams than a chip mostly has: every way to be parallel at once. */
static void all_kinds_of_ranks_together_come_to_an_end(void **state)
{
    (void)state;
    static const char text[] =
        "{\"podsim\": 1, \"title\": \"all\", \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": "
        "8}, \"mesh\": {\"pp\": [\"node:4\"], \"fsdp\": [\"node:2\"], \"ep\": [\"gpu:2\"], "
        "\"cp\": [\"gpu:2\"], \"tp\": [\"gpu:2\"]}, \"workload\": {\"kind\": \"train_step\", "
        "\"model\": \"mixtral-8x7b\", \"batch_tokens\": 262144, \"sequence_length\": 4096, "
        "\"accumulate\": 8, \"schedule\": \"zb-h1\", \"attention\": \"causal\", "
        "\"allow_oversubscription\": true}, \"run\": {\"collective_matmul\": true}}";
    struct play folded;
    play_run(&folded, text, NULL);
    assert_true(folded.program.stream_count > 16);
    walk_alike(&folded, text, NULL);
    play_close(&folded);
}

static void what_cannot_be_divided_into_stages_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *mesh, *schedule, *more, *where, *words;
        enum status status;
    } rows[] = {
        {"{\"pp\": [\"x\"]}", "interleaved:3", "", "/workload/schedule", "nearest", STATUS_INVALID},
        {"{\"pp\": [\"x\"]}", "1f2b", "", "/workload/schedule", "\"1f1b\"", STATUS_NOT_FOUND},
        {"{\"dp\": [\"x\"]}", "gpipe", "", "/workload/schedule", "no pp", STATUS_INVALID},
        {"{\"pp\": [\"x\"]}", "1f1b", ", \"layout\": \"t*3|t*5|t*8\"", "/workload/layout",
         "3 stages, where the schedule has 4", STATUS_INVALID},
        {"{\"pp\": [\"x\"]}", "1f1b", ", \"layout\": \"t*4|t*4|t*4|t*3\"", "/workload/layout",
         "15 layers, where the model has 16", STATUS_INVALID},
        {"{\"pp\": [\"x\"]}", "1f1b", ", \"layout\": \"t*4|t*4|x\"", "/workload/layout",
         "character 9", STATUS_INVALID},
        {"{\"pp\": [\"x\"]}", "1f1b", ", \"offload\": \"optimizer\"", "/workload/offload", "stages",
         STATUS_UNSUPPORTED},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[TEXT_BYTES];
        struct play play;
        mlp_write(text, ring, rows[i].mesh, rows[i].schedule, 8, ROWS, rows[i].more);
        case_refused(play_try(&play, text, NULL, &case_error), rows[i].status, rows[i].where,
                     rows[i].words);
        play_close(&play);
    }
}

/* What a rank waits for behind its last pass is no work of its passes: reductions of gradients,
 * every microbatch's behind those of the microbatches before it. */
static void what_comes_behind_the_last_pass_is_of_the_update(void **state)
{
    (void)state;
    static const char machine[] = "\"chip\": \"h100-sxm\", \"nodes\": 16";
    char text[TEXT_BYTES];
    struct play play;
    mlp_write(text, machine, "{\"tp\": [\"gpu\"], \"pp\": [\"node:4\"], \"dp\": [\"node:4\"]}",
              "1f1b", 8, 512, ", \"zero\": 2");
    play_run(&play, text, NULL);
    for (uint32_t r = 0; r < 4; r++) {
        const struct trace_role *role = &play.trace.roles[r];
        int64_t work_ps = 0;
        for (uint32_t phase = 0; phase < PROGRAM_PHASE_UPDATE; phase++) {
            assert_true(role->phase[phase].exposed_ps >= 0);
            work_ps += role->phase[phase].compute_ps + role->phase[phase].exposed_ps;
        }
        assert_true(work_ps <= role->last_end_ps);
        assert_true(role->phase[PROGRAM_PHASE_UPDATE].exposed_ps * 10 > play.trace.step_ps);
    }
    play_close(&play);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_end_when_the_schedule_says_so),
        cmocka_unit_test(pairs_end_no_later_than_as_one),
        cmocka_unit_test(memory_and_traffic_are_as_announced),
        cmocka_unit_test(split_passes_compute_what_whole_ones_do),
        cmocka_unit_test(what_comes_behind_the_last_pass_is_of_the_update),
        cmocka_unit_test(a_rank_s_work_lies_between_its_first_and_its_last_pass),
        cmocka_unit_test(it_is_the_same_however_it_is_played),
        cmocka_unit_test(all_ranks_together_do_what_the_formulas_count),
        cmocka_unit_test(empty_stages_wait_for_their_messages),
        cmocka_unit_test(all_kinds_of_ranks_together_come_to_an_end),
        cmocka_unit_test(what_cannot_be_divided_into_stages_is_refused),
    };
    return cmocka_run_group_tests_name("steps of pipelines", tests, NULL, NULL);
}
