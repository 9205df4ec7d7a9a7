/*
 * Gradients that updates clip by the norm of all of them: one norm a rank behind its last
 * reduction, one AllReduce of a number, and updates behind it; the bytes of a step whose updates
 * found a norm each; the same to the picosecond, folded or not, and with either engine.
 */
#include <string.h>

#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1600, NORM_READ = 4, CLIP_READ = 4, CLIP_WRITTEN = 4 };

static const struct {
    const char *machine, *mesh, *model, *more;
    const char *ranks;  /* Whose norms are added up, one after the other; "": one rank has all. */
    const char *stream; /* Of the last sum; NULL: there is none. */
} sites[] = {
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"tp\": [\"gpu\"], \"dp\": [\"node\"]}",
     "\"llama-3-8b\"", "\"zero\": 1, \"accumulate\": 4", "(tp)(dp)", "reduce dp"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"tp\": [\"gpu\"], \"dp\": [\"node\"]}",
     "\"llama-3-8b\"", "\"zero\": 0", "(tp)", "reduce tp"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 1", "{\"dp\": [\"gpu\"]}", "\"megatron-1.7b\"",
     "\"zero\": 0", "", NULL},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"fsdp\": [\"gpu\", \"node\"]}", "\"llama-3-8b\"",
     "\"accumulate\": 2", "(fsdp)", "reduce fsdp"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 8",
     "{\"tp\": [\"gpu\"], \"pp\": [\"node:4\"], \"dp\": [\"node:2\"]}", "\"llama-3-8b\"",
     "\"zero\": 1, \"accumulate\": 8, \"schedule\": \"interleaved:2\"", "(tp)(dp)(pp)", "sum pp"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 4", "{\"dp\": [\"node\"], \"ep\": [\"gpu\"]}",
     "\"mixtral-8x7b\"", "\"zero\": 0, \"accumulate\": 2", "(ep)", "combine ep"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 1",
     "{\"tp\": [\"gpu:2\"], \"dp\": [\"gpu:2\"], \"pp\": [\"gpu:2\"]}", "\"llama-3-8b\"",
     "\"zero\": 0, \"accumulate\": 4", "(tp)(pp)", "sum pp"},
};
enum { SITES = sizeof sites / sizeof *sites };

static void play(struct play *play_, uint32_t site, const char *stack, const char *clips,
                 const struct play_options *options)
{
    char text[TEXT_BYTES];
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"title\": \"clipping\", \"machine\": {%s, %s}, \"mesh\": %s, "
              "\"workload\": {\"kind\": \"train_step\", \"model\": %s, \"batch_tokens\": 262144, "
              "\"sequence_length\": 2048, \"allow_oversubscription\": true, %s%s}, \"run\": "
              "{\"steps\": 1}}",
              sites[site].machine, stack, sites[site].mesh, sites[site].model, sites[site].more,
              clips);
    play_run(play_, text, options);
}

#define WITH_STACK "\"profile\": \"measured\", \"stack\": \"te\""

/* What a step does with gradients, of all of its roles. */
struct seen {
    uint64_t norms, sums, updates;
    uint64_t norm_bytes, update_bytes;
};

static bool is_update(const struct program_op *op)
{
    return op->kind == PROGRAM_OP_COMPUTE && strncmp(op->name, "update ", 7) == 0;
}

static struct seen seen_in(const struct program *program, const char *ranks)
{
    struct seen seen = {0};
    struct walk_op walk = {.program = program};
    while (walk_next(&walk)) {
        const struct program_op *op = walk.op;
        const struct work *work = &program->works[op->index];
        bool const is_norm = strcmp(op->name, "gradient norm") == 0;
        if (op->kind == PROGRAM_OP_COLLECTIVE && strstr(op->name, "gradient norm") != NULL) {
            assert_non_null(strstr(ranks, strchr(op->class_name, '(')));
            assert_int_equal(program->plans[op->index].kind, COLLECTIVE_ALL_REDUCE);
            assert_int_equal(program->plans[op->index].size_bytes, 4);
            seen.sums += walk.times;
        }
        if (op->kind != PROGRAM_OP_COMPUTE) continue;
        seen.norms += is_norm ? walk.times : 0;
        seen.updates += is_update(op) ? walk.times : 0;
        if (is_norm) seen.norm_bytes += walk.times * work->hbm_read_bytes;
        if (is_update(op))
            seen.update_bytes += walk.times * (work->hbm_read_bytes + work->hbm_write_bytes);
    }
    return seen;
}

static bool needs(const struct program *program, const struct program_op *op, const char *stream)
{
    for (uint32_t n = 0; n < op->need_count; n++)
        if (strcmp(program->stream[op->need[n].stream].name, stream) == 0) return true;
    return false;
}

/* The norm waits for what has been reduced; updates wait for the sum of norms, and in the order of
 * the compute stream for the norm. */
static void order_holds(const struct program *program, const char *stream)
{
    for (uint32_t r = 0; r < program->role_count; r++) {
        bool normed = false;
        for (uint32_t b = 0; b < program->roles[r].block_count; b++) {
            const struct program_template *template =
                &program->templates[program->roles[r].block[b].template_index];
            for (uint32_t i = 0; i < template->op_count; i++) {
                const struct program_op *op = &template->op[i];
                if (strcmp(op->name, "gradient norm") == 0) normed = true;
                if (!is_update(op)) continue;
                assert_true(normed);
                assert_true(stream == NULL || needs(program, op, stream));
            }
        }
    }
}

static void a_norm_stands_between_reductions_and_updates(void **state)
{
    (void)state;
    struct play_options const fast = {.engine = "fast"};
    struct play_options const full = {.full = true, .engine = "fast"};
    struct play_options const reference = {.engine = "reference"};
    uint32_t walked = 0;
    for (uint32_t site = 0; site < SITES; site++) {
        struct play clipped, whole, other, plain;
        uint64_t sums = 0;
        for (const char *at = sites[site].ranks; *at != '\0'; at++) sums += *at == '(';
        if (sampling_skips(&walked)) continue;
        play(&clipped, site, WITH_STACK, "", &fast);
        play(&whole, site, WITH_STACK, ", \"clip_gradients\": true", &full);
        play(&other, site, WITH_STACK, "", &reference);
        play(&plain, site, WITH_STACK, ", \"clip_gradients\": false", &fast);
        struct seen const seen = seen_in(&clipped.program, sites[site].ranks);
        struct seen const none = seen_in(&plain.program, "");
        assert_int_equal(seen.norms, clipped.program.role_count);
        assert_int_equal(seen.sums, sums * clipped.program.role_count);
        assert_int_equal(none.norms + none.sums, 0);
        assert_int_equal(seen.updates, none.updates);
        uint64_t const elements = seen.norm_bytes / NORM_READ;
        assert_int_equal(seen.update_bytes - none.update_bytes,
                         elements * (CLIP_READ + CLIP_WRITTEN));
        order_holds(&clipped.program, sites[site].stream);
        assert_true(clipped.trace.step_ps >= plain.trace.step_ps);
        assert_int_equal(whole.trace.step_ps, clipped.trace.step_ps);
        assert_int_equal(other.trace.digest, clipped.trace.digest);
        play_close(&clipped);
        play_close(&whole);
        play_close(&other);
        play_close(&plain);
    }
}

static void nothing_is_clipped_without_a_stack(void **state)
{
    (void)state;
    struct play_options const fast = {.engine = "fast"};
    for (uint32_t site = 0; site < SITES; site++) {
        struct play ideal, measured;
        play(&ideal, site, "\"profile\": \"ideal\"", "", &fast);
        play(&measured, site, "\"profile\": \"measured\"", "", &fast);
        assert_int_equal(seen_in(&ideal.program, "").norms, 0);
        assert_int_equal(seen_in(&measured.program, "").norms, 0);
        play_close(&ideal);
        play_close(&measured);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_norm_stands_between_reductions_and_updates),
        cmocka_unit_test(nothing_is_clipped_without_a_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
