/* Which layers a pipeline's stages have: evenly, or as a layout says; and what of either is
 * refused. */
#include <stdio.h>
#include <string.h>

#include "sim/step/stages.h"
#include "tests/support/case.h"

enum { ROOM = 48 };

static struct workload_plan plan;

static int up(void **state)
{
    plan = (struct workload_plan){.model = {.kind = MODEL_DECODER, .layers = 12}, .accumulate = 1};
    return case_arena_up(state);
}

/* "0+3EL": the first layer, how many, and whether embedding or head, modules "m2" or their heads
 * "h2" lie there too. */
static void stages_are(uint32_t count, const char *wanted)
{
    struct stages stages = {0};
    char text[256] = "";
    case_ok(stages_build(case_arena, &plan, count, ROOM, &stages, &case_error));
    assert_int_equal(stages.count, count);
    for (uint32_t s = 0; s < count; s++) {
        const struct stage *stage = &stages.stage[s];
        char more[40] = "";
        if (stage->mtp_modules != 0) (void)snprintf(more, sizeof more, "m%u", stage->mtp_modules);
        if (stage->mtp_heads != 0)
            (void)snprintf(more + strlen(more), sizeof more - strlen(more), "h%u",
                           stage->mtp_heads);
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%u+%u%s%s%s",
                       s == 0 ? "" : " ", stage->layer_first, stage->layer_count,
                       stage->embedding ? "E" : "", stage->head ? "L" : "", more);
    }
    assert_string_equal(text, wanted);
}

static void layout_is(const char *layout, uint32_t count, const char *wanted)
{
    plan.stages.layout = layout;
    stages_are(count, wanted);
}

static void refused(uint32_t count, uint64_t room, const char *message)
{
    struct stages stages = {0};
    case_refused(stages_build(case_arena, &plan, count, room, &stages, &case_error), STATUS_INVALID,
                 plan.stages.layout == NULL ? "/workload/schedule" : "/workload/layout", "");
    assert_string_equal(case_error.message, message);
}

static void layout_refused(const char *layout, uint32_t count, const char *message)
{
    plan.stages.layout = layout;
    refused(count, ROOM, message);
}

/* All alike, or one layer less beside the embedding and the head, which count for one each. */
static void layers_lie_evenly(void **state)
{
    (void)state;
    stages_are(1, "0+12EL");
    stages_are(3, "0+4E 4+4 8+4L");
    stages_are(12, "0+1E 1+1 2+1 3+1 4+1 5+1 6+1 7+1 8+1 9+1 10+1 11+1L");
    plan.model.layers = 10;
    stages_are(3, "0+3E 3+4 7+3L");
    stages_are(4, "0+2E 2+3 5+3 8+2L");
    plan.model.mtp_modules = 2;
    stages_are(2, "0+5E 5+5Lm2");
    plan.without_mtp = true;
    stages_are(2, "0+5E 5+5L");
    plan.model = (struct model){.kind = MODEL_MLP, .layers = 6};
    stages_are(3, "0+2 2+2 4+2");
}

static void layers_that_do_not_lie_evenly_are_refused(void **state)
{
    (void)state;
    refused(5, ROOM,
            "12 layers cannot be split evenly over 5 stages, nor with one less on the first and on "
            "the last; the nearest numbers of ranks of pp: 4 and 6; or say in \"layout\" which "
            "stage has what");
    refused(9, ROOM,
            "12 layers cannot be split evenly over 9 stages, nor with one less on the first and on "
            "the last; the nearest numbers of ranks of pp: 6 and 12; or say in \"layout\" which "
            "stage has what");
    refused(9, 7, /* Ranks divide the room: 7 do, with one layer less at both ends. */
            "12 layers cannot be split evenly over 9 stages, nor with one less on the first and on "
            "the last; the nearest number of ranks of pp: 7; or say in \"layout\" which stage has "
            "what");
    refused(9, 11,
            "12 layers cannot be split evenly over 9 stages, nor with one less on the first and on "
            "the last; say in \"layout\" which stage has what");
    refused(16, ROOM,
            "16 stages are more than the model's 12 layers; the nearest number of ranks of pp: 12; "
            "or say in \"layout\" which stage has what");
    plan.model.layers = 13; /* No two stages of 7 and 8: three at least have ends with less. */
    refused(2, ROOM,
            "13 layers cannot be split evenly over 2 stages, nor with one less on the first and on "
            "the last; the nearest number of ranks of pp: 3; or say in \"layout\" which stage has "
            "what");
    plan.model = (struct model){.kind = MODEL_MLP, .layers = 10};
    refused(3, ROOM,
            "10 layers cannot be split evenly over 3 stages, nor with one less on the first and on "
            "the last; the nearest number of ranks of pp: 2; or say in \"layout\" which stage has "
            "what");
    /* Two stages a rank: as many ranks; any number of stages a rank: other numbers of these. */
    plan.model.layers = 16;
    plan.stages.schedule = "zb-v";
    refused(6, ROOM,
            "16 layers cannot be split evenly over 6 stages, nor with one less on the first and on "
            "the last; the nearest numbers of ranks of pp: 2 and 4; or say in \"layout\" which "
            "stage has what");
    plan.stages.schedule = "interleaved:3";
    refused(12, ROOM,
            "16 layers cannot be split evenly over 12 stages, nor with one less on the first and "
            "on the last; the nearest numbers of stages on 4 ranks: 8 and 16; or say in \"layout\" "
            "which stage has what");
    plan.model.layers = 8;
    refused(12, ROOM,
            "12 stages are more than the model's 8 layers; the nearest number of stages on 4 "
            "ranks: 8; or say in \"layout\" which stage has what");
    plan.stages.given = (const struct schedule *)&plan;
    refused(12, ROOM,
            "12 stages are more than the model's 8 layers; say in \"layout\" which stage has what");
}

static void a_layout_says_which_stage_has_what(void **state)
{
    (void)state;
    layout_is("Ettt|tttt|tttttL", 3, "0+3E 3+4 7+5L");
    layout_is("E t*3, | (tt|)*2 t*5 L", 4, "0+3E 3+2 5+2 7+5L");
    layout_is("E||t*12|L", 4, "0+0E 0+0 0+12 12+0L");
    layout_is("E(t)*12L", 1, "0+12EL");
    plan.model.mtp_modules = 2;
    layout_is("Et*6|t*6mmL", 2, "0+6E 6+6Lm2");
    layout_is("Et*6|t*6m*2|L", 3, "0+6E 6+6m2 12+0Lh2");
    plan.model = (struct model){.kind = MODEL_MLP, .layers = 4};
    layout_is("t|ttt", 2, "0+1 1+3");
    plan.model.layers = 32767;
    layout_is("t*32767", 1, "0+32767");
}

static void a_layout_that_is_misspelt_is_refused_with_its_place(void **state)
{
    (void)state;
    static const char letters[] =
        "none of \"E\" (embedding), \"t\" (layer), \"m\" (multi-token prediction), \"L\" (head), "
        "\"|\" (next stage), \"( )\" and \"*\"";
    static const struct {
        const char *layout, *message;
    } rows[] = {
        {"Et*|L", "character 4: a number of times must follow \"*\", such as \"t*3\""},
        {"Et*0L", "character 4: a number of times must follow \"*\", such as \"t*3\""},
        {"Et*:L", "character 4: a number of times must follow \"*\", such as \"t*3\""},
        {"Et*32769L", "character 8: too many times"},
        {"E(t|)*32768L", "character 12: more than 65536 letters and borders"},
        {"E(t(t))", "character 4: a \"(\" in another"},
        {"Et)L", "character 3: no \"(\" before it"},
        {"E(tL", "character 5: \"(\" is not closed"},
    };
    char message[256];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        layout_refused(rows[i].layout, 1, rows[i].message);
    (void)snprintf(message, sizeof message, "character 2: %s", letters);
    layout_refused("Ex", 1, message);
    layout_refused("(t*32768)*2t", 1, "character 12: more than 65536 letters and borders");
    layout_refused("(t*32768)*2", 1, "65536 layers, where the model has 12");
}

static void a_layout_that_does_not_suit_is_refused(void **state)
{
    (void)state;
    layout_refused("Et*6|t*6L", 3,
                   "2 stages, where the schedule has 3; without a layout (--set "
                   "/workload/layout=null) layers lie evenly");
    layout_refused("Et*6|t*5L", 2, "11 layers, where the model has 12");
    layout_refused("t*6|t*6L", 2, "\"E\" and \"L\" must stand there once each");
    layout_refused("EEt*6|t*6L", 2, "\"E\" and \"L\" must stand there once each");
    layout_refused("Et*6|t*6", 2, "\"E\" and \"L\" must stand there once each");
    layout_refused("tEt*5|t*6L", 2, "\"E\" must be the first and \"L\" the last letter");
    layout_refused("Et*6|t*5Lt", 2, "\"E\" must be the first and \"L\" the last letter");
    layout_refused("Et*6|t*6mL", 2,
                   "1 modules for multi-token prediction (\"m\"), where the step trains 0");
    plan.model.mtp_modules = 2;
    layout_refused("Et*6|t*6mL", 2,
                   "1 modules for multi-token prediction (\"m\"), where the step trains 2; they "
                   "stand before \"L\", and \"mtp\": false leaves them out");
    static const char *const split[] = {"Et*6|t*5mtmL", "Et*6|t*6m|mL", "Et*6m|t*6mL"};
    for (size_t i = 0; i < sizeof split / sizeof *split; i++) {
        struct stages stages = {0};
        plan.stages.layout = split[i];
        case_refused(stages_build(case_arena, &plan, i == 1 ? 3 : 2, ROOM, &stages, &case_error),
                     STATUS_UNSUPPORTED, "/workload/layout",
                     "are modelled on one stage, after all layers");
    }
    plan.model = (struct model){.kind = MODEL_MLP, .layers = 12};
    layout_refused("Et*6|t*6", 2, "the bare MLP has neither embedding nor head");
    layout_refused("t*6|t*6L", 2, "the bare MLP has neither embedding nor head");
}

/* As get_pp_indices() of vLLM has them: a layer more on the last but one, and on those before. */
static void in_inference_any_number_of_layers_goes(void **state)
{
    struct stages stages = {0};
    (void)state;
    plan.kind = WORKLOAD_DECODE;
    plan.model.layers = 11;
    stages_are(2, "0+6E 6+5L");
    stages_are(3, "0+4E 4+4 8+3L");
    stages_are(4, "0+3E 3+3 6+3 9+2L");
    plan.model.layers = 61;
    stages_are(4, "0+15E 15+15 30+16 46+15L");
    plan.model.layers = 3;
    case_refused(stages_build(case_arena, &plan, 4, 16, &stages, &case_error), STATUS_INVALID,
                 "/mesh/pp",
                 "4 stages are more than the model's 3 layers: some would have none; the nearest "
                 "number of ranks that fits: 2");
}

static void modules_may_lie_before_the_head(void **state)
{
    (void)state;
    assert_false(stages_mtp_apart(NULL));
    assert_false(stages_mtp_apart("Et|tL"));
    assert_false(stages_mtp_apart("Et|tmL"));
    assert_true(stages_mtp_apart("Et|tm|L"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, case_arena_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(layers_lie_evenly),
        TEST(layers_that_do_not_lie_evenly_are_refused),
        TEST(a_layout_says_which_stage_has_what),
        TEST(a_layout_that_is_misspelt_is_refused_with_its_place),
        TEST(a_layout_that_does_not_suit_is_refused),
        TEST(in_inference_any_number_of_layers_goes),
        TEST(modules_may_lie_before_the_head),
    };
    return cmocka_run_group_tests_name("stages", tests, NULL, NULL);
}
