/*
 * Half the batch never takes longer than the whole: steps drawn from all kinds of machines and from
 * the models of the catalogue, with streams that share their links. Each step that does take longer
 * is listed with its cause, and the cause is checked by taking it away:
 *
 *   sequences   With fewer sequences each lies over more chips, which exchange keys and values.
 *               Sequences half as long lie over as many chips as before: then half the batch takes
 *               no longer than the whole.
 *   algorithm   A collective has another algorithm, and such collectives together take longer by no
 *               less than the step does.
 *   order       No server and no link has more work than with the whole batch. Shorter ops may
 *               lengthen a schedule all the same (Graham, Bounds on Multiprocessing Timing
 *               Anomalies, 1969): the same work in another order, or with ops that are delayed by a
 *               slower clock, takes no longer than the whole.
 *   both        Sequences lie over more chips. Half as long, they leave the same work in an
 *               unlucky order.
 *
 * A step without a cause fails the test. Counts and the worst case are held to what they are
 * (docs/limits.md). What a scenario refuses is listed too.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"

enum { DRAWN = 1000, TEXT_BYTES = 2048 };

/* At most one of this many drawn steps is refused, or takes longer for sequences or an algorithm,
 * or for the order of messages: what was found, not what is wanted. A few more may be in a small
 * sample. */
enum { REFUSED_ONE_IN = 20, EXCUSED_ONE_IN = 50, ORDER_ONE_IN = 60, SAMPLE = 3 };

/* Of the step: by how much one takes longer at most because of an order. */
static const int64_t order_ppm_max = 60000;

#define LENGTH(array) (uint32_t)(sizeof(array) / sizeof *(array))

static uint32_t below(uint64_t *state, uint32_t count)
{
    return (uint32_t)((case_random(state) >> 33) % count);
}

struct drawn_machine {
    const char *text;
    uint32_t size[3]; /* 0: there is no such axis; more than 8: too wide for tp and ep. */
    const char *axis[3];
};

static const struct drawn_machine machines[] = {
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"", {4, 4, 4}, {"x", "y", "z"}},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x8\"", {4, 4, 8}, {"x", "y", "z"}},
    {"\"chip\": \"tpu-v4p\", \"shape\": \"2x2x4\"", {2, 2, 4}, {"x", "y", "z"}},
    {"\"chip\": \"tpu-7x\", \"shape\": \"4x4x4\"", {4, 4, 4}, {"x", "y", "z"}},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x8\"", {4, 8}, {"x", "y"}},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"8x8\"", {8, 8}, {"x", "y"}},
    {"\"chip\": \"tpu-v6e\", \"shape\": \"4x4\"", {4, 4}, {"x", "y"}},
    {"\"chip\": \"tpu-v3\", \"shape\": \"4x4\"", {4, 4}, {"x", "y"}},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\", \"slices\": 2", {2, 4, 4}, {"slice", "x", "y"}},
    {"\"chip\": \"h100-sxm\", \"nodes\": 4", {4, 4, 2}, {"node", "gpu:4", "gpu:2"}},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", {2, 4, 2}, {"node", "gpu:4", "gpu:2"}},
    {"\"chip\": \"h20-sxm\", \"nodes\": 4", {4, 2, 4}, {"node", "gpu:2", "gpu:4"}},
    {"\"chip\": \"a100-sxm\", \"nodes\": 8", {8, 4, 2}, {"node", "gpu:4", "gpu:2"}},
    {"\"chip\": \"b200\", \"nodes\": 4", {4, 4, 2}, {"node", "gpu:4", "gpu:2"}},
    {"\"chip\": \"gb200-nvl72\", \"nodes\": 2", {72, 2}, {"gpu", "node"}},
    {"\"chip\": \"mi300x\", \"nodes\": 2", {2, 8}, {"node", "gpu"}},
};

struct drawn_model {
    const char *text;
    bool attends; /* To whole sequences, which may lie over several ranks. */
    bool routes;  /* To experts, whose number 8 divides. */
};

static const struct drawn_model models[] = {
    {"{\"kind\": \"mlp\", \"D\": 2048, \"F\": 8192, \"layers\": 6, \"matrices\": 3}", false, false},
    {"{\"kind\": \"mlp\", \"D\": 4096, \"F\": 4096, \"layers\": 4, \"matrices\": 2}", false, false},
    {"\"llama-3-8b\"", true, false},
    {"\"llama-2-13b\"", true, false},
    {"\"gemma-7b\"", true, false},
    {"\"qwen2.5-7b\"", true, false},
    {"\"qwen3-8b\"", true, false},
    {"\"phi-3-mini\"", false, false}, /* Its window leaves sequences whole. */
    {"\"starcoder2-3b\"", true, false},
    {"\"mixtral-8x7b\"", true, true},
    {"\"qwen3-30b-a3b\"", true, true},
    {"\"gpt-oss-20b\"", false, true}, /* Its windows leave sequences whole. */
};

static const char *const parallel[] = {"fsdp", "dp", "cp", "ep", "tp"};
enum { FSDP, DP, CP, EP, TP, PARALLEL };

/* What each axis of the machine is for. Only fsdp and dp take several. */
static void mesh_draw(uint64_t *state, const struct drawn_machine *machine,
                      const struct drawn_model *model, uint32_t use[3])
{
    bool taken[PARALLEL] = {false};
    for (uint32_t a = 0; a < 3 && machine->size[a] > 0; a++) {
        static const uint32_t dense[] = {FSDP, FSDP, DP, TP, CP};
        static const uint32_t routed[] = {FSDP, FSDP, DP, TP, EP, EP};
        use[a] = model->routes ? routed[below(state, LENGTH(routed))]
                               : dense[below(state, LENGTH(dense))];
        bool const narrow = machine->size[a] <= 8;
        bool const allowed =
            use[a] <= DP || (narrow && !taken[use[a]] && (use[a] != CP || model->attends));
        if (!allowed) use[a] = FSDP;
        taken[use[a]] = true;
    }
}

static void mesh_write(const struct drawn_machine *machine, const uint32_t use[3], char mesh[256])
{
    *mesh = '\0';
    for (uint32_t k = 0; k < PARALLEL; k++) {
        char list[64] = "";
        for (uint32_t a = 0; a < 3 && machine->size[a] > 0; a++) {
            if (use[a] != k) continue;
            const char *axis = machine->axis[a];
            bool const halves = strncmp(axis, "gpu:", 4) == 0 && use[1] == use[2];
            if (halves && a == 2) continue; /* Both parts are one axis. */
            (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s\"%s\"",
                           *list != '\0' ? ", " : "", halves ? "gpu" : axis);
        }
        if (*list != '\0')
            (void)snprintf(mesh + strlen(mesh), 256 - strlen(mesh), "%s\"%s\": [%s]",
                           *mesh != '\0' ? ", " : "", parallel[k], list);
    }
}

struct drawn {
    char text[TEXT_BYTES];  /* A scenario without its batch. */
    uint64_t tokens;        /* A batch that may be halved. */
    uint32_t length_tokens; /* Of a sequence; 0: the model has none. */
};

static void scenario_draw(uint64_t *state, struct drawn *ret_drawn)
{
    const struct drawn_machine *machine = &machines[below(state, LENGTH(machines))];
    const struct drawn_model *model = &models[below(state, LENGTH(models))];
    const char *const profile = CASE_PICK(state, "ideal", "ideal", "measured");
    const char *const remat = CASE_PICK(state, "none", "big_matmuls", "block");
    const char *const gather = CASE_PICK(state, "block", "tensor", "layer");
    const char *const chunks = CASE_PICK(state, "false", "true");
    uint32_t const length_tokens = 512u << below(state, 4);
    uint32_t const prefetch = 1 + below(state, 2);
    uint32_t use[3] = {PARALLEL, PARALLEL, PARALLEL};
    char mesh[256], sequences[96] = "";
    mesh_draw(state, machine, model, use);
    mesh_write(machine, use, mesh);
    bool const sequential = strstr(model->text, "kind") == NULL;
    ret_drawn->length_tokens = sequential ? length_tokens : 0;
    if (sequential)
        (void)snprintf(sequences, sizeof sequences, ", \"sequence_length\": %u%s", length_tokens,
                       strstr(mesh, "\"cp\"") != NULL ? ", \"context\": \"all_gather\"" : "");
    ret_drawn->tokens = UINT64_C(65536) << below(state, 5);
    /* 72 ranks divide batches of 9 times a power of 2. */
    if (machine->size[0] == 72) ret_drawn->tokens = ret_drawn->tokens / 8 * 9;
    case_text(ret_drawn->text, TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {%s, \"profile\": \"%s\"}, \"mesh\": {%s}, "
              "\"workload\": {\"kind\": \"train_step\", \"model\": %s%s, \"remat\": \"%s\", "
              "\"gather\": \"%s\", \"allow_oversubscription\": true}, \"run\": "
              "{\"collective_matmul\": %s, \"prefetch_layers\": %u}}",
              machine->text, profile, mesh, model->text, sequences, remat, gather, chunks,
              prefetch);
}

/* One more setting may be given; NULL: none. A `length_tokens` of 0 leaves sequences as they are.
 */
static enum status play_batch(struct play *play, const char *text, uint64_t tokens,
                              uint32_t length_tokens, const char *setting, struct error *reterr)
{
    char batch[64], length[64];
    struct scenario_setting settings[3];
    uint32_t count = 0;
    (void)snprintf(batch, sizeof batch, "/workload/batch_tokens=%llu", (unsigned long long)tokens);
    (void)snprintf(length, sizeof length, "/workload/sequence_length=%u", length_tokens);
    settings[count++] = (struct scenario_setting){.text = batch};
    if (length_tokens > 0) settings[count++] = (struct scenario_setting){.text = length};
    if (setting != NULL) settings[count++] = (struct scenario_setting){.text = setting};
    struct play_options const options = {.settings = settings, .setting_count = count};
    return play_try(play, text, &options, reterr);
}

/* The first collective of a name; NULL: there is none. */
static const struct program_op *collective_named(const struct program *program, const char *name)
{
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            if (op->kind == PROGRAM_OP_COLLECTIVE && strcmp(op->name, name) == 0) return op;
        }
    return NULL;
}

static uint64_t ranks_of(const struct program *program, const struct program_op *op)
{
    const struct group *group = &program->plans[op->index].group;
    uint64_t ranks = 1;
    for (uint32_t d = 0; d < group->dimension_count; d++) ranks *= group->dimension[d].size;
    return ranks;
}

/* How collectives of half the batch differ from those of the whole. */
struct difference {
    bool shared;          /* Some have more ranks: sequences lie over more chips. */
    int64_t algorithm_ps; /* What those of another algorithm take longer. */
};

static struct difference compare(const struct play *whole, const struct play *half)
{
    struct difference difference = {0};
    static bool seen[UINT16_MAX + 1];
    memset(seen, 0, sizeof seen);
    for (uint32_t t = 0; t < half->program.template_count; t++)
        for (uint32_t i = 0; i < half->program.templates[t].op_count; i++) {
            const struct program_op *op = &half->program.templates[t].op[i];
            if (op->kind != PROGRAM_OP_COLLECTIVE || seen[op->class_index]) continue;
            seen[op->class_index] = true;
            const struct program_op *before = collective_named(&whole->program, op->name);
            if (before == NULL || ranks_of(&half->program, op) > ranks_of(&whole->program, before))
                difference.shared = true;
            if (before == NULL) continue;
            const char *then = whole->program.plans[before->index].algorithm_name;
            const char *now = half->program.plans[op->index].algorithm_name;
            int64_t const longer_ps = half->trace.classes[op->class_index].busy_ps -
                                      whole->trace.classes[before->class_index].busy_ps;
            if (then != NULL && now != NULL && strcmp(then, now) != 0 && longer_ps > 0)
                difference.algorithm_ps += longer_ps;
        }
    return difference;
}

/* Whether ops ask no more of any server, and messages of no link. What messages ask of servers
 * follows from the links; it is left out, since two runs may report different chips of a line. A
 * message's time is rounded up. */
static bool no_more_work(const struct play *whole, const struct play *half)
{
    int64_t const rounding_ps = (int64_t)half->trace.work.transfers;
    int64_t more_ps[TRACE_QUEUE_COUNT] = {0};
    for (uint32_t p = 0; p < half->trace.phase_count; p++) {
        const struct trace_phase *now = &half->trace.phase[p], *then = &whole->trace.phase[p];
        more_ps[TRACE_QUEUE_MXU] += now->mxu_ps - then->mxu_ps;
        more_ps[TRACE_QUEUE_VPU] += now->vpu_ps - then->vpu_ps;
        more_ps[TRACE_QUEUE_HBM] += now->hbm_ps - then->hbm_ps;
        more_ps[TRACE_QUEUE_VMEM] += now->vmem_ps - then->vmem_ps;
    }
    for (uint32_t q = 0; q < TRACE_QUEUE_COUNT; q++)
        if (more_ps[q] > 0) return false;
    for (uint32_t p = 0; p < TRACE_PORTS_MAX; p++)
        if (half->trace.link[p].busy_ps > whole->trace.link[p].busy_ps + rounding_ps ||
            half->trace.link[p].bytes > whole->trace.link[p].bytes)
            return false;
    return true;
}

/* Whether a step takes no longer than the whole, but for times that are rounded up. */
static bool no_longer(const struct play *whole, const struct play *other)
{
    return other->trace.step_ps <= whole->trace.step_ps + whole->trace.step_ps / 1000000;
}

/* An order in which half the batch takes no longer than the whole; NULL: none was found. */
static const char *order_find(const struct play *whole, const struct drawn *drawn,
                              uint32_t length_tokens)
{
    static const char *const orders[] = {
        "/run/arbitration=fifo", "/run/arbitration=priority", "/machine/clock=0.9",
        "/machine/clock=0.8",    "/machine/clock=0.7",        "/machine/clock=0.6",
        "/machine/clock=0.5",
    };
    for (uint32_t i = 0; i < LENGTH(orders); i++) {
        struct play other;
        struct error error = {0};
        enum status const status =
            play_batch(&other, drawn->text, drawn->tokens / 2, length_tokens, orders[i], &error);
        bool const found = status == STATUS_OK && no_longer(whole, &other);
        play_close(&other);
        if (found) return orders[i];
    }
    return NULL;
}

enum cause { CAUSE_NONE, CAUSE_SEQUENCES, CAUSE_ALGORITHM, CAUSE_ORDER, CAUSE_BOTH };

/* The cause of sequences over more chips, once they lie over as many as before. */
static enum cause cause_unshared(const struct play *whole, const struct drawn *drawn,
                                 const char **ret_order)
{
    struct play play;
    struct error error = {0};
    uint32_t const length_tokens = drawn->length_tokens / 2;
    enum cause cause = CAUSE_NONE;
    if (play_batch(&play, drawn->text, drawn->tokens / 2, length_tokens, NULL, &error) ==
        STATUS_OK) {
        if (no_longer(whole, &play))
            cause = CAUSE_SEQUENCES;
        else if (no_more_work(whole, &play))
            *ret_order = order_find(whole, drawn, length_tokens);
    }
    play_close(&play);
    return *ret_order != NULL ? CAUSE_BOTH : cause;
}

static enum cause cause_find(const struct play *whole, const struct play *half,
                             const struct drawn *drawn, const char **ret_order)
{
    struct difference const difference = compare(whole, half);
    if (difference.algorithm_ps >= half->trace.step_ps - whole->trace.step_ps)
        return CAUSE_ALGORITHM;
    if (difference.shared) return cause_unshared(whole, drawn, ret_order);
    if (no_more_work(whole, half)) *ret_order = order_find(whole, drawn, 0);
    return *ret_order != NULL ? CAUSE_ORDER : CAUSE_NONE;
}

struct verdicts {
    uint32_t judged, refused;
    uint32_t longer[CAUSE_BOTH + 1]; /* Half takes longer, by cause. */
    int64_t worst_ppm;               /* Of those with an order as a cause. */
};

static void judge(const struct play *whole, const struct play *half, const struct drawn *drawn,
                  struct verdicts *verdicts)
{
    static const char *const names[] = {
        [CAUSE_NONE] = "NO CAUSE FOUND",
        [CAUSE_SEQUENCES] = "sequences lie over more chips",
        [CAUSE_ALGORITHM] = "a collective has another algorithm",
        [CAUSE_ORDER] = "an order; no longer with",
        [CAUSE_BOTH] = "sequences over more chips, and an order; without the first no longer with",
    };
    int64_t const longer_ps = half->trace.step_ps - whole->trace.step_ps;
    const char *order = NULL;
    verdicts->judged++;
    if (longer_ps <= 0) return;
    enum cause const cause = cause_find(whole, half, drawn, &order);
    int64_t const ppm = longer_ps / (whole->trace.step_ps / 1000000);
    verdicts->longer[cause]++;
    if (order != NULL && ppm > verdicts->worst_ppm) verdicts->worst_ppm = ppm;
    print_message("    %lld ppm longer with half of %llu tokens: %s %s\n    %s\n", (long long)ppm,
                  (unsigned long long)drawn->tokens, names[cause], order != NULL ? order : "",
                  drawn->text);
}

/* Both are played; a refusal of either is listed. */
static void pair_play(const struct drawn *drawn, struct verdicts *verdicts)
{
    struct play whole, half;
    struct error error = {0};
    enum status status = play_batch(&whole, drawn->text, drawn->tokens, 0, NULL, &error);
    if (status == STATUS_OK) {
        status = play_batch(&half, drawn->text, drawn->tokens / 2, 0, NULL, &error);
        if (status == STATUS_OK) judge(&whole, &half, drawn, verdicts);
        play_close(&half);
    }
    play_close(&whole);
    if (status == STATUS_OK) return;
    verdicts->refused++;
    print_message("    refused with %llu tokens or half: %s: %s\n    %s\n",
                  (unsigned long long)drawn->tokens, error.where, error.message, drawn->text);
}

/* Of a step whose batch of `tokens` is `times` as large, or half as large where `times` is 0. */
static enum cause cause_of(const char *text, uint64_t tokens, uint32_t length_tokens,
                           uint32_t times)
{
    struct drawn drawn = {.tokens = tokens, .length_tokens = length_tokens};
    struct play whole, other;
    struct error error = {0};
    const char *order = NULL;
    (void)snprintf(drawn.text, sizeof drawn.text, "%s", text);
    assert_int_equal(play_batch(&whole, text, tokens, 0, NULL, &error), STATUS_OK);
    assert_int_equal(
        play_batch(&other, text, times == 0 ? tokens / 2 : tokens * times, 0, NULL, &error),
        STATUS_OK);
    assert_true(other.trace.step_ps > whole.trace.step_ps);
    enum cause const cause = cause_find(&whole, &other, &drawn, &order);
    play_close(&other);
    play_close(&whole);
    return cause;
}

/* Samples of the draw seldom have a step that takes longer. */
static void causes_are_told_apart(void **state)
{
    static const char *const links_bound =
        "{\"podsim\": 1, \"machine\": {\"chip\": \"tpu-v5p\", \"shape\": \"4x4x8\"}, \"mesh\": "
        "{\"fsdp\": [\"x\", \"y\"], \"dp\": [\"z\"]}, \"workload\": {\"kind\": \"train_step\", "
        "\"model\": {\"kind\": \"mlp\", \"D\": 2048, \"F\": 8192, \"layers\": 2, \"matrices\": 3}, "
        "\"remat\": \"none\", \"gather\": \"layer\"}, \"run\": {\"collective_matmul\": false, "
        "\"prefetch_layers\": 2}}";
    static const char *const whole_sequences =
        "{\"podsim\": 1, \"machine\": {\"chip\": \"tpu-7x\", \"shape\": \"4x4x4\"}, \"mesh\": "
        "{\"fsdp\": [\"x\", \"z\"], \"dp\": [\"y\"]}, \"workload\": {\"kind\": \"train_step\", "
        "\"model\": \"starcoder2-3b\", \"sequence_length\": 1024, \"remat\": \"block\", "
        "\"gather\": \"layer\"}, \"run\": {\"collective_matmul\": false}}";
    (void)state;
    assert_int_equal(cause_of(links_bound, 65536, 0, 0), CAUSE_ORDER);
    assert_int_equal(cause_of(whole_sequences, 65536, 1024, 0), CAUSE_SEQUENCES);
    /* More work is no cause, though in another order it would take no longer. */
    assert_int_equal(cause_of(links_bound, 131072, 0, 2), CAUSE_NONE);
}

static void half_the_batch_takes_no_longer(void **unused)
{
    uint64_t state = 340;
    uint32_t walked = 0, taken = 0;
    struct verdicts verdicts = {0};
    (void)unused;
    while (walked < DRAWN) {
        struct drawn drawn;
        scenario_draw(&state, &drawn);
        /* A pair takes half a second: a sample is a quarter of what it is elsewhere. */
        if (sampling_skips(&walked) || (sampling_of() > 1 && walked % 4 != 0)) continue;
        taken++;
        pair_play(&drawn, &verdicts);
    }
    uint32_t const excused = verdicts.longer[CAUSE_SEQUENCES] + verdicts.longer[CAUSE_ALGORITHM];
    uint32_t const ordered = verdicts.longer[CAUSE_ORDER] + verdicts.longer[CAUSE_BOTH];
    print_message("    of %u judged take longer with half the batch: %u for sequences over more "
                  "chips, %u for an algorithm, %u for an order, %u for sequences and an order, by "
                  "up to %lld ppm; %u without a cause; %u refused\n",
                  verdicts.judged, verdicts.longer[CAUSE_SEQUENCES],
                  verdicts.longer[CAUSE_ALGORITHM], verdicts.longer[CAUSE_ORDER],
                  verdicts.longer[CAUSE_BOTH], (long long)verdicts.worst_ppm,
                  verdicts.longer[CAUSE_NONE], verdicts.refused);
    assert_int_equal(verdicts.judged + verdicts.refused, taken);
    assert_int_equal(verdicts.longer[CAUSE_NONE], 0);
    assert_true(verdicts.refused <= SAMPLE + taken / REFUSED_ONE_IN);
    assert_true(excused <= SAMPLE + taken / EXCUSED_ONE_IN);
    assert_true(ordered <= SAMPLE + taken / ORDER_ONE_IN);
    assert_true(verdicts.worst_ppm <= order_ppm_max);
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
        cmocka_unit_test(causes_are_told_apart),
        cmocka_unit_test(half_the_batch_takes_no_longer),
    };
    return cmocka_run_group_tests_name("half_batch", tests, NULL, NULL);
}
