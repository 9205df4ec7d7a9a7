/*
 * Steps with experts on a grid whose routers prefer some: what every pair of ranks exchanges goes
 * its own way over the links, folded as in full, and no formula counts more of it than has to cross
 * them.
 */
#include <stdio.h>
#include <string.h>

#include "sim/collective/ragged.h"
#include "sim/step/counts.h"
#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/support/play.h"
#include "tests/support/refusals.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1200 };

/* Rings of 4, lines of 4 and 2, rings of 16 and of 3; ep on one axis, on two, on parts of one. */
static const struct place {
    const char *machine, *mesh;
} places[] = {
    {"\"tpu-v5p\", \"shape\": \"4x4x4\"", "\"dp\": [\"z\"], \"ep\": [\"x\", \"y\"]"},
    {"\"tpu-v5p\", \"shape\": \"4x4x4\"", "\"fsdp\": [\"x\"], \"ep\": [\"y\"], \"tp\": [\"z\"]"},
    {"\"tpu-v5e\", \"shape\": \"4x4\"", "\"dp\": [\"x\"], \"ep\": [\"y\"]"},
    {"\"tpu-v5e\", \"shape\": \"4x2\"", "\"ep\": [\"x\", \"y\"]"},
    {"\"tpu-v5e\", \"shape\": \"16x16\"", "\"fsdp\": [\"x\"], \"ep\": [\"y\"]"},
    {"\"tpu-v5e\", \"shape\": \"16x16\"", "\"fsdp\": [\"x\", \"y:4\"], \"ep\": [\"y:4\"]"
                                          ", \"order\": [\"fsdp\", \"ep\"]"},
    {"\"tpu-v5p\", \"shape\": \"2x4x4\", \"unrealisable\": true, \"wrap\": {\"y\": false}",
     "\"dp\": [\"z:2\"], \"ep\": [\"x\", \"y\", \"z:2\"], \"order\": [\"dp\", \"ep\"]"},
};
enum { PLACES = sizeof places / sizeof *places };

static void step_write(char text[TEXT_BYTES], uint32_t place, const char *workload)
{
    (void)snprintf(text, TEXT_BYTES,
                   "{\"podsim\": 1, \"machine\": {\"chip\": %s, \"profile\": \"ideal\"}, \"mesh\": "
                   "{%s}, \"workload\": {\"kind\": \"train_step\", \"model\": "
                   "\"tests/property/experts.json\", \"batch_tokens\": 131072, "
                   "\"sequence_length\": 512%s}, \"run\": {\"seed\": 3}}",
                   places[place].machine, places[place].mesh, workload);
}

static const char *const skews[] = {"0.001", "0.5", "1"};

static void it_is_the_same_however_it_is_played(void **state)
{
    (void)state;
    uint32_t folds = 0;
    for (uint32_t p = 0; p < PLACES; p++) {
        struct play folded;
        char keys[80], text[TEXT_BYTES];
        (void)snprintf(keys, sizeof keys, ", \"routing_skew\": %s%s", skews[p % 3],
                       p % 2 == 0 ? "" : ", \"capacity_factor\": 1.1");
        step_write(text, p, keys);
        play_run(&folded, text, NULL);
        walk_alike(&folded, text, "reference");
        folds += folded.fold.chip_count < folded.machine.chip_count;
        play_close(&folded);
    }
    assert_int_equal(folds, 4); /* Rings beside ep do, lines do not. */
}

/* Few tokens: most pairs of ranks have nothing to send each other, and say so by messages without
 * bytes, which meet the weights' collectives at the links. */
static void pairs_with_nothing_to_send_agree(void **state)
{
    (void)state;
    static const struct place meeting[] = {
        {"\"tpu-v5e\", \"shape\": \"4x4\"", "\"ep\": [\"x\", \"y\"]"},
        {"\"tpu-v6e\", \"shape\": \"4x8\"", "\"dp\": [\"y:2\"], \"ep\": [\"x\", \"y:4\"]"},
        {"\"tpu-v5e\", \"shape\": \"4x4\"", "\"fsdp\": [\"x\"], \"ep\": [\"y\"]"},
        {"\"h100-sxm\", \"nodes\": 2", "\"ep\": [\"node\", \"gpu\"]"},
    };
    static const char *const arbitrations[] = {"fair", "priority", "fifo"};
    uint32_t walked = 0, taken[4][2] = {{0}}, left_out = 0;
    for (uint32_t i = 0; i < 4 * 3 * 8; i++) {
        uint64_t chance = i * 7919ull + 5;
        uint32_t const p = (uint32_t)(case_random(&chance) % 4);
        uint32_t const large = (uint32_t)(case_random(&chance) % 2);
        const struct place *place = &meeting[p];
        char text[TEXT_BYTES];
        if (sampling_skips(&walked)) {
            left_out++;
            continue;
        }
        (void)snprintf(text, sizeof text,
                       "{\"podsim\": 1, \"machine\": {\"chip\": %s}, \"mesh\": {%s}, "
                       "\"workload\": {\"kind\": \"train_step\", \"model\": "
                       "\"tests/property/experts.json\", \"batch_tokens\": %u, "
                       "\"sequence_length\": 32, \"routing_skew\": 1, \"backward_order\": "
                       "\"%s\", \"allow_oversubscription\": true}, \"run\": {\"seed\": %u, "
                       "\"arbitration\": \"%s\"}}",
                       place->machine, place->mesh, large == 0 ? 1024 : 2048,
                       i / 4 % 2 == 0 ? "dw_first" : "dx_first", i / 12, arbitrations[i / 4 % 3]);
        struct play folded;
        play_run(&folded, text, NULL);
        walk_alike(&folded, text, "reference");
        play_close(&folded);
        taken[p][large]++;
    }
    for (uint32_t p = 0; p < 4; p++)
        assert_true(left_out > 0 || (taken[p][0] > 0 && taken[p][1] > 0));
}

/* Links of the group's own part of an axis: one way round, or the middle of a line one way. */
static double busiest_tokens(const struct group *group, const struct plan *plan, uint32_t dimension)
{
    const struct group_dimension *along = &group->dimension[dimension];
    uint32_t const ranks = (uint32_t)group_rank_count(group), size = along->size;
    double steps = 0, crossing = 0;
    for (uint32_t source = 0; source < ranks; source++)
        for (uint32_t to = 0; to < ranks; to++) {
            uint32_t const a = group_digit(group, source, dimension);
            uint32_t const b = group_digit(group, to, dimension);
            uint32_t const apart = a < b ? b - a : a - b;
            double const tokens = plan->ragged_units[source * ranks + to] / 2.0;
            steps += tokens * (apart < size - apart ? apart : size - apart);
            crossing += tokens * ((a < size / 2) != (b < size / 2));
        }
    /* 2n links of a ring in each row; two of a line's middle. */
    double const rows = ranks / size;
    return along->ring ? steps / (2 * size * rows) : crossing / (2 * rows);
}

/* An even exchange of V tokens: V/8 a row of a ring of even size, V/4 on a line's middle link; of n
 * odd (n·n - 1)/n·n of that. */
static double even_tokens(const struct group *group, uint32_t dimension, double all)
{
    const struct group_dimension *along = &group->dimension[dimension];
    double const size = along->size, rows = (double)group_rank_count(group) / size;
    double const odd = along->size % 2 == 0 ? 1 : (size * size - 1) / (size * size);
    return all * odd / rows / (along->ring ? 8 : 4);
}

static void formulas_count_no_more_than_has_to_cross(void **state)
{
    (void)state;
    static const struct play_options lower_only = {.lower_only = true, .engine = "fast"};
    for (uint32_t i = 0; i < PLACES * 3; i++) {
        struct play play;
        char keys[48], text[TEXT_BYTES];
        (void)snprintf(keys, sizeof keys, ", \"routing_skew\": %s", skews[i / PLACES]);
        step_write(text, i % PLACES, keys);
        play_run(&play, text, &lower_only);
        struct workload_counts counts;
        counts_make(&play.scenario.workload, &play.machine, &play.mesh, &counts);
        const struct workload_traffic *traffic = &counts.role[MESH_EP];
        const struct plan *plan = NULL;
        for (uint32_t p = 0; p < play.program.plan_count; p++)
            if (play.program.plans[p].ragged_units != NULL) plan = &play.program.plans[p];
        assert_non_null(plan);
        double const token = (double)plan->ragged.token_bytes;
        double const all = traffic->crossing_bytes[0] / (double)traffic->all_to_all_count / token;
        double const ranks = (double)group_rank_count(&traffic->group);
        double const sent = (double)ragged_load(plan).sent_bytes / token;
        double nearest = sent / (all * (ranks - 1) / ranks);
        assert_true(nearest >= 1);
        for (uint32_t d = 0; d < traffic->group.dimension_count; d++) {
            double const busiest = busiest_tokens(&traffic->group, plan, d);
            double const share = busiest / even_tokens(&traffic->group, d, all);
            assert_true(traffic->crossing_bytes[d] == traffic->crossing_bytes[0]);
            assert_true(share >= 1);
            if (share < nearest) nearest = share;
        }
        /* The least of these, rounded down to a token; and skews are no excuse for much less. */
        assert_true((nearest - 1) * all <= 1 + 1e-6 * all);
        assert_true(all * (ranks - 1) / ranks > 0.6 * sent);
        play_close(&play);
    }
}

static void a_skew_beside_other_ways_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *machine, *mesh, *words;
    } rows[] = {
        {"\"tpu-v5p\", \"shape\": \"4x4x4\", \"slices\": 2",
         "\"dp\": [\"z\", \"y\"], \"ep\": "
         "[\"slice\", \"x\"]",
         "here both do"},
        {"\"tpu-v5p\", \"shape\": \"4x4x8_twisted\"",
         "\"dp\": [\"z\", \"y\"], \"ep\": "
         "[\"x\"]",
         "not twisted"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct play play;
        struct error error = {0};
        char text[TEXT_BYTES];
        (void)snprintf(text, sizeof text,
                       "{\"podsim\": 1, \"machine\": {\"chip\": %s}, \"mesh\": {%s}, \"workload\": "
                       "{\"kind\": \"train_step\", \"model\": \"tests/property/experts.json\", "
                       "\"batch_tokens\": 131072, \"sequence_length\": 512, \"routing_skew\": 1}}",
                       rows[i].machine, rows[i].mesh);
        assert_int_equal(play_try(&play, text, NULL, &error), STATUS_UNSUPPORTED);
        if (strcmp(error.where, "/workload/routing_skew") != 0 ||
            strstr(error.message, rows[i].words) == NULL)
            fail_msg("%s: %s", error.where, error.message);
        refusals_hold(&error, __FILE__);
        play_close(&play);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_same_however_it_is_played),
        cmocka_unit_test(pairs_with_nothing_to_send_agree),
        cmocka_unit_test(formulas_count_no_more_than_has_to_cross),
        cmocka_unit_test(a_skew_beside_other_ways_is_refused),
    };
    return cmocka_run_group_tests_name("experts on grids", tests, NULL, NULL);
}
