/*
 * Half the batch never takes longer than the whole: drawn steps on grids and in nodes, with streams
 * that share their links. Where it does, the test lists the step, and a cause holds: with fewer
 * sequences each lies over more chips, which exchange keys and values; or a collective has another
 * algorithm; or it is a matter of the latency of a few hops, in a step that links bound: where
 * computation ends earlier, messages meet in another order.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/thin.h"

enum { DRAWN = 1000, EXCEPTIONS_MAX = 10, TEXT_BYTES = 2048 };

/* Of five hops. */
static const int64_t latencies_ps = 5 * TIME_PS_PER_US;

static uint32_t below(uint64_t *state, uint32_t count)
{
    return (uint32_t)((case_random(state) >> 33) % count);
}

/* A scenario without its batch; `ret_tokens` is one that may be halved. */
static void scenario_draw(uint64_t *state, char text[TEXT_BYTES], uint64_t *ret_tokens)
{
    const char *machine = CASE_PICK(
        state, "\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
        "\"chip\": \"tpu-v5p\", \"shape\": \"4x4x8\"",
        "\"chip\": \"tpu-v5e\", \"shape\": \"4x8x1\"", "\"chip\": \"h100-sxm\", \"nodes\": 4",
        "\"chip\": \"h100-sxm\", \"nodes\": 2, \"profile\": \"measured\"");
    const char *model = CASE_PICK(
        state, "{\"kind\": \"mlp\", \"D\": 2048, \"F\": 8192, \"layers\": 6, \"matrices\": 3}",
        "{\"kind\": \"mlp\", \"D\": 4096, \"F\": 4096, \"layers\": 4, \"matrices\": 2}",
        "\"llama-3-8b\"", "\"llama-2-7b\"", "\"llama-2-13b\"");
    bool const grid = strstr(machine, "tpu") != NULL, flat = strstr(machine, "x1\"") != NULL;
    bool const attends = strstr(model, "kind") == NULL;
    const char *const axes[3] = {grid ? "\"x\"" : "\"node\"", grid ? "\"y\"" : "\"gpu:4\"",
                                 grid ? "\"z\"" : "\"gpu:2\""};
    const char *const first = CASE_PICK(state, "fsdp", "fsdp", "dp");
    const char *const second = CASE_PICK(state, "fsdp", "tp", "dp");
    const char *const third = CASE_PICK(state, "tp", "fsdp", "dp", attends ? "cp" : "tp");
    const char *const names[3] = {first, second, third};
    const char *const remat = CASE_PICK(state, "none", "big_matmuls", "block");
    const char *const gather = CASE_PICK(state, "block", "tensor", "layer");
    const char *const chunks = CASE_PICK(state, "false", "true");
    uint32_t const length_tokens = 1024u << below(state, 3);
    uint32_t const prefetch = 1 + below(state, 2);
    char mesh[256] = "";
    static const char *const known[] = {"fsdp", "dp", "cp", "tp"};
    for (uint32_t k = 0; k < 4; k++) {
        char list[64] = "";
        for (uint32_t a = 0; a < (flat ? 2u : 3u); a++)
            if (strcmp(names[a], known[k]) == 0)
                (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s",
                               *list != '\0' ? ", " : "", axes[a]);
        if (*list != '\0')
            (void)snprintf(mesh + strlen(mesh), sizeof mesh - strlen(mesh), "%s\"%s\": [%s]",
                           *mesh != '\0' ? ", " : "", known[k], list);
    }
    *ret_tokens = UINT64_C(65536) << below(state, 6);
    int const length = snprintf(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"machine\": {%s}, \"mesh\": {%s}, \"workload\": {\"kind\": "
        "\"train_step\", \"model\": %s, \"sequence_length\": %u, \"remat\": \"%s\", \"gather\": "
        "\"%s\", \"allow_oversubscription\": true}, \"run\": {\"collective_matmul\": %s, "
        "\"prefetch_layers\": %u}}",
        machine, mesh, model, length_tokens, remat, gather, chunks, prefetch);
    assert_true(length > 0 && length < TEXT_BYTES);
}

static enum status play_tokens(struct play *play, const char *text, uint64_t tokens)
{
    char setting_text[64];
    struct error error = {0};
    (void)snprintf(setting_text, sizeof setting_text, "/workload/batch_tokens=%llu",
                   (unsigned long long)tokens);
    struct scenario_setting const setting = {.text = setting_text};
    struct play_options const options = {.settings = &setting, .setting_count = 1};
    return play_try(play, text, &options, &error);
}

/* Over how many chips a sequence lies: those that exchange keys and values. */
static uint64_t sequence_chips(const struct program *program)
{
    uint64_t most = 1;
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            uint64_t ranks = 1;
            if (strstr(op->name, "K V") == NULL || op->kind != PROGRAM_OP_COLLECTIVE) continue;
            const struct group *group = &program->plans[op->index].group;
            for (uint32_t d = 0; d < group->dimension_count; d++) ranks *= group->dimension[d].size;
            if (ranks > most) most = ranks;
        }
    return most;
}

/* The algorithm of the first collective of a name; NULL: there is none. */
static const char *algorithm_of(const struct program *program, const char *name)
{
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            if (op->kind == PROGRAM_OP_COLLECTIVE && strcmp(op->name, name) == 0)
                return program->plans[op->index].algorithm;
        }
    return NULL;
}

static bool algorithms_differ(const struct program *whole, const struct program *half)
{
    for (uint32_t t = 0; t < half->template_count; t++)
        for (uint32_t i = 0; i < half->templates[t].op_count; i++) {
            const struct program_op *op = &half->templates[t].op[i];
            if (op->kind != PROGRAM_OP_COLLECTIVE) continue;
            const char *before = algorithm_of(whole, op->name);
            const char *now = half->plans[op->index].algorithm;
            if (before != NULL && now != NULL && strcmp(before, now) != 0) return true;
        }
    return false;
}

/* Returns whether half takes longer. A hundred-thousandth of the step is no longer: where messages
 * meet in another order, some hop or segment is nearly always the last. */
static bool exception_check(const struct play *whole, const struct play *half, const char *text)
{
    if (half->trace.step_ps - whole->trace.step_ps <= whole->trace.step_ps / 100000) return false;
    bool const shares = sequence_chips(&half->program) > sequence_chips(&whole->program);
    bool const chooses = algorithms_differ(&whole->program, &half->program);
    int64_t const longer_ps = half->trace.step_ps - whole->trace.step_ps;
    const char *cause = "none is known";
    if (longer_ps <= latencies_ps)
        cause = "a few hops";
    else if (shares)
        cause = "sequences lie over more chips";
    else if (chooses)
        cause = "another algorithm";
    print_message("    %lld ps of %lld more with half of %llu tokens: %s\n    %s\n",
                  (long long)longer_ps, (long long)whole->trace.step_ps,
                  (unsigned long long)whole->program.tokens, cause, text);
    assert_true(longer_ps <= latencies_ps || shares || chooses);
    return true;
}

static void half_the_batch_takes_no_longer(void **unused)
{
    uint64_t state = 340;
    uint32_t walked = 0, drawn = 0, exceptions = 0;
    (void)unused;
    for (uint32_t taken = 0; taken < DRAWN; drawn++) {
        char text[TEXT_BYTES];
        uint64_t tokens = 0;
        struct play whole, half;
        scenario_draw(&state, text, &tokens);
        assert_true(drawn < 10 * DRAWN);
        if (thin_skips(&walked)) {
            taken++;
            continue;
        }
        if (play_tokens(&whole, text, tokens) == STATUS_OK) {
            if (play_tokens(&half, text, tokens / 2) == STATUS_OK) {
                exceptions += exception_check(&whole, &half, text);
                taken++;
            }
            play_close(&half);
        }
        play_close(&whole);
    }
    print_message("    of %u drawn %u take longer with half the batch\n", drawn, exceptions);
    assert_true(exceptions <= EXCEPTIONS_MAX);
}

/* A gather of weights over three axes goes in phases. Gathers of keys and values along one axis or
 * two put them out of step; where small messages then waited for whole large ones of another phase,
 * they stayed so: 2M tokens took 1.08 s, and 128K took 0.92 s. From 512K on a sequence lies over
 * ever more chips, and nothing else is left to win. */
static void phases_of_a_gather_come_back_into_step(void **state)
{
    (void)state;
    static const char *const tokens[] = {"4194304", "2097152", "1048576", "524288",
                                         "262144",  "131072",  "65536"};
    int64_t before_ps = INT64_MAX / 2;
    for (uint32_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        char batch[64];
        (void)snprintf(batch, sizeof batch, "/workload/batch_tokens=%s", tokens[i]);
        struct scenario_setting const settings[] = {{.text = batch},
                                                    {.text = "/workload/remat=none"}};
        struct play_options const options = {.settings = settings, .setting_count = 2};
        struct play play;
        play_run_file(&play, "scenarios/train/llama3-70b-fsdp-v5p-16x16x16.json", &options);
        print_message("    %s tokens: %lld ps\n", tokens[i], (long long)play.trace.step_ps);
        assert_true(play.trace.step_ps < before_ps + before_ps / 5000);
        before_ps = play.trace.step_ps;
        play_close(&play);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_of_a_gather_come_back_into_step),
        cmocka_unit_test(half_the_batch_takes_no_longer),
    };
    return cmocka_run_group_tests_name("half_batch", tests, NULL, NULL);
}
