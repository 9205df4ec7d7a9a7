/*
 * No key is taken and does nothing in silence. A key of the workload or of the run is drawn with a
 * value, over a step that is drawn: the value is the default, or the step is refused, or its digest
 * or its memory is another, or a note says that the key changes nothing. What is left are settings
 * of which pages say where they change nothing. The draws begin with a seed that is printed (or
 * given as the first argument).
 */
#include <string.h>

#include "sim/base/name.h"
#include "sim/base/random.h"
#include "sim/report/notes.h"
#include "sim/scenario/scenario_parts.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { DRAWS = 1200, TEXT_BYTES = 1024, VALUES_MAX = 32, ROWS_MAX = 128 };

#define TRAIN(model) "\"train_step\", \"model\": " model ", \"batch_tokens\": 65536"
#define DENSE "\"tests/property/small.json\", \"sequence_length\": 2048"
#define EXPERTS "\"tests/property/experts.json\", \"sequence_length\": 2048"
#define H100(stack) "\"chip\": \"h100-sxm\", \"nodes\": 2, \"gpus\": 4" stack
#define STACK(name) ", \"profile\": \"measured\", \"stack\": \"" name "\""

static const struct {
    enum workload_kind kind;
    const char *machine, *mesh, *workload;
} steps[] = {
    {WORKLOAD_TRAIN_STEP, H100(""), "\"dp\": [\"node\"], \"tp\": [\"gpu\"]",
     TRAIN(DENSE) ", \"accumulate\": 4"},
    {WORKLOAD_TRAIN_STEP, H100(STACK("te")), "\"dp\": [\"node\"], \"tp\": [\"gpu\"]",
     TRAIN(DENSE) ", \"accumulate\": 4"},
    {WORKLOAD_TRAIN_STEP, H100(STACK("torch-eager")), "\"fsdp\": [\"node\", \"gpu\"]",
     TRAIN(DENSE)},
    {WORKLOAD_TRAIN_STEP, H100(STACK("te")), "\"pp\": [\"node\", \"gpu:2\"], \"dp\": [\"gpu:2\"]",
     TRAIN(DENSE) ", \"accumulate\": 8"},
    {WORKLOAD_TRAIN_STEP, H100(STACK("te")), "\"cp\": [\"gpu\"], \"dp\": [\"node\"]", TRAIN(DENSE)},
    {WORKLOAD_TRAIN_STEP, H100(STACK("te")), "\"dp\": [\"node\"], \"ep\": [\"gpu\"]",
     TRAIN(EXPERTS)},
    {WORKLOAD_TRAIN_STEP, "\"chip\": \"tpu-v5p\", \"shape\": \"2x2x2\"",
     "\"fsdp\": [\"x\", \"y\"], \"tp\": [\"z\"]", TRAIN(DENSE)},
    {WORKLOAD_TRAIN_STEP, "\"chip\": \"tpu-v5p\", \"shape\": \"2x2x2\"",
     "\"dp\": [\"x\", \"y\"], \"tp\": [\"z\"]",
     TRAIN("{\"kind\": \"mlp\", \"D\": 2048, \"F\": 8192, \"layers\": 4}")},
    {WORKLOAD_DECODE, H100(STACK("trtllm")), "\"tp\": [\"gpu\"], \"dp\": [\"node\"]",
     "\"decode\", \"model\": \"tests/property/small.json\", \"batch\": 8, \"context\": 512"},
    {WORKLOAD_PREFILL, H100(""), "\"tp\": [\"gpu\"], \"dp\": [\"node\"]",
     "\"prefill\", \"model\": \"tests/property/small.json\", \"batch\": 8, \"prompt\": 512"},
    {WORKLOAD_DECODE, H100(""), "\"ep\": [\"gpu\", \"node\"]",
     "\"decode\", \"model\": \"tests/property/experts.json\", \"batch\": 64, \"context\": 512"},
    {WORKLOAD_TRAIN_STEP, H100(STACK("torch-compile")), "\"pp\": [\"node\"], \"fsdp\": [\"gpu\"]",
     TRAIN(DENSE) ", \"accumulate\": 4"},
    {WORKLOAD_TRAIN_STEP, H100(STACK("te")), "\"ep\": [\"gpu\"], \"dp\": [\"node\"]",
     TRAIN("\"tests/property/mtp.json\", \"sequence_length\": 2048")},
    {WORKLOAD_GENERATE, H100(STACK("vllm")), "\"tp\": [\"gpu\"], \"cp\": [\"node\"]",
     "\"generate\", \"model\": \"tests/property/small.json\", \"batch\": 8, \"prompt\": 512, "
     "\"output\": 64"},
    {WORKLOAD_MIXED, "\"chip\": \"tpu-v5e\", \"shape\": \"2x4\"",
     "\"tp\": [\"y\"], \"fsdp\": [\"x\"]",
     "\"mixed\", \"model\": \"tests/property/small.json\", \"batch\": 8, \"context\": 512, "
     "\"prompt\": 256"},
    {WORKLOAD_DECODE, H100(STACK("trtllm")), "\"tp\": [\"gpu:2\"], \"tp_d\": [\"gpu:2\", \"node\"]",
     "\"decode\", \"model\": \"tests/property/small.json\", \"batch\": 8, \"context\": 512"},
    {WORKLOAD_TRAIN_STEP, H100(STACK("te")), "\"pp\": [\"node\", \"gpu:2\"], \"dp\": [\"gpu:2\"]",
     TRAIN("\"tests/property/tied.json\", \"sequence_length\": 2048") ", \"accumulate\": 8, "
                                                                      "\"schedule\": \"zb-h1\""},
    {WORKLOAD_TRAIN_STEP, H100(STACK("torch-eager")), "\"tp\": [\"gpu\"], \"dp\": [\"node\"]",
     TRAIN(DENSE) ", \"backward_order\": \"dx_first\""},
    {WORKLOAD_TRAIN_STEP, "\"chip\": \"tpu-v5e\", \"shape\": \"2x2\", \"slices\": 2",
     "\"fsdp\": [\"x\", \"y\"], \"dp\": [\"slice\"]", TRAIN(DENSE)},
};
enum { STEPS = sizeof steps / sizeof *steps };

/* Settings that may change nothing, by how they begin, and what pages say of them. */
static const struct {
    const char *setting, *why;
} said[] = {
    {"/workload/formats/", "bf16 and fp16 have as many bytes"},
    {"/workload/loss_fusion=", "it may stand without a stack"},
    {"/workload/gradient_sums=", "it may stand without a stack"},
    {"/workload/attention_kernel=flash_padded", "without kernels between matmuls it takes no time"},
    {"/workload/autocast=true", "formulas of RMSNorm cast by themselves"},
    {"/workload/sequence_length=", "the bare MLP has no sequences"},
    {"/workload/remat=norms", "true already: the bare MLP has no norms"},
    {"/workload/activations=tokens", "the bare MLP has no norms that would work on rows"},
    {"/workload/gather=layer", "true already: a layer of the bare MLP is one block"},
    {"/workload/context_order=contiguous", "parts are of a causal sequence"},
    {"/workload/attention=full", "true already: one new token sees all keys"},
    {"/workload/mtp=false", "true already: the model has no modules"},
    {"/workload/page=", "of a whole answer, of which the first program is played here"},
    {"/workload/prompts=", "two ranks of fsdp have one each, or one of them has one"},
    {"/workload/backward_order=dx_first", "split passes have the order of their schedule"},
    {"/run/prefetch_weights=vmem", "gathered weights are never read ahead"},
    {"/run/overlap/tp=false", "true already: nothing is computed meanwhile"},
    {"/run/overlap/ep=false", "true already: nothing is computed meanwhile"},
    {"/run/overlap/fsdp=gathers", "true already: a step of inference reduces no gradients"},
    {"/run/overlap/dcn=reductions", "true already: slices gather nothing of each other"},
    {"/run/split_attention=false", "cores are fewer than sequences and heads"},
    {"/run/collective_cores=none", "no op runs at the same time"},
    {"/run/steps=", "the most steps until they recur; the digest is of one"},
};

struct outcome {
    uint64_t digest, peak_bytes;
    const char *shown;
};

static bool is_noted(const struct play *play)
{
    struct report_input const input = play_report(play);
    struct analysis analysis;
    struct notes notes;
    case_ok(analysis_build(play->arena, &input, &analysis, &case_error));
    case_ok(notes_build(play->arena, &input, &analysis, &notes, &case_error));
    for (uint32_t i = 0; i < notes.count; i++)
        if (strstr(notes.text[i], "nothing here") != NULL) return true;
    return false;
}

static bool is_said(const char *setting)
{
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (strncmp(said[i].setting, setting, strlen(said[i].setting)) == 0) return true;
    return false;
}

/* Rows below an object whose values can be drawn, with their pointers. */
static uint32_t rows_of(const struct key *rows, const char *pointer, const struct key **ret_row,
                        const char **ret_pointer, uint32_t count)
{
    static const char *const fixed[] = {
        "kind", "model", "engine", "arbitration", "allow_oversubscription", NULL};
    for (; rows->name != NULL && count < ROWS_MAX; rows++) {
        const char *const at = arena_format(case_arena, "%s/%s", pointer, rows->name);
        if (fixed[name_find(rows->name, fixed)] != NULL) continue;
        if (rows->kind == &key_object && rows->members != NULL)
            count = rows_of(rows->members, at, ret_row, ret_pointer, count);
        else if (rows->choices != NULL || rows->kind == &key_flag || rows->kind == &key_count)
            ret_row[count] = rows, ret_pointer[count++] = at;
    }
    return count;
}

static const char *value_drawn(uint64_t *state, const struct key *row)
{
    static const char *const flags[] = {"true", "false", NULL};
    static const char *const counts[] = {"0", "1", "2", "3", "4", NULL};
    const char *const *values = row->choices != NULL     ? row->choices
                                : row->kind == &key_flag ? flags
                                                         : counts;
    uint32_t count = 0;
    while (values[count] != NULL) count++;
    /* Words that stand in place of a boolean. */
    bool const may_be_flag =
        row->choices != NULL && row->kind != &key_choice && row->kind != &key_text;
    uint32_t const drawn = (uint32_t)random_below(state, count + (may_be_flag ? 2 : 0));
    return drawn < count ? values[drawn] : flags[drawn - count];
}

static enum status step_play(uint32_t step, const char *setting, struct play *play)
{
    struct scenario_setting const settings[] = {{setting}};
    struct play_options const options = {.settings = settings, .setting_count = setting != NULL};
    char text[TEXT_BYTES];
    case_text(text, sizeof text,
              "{\"podsim\": 1, \"machine\": {%s}, \"mesh\": {%s}, \"workload\": {\"kind\": %s, "
              "\"allow_oversubscription\": true}}",
              steps[step].machine, steps[step].mesh, steps[step].workload);
    return play_try(play, text, &options, &case_error);
}

static struct outcome outcome_of(const struct play *play)
{
    return (struct outcome){play->trace.digest, play->trace.memory.peak_bytes,
                            scenario_text(case_arena, &play->scenario)};
}

static bool is_alike(const struct outcome *one, const struct outcome *other)
{
    return one->digest == other->digest && one->peak_bytes == other->peak_bytes;
}

/* What a setting would have another name of; NULL: of nothing. */
static const char *shorter_name(const char *setting)
{
    static const char products[] = "/run/overlap/tp=products";
    return strcmp(setting, products) == 0 ? "/run/overlap/tp=false" : NULL;
}

/* Whether the step runs; else the setting is refused. */
static bool outcome_find(uint32_t step, const char *setting, struct outcome *ret_outcome,
                         bool *ret_noted)
{
    struct play play;
    bool const runs = step_play(step, setting, &play) == STATUS_OK;
    if (runs) *ret_outcome = outcome_of(&play);
    *ret_noted = runs && is_noted(&play);
    play_close(&play);
    return runs;
}

/* False: it is refused. */
static bool setting_counts(uint32_t step, const char *setting, const struct outcome *plain)
{
    const char *const name = shorter_name(setting);
    struct outcome other, named;
    bool is_said_here = false, unused;
    if (!outcome_find(step, setting, &other, &is_said_here)) return false;
    bool const is_default = strcmp(other.shown, plain->shown) == 0;
    is_said_here = is_said_here || is_default || is_said(setting);
    if (is_alike(&other, plain) && !is_said_here)
        fail_msg("%s changes nothing of a step on {%s}, {%s}, {%s}, and nothing says so", setting,
                 steps[step].machine, steps[step].mesh, steps[step].workload);
    if (name != NULL && outcome_find(step, name, &named, &unused) && is_alike(&other, &named))
        fail_msg("%s is %s of a step on {%s}, {%s}, {%s}, and nothing says so", setting, name,
                 steps[step].machine, steps[step].mesh, steps[step].workload);
    return true;
}

static void no_key_is_taken_in_silence(void **state)
{
    static const struct key *row[ROWS_MAX];
    static const char *pointer[ROWS_MAX];
    struct outcome plain[STEPS];
    uint32_t walked = 0, drawn = 0, taken = 0;
    (void)state;
    for (uint32_t s = 0; s < STEPS; s++) {
        struct play play;
        case_ok(step_play(s, NULL, &play));
        plain[s] = outcome_of(&play);
        play_close(&play);
    }
    for (uint32_t i = 0; i < DRAWS; i++) {
        uint64_t chance = walk_draw(i);
        if (sampling_skips(&walked)) continue;
        uint32_t const s = (uint32_t)random_below(&chance, STEPS);
        const struct key *const keys = workload_kinds[steps[s].kind].members;
        uint32_t const first = rows_of(keys, "/workload", row, pointer, 0);
        uint32_t const count = rows_of(run_keys, "/run", row, pointer, first);
        uint32_t const r = (uint32_t)random_below(&chance, count);
        const char *const value = value_drawn(&chance, row[r]);
        taken += setting_counts(s, arena_format(case_arena, "%s=%s", pointer[r], value), &plain[s]);
        drawn++;
    }
    assert_true(taken * 4 > drawn);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_key_is_taken_in_silence),
    };
    walk_seed(argc, argv);
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
