/*
 * Replicas over dp whose stages have batches of their own: nothing couples those of a dense model,
 * so that the step takes as long as the slowest replica by itself, and a chip reads of the cache
 * what it has. Where weights are gathered, or tokens go to other ranks' experts, all wait for the
 * fullest replica in each batch.
 */
#include "sim/base/strbuf.h"
#include "tests/support/case.h"
#include "tests/support/play.h"

enum { TEXT_BYTES = 1024 };

struct step {
    int64_t time_ps;
    double read_bytes, held_bytes;
};

static struct step step_of(const char *gpus, const char *mesh, const char *workload,
                           const char *keys)
{
    char text[TEXT_BYTES];
    struct play play;
    case_text(text, sizeof text,
              "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"gpus\": %s}, \"mesh\": "
              "{%s}, \"workload\": {%s, %s}}",
              gpus, mesh, workload, keys);
    play_run(&play, text, NULL);
    struct step const step = {
        .time_ps = play.trace.step_ps,
        .read_bytes = play.roofline.counts.inference.kv_read_bytes,
        .held_bytes = (double)play.program.roles[0].resident_bytes[PROGRAM_MEMORY_CACHE]};
    play_close(&play);
    return step;
}

#define DENSE "\"model\": \"llama-3-8b\""
#define WINDOWS "\"model\": \"gpt-oss-20b\""
#define DECODE "\"kind\": \"decode\", "
#define PREFILL "\"kind\": \"prefill\", "

/* Batches are of the first and of the last two sequences, and a replica has one of each. */
static const struct {
    const char *workload, *both, *first;
} ragged[] = {
    {DECODE DENSE, "\"batch\": 4, \"context\": [120000, 100, 100, 120000]",
     "\"batch\": 2, \"context\": [120000, 100]"},
    {DECODE DENSE, "\"batch\": 4, \"context\": [100, 120000, 120000, 200]",
     "\"batch\": 2, \"context\": [120000, 200]"},
    {DECODE WINDOWS, "\"batch\": 4, \"context\": [8000, 10, 10, 8000]",
     "\"batch\": 2, \"context\": [8000, 10]"},
    {PREFILL DENSE, "\"batch\": 4, \"prompt\": [8000, 10, 10, 8000]",
     "\"batch\": 2, \"prompt\": [8000, 10]"},
    {"\"kind\": \"mixed\", " DENSE,
     "\"batch\": 4, \"context\": [20000, 100, 100, 20000], \"prompts\": 4, \"prompt\": [900, 10, "
     "10, "
     "900]",
     "\"batch\": 2, \"context\": [20000, 100], \"prompts\": 2, \"prompt\": [900, 10]"},
};

/* Steps of two replicas with two stages each, and of one of the replicas alone. */
struct replicas {
    struct step both, alone;
};
static struct replicas replicas_of(const char *workload, const char *both, const char *alone)
{
    struct replicas of;
    of.both = step_of("4", "\"dp\": [\"gpu:2\"], \"pp\": [\"gpu:2\"]", workload, both);
    of.alone = step_of("2", "\"pp\": [\"gpu\"]", workload, alone);
    case_near(of.both.read_bytes, of.alone.read_bytes, 1e-9);
    assert_int_equal(of.both.time_ps, of.alone.time_ps);
    return of;
}

static void replicas_of_a_dense_model_wait_for_nobody(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ragged / sizeof *ragged; i++) {
        struct replicas const of = replicas_of(ragged[i].workload, ragged[i].both, ragged[i].first);
        case_near(of.both.held_bytes, of.alone.held_bytes, 1e-9);
    }
}

/* Batches of a replica follow one another, so the slowest replica is not the one with the largest
 * sums. */
static const struct {
    const char *workload, *both, *slowest;
} uneven[] = {
    {DECODE DENSE,
     "\"batch\": 8, \"context\": [100000, 100000, 55000, 55000, 10, 10, 55000, 55000]",
     "\"batch\": 4, \"context\": [100000, 100000, 10, 10]"},
    {DECODE DENSE,
     "\"batch\": 8, \"context\": [55000, 55000, 100, 10, 55000, 55000, 100000, 100000]",
     "\"batch\": 4, \"context\": [100, 10, 100000, 100000]"},
    {PREFILL DENSE, "\"batch\": 4, \"prompt\": [9000, 5000, 10, 5000]",
     "\"batch\": 2, \"prompt\": [9000, 10]"},
    {PREFILL WINDOWS, "\"batch\": 4, \"prompt\": [4000, 2000, 500, 4000]",
     "\"batch\": 2, \"prompt\": [2000, 4000]"},
};

static void a_replica_with_uneven_batches_is_waited_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof uneven / sizeof *uneven; i++)
        (void)replicas_of(uneven[i].workload, uneven[i].both, uneven[i].slowest);
}

/* There are too many replicas to estimate all. Of 20 replicas, 18 have short sequences, one has a
 * long sequence in one batch, and one has a shorter sequence in each batch. */
static void the_slowest_of_many_replicas_is_found(void **state)
{
    enum { REPLICAS = 20, EVEN = 7, UNEVEN = 11 };
    struct strbuf contexts = {0};
    (void)state;
    strbuf_add(&contexts, "\"batch\": %d, \"context\": [", 2 * REPLICAS);
    for (uint32_t i = 0; i < 2 * REPLICAS; i++) {
        uint32_t const replica = i % REPLICAS;
        bool const is_long = i == UNEVEN, is_shorter = replica == EVEN;
        strbuf_add(&contexts, "%s%d", i == 0 ? "" : ", ",
                   is_long      ? 120000
                   : is_shorter ? 90000
                                : 100);
    }
    strbuf_add(&contexts, "]");
    struct step const all =
        step_of("8, \"nodes\": 5", "\"dp\": [\"node\", \"gpu:4\"], \"pp\": [\"gpu:2\"]",
                DECODE DENSE, contexts.bytes);
    struct step const slowest =
        step_of("2", "\"pp\": [\"gpu\"]", DECODE DENSE, "\"batch\": 2, \"context\": [120000, 100]");
    assert_int_equal(all.time_ps, slowest.time_ps);
    strbuf_free(&contexts);
}

static void replicas_that_share_weights_or_experts_wait_in_each_batch(void **state)
{
    static const struct {
        const char *mesh, *model;
    } coupled[] = {
        {"\"fsdp\": [\"gpu:2\"], \"pp\": [\"gpu:2\"]", DENSE},
        {"\"ep\": [\"gpu:2\"], \"pp\": [\"gpu:2\"]", "\"model\": \"deepseek-v2-lite\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof coupled / sizeof *coupled; i++) {
        char workload[TEXT_BYTES / 4];
        case_text(workload, sizeof workload, DECODE "%s", coupled[i].model);
        struct step const crossed = step_of("4", coupled[i].mesh, workload,
                                            "\"batch\": 4, \"context\": [90000, 100, 100, 90000]");
        struct step const along = step_of("4", coupled[i].mesh, workload,
                                          "\"batch\": 4, \"context\": [90000, 100, 90000, 100]");
        /* Whichever replica has the long one, both batches have one. */
        assert_int_equal(crossed.time_ps, along.time_ps);
        case_near(crossed.held_bytes, along.held_bytes * 90100 / 180000, 1e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_of_a_dense_model_wait_for_nobody),
        cmocka_unit_test(a_replica_with_uneven_batches_is_waited_for),
        cmocka_unit_test(the_slowest_of_many_replicas_is_found),
        cmocka_unit_test(replicas_that_share_weights_or_experts_wait_in_each_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
