/* Published rows as scenarios, and the scores of predictions, by hand. */
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/scenario/scenario.h"
#include "tests/unit/published_case.h"
#include "tests/validation/measured_memory_rows.h"

static struct scenario scenario_of_row(const struct published_row *row)
{
    struct scenario scenario;
    const char *text = NULL;
    case_ok(published_scenario(case_arena, row, &text, &case_error));
    case_ok(scenario_read_text(case_arena, row->id, text, strlen(text), NULL, 0, &scenario,
                               &case_error));
    return scenario;
}

/* No row is lost: each is a scenario that reads, or one that says why it is none. */
static void every_row_is_a_scenario_or_says_why(void **state)
{
    uint32_t scenarios = 0, tests = 0;
    (void)state;
    for (uint32_t i = 0; i < published.row_count; i++) {
        const struct published_row *row = &published.row[i];
        const char *text = NULL;
        assert_true(row->seconds > 0);
        assert_int_equal(row->test_count == 0, row->learned);
        tests += row->test_count;
        enum status const status = published_scenario(case_arena, row, &text, &case_error);
        if (status != STATUS_OK) {
            assert_int_equal(status, STATUS_UNSUPPORTED);
            assert_string_equal(case_error.where, row->id);
            assert_true(strlen(case_error.message) > 20);
            continue;
        }
        struct scenario scenario;
        struct error error;
        scenarios++;
        if (row->kind == PUBLISHED_COLLECTIVE) {
            assert_int_equal(strncmp(text, "podsim collective ", 18), 0);
            continue;
        }
        if (scenario_read_text(case_arena, row->id, text, strlen(text), NULL, 0, &scenario,
                               &error) != STATUS_OK) {
            /* A model that podsim does not have, at its own key. */
            assert_int_equal(strncmp(error.where, "/workload/", 10), 0);
            continue;
        }
        if (row->kind == PUBLISHED_STEP)
            assert_int_equal(scenario.workload.batch_tokens, row->sequences * row->length_tokens);
        assert_true(scenario.workload.allow_oversubscription);
        assert_string_equal(scenario.machine.profile, "measured");
    }
    assert_int_equal(published.row_count, 250 + 225 + 54);
    assert_int_equal(tests, 250);
    assert_true(scenarios > 475);
}

static void sets_have_all_rows_once(void **state)
{
    uint32_t rows = 0;
    (void)state;
    for (uint32_t s = 0; s < published.set_count; s++) {
        const struct published_set *set = &published.set[s];
        rows += set->row_count;
        for (uint32_t r = 0; r < set->row_count; r++)
            assert_int_equal(set->row[r]->learned, set->learned);
    }
    assert_int_equal(rows, published.row_count);
    assert_string_equal(published.set[0].name, "T01");
    assert_true(published.set[0].aim > 0.0599 && published.set[0].aim < 0.0601);
}

/* "tp gpu:4" of the axes in the order of the file. */
static const char *mesh_text(const struct scenario *scenario)
{
    const char *text = "";
    for (uint32_t a = 0; a < scenario->mesh.axis_count; a++) {
        const struct mesh_axis_plan *axis = &scenario->mesh.axis[a];
        text = arena_format(case_arena, "%s%s%s", text, a == 0 ? "" : ", ",
                            mesh_role_name(axis->role));
        for (uint32_t p = 0; p < axis->part_count; p++)
            text = arena_format(case_arena, "%s %s", text, axis->part[p]);
    }
    return text;
}

static void ranks_lie_where_the_framework_lays_them(void **state)
{
    (void)state;
    static const struct {
        const char *id, *mesh;
    } rows[] = {
        {"dgxc-h100-grok1-bf16-64", "tp gpu:4, cp gpu:2, ep node"},
        {"dgxc-h100-grok1-bf16-2048", "tp gpu:4, cp gpu:2, ep node:8, dp node:4, pp node:8"},
        {"zb-1.5b-p8-m24-1f1b", "pp gpu"},
        {"zb-28.3b-p32-m96-1f1b", "pp node gpu"},
        {"maxtext-v5p-128b-1xv5p-512", "tp z, fsdp x y"},
        {"maxtext-v5e-32b-4x256", "fsdp x y, dp slice"},
        {"foundry-h100_80gb-30b-s2048-n128-amp_bf16", "fsdp gpu node"},
        {"sc21-a100-zero3-175b-384", "fsdp gpu node"},
        {"dgxc-h100-llama3.1-405b-bf16-576", "tp gpu, cp node:2, dp node:4, pp node:9"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scenario const scenario = scenario_of_row(row_of(rows[i].id));
        assert_string_equal(mesh_text(&scenario), rows[i].mesh);
    }
}

static void what_the_framework_was_told_is_set(void **state)
{
    (void)state;
    struct scenario scenario = scenario_of_row(row_of("korthikanti-a100-175B-full"));
    assert_string_equal(scenario.workload.stages.schedule, "interleaved:3");
    assert_int_equal(scenario.workload.accumulate, 64);
    assert_int_equal(scenario.workload.attention.kernel, WORKLOAD_KERNEL_DROPOUT);
    assert_int_equal(scenario.workload.remat, GRAPH_REMAT_LAYER);
    scenario = scenario_of_row(row_of("dgxc-h100-llama3.1-405b-fp8-96"));
    assert_int_equal(scenario.workload.formats.matmuls, FORMAT_FP8);
    assert_int_equal(scenario.workload.formats.activations, FORMAT_BF16);
    assert_int_equal(scenario.workload.model.layers, 21);
    assert_true(scenario.workload.collective_matmul);
    assert_int_equal(scenario.workload.software.chunks, WORKLOAD_CHUNKS_PAIRS);
    scenario = scenario_of_row(row_of("simumax-b200-llama3_70b_tp2_pp1_dp4_l12_mbc4_cef"));
    assert_false(scenario.workload.collective_matmul);
    assert_int_equal(scenario.workload.parameter_gather, WORKLOAD_PARAMETERS_END);
    assert_int_equal(scenario.workload.zero, 1);
}

static void steps_of_inference_are_of_their_kind(void **state)
{
    (void)state;
    struct scenario scenario = scenario_of_row(row_of("gptfast-a100-llama2-70b-int8-tp1"));
    assert_int_equal(scenario.workload.kind, WORKLOAD_DECODE);
    assert_int_equal(scenario.workload.formats.weights, FORMAT_INT8);
    assert_int_equal(scenario.workload.formats.activations, FORMAT_BF16);
    scenario = scenario_of_row(row_of("vllm-ci-h200-llama3-70b-tp4-b8"));
    assert_int_equal(scenario.workload.kind, WORKLOAD_GENERATE);
    assert_int_equal(scenario.workload.inference.generation.output, 127);
    assert_int_equal(scenario.workload.activations, WORKLOAD_ACTIVATIONS_REPLICATED);
    scenario = scenario_of_row(row_of("trtllm05-h100-llama-7b-tp1-ttft-2048"));
    assert_int_equal(scenario.workload.kind, WORKLOAD_PREFILL);
    assert_int_equal(scenario.workload.formats.matmuls, FORMAT_FP8);
    assert_int_equal(scenario.workload.inference.cache, FORMAT_FP8);
}

static void scenarios_have_the_power_of_their_rows(void **state)
{
    (void)state;
    const struct {
        const char *id;
        uint64_t power_w;
    } rows[] = {{"torchtitan-8b-8-compile", 500},
                {"gptfast-a100-llama2-7b-int8-tp1", 330},
                {"llama3-paper-405b-8192-8192", 700},
                {"torchtitan-h200-8b-32", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(scenario_of_row(row_of(rows[i].id)).machine.power_w, rows[i].power_w);
}

/* Rows of docs/measured-memory.md are rows of these, with the same peak. */
static void peaks_are_those_of_the_page_of_memory(void **state)
{
    (void)state;
    static const struct {
        const struct memory_row *rows;
        const uint32_t *count;
        const char *group;
        double unit_bytes;
    } tables[] = {{memory_b200, &memory_b200_count, "simumax-b200", 1073741824.0},
                  {memory_zero_bubble, &memory_zero_bubble_count, "zero-bubble", 1e9}};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (uint32_t m = 0; m < *tables[t].count; m++) {
            const struct memory_row *memory = &tables[t].rows[m];
            bool is_there = false;
            for (uint32_t i = 0; i < published.row_count; i++) {
                const struct published_row *row = &published.row[i];
                double const off = row->peak_bytes / tables[t].unit_bytes - memory->measured;
                is_there |= strcmp(row->group, tables[t].group) == 0 &&
                            row->length_tokens == memory->length && off < 0.006 && off > -0.006;
            }
            if (!is_there) fail_msg("%s: %g", memory->title, memory->measured);
        }
}

/* --- Scores --- */

enum { MADE = 4 };

struct made {
    struct published_row row[MADE];
    const struct published_row *of_set[MADE];
    struct published_set set;
    struct validate_result result[MADE];
    struct validate_score score;
    bool wanted;
    struct validate validate;
};

static void made_score(struct made *made, uint32_t of_set)
{
    for (uint32_t i = 0; i < MADE; i++) {
        struct published_row *row = &made->row[i];
        row->id = "made";
        row->model_name = "m";
        row->machine.chip = "c";
        row->policy.precision = "bf16";
        row->sequences = row->microbatch = 1;
        for (uint32_t role = 0; role < MESH_ROLE_COUNT; role++) row->ranks[role] = 1;
        row->learned = i >= of_set;
        made->of_set[i] = row;
        made->result[i].state = VALIDATE_PLAYED;
    }
    made->set = (struct published_set){.row = made->of_set, .row_count = of_set};
    made->wanted = true;
    made->validate = (struct validate){
        .arena = case_arena,
        .published = {.row = made->row, .row_count = MADE, .set = &made->set, .set_count = 1},
        .result = made->result,
        .wanted = &made->wanted,
        .score = &made->score};
    case_ok(validate_score(&made->validate, &case_error));
}

static void near(double got, double wanted)
{
    if (got - wanted > 1e-9 || wanted - got > 1e-9) fail_msg("%.12g is not %.12g", got, wanted);
}

static void a_common_factor_is_no_error_of_ratios(void **state)
{
    (void)state;
    static struct made made;
    double const measured[MADE] = {1, 2, 4, 10}, useful[MADE] = {0.5, 1, 2, 4};
    memset(&made, 0, sizeof made);
    for (uint32_t i = 0; i < MADE; i++) {
        made.row[i].seconds = measured[i];
        made.result[i].predicted_s = 0.9 * measured[i];
        made.result[i].useful_s = useful[i];
    }
    made_score(&made, 3);
    assert_int_equal(made.score.played, 3);
    near(made.score.mean, -0.1);
    near(made.score.mean_absolute, 0.1);
    near(made.score.worst, -0.1);
    near(made.score.factor, 0.9);
    near(made.score.ratio_absolute, 0);
    near(made.score.inside, 0); /* All reach half of the peak. */
    assert_int_equal(made.score.outside_rows, 3);
    near(made.score.outside, 0.25); /* The other reaches 0.4: 0.5 / 0.4 - 1. */
    assert_string_equal(made.score.outside_said, "25.0 %");
    near(made.score.rank, 1);
    near(made.score.regret, 0);
}

/* The chip's share is of the rows whose chip, precision and work others have, or says why none. */
static void shares_from_outside_say_of_how_many_rows(void **state)
{
    (void)state;
    static struct made made;
    memset(&made, 0, sizeof made);
    for (uint32_t i = 0; i < MADE; i++) {
        made.row[i].seconds = 2;
        made.result[i].predicted_s = 2;
        made.result[i].useful_s = 1;
    }
    made_score(&made, 3);
    made.row[2].machine.chip = "other";
    case_ok(validate_score(&made.validate, &case_error));
    assert_int_equal(made.score.outside_rows, 2);
    assert_string_equal(made.score.outside_said, "0.0 % (2 rows)");
    made.row[3].policy.precision = "fp8";
    case_ok(validate_score(&made.validate, &case_error));
    assert_int_equal(made.score.outside_rows, 0);
    assert_string_equal(made.score.outside_said, "none: no bf16 steps");
    made.row[2].machine.chip = "c";
    case_ok(validate_score(&made.validate, &case_error));
    assert_string_equal(made.score.outside_said, "none: no bf16 steps of c");
    /* A decode is no measure of a collective. */
    made.row[3].kind = PUBLISHED_DECODE;
    for (uint32_t i = 0; i < MADE; i++) made.row[i].policy.precision = NULL;
    for (uint32_t i = 0; i < 3; i++) made.row[i].kind = PUBLISHED_COLLECTIVE;
    case_ok(validate_score(&made.validate, &case_error));
    assert_string_equal(made.score.outside_said, "none: no collectives of c");
}

static void errors_have_their_signs(void **state)
{
    (void)state;
    static struct made made;
    double const measured[MADE] = {1, 1, 1, 1}, predicted[MADE] = {0.5, 2, 1.25, 1};
    memset(&made, 0, sizeof made);
    for (uint32_t i = 0; i < MADE; i++) {
        made.row[i].seconds = measured[i];
        made.result[i].predicted_s = predicted[i];
        made.result[i].useful_s = 1;
    }
    made.row[0].peak_bytes = 10;
    made.result[0].peak_bytes = 12;
    made_score(&made, 2);
    near(made.score.mean, 0.25);
    near(made.score.mean_absolute, 0.75);
    near(made.score.worst, 1);
    assert_ptr_equal(made.score.worst_row, &made.row[1]);
    near(made.score.factor, 1);
    assert_int_equal(made.score.memory_rows, 1);
    near(made.score.memory_mean, 0.2);
    assert_int_equal(made.score.layout_sets, 0); /* Two are no choice. */
}

static void layouts_are_ranked_and_schedules_compared(void **state)
{
    (void)state;
    static struct made made;
    double const measured[MADE] = {1, 2, 4, 5}, predicted[MADE] = {2, 1, 4, 5};
    memset(&made, 0, sizeof made);
    for (uint32_t i = 0; i < MADE; i++) {
        made.row[i].seconds = measured[i];
        made.row[i].policy.schedule = i == 2 ? "1f1b" : "zb-h1";
        made.result[i].predicted_s = predicted[i];
        made.result[i].useful_s = 1;
    }
    made_score(&made, 4);
    assert_int_equal(made.score.layout_sets, 1);
    near(made.score.rank, 0.8);   /* 1 - 6 (1 + 1) / (4 · 15) */
    near(made.score.regret, 0.5); /* The second is chosen, and has half of the rate of the first. */
    assert_int_equal(made.score.base_rows, 3);
    near(made.score.base_absolute, (0.5 + 1 + 0) / 3);
}

/* --- Intervals --- */

enum { MEASURED = 7 };

/* Learned rows of three publications, one of them without kernels, and one of a test, all
 * predicted at 1 s. */
struct intervals {
    struct published_row row[MEASURED];
    const struct published_row *of_test[1];
    struct published_set set[2];
    struct validate_result result[MEASURED];
    struct validate_score score[2];
    bool wanted[2];
    struct validate validate;
};

static void intervals_make(struct intervals *made, bool is_whole)
{
    static const double measured[MEASURED] = {1, 1.1, 2, 1.05, 1.2, 9, 1.1};
    static const char *const publications[MEASURED] = {"a", "a", "b", "b", "c", "c", "t"};
    static const char *const models[MEASURED] = {"m", "n", "m", "n", "m", "m", "m"};
    memset(made, 0, sizeof *made);
    for (uint32_t i = 0; i < MEASURED; i++) {
        made->row[i] = (struct published_row){.id = "made",
                                              .group = publications[i],
                                              .model_name = models[i],
                                              .machine = {.chip = "c"},
                                              .seconds = measured[i],
                                              .learned = i < MEASURED - 1};
        made->result[i] =
            (struct validate_result){.state = VALIDATE_PLAYED,
                                     .predicted_s = 1,
                                     .has_kind = i != 5,
                                     .kind = {.work = RESIDUAL_DENSE, .chip = "c", .stack = "s"}};
    }
    made->row[MEASURED - 1].test[0] = "T1";
    made->row[MEASURED - 1].test_count = 1;
    made->of_test[0] = &made->row[MEASURED - 1];
    made->set[0] = (struct published_set){.name = "T1", .row = made->of_test, .row_count = 1};
    made->set[1] = (struct published_set){.name = "a", .learned = true};
    made->wanted[0] = true;
    made->wanted[1] = is_whole;
    made->validate = (struct validate){
        .arena = case_arena,
        .published = {.row = made->row, .row_count = MEASURED, .set = made->set, .set_count = 2},
        .result = made->result,
        .wanted = made->wanted,
        .score = made->score};
    case_ok(validate_intervals(&made->validate, &case_error));
}

/* Medians of the others are 1.2 without `a`, 1.1 without `b` and 1.05 without `c`. Rows lie 1.2,
 * 1.2/1.1, 2/1.1, 1.1/1.05 and 1.2/1.05 from them. Intervals that reach 1.2 have four of the five.
 */
static void reaches_are_those_of_publications_left_out(void **state)
{
    (void)state;
    static struct intervals made;
    intervals_make(&made, true);
    const struct validate_result *result = made.result;
    assert_int_equal(made.validate.residuals.row_count, 5); /* The sixth has less power. */
    assert_int_equal(made.validate.residuals.reach_ppm[RESIDUAL_DENSE], 1200000);
    /* Nothing is left out of a test. */
    near(result[6].interval[VALIDATE_PUBLICATION].low, 1.1 / 1.2);
    near(result[6].interval[VALIDATE_PUBLICATION].high, 1.1 * 1.2);
    near(result[6].interval[VALIDATE_PUBLICATION].low, result[6].interval[VALIDATE_MODEL].low);
    assert_false(result[5].interval[VALIDATE_PUBLICATION].is);
}

/* Without `a`, rows of `b` lie 2/1.2 and 1.2/1.05 from `c`, and `c` lies 1.2/1.05 from the median
 * of `b`: the reach is 2/1.2, of three rows. Without `b` it is 1.2, and without `c` 2. */
static void a_reach_is_not_learned_from_what_is_left_out(void **state)
{
    (void)state;
    static struct intervals made;
    intervals_make(&made, true);
    const struct validate_result *result = made.result;
    near(result[0].interval[VALIDATE_PUBLICATION].low, 1.2 / (2 / 1.2));
    near(result[0].interval[VALIDATE_PUBLICATION].high, 2);
    assert_true(result[0].interval[VALIDATE_PUBLICATION].covers);
    near(result[2].interval[VALIDATE_PUBLICATION].high, 1.1 * 1.2);
    assert_false(result[2].interval[VALIDATE_PUBLICATION].covers);
    near(result[4].interval[VALIDATE_PUBLICATION].high, 1.05 * 2);
    /* With its model alone left out, the other row of `a` has its vote: around 1.1. Then rows lie
     * 1.2/1.1, 2/1.1, 1.1/1.05 and 1.2/1.1 from the medians of others. */
    near(result[0].interval[VALIDATE_MODEL].low, 1.1 / (2 / 1.1));
    near(result[0].interval[VALIDATE_MODEL].high, 2);
}

static void coverage_is_of_rows_and_of_publications(void **state)
{
    (void)state;
    static struct intervals made;
    intervals_make(&made, true);
    const struct validate_coverage *coverage = made.validate.coverage;
    /* "c", "all", one work, "T1", "all", and five levels. */
    assert_int_equal(made.validate.coverage_count, 10);
    assert_int_equal(coverage[0].rows, 5);
    near(coverage[0].covered[VALIDATE_PUBLICATION], 0.8);
    assert_int_equal(coverage[2].of, VALIDATE_OF_WORK);
    assert_string_equal(coverage[2].name, "dense");
    assert_int_equal(coverage[2].publications, 3);
    near(coverage[2].covered_once, (1 + 0.5 + 1) / 3);
    assert_int_equal(coverage[3].of, VALIDATE_OF_TEST);
    near(coverage[3].covered[VALIDATE_PUBLICATION], 1);
    assert_string_equal(coverage[5].name, "50 of 100 measurements");
    /* Intervals that hold 50 of 100 rows of the others hold 40 of those left out. With 51 they hold
     * three in place of two of the four rows without `c`, and the row of `c`. */
    near(coverage[5].covered[VALIDATE_PUBLICATION], 0.6);
}

static void intervals_want_all_that_is_learned_from(void **state)
{
    (void)state;
    static struct intervals made;
    struct strbuf text = {0};
    intervals_make(&made, false);
    assert_int_equal(made.validate.coverage_count, 0);
    assert_false(made.result[0].interval[VALIDATE_PUBLICATION].is);
    validate_write_residuals(&made.validate, &text);
    assert_non_null(strstr(text.bytes, "\"dense\": 1200000,"));
    assert_non_null(strstr(text.bytes,
                           "{\"id\": \"made\", \"publication\": \"b\", \"work\": \"dense\", "
                           "\"chip\": \"c\", \"stack\": \"s\", \"ratio_ppm\": 2000000}"));
    strbuf_free(&text);
}

/* The first line of the CSV has a key as often as the lines of rows have its value. */
static void facts_of_a_row_are_columns(void **state)
{
    (void)state;
    static struct made made;
    struct strbuf text = {0};
    memset(&made, 0, sizeof made);
    for (uint32_t i = 0; i < MADE; i++) made.row[i].seconds = made.result[i].predicted_s = 1;
    made.row[0].machine.power_w = 507;
    made.row[0].policy.recipe = "rowwise";
    made_score(&made, 2);
    made.set.name = "T";
    validate_write_csv(&made.validate, &text);
    assert_non_null(strstr(text.bytes, ",power_w,fp8_recipe,"));
    assert_non_null(strstr(text.bytes, ",derived,"));
    assert_non_null(strstr(text.bytes, ",507,rowwise,"));
    strbuf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_a_scenario_or_says_why),
        cmocka_unit_test(sets_have_all_rows_once),
        cmocka_unit_test(ranks_lie_where_the_framework_lays_them),
        cmocka_unit_test(what_the_framework_was_told_is_set),
        cmocka_unit_test(steps_of_inference_are_of_their_kind),
        cmocka_unit_test(scenarios_have_the_power_of_their_rows),
        cmocka_unit_test(peaks_are_those_of_the_page_of_memory),
        cmocka_unit_test(a_common_factor_is_no_error_of_ratios),
        cmocka_unit_test(shares_from_outside_say_of_how_many_rows),
        cmocka_unit_test(errors_have_their_signs),
        cmocka_unit_test(layouts_are_ranked_and_schedules_compared),
        cmocka_unit_test(reaches_are_those_of_publications_left_out),
        cmocka_unit_test(a_reach_is_not_learned_from_what_is_left_out),
        cmocka_unit_test(coverage_is_of_rows_and_of_publications),
        cmocka_unit_test(intervals_want_all_that_is_learned_from),
        cmocka_unit_test(facts_of_a_row_are_columns),
    };
    return cmocka_run_group_tests(tests, published_up, case_arena_down);
}
