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

static struct splits_request alike(uint64_t units, uint64_t keys, uint32_t cores)
{
    return (struct splits_request){
        .units = units, .keys = units * keys, .longest = keys, .cores = cores, .most = SPLITS_MAX};
}

/* As num_splits_heuristic() of flash-attention 2 and 3 answers, worked by hand. */
static void parts_are_those_of_flash_attention(void **state)
{
    static const struct {
        uint64_t units, keys;
        uint32_t cores, parts;
    } rows[] = {
        {8, 131072, 132, 14},  /* 112 of 132 cores are within 85 % of the 128 of 16 parts. */
        {1, 131072, 132, 114}, /* 1,024 tiles; 114 parts of 9, where 113 has 10. */
        {1, 1024, 132, 8},     /* No part is less than a tile. */
        {106, 8192, 132, 1},   /* 80 % are enough. */
        {132, 8192, 132, 1},   {64, 8192, 132, 2}, {500, 100, 132, 1},
        {0, 100, 132, 1},      {48, 4096, 108, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct splits_request const of = alike(rows[i].units, rows[i].keys, rows[i].cores);
        if (splits_count(&of) != rows[i].parts)
            fail_msg("%llu units of %llu keys on %u cores: %u parts",
                     (unsigned long long)rows[i].units, (unsigned long long)rows[i].keys,
                     rows[i].cores, splits_count(&of));
    }
    struct splits_request whole = alike(8, 131072, 132);
    whole.most = 1;
    assert_int_equal(splits_count(&whole), 1);
}

/* The way that takes least, if keys take all of the time. */
static struct splits_shares splits_share(const struct splits_request *of)
{
    struct splits_shares ways[SPLITS_WAYS];
    uint32_t const count = splits_ways(of, ways);
    uint32_t best = 0;
    uint64_t best_keys = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t const all = of->keys + of->besides_keys + ways[i].merged * of->part_keys;
        uint64_t const keys = all * PPM_ONE / (PPM_ONE - ways[i].idle_ppm);
        if (i > 0 && keys >= best_keys) continue;
        best = i;
        best_keys = keys;
    }
    return ways[best];
}

static uint64_t idle_ppm(struct splits_request of)
{
    return splits_share(&of).idle_ppm;
}

/* Cores take parts in rounds; the longest sequence is one core's where it stays whole. */
static void idle_cores_are_what_the_busiest_waits_for_not(void **state)
{
    (void)state;
    struct splits_request of = alike(8, 1000, 132);
    of.most = 1;
    assert_int_equal(idle_ppm(of), PPM_ONE - 8 * PPM_ONE / 132);
    assert_int_equal(idle_ppm(alike(132, 1000, 132)), 0);
    /* Two rounds, the second with one. */
    assert_in_range(idle_ppm(alike(133, 1000, 132)), PPM_ONE - 133 * (PPM_ONE / 264) - 300,
                    PPM_ONE - 133 * (PPM_ONE / 264));
    /* 32 units of 100 keys in the mean, one of them with 1,700 keys: the other cores are done long
     * before its core. */
    of =
        (struct splits_request){.units = 32, .keys = 3200, .longest = 1700, .cores = 32, .most = 1};
    assert_int_equal(idle_ppm(of), PPM_ONE - 3200 * (uint64_t)PPM_ONE / (1700 * 32));
    of = (struct splits_request){.cores = 132, .most = 1};
    assert_int_equal(idle_ppm(of), 0);
}

/* All keys, divided by the keys of all cores if each had as many as the busiest core. */
static void shares_are(const struct splits_request *of, uint64_t busiest, uint64_t merged)
{
    struct splits_shares const shares = splits_share(of);
    uint64_t const all = busiest * of->cores;
    uint64_t const busy_ppm = all == 0 ? PPM_ONE : of->keys * PPM_ONE / all;
    assert_int_equal(shares.idle_ppm, PPM_ONE - busy_ppm);
    assert_int_equal(shares.merged, merged);
}

/* As get_mla_metadata of FlashMLA gives each core a share, but for the blocks that it counts for
 * the begin of a sequence: worked by hand. */
static void unlike_sequences_are_cut_into_equal_shares(void **state)
{
    static const struct {
        uint64_t units, keys, longest, share, merged;
    } rows[] = {
        /* 62.1 blocks a core are 63, so 131 have some: 130 cuts, each of another unit or of one
         * that was cut before. */
        {128, 128 * 8200, 20000, 63, 130 + 128},
        {500, 500 * 8200, 20000, 243, 131 + 131}, /* All cores; some units stay whole. */
        {2, 131072, 131000, 8, 127 + 2},
        {1, 0, 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct splits_request const of = {.units = rows[i].units,
                                          .keys = rows[i].keys,
                                          .longest = rows[i].longest,
                                          .cores = 132,
                                          .most = SPLITS_MAX};
        shares_are(&of, rows[i].share * SPLITS_TILE_KEYS, rows[i].merged);
    }
    struct splits_request const lone = alike(8, 131072, 132);
    assert_int_equal(splits_share(&lone).merged, 8 * 14); /* As flash-attention has it. */
    /* Parts of equal sequences on two ranks, each rounded up. */
    struct splits_request const halves = {
        .units = 4, .keys = 16386, .longest = 4097, .cores = 132, .most = SPLITS_MAX};
    assert_int_equal(splits_share(&halves).merged, 4 * splits_count(&halves));
}

/* Shares are whole blocks. Sequences that do not fill blocks stay whole, or are split as the
 * longest one is. */
static void short_unlike_sequences_fill_no_blocks(void **state)
{
    (void)state;
    /* A share would be 7 blocks, 896 keys; 8 rounds of 100. */
    struct splits_request of = {
        .units = 1024, .keys = 102400, .longest = 300, .cores = 132, .most = SPLITS_MAX};
    shares_are(&of, 800, 0);
    /* One of 64 keys in each head, and 63 of one: four rounds of 2 keys are less than 64. */
    of = (struct splits_request){
        .units = 512, .keys = 8 * 127, .longest = 64, .cores = 132, .most = SPLITS_MAX};
    shares_are(&of, 64, 0);
    /* Three parts each, of up to 100 keys: less than a block. */
    of = (struct splits_request){
        .units = 4, .keys = 500, .longest = 300, .cores = 132, .most = SPLITS_MAX};
    shares_are(&of, 100, 12);
    /* Units stay whole if the merge of parts costs more. */
    of.part_keys = 6000;
    shares_are(&of, 300, 0);
    /* What units have besides is not idle: 4 keys each, with the longest 104, and two rounds
     * of 5.4 in the mean. */
    of = (struct splits_request){
        .units = 264, .keys = 264 + 99, .longest = 100, .cores = 132, .most = 1};
    of.besides_keys = 4 * of.units;
    assert_int_equal(splits_share(&of).idle_ppm,
                     PPM_ONE - (5 * 264 + 99) * (uint64_t)PPM_ONE / (104 * 132));
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
        cmocka_unit_test(parts_are_those_of_flash_attention),
        cmocka_unit_test(idle_cores_are_what_the_busiest_waits_for_not),
        cmocka_unit_test(unlike_sequences_are_cut_into_equal_shares),
        cmocka_unit_test(short_unlike_sequences_fill_no_blocks),
        cmocka_unit_test(a_long_sequence_alone_takes_all_cores_where_it_is_split),
        cmocka_unit_test(ragged_sequences_wait_for_the_longest_unless_they_are_split),
        cmocka_unit_test(tpus_have_no_cores_apart),
        cmocka_unit_test(stages_one_after_another_take_what_one_chip_takes),
        cmocka_unit_test(small_ops_end_within_the_upper_bound),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
