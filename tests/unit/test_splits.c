/*
 * Keys of decodes on the cores of a chip: how many parts, what that leaves idle, and what a step
 * makes of it.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/graph/splits.h"
#include "tests/support/case.h"
#include "tests/support/play.h"

/* Work in keys. */
static struct splits_request units_of(uint64_t units, uint64_t keys, uint64_t longest)
{
    return (struct splits_request){.kind = {{.count = units,
                                             .each = keys,

                                             .longest = longest,
                                             .block = SPLITS_BLOCK_KEYS}},
                                   .cores = 132,
                                   .most = SPLITS_MAX};
}

static void shares_are(const struct splits_request *of, uint64_t busiest, uint64_t merged)
{
    struct splits_shares const shares = splits_best(of);
    assert_int_equal((uint64_t)shares.busiest, busiest);
    assert_int_equal(shares.merged[0] + shares.merged[1], merged);
}

/* With the parts that num_splits_heuristic() of flash-attention 2 and 3 answers, worked by hand. */
static void no_units_take_longer_than_in_flash_attention(void **state)
{
    static const struct {
        uint64_t units, keys;
        uint32_t cores, parts;
    } rows[] = {
        {8, 131072, 132, 14},  /* 112 of 132 cores are within 85 % of the 128 of 16 parts. */
        {1, 131072, 132, 114}, /* 1,024 tiles; 114 parts of 9, where 113 has 10. */
        {1, 1024, 132, 8},     /* No part is less than a tile. */
        {106, 8192, 132, 1},   /* 80 % are enough. */
        {132, 8192, 132, 1},   {64, 8192, 132, 2}, {500, 100, 132, 1}, {48, 4096, 108, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct splits_request of = units_of(rows[i].units, rows[i].keys, rows[i].keys);
        of.cores = rows[i].cores;
        uint64_t const blocks = units_ceil_divide(rows[i].keys, SPLITS_BLOCK_KEYS);
        uint64_t const rounds = units_ceil_divide(rows[i].units * rows[i].parts, rows[i].cores);
        uint64_t const part = units_ceil_divide(blocks, rows[i].parts) * SPLITS_BLOCK_KEYS;
        uint64_t const busiest = (uint64_t)splits_best(&of).busiest;
        uint64_t const least = rows[i].units * rows[i].keys / rows[i].cores;
        if (busiest > rounds * part || busiest < least)
            fail_msg("row %zu: %llu keys on the busiest core", i, (unsigned long long)busiest);
    }
}

/* Prompts without decodes go in parts as decodes without prompts do. */
static void either_kind_alone_is_split(void **state)
{
    (void)state;
    for (uint64_t units = 1; units <= 400; units++)
        for (uint64_t keys = 256; keys <= 131072; keys *= 2) {
            struct splits_request const first = units_of(units, keys, keys);
            struct splits_request second = first;
            second.kind[1] = first.kind[0];
            second.kind[0].count = 0;
            struct splits_shares const one = splits_best(&first), other = splits_best(&second);
            assert_int_equal((uint64_t)other.busiest, (uint64_t)one.busiest);
            assert_int_equal(other.merged[1], one.merged[0]);
        }
}

/* Units go in rounds; the longest one is one core's. */
static void whole_units_are_what_the_busiest_core_has(void **state)
{
    static const struct {
        uint64_t units, keys, longest, busiest;
    } rows[] = {
        {8, 1000, 1000, 1000}, {132, 1000, 1000, 1000}, {133, 1000, 1000, 2000},
        {32, 100, 1700, 1700}, {264, 100, 300, 300},    {0, 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct splits_request of = units_of(rows[i].units, rows[i].keys, rows[i].longest);
        of.most = 1;
        shares_are(&of, rows[i].busiest, 0);
    }
}

/* As get_mla_metadata of FlashMLA gives each core a share, but for the blocks that it counts for
 * the begin of a sequence: worked by hand. */
static void unlike_sequences_are_cut_into_equal_shares(void **state)
{
    static const struct {
        uint64_t units, keys, longest, blocks, merged;
    } rows[] = {
        /* 62.1 blocks a core are 63, so 131 have some: 130 cuts, each of another unit or of one
         * that was cut before. */
        {128, 8200, 20000, 63, 130 + 128},
        {500, 8200, 20000, 243, 131 + 131}, /* All cores; some units stay whole. */
        {2, 65536, 131000, 8, 127 + 2},
        {8, 131072, 131072, 63, 130 + 8}, /* Of one length. */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct splits_request const of = units_of(rows[i].units, rows[i].keys, rows[i].longest);
        shares_are(&of, rows[i].blocks * SPLITS_BLOCK_KEYS, rows[i].merged);
    }
}

/* Shares and parts are whole blocks. Sequences that do not fill blocks stay whole. */
static void parts_are_whole_blocks(void **state)
{
    (void)state;
    /* A share would be 7 blocks, 896 keys; 8 rounds of 100. */
    struct splits_request of = units_of(1024, 100, 300);
    shares_are(&of, 800, 0);
    /* One of 64 keys in each head, and 63 of one. */
    of = units_of(512, 2, 64);
    shares_are(&of, 64, 0);
    /* Three parts each, of a block. */
    of = units_of(4, 125, 300);
    shares_are(&of, 128, 12);
    /* Units stay whole if the merge of parts costs more. */
    of.kind[0].part = 6000;
    shares_are(&of, 300, 0);
    /* A key more than a block takes no less than a block. */
    of = units_of(8, 128, 128);
    shares_are(&of, 128, 0);
    of = units_of(8, 129, 129);
    shares_are(&of, 128, 16);
}

/* Those of a prompt fill the cores for a round, and a decode next to them is split. */
static void one_kind_is_split_and_the_other_one_stays_whole(void **state)
{
    struct splits_request of = units_of(2, 4715, 4715);
    (void)state;
    of.kind[0].part = 10;
    of.kind[1] = (struct splits_kind){.count = 130,
                                      .each = 300,
                                      .longest = 300,
                                      .block = SPLITS_BLOCK_KEYS,
                                      .part = 10000,
                                      .even_out = true};
    /* 74 parts of a block: 4 on the cores that have no tile, 70 after a tile. */
    shares_are(&of, 300 + 128 + 6, 74);
    /* Tiles of many lengths fill the cores evenly where there are more. */
    of.kind[0] = (struct splits_kind){0};
    of.kind[1].count = 1320;
    shares_are(&of, 3000, 0);
}

static double attention_s(const char *machine, const char *mesh, const char *workload, bool splits,
                          double *ret_kv_s)
{
    char text[768];
    struct play play;
    int64_t attention_ps = 0;
    (void)snprintf(
        text, sizeof text,
        "{\"podsim\": 1, \"machine\": {%s}, \"mesh\": %s, \"workload\": {\"kind\": "
        "\"decode\", \"model\": \"llama-3-8b\", %s}, \"run\": {\"split_attention\": %s}}",
        machine, mesh, workload, splits ? "true" : "false");
    play_run(&play, text, NULL);
    bool counted[PROGRAM_CLASSES_MAX] = {false};
    for (uint32_t t = 0; t < play.program.template_count; t++)
        for (uint32_t i = 0; i < play.program.templates[t].op_count; i++) {
            const struct program_op *op = &play.program.templates[t].op[i];
            if (op->purpose != PROGRAM_PURPOSE_ATTENTION || counted[op->class_index]) continue;
            counted[op->class_index] = true;
            attention_ps += play.trace.classes[op->class_index].busy_ps;
        }
    *ret_kv_s =
        play.roofline.counts.inference.kv_read_bytes / (double)play.machine.chip.hbm_bytes_per_s;
    assert_true(units_seconds(play.trace.step_ps) <= play.roofline.upper_s * (1 + 1e-9));
    play_close(&play);
    return units_seconds(attention_ps);
}

/* 17.2 GB of keys and values on one H100: with parts HBM bounds attention; without, the 8 SMs that
 * have a head, of the 132 through which L2 gives 5.5 TB/s. */
static void a_long_sequence_alone_takes_all_cores_where_it_is_split(void **state)
{
    static const char one[] = "\"chip\": \"h100-sxm\", \"gpus\": 1", mesh[] = "{\"dp\": [\"gpu\"]}";
    static const char lone[] = "\"batch\": 1, \"context\": 131072";
    double kv_s = 0;
    (void)state;
    double const split_s = attention_s(one, mesh, lone, true, &kv_s);
    case_near(kv_s, 131072. * 131072 / 3.35e12, 1e-9);
    case_near(split_s, kv_s, 0.1);
    assert_true(split_s > kv_s);
    double const whole_s = attention_s(one, mesh, lone, false, &kv_s);
    case_near(whole_s, 131072. * 131072 / (5.5e12 * 8 / 132), 0.01);
}

/* Two sequences as long as 62 others together: whole they are what all other cores wait for; cut
 * into equal shares HBM bounds attention. */
static void ragged_sequences_wait_for_the_longest_unless_they_are_split(void **state)
{
    static const char one[] = "\"chip\": \"h100-sxm\", \"gpus\": 1", mesh[] = "{\"dp\": [\"gpu\"]}";
    char workload[600] = "\"batch\": 64, \"context\": [31000, 31000";
    size_t length = strlen(workload);
    double kv_s = 0;
    (void)state;
    for (uint32_t i = 0; i < 62; i++)
        length += (size_t)snprintf(workload + length, sizeof workload - length, ", 1000");
    (void)snprintf(workload + length, sizeof workload - length, "]");
    /* 512 units are four rounds of 969 keys a core, less than the 31,000 of one. */
    double const whole_s = attention_s(one, mesh, workload, false, &kv_s);
    case_near(whole_s, 32 * 31000. * 512 / (5.5e12 / 132), 0.02);
    double const split_s = attention_s(one, mesh, workload, true, &kv_s);
    case_near(split_s, kv_s, 0.02);
    assert_true(split_s > kv_s);
}

/* The cores of a TPU work as one, so that 8 heads of one sequence wait for HBM alone. */
static void tpus_have_no_cores_apart(void **state)
{
    static const char tpu[] = "\"chip\": \"tpu-v5p\", \"shape\": \"1x1x1\", \"unrealisable\": true";
    static const char lone[] = "\"batch\": 1, \"context\": 131072";
    double kv_s = 0;
    (void)state;
    double const split_s = attention_s(tpu, "{\"dp\": [\"x\"]}", lone, true, &kv_s);
    case_near(split_s, kv_s, 0.01);
    assert_true(split_s >= kv_s);
}

/* Without what hosts launch of messages at both ends. */
static double upper_s(uint32_t stages, const char *run)
{
    char text[512];
    struct play play;
    (void)snprintf(
        text, sizeof text,
        "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"gpus\": %u}, \"mesh\": "
        "{\"pp\": [\"gpu\"]}, \"workload\": {\"kind\": \"decode\", \"model\": \"llama-3-8b\", "
        "\"batch\": %u, \"context\": 65536}, \"run\": {%s}}",
        stages, stages, run);
    play_run(&play, text, NULL);
    double const messages = 2 * play.roofline.counts.stage.way_count;
    double const upper_s =
        play.roofline.upper_s - messages * units_seconds(play.machine.chip.launch.host_ps);
    assert_true(units_seconds(play.trace.step_ps) <= play.roofline.upper_s);
    play_close(&play);
    return upper_s;
}

/* A batch on each of four stages is four times the work of one chip with one: idle cores are
 * divided among stages as all else, and launches of messages are those of all stages. */
static void stages_one_after_another_take_what_one_chip_takes(void **state)
{
    static const char *const runs[] = {"\"split_attention\": false",
                                       "\"launch\": \"eager\", \"launch_host\": \"1ms\""};
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        case_near(upper_s(4, runs[i]), 4 * upper_s(1, runs[i]), 1e-3);
}

/* Ops of one tile wait for L2 behind HBM, and have next to no math. */
static void small_ops_end_within_the_upper_bound(void **state)
{
    struct play play;
    (void)state;
    play_run(&play,
             "{\"podsim\": 1, \"machine\": {\"chip\": \"b200\", \"gpus\": 8, \"nodes\": 4}, "
             "\"mesh\": {\"tp\": [\"node\", \"gpu\"]}, \"workload\": {\"kind\": \"decode\", "
             "\"model\": \"llama-3-8b\", \"batch\": 1, \"context\": 128}, "
             "\"run\": {\"algorithm\": \"ring\"}}",
             NULL);
    assert_true(units_seconds(play.trace.step_ps) <= play.roofline.upper_s * (1 + 1e-9));
    play_close(&play);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_units_take_longer_than_in_flash_attention),
        cmocka_unit_test(either_kind_alone_is_split),
        cmocka_unit_test(whole_units_are_what_the_busiest_core_has),
        cmocka_unit_test(unlike_sequences_are_cut_into_equal_shares),
        cmocka_unit_test(parts_are_whole_blocks),
        cmocka_unit_test(one_kind_is_split_and_the_other_one_stays_whole),
        cmocka_unit_test(a_long_sequence_alone_takes_all_cores_where_it_is_split),
        cmocka_unit_test(ragged_sequences_wait_for_the_longest_unless_they_are_split),
        cmocka_unit_test(tpus_have_no_cores_apart),
        cmocka_unit_test(stages_one_after_another_take_what_one_chip_takes),
        cmocka_unit_test(small_ops_end_within_the_upper_bound),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
