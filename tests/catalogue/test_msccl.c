/* Algorithms out of files: right ones are proved, wrong ones refused with what is wrong, and what
 * the catalogue has too takes as long as there. */
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/collective/msccl.h"
#include "sim/collective/msccl_steps.h"
#include "sim/measure/measure_row.h"
#include "sim/scenario/scenario.h"
#include "tests/support/case.h"

static struct strbuf text;

static void algo(const char *collective, uint32_t chunks, uint32_t ranks, bool in_place)
{
    strbuf_add(&text,
               "<algo name=\"test\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"%u\" "
               "ngpus=\"%u\" coll=\"%s\" inplace=\"%d\">\n",
               chunks, ranks, collective, in_place);
}

static void gpu(uint32_t id, uint32_t inputs, uint32_t outputs, uint32_t scratch)
{
    strbuf_add(&text, "<gpu id=\"%u\" i_chunks=\"%u\" o_chunks=\"%u\" s_chunks=\"%u\">\n", id,
               inputs, outputs, scratch);
}

static void tb(uint32_t id, int32_t send, int32_t receive)
{
    strbuf_add(&text, "<tb id=\"%u\" send=\"%d\" recv=\"%d\" chan=\"0\">\n", id, send, receive);
}

/* A step on one chunk; its buffers as "io": from the input to the output. */
static void step(uint32_t number, const char *type, const char *buffers, uint32_t source,
                 uint32_t destination, int32_t depid, int32_t deps, bool hasdep)
{
    strbuf_add(&text,
               "<step s=\"%u\" type=\"%s\" srcbuf=\"%c\" srcoff=\"%u\" dstbuf=\"%c\" dstoff=\"%u\" "
               "cnt=\"1\" depid=\"%d\" deps=\"%d\" hasdep=\"%d\"/>\n",
               number, type, buffers[0], source, buffers[1], destination, depid, deps, hasdep);
}

static void end(const char *element)
{
    strbuf_add(&text, "</%s>\n", element);
}

/* A threadblock of one step, which waits for none of another. */
static void tb_of_one(uint32_t id, int32_t send, int32_t receive, const char *type,
                      const char *buffers, uint32_t source, uint32_t destination)
{
    tb(id, send, receive);
    step(0, type, buffers, source, destination, -1, -1, false);
    end("tb");
}

static enum status text_read(const struct msccl_script **ret_script, struct error *error)
{
    enum status const status =
        msccl_read(case_arena, "test.xml", text.bytes, text.size_bytes, ret_script, error);
    strbuf_free(&text);
    text = (struct strbuf){0};
    return status;
}

static const struct msccl_script *accepted(void)
{
    const struct msccl_script *script = NULL;
    case_ok(text_read(&script, &case_error));
    return script;
}

static void refused(const char *message)
{
    const struct msccl_script *script = NULL;
    case_refused(text_read(&script, &case_error), STATUS_OK, NULL, message);
}

/* Round a ring: sums go round once, and the whole once more. GPU `odd` does its step number `at` as
 * a step of another type. */
static void ring(uint32_t ranks, uint32_t odd, uint32_t at, const char *type)
{
    algo("allreduce", ranks, ranks, true);
    for (uint32_t r = 0; r < ranks; r++) {
        gpu(r, ranks, 0, 0);
        tb(0, (int32_t)((r + 1) % ranks), (int32_t)((r + ranks - 1) % ranks));
        for (uint32_t s = 0; s < 2 * ranks - 1; s++) {
            const char *own = s == 0 ? "s" : "rrs";
            if (s == ranks - 1) own = "rrcs";
            if (s >= ranks) own = s == 2 * ranks - 2 ? "r" : "rcs";
            uint32_t const chunk = (r + 2 * ranks - 1 - s) % ranks;
            step(s, r == odd && s == at ? type : own, "ii", chunk, chunk, -1, -1, false);
        }
        end("tb");
        end("gpu");
    }
    end("algo");
}

enum waits { WAITS_NOT, WAITS_FOR_FORMER, WAITS_FOR_LATTER };

/* From each to each, all at once. Or a message of a GPU waits until that of the threadblock before
 * it has left, or that of the one behind it. */
static void pairs(uint32_t ranks, enum waits waits, bool swaps)
{
    algo("alltoall", ranks, ranks, false);
    for (uint32_t r = 0; r < ranks; r++) {
        gpu(r, ranks, ranks, 0);
        for (uint32_t d = 1; d < ranks; d++) {
            uint32_t const to = (r + d) % ranks, from = (r + ranks - d) % ranks;
            uint32_t const end_d = waits == WAITS_FOR_LATTER ? ranks - 1 : 1;
            uint32_t const other = waits == WAITS_FOR_LATTER ? d + 1 : d - 1;
            bool const nop = waits != WAITS_NOT && d != end_d;
            tb(d - 1, (int32_t)to, (int32_t)from);
            if (nop) step(0, "nop", "io", 0, 0, (int32_t)other - 1, other != end_d, false);
            step(nop, "s", "io", to, r, -1, -1, true);
            step(nop + 1u, "r", "io", r, swaps && r == 1 ? (from + 2) % ranks : from, -1, -1,
                 false);
            end("tb");
        }
        tb_of_one(ranks - 1, -1, -1, "cpy", "io", r, r);
        end("gpu");
    }
    end("algo");
}

/* From each to each, with threadblocks in drawn orders: connections in such an order leave some
 * without a lane, until others swap theirs. */
static void drawn_pairs(uint32_t ranks, uint64_t *draws)
{
    algo("alltoall", ranks, ranks, false);
    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t peer[2][MSCCL_RANKS_MAX]; /* Sent to, and received from. */
        gpu(r, ranks, ranks, 0);
        for (uint32_t way = 0; way < 2; way++)
            for (uint32_t d = 0; d + 1 < ranks; d++) {
                *draws = *draws * UINT64_C(6364136223846793005) + 1442695040888963407;
                uint32_t const other = (uint32_t)(*draws >> 33) % (d + 1);
                peer[way][d] = peer[way][other];
                peer[way][other] = (r + 1 + d) % ranks;
            }
        for (uint32_t d = 0; d + 1 < ranks; d++) {
            tb(d, (int32_t)peer[0][d], (int32_t)peer[1][d]);
            step(0, "s", "io", peer[0][d], r, -1, -1, false);
            step(1, "r", "io", r, peer[1][d], -1, -1, false);
            end("tb");
        }
        tb_of_one(ranks - 1, -1, -1, "cpy", "io", r, r);
        end("gpu");
    }
    end("algo");
}

/* No more lanes than a GPU has connections, and in each lane one connection a GPU and way. */
static void lanes_are_few_and_apart_whatever_the_order(void **state)
{
    (void)state;
    uint64_t draws = 1;
    for (uint32_t round = 0; round < 60; round++) {
        uint32_t const ranks = 3 + round % 7;
        drawn_pairs(ranks, &draws);
        const struct msccl_script *script = accepted();
        uint32_t const lanes = script->primitive.lane_count;
        assert_int_equal(lanes, ranks - 1);
        for (uint32_t i = 0; i < lanes * ranks; i++) {
            assert_int_equal(script->lane_sends[i], 1);
            assert_int_equal(script->lane_arrivals[i], 1);
        }
        uint32_t taken[2][MSCCL_RANKS_MAX] = {{0}};
        for (uint32_t b = 0; b < script->block_count; b++) {
            const struct msccl_block *block = &script->block[b];
            if (block->send_count == 0) continue;
            uint32_t const lane = 1u << block->send_lane;
            assert_int_equal(script->block[block->receiver].receive_lane, block->send_lane);
            if ((taken[0][block->gpu] & lane) != 0 || (taken[1][block->to] & lane) != 0)
                fail_msg("round %u: two connections of a GPU share lane %u", round,
                         block->send_lane);
            taken[0][block->gpu] |= lane;
            taken[1][block->to] |= lane;
        }
        case_ok(msccl_check(script, "again", &case_error));
    }
}

static void test_rings(void **state)
{
    (void)state;
    for (uint32_t ranks = 2; ranks <= 64; ranks += ranks < 9 ? 1 : 11) {
        ring(ranks, ranks, 0, "");
        const struct msccl_script *script = accepted();
        assert_int_equal(script->primitive.lane_count, 1);
        assert_int_equal(script->message_count, ranks * (2 * ranks - 2));
        case_ok(msccl_check(script, "again", &case_error));
    }
}

static void test_pairs(void **state)
{
    (void)state;
    for (uint32_t ranks = 2; ranks <= 16; ranks++) {
        pairs(ranks, WAITS_NOT, false);
        assert_int_equal(accepted()->primitive.lane_count, ranks - 1);
    }
}

/* Each lane is used by one connection each way at most, whatever the graph. */
static void test_lanes(void **state)
{
    (void)state;
    pairs(13, WAITS_NOT, false);
    const struct msccl_script *script = accepted();
    uint32_t const lanes = script->primitive.lane_count;
    for (uint32_t lane = 0; lane < lanes; lane++) {
        uint32_t receives[13] = {0};
        for (uint32_t g = 0; g < 13; g++) {
            assert_int_equal(script->lane_sends[lane * 13 + g], 1);
            assert_int_equal(script->lane_arrivals[lane * 13 + g], 1);
            receives[msccl_message(script, lane, g, 0).peer]++;
        }
        for (uint32_t g = 0; g < 13; g++) assert_int_equal(receives[g], 1);
    }
}

static void test_wrong_sums(void **state)
{
    (void)state;
    ring(4, 2, 2, "rcs"); /* Loses what it has itself, and overwrites it. */
    refused("in the end");
    ring(4, 1, 4, "rrcs"); /* Adds its own part once more. */
    refused("adds what GPU 1 has in chunk 0 of the array a second time");
    ring(4, 3, 3, "rrs"); /* Keeps nothing of the chunk that is its own. */
    refused("AllReduce: in the end chunk 3 of GPU 3's output lacks what GPU 0 has in it");
}

static void test_wrong_places(void **state)
{
    (void)state;
    pairs(4, WAITS_NOT, true);
    refused("writes chunk");
}

/* Two GPUs that wait for one another. */
static void test_stuck(void **state)
{
    (void)state;
    algo("alltoall", 2, 2, false);
    for (uint32_t r = 0; r < 2; r++) {
        gpu(r, 2, 2, 0);
        tb(0, (int32_t)(1 - r), (int32_t)(1 - r));
        step(0, "r", "io", 0, 1 - r, -1, -1, false);
        step(1, "s", "io", 1 - r, r, -1, -1, false);
        end("tb");
        end("gpu");
    }
    end("algo");
    refused("never runs: it waits for step 1 of threadblock 0 of GPU 1 (line 11)");
}

/* Adds to what another threadblock may still be sending: right only by luck. */
static void test_race(void **state)
{
    (void)state;
    algo("allreduce", 1, 2, true);
    for (uint32_t r = 0; r < 2; r++) {
        gpu(r, 1, 0, 1);
        tb_of_one(0, (int32_t)(1 - r), -1, "s", "is", 0, 0);
        tb_of_one(1, -1, (int32_t)(1 - r), "rrc", "ii", 0, 0);
        end("gpu");
    }
    end("algo");
    refused("writes chunk 0 of buffer i, which step 0 of threadblock 0 (line 12) reads");
}

/* Two threadblocks that would share a connection, and two that disagree about a message. */
static void test_connections(void **state)
{
    (void)state;
    for (uint32_t case_number = 0; case_number < 2; case_number++) {
        bool const tied_apart = case_number == 0;
        algo("alltoall", 2, 2, false);
        for (uint32_t r = 0; r < 2; r++) {
            gpu(r, 2, 2, 0);
            tb(0, (int32_t)(1 - r), -1);
            step(0, "s", "io", 1 - r, r, -1, -1, false);
            if (!tied_apart && r == 0) step(1, "s", "io", 0, 0, -1, -1, false);
            end("tb");
            tb(1, tied_apart ? (int32_t)(1 - r) : -1, (int32_t)(1 - r));
            step(0, "r", "io", 0, 1 - r, -1, -1, false);
            if (tied_apart) step(1, "s", "io", 0, 0, -1, -1, false);
            end("tb");
            end("gpu");
        }
        end("algo");
        refused(tied_apart
                    ? "threadblocks 0 and 1 of GPU 0 both send to GPU 1 over channel 0"
                    : "message 1 from GPU 0 to GPU 1 over channel 0 has no step that receives it");
    }
}

static int64_t time_of(const char *machine_text, const char *axes, enum collective_kind kind,
                       const char *algorithm, const struct msccl_script *script, const char *engine)
{
    struct machine const machine = case_machine(machine_text);
    struct measured measured;
    struct measure_options const options = {.engine = engine};
    struct plan_request request = {.kind = kind,
                                   .algorithm = algorithm_read(algorithm),
                                   .script = script,
                                   .size_bytes = 64 << 20};
    request.group = case_group(&machine, axes);
    case_ok(
        measure_run(case_arena, &machine, &request, 1, "test", &options, &measured, &case_error));
    return measured.time_ps[0];
}

/* To the picosecond what the catalogue's own take. */
static void test_times(void **state)
{
    (void)state;
    static const char node[] = "h100-sxm:nodes=1", two[] = "h100-sxm:nodes=2";
    ring(8, 8, 0, "");
    const struct msccl_script *script = accepted();
    int64_t const ps = time_of(node, "gpu", COLLECTIVE_ALL_REDUCE, NULL, script, "fast");
    assert_int_equal(ps, time_of(node, "gpu", COLLECTIVE_ALL_REDUCE, "ring", NULL, "fast"));
    assert_int_equal(ps, time_of(node, "gpu", COLLECTIVE_ALL_REDUCE, NULL, script, "reference"));
    assert_int_equal(ps, time_of(two, "gpu", COLLECTIVE_ALL_REDUCE, NULL, script, "fast"));
    pairs(8, WAITS_NOT, false);
    script = accepted();
    assert_int_equal(time_of(node, "gpu", COLLECTIVE_ALL_TO_ALL, NULL, script, "fast"),
                     time_of(node, "gpu", COLLECTIVE_ALL_TO_ALL, "direct", NULL, "fast"));
}

/* What a step waits for takes time: on a ring of links, where messages of threadblocks that do not
 * wait for one another go both ways at once. */
static void test_waits(void **state)
{
    (void)state;
    static const char torus[] = "tpu-v5p:4x4x4";
    pairs(4, WAITS_NOT, false);
    const struct msccl_script *at_once = accepted();
    pairs(4, WAITS_FOR_FORMER, false);
    const struct msccl_script *in_turn = accepted();
    /* The first message waits for nothing, the second for what came before, the third for both. */
    uint32_t waits = 0, all = 0;
    for (uint32_t lane = 0; lane < in_turn->primitive.lane_count; lane++) {
        (void)msccl_waits(at_once, lane, 0, 0, &waits);
        assert_int_equal(waits, 0);
        (void)msccl_waits(in_turn, lane, 0, 0, &waits);
        all += waits;
    }
    assert_int_equal(all, 3);
    int64_t const least = time_of(torus, "x", COLLECTIVE_ALL_TO_ALL, NULL, at_once, "fast");
    int64_t const most = time_of(torus, "x", COLLECTIVE_ALL_TO_ALL, NULL, in_turn, "fast");
    /* A message is 64 MiB over 4 x 4; a link's rate is 90 GB/s. Three in a row, the second over
     * two links, instead of two on the busiest link. */
    int64_t const message_ps = (int64_t)(64 << 20) / 16 * 1000 / 90;
    assert_true(least < 2 * message_ps + message_ps / 2);
    assert_true(most > 3 * message_ps);
    assert_int_equal(most, time_of(torus, "x", COLLECTIVE_ALL_TO_ALL, NULL, in_turn, "reference"));
    /* In the other order it takes as long: what has left lets the next one go, before it lands. */
    pairs(4, WAITS_FOR_LATTER, false);
    const struct msccl_script *back = accepted();
    int64_t const backward = time_of(torus, "x", COLLECTIVE_ALL_TO_ALL, NULL, back, "fast");
    assert_int_equal(backward, most);
    assert_int_equal(backward, time_of(torus, "x", COLLECTIVE_ALL_TO_ALL, NULL, back, "reference"));
}

static void test_requests(void **state)
{
    (void)state;
    struct plan plan;
    ring(4, 4, 0, "");
    struct plan_request request = {
        .kind = COLLECTIVE_ALL_REDUCE,
        .size_bytes = 1000,
        .script = accepted(),
        .group = {.dimension_count = 1, .dimension = {{.size = 8, .stride = 1, .switched = true}}},
    };
    case_refused(plan_build(case_arena, &request, "", &plan, &case_error), STATUS_INVALID, NULL,
                 "is for 4 GPUs, and not for 8");
    request.group.dimension[0].size = 4;
    request.kind = COLLECTIVE_ALL_GATHER;
    case_refused(plan_build(case_arena, &request, "", &plan, &case_error), STATUS_INVALID, NULL,
                 "is an AllReduce, and not an AllGather");
    request.kind = COLLECTIVE_ALL_REDUCE;
    request.algorithm = algorithm_read("ring");
    case_refused(plan_build(case_arena, &request, "", &plan, &case_error), STATUS_INVALID, NULL,
                 "");
    request.algorithm = (struct algorithm){.means = ALGORITHM_AUTO};
    request.piece_count = 2;
    case_refused(plan_build(case_arena, &request, "", &plan, &case_error), STATUS_UNSUPPORTED, NULL,
                 "");
    request.piece_count = 0;
    case_ok(plan_build(case_arena, &request, "", &plan, &case_error));
    case_ok(plan_check(&plan, &case_error));
    assert_int_equal(plan.item[0].unit_bytes, 125);
    request.size_bytes = 1001; /* Half chunks have whole bytes, the last fewer. */
    case_ok(plan_build(case_arena, &request, "", &plan, &case_error));
    assert_int_equal(plan.item[0].unit_bytes, 126);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_are_few_and_apart_whatever_the_order),
        cmocka_unit_test(test_rings),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_wrong_sums),
        cmocka_unit_test(test_wrong_places),
        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_race),
        cmocka_unit_test(test_connections),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_requests),
    };
    return cmocka_run_group_tests_name("scripts", tests, case_arena_up, case_arena_down);
}
