/*
 * Optimizer state and activations in the host's memory: hidden or exposed by what the link and the
 * math take, which closed forms say; HBM holds less by what is away; however it is played, the
 * instants are the same.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/crossing.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1024, TOKENS_MAX = 65536 };

static const double width = 8192, mlp_width = 32768;

/* A machine, with what its links and math can do. */
struct rates {
    struct crossing_setup setup;
    double flop_per_s, hbm_bytes_per_s, host_bytes_per_s; /* Of one chip. */
};

static const struct rates moments[] = {
    {{"8 H100, PCIe Gen5", "\"chip\": \"h100-sxm\"", "{\"fsdp\": [\"gpu\"]}", "tensor", 8, 8192,
      32768, TOKENS_MAX, "optimizer"},
     990e12,
     3.35e12,
     64e9},
    {{"16 v5p, PCIe",
      "\"chip\": \"tpu-v5p\", \"shape\": \"16\", \"unrealisable\": true, \"wrap\": {\"x\": true}",
      "{\"fsdp\": [\"x\"]}", "tensor", 16, 8192, 32768, TOKENS_MAX, "optimizer"},
     459e12,
     2.8e12,
     16e9},
};

/* The backward pass of a layer takes 8·D·F FLOP a token, the update 22 bytes of each parameter that
 * a chip keeps, beside 8 bytes each way: moments are hidden where that takes no longer. */
static double exact_tokens(const struct rates *rates)
{
    double const parameters = 2 * width * mlp_width / rates->setup.chips;
    double const host_s = 8 * parameters / rates->host_bytes_per_s;
    double const update_s = 22 * parameters / rates->hbm_bytes_per_s;
    return (host_s - update_s) * rates->flop_per_s / (8 * width * mlp_width);
}

static void moments_are_hidden_from_where_the_backward_pass_is_longer(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sizeof moments / sizeof *moments; i++)
        crossing_assert_near(moments[i].setup.name, exact_tokens(&moments[i]),
                             crossing_tokens(&moments[i].setup, CROSSING_BACKWARD), 0.01);
}

/* A layer of the bare MLP saves its gathered input and what is between its matmuls: 2·(D + F) bytes
 * a token, beside 4·D·F FLOP. */
static void activations_are_hidden_where_the_model_is_wide_enough(void **state)
{
    (void)state;
    static const struct crossing_setup setups[] = {
        {"H100, PCIe Gen5", "\"chip\": \"h100-sxm\", \"gpus\": 2", "{\"dp\": [\"gpu\"]}", "block",
         2, 16384, 0, TOKENS_MAX, "activations"},
        {"GB200, half of C2C", "\"chip\": \"gb200-nvl72\", \"gpus\": 2", "{\"dp\": [\"gpu\"]}",
         "block", 2, 16384, 0, TOKENS_MAX, "activations"},
        {"v5e, PCIe", "\"chip\": \"tpu-v5e\", \"shape\": \"2x2\"", "{\"dp\": [\"x\", \"y\"]}",
         "block", 4, 16384, 0, TOKENS_MAX, "activations"},
    };
    static const double rates[][2] = {{990e12, 64e9}, {2250e12, 225e9}, {197e12, 16e9}};
    static const uint64_t widths[] = {4096, 8192, 16384, 65536};
    for (uint32_t i = 0; i < sizeof setups / sizeof *setups; i++)
        for (uint32_t f = 0; f < sizeof widths / sizeof *widths; f++) {
            double const d = (double)setups[i].width, wide = (double)widths[f];
            double const share = rates[i][0] / rates[i][1] / 2 * (d + wide) / (d * wide);
            struct crossing_pass const pass =
                crossing_layer(&setups[i], 32768, widths[f], false).forward;
            char name[64];
            (void)snprintf(name, sizeof name, "%s, F = %.0f", setups[i].name, wide);
            crossing_assert_near(name, share > 1 ? share : 1, pass.time_s / pass.math_s, 0.01);
        }
}

static void scenario_write(char text[TEXT_BYTES], const char *machine, const char *mesh,
                           const char *offload, uint32_t accumulate, uint32_t prefetch,
                           const char *arbitration)
{
    case_text(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"title\": \"offload\", \"machine\": {%s, \"profile\": \"ideal\"}, "
        "\"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": {\"kind\": \"mlp\", "
        "\"D\": 4096, \"F\": 16384, \"layers\": 12, \"matrices\": 2}, \"batch_tokens\": 65536, "
        "\"offload\": \"%s\", \"accumulate\": %u, \"allow_oversubscription\": true}, "
        "\"run\": {\"prefetch_layers\": %u, \"arbitration\": \"%s\"}}",
        machine, mesh, offload, accumulate, prefetch, arbitration);
}

/* So many layers at most are in HBM at once: those that loads run ahead, the one that is at work,
 * and the one that is stored. */
static void hbm_holds_less_by_what_is_away(void **state)
{
    (void)state;
    static const char machine[] = "\"chip\": \"h100-sxm\"", mesh[] = "{\"fsdp\": [\"gpu\"]}";
    for (uint32_t prefetch = 0; prefetch < 3; prefetch++) {
        char text[TEXT_BYTES];
        struct play here, away;
        scenario_write(text, machine, mesh, "none", 1, prefetch, "fair");
        play_run(&here, text, NULL);
        scenario_write(text, machine, mesh, "both", 1, prefetch, "fair");
        play_run(&away, text, NULL);
        static const enum program_memory kinds[] = {PROGRAM_MEMORY_OPTIMIZER,
                                                    PROGRAM_MEMORY_ACTIVATIONS};
        for (uint32_t i = 0; i < 2; i++) {
            uint64_t const all = here.trace.memory.each_peak_bytes[kinds[i]];
            uint64_t const left = away.trace.memory.each_peak_bytes[kinds[i]];
            assert_true(left >= all / 12);
            assert_true(left <= all / 12 * (prefetch + 3));
        }
        assert_true(away.trace.memory.peak_bytes < here.trace.memory.peak_bytes);
        assert_true(away.roofline.memory_bytes < here.roofline.memory_bytes);
        play_close(&here);
        play_close(&away);
    }
}

static void it_is_the_same_however_it_is_played(void **state)
{
    (void)state;
    static const struct {
        const char *machine, *mesh;
        bool folds;
    } rows[] = {
        {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"fsdp\": [\"node\"], \"tp\": [\"gpu\"]}", true},
        {"\"chip\": \"gb200-nvl72\", \"gpus\": 8", "{\"fsdp\": [\"gpu\"]}", true},
        {"\"chip\": \"gb200-nvl72\", \"gpus\": 8",
         "{\"fsdp\": [\"gpu:2\"], \"tp\": [\"gpu:4\"]"
         ", \"order\": [\"fsdp\", \"tp\"]}",
         true},
        {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
         "{\"fsdp\": [\"x\", \"y\"], \"tp\": [\"z\"]}", true},
        {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\", \"slices\": 4",
         "{\"dp\": [\"slice\"], \"fsdp\": [\"x\", \"y\"]}", true},
    };
    uint64_t random = 1;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t accumulate = 1; accumulate <= 2; accumulate++) {
            char text[TEXT_BYTES];
            struct play folded;
            scenario_write(text, rows[i].machine, rows[i].mesh, "both", accumulate, 1,
                           CASE_PICK(&random, "fair", "priority", "fifo"));
            play_run(&folded, text, NULL);
            walk_alike(&folded, text, "reference");
            assert_true(folded.trace.fold.replayed < folded.machine.chip_count);
            uint32_t const up = machine_host_port(&folded.machine, false);
            assert_true(units_seconds(folded.trace.link[up].busy_ps) >=
                        folded.roofline.host_s * (1 - 1e-9));
            play_close(&folded);
        }
}

/* Steps with experts: over ep alone, beside fsdp and tp, and over ranks of tp. */
static void experts_are_the_same_however_they_are_played(void **state)
{
    static const char *const rows[][2] = {
        {"{\"ep\": [\"gpu\"], \"dp\": [\"node\"]}", ", \"zero\": 1"},
        {"{\"ep\": [\"gpu:2\"], \"tp\": [\"gpu:2\"], \"fsdp\": [\"node\"]}", ""},
        {"{\"ep\": [\"gpu:2\", \"tp\"], \"tp\": [\"gpu:2\"], \"dp\": [\"node\"]}",
         ", \"activations\": \"tokens\""},
    };
    static const char *const offloads[] = {"optimizer", "activations", "both"};
    static const char *const remats[] = {"none", "norms", "big_matmuls", "block", "layer"};
    (void)state;
    for (uint32_t i = 0; i < 3 * 5; i++) {
        char text[TEXT_BYTES];
        struct play folded;
        case_text(
            text, TEXT_BYTES,
            "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 2, \"gpus\": 4}, "
            "\"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": "
            "\"tests/property/experts.json\", \"batch_tokens\": 65536, \"sequence_length\": "
            "1024, \"accumulate\": %u, \"remat\": \"%s\", \"offload\": \"%s\"%s}}",
            rows[i % 3][0], 1 + i % 2, remats[i % 5], offloads[i / 5], rows[i % 3][1]);
        play_run(&folded, text, NULL);
        walk_alike(&folded, text, "reference");
        uint32_t const up = machine_host_port(&folded.machine, false);
        assert_true(units_seconds(folded.trace.link[up].busy_ps) >=
                    folded.roofline.host_s * (1 - 1e-9));
        assert_true(folded.roofline.host_s > 0);
        assert_true(folded.roofline.lower_s <= units_seconds(folded.trace.step_ps) * (1 + 1e-9));
        play_close(&folded);
    }
}

/* Of a layer that keeps its input alone a rank stores 8192 tokens of 1,024 columns. Its moments are
 * those of four of the 16 experts, whole or in halves, and of its share of all else. */
static void a_layer_with_experts_stores_what_it_keeps(void **state)
{
    static const struct {
        const char *mesh, *workload;
        double experts, shards, dense,
            dense_shards; /* Parameters on a rank, and ranks with them. */
    } rows[] = {
        {"{\"ep\": [\"gpu\"], \"dp\": [\"node\"]}", ", \"zero\": 1", 4, 2, 1, 8},
        {"{\"ep\": [\"gpu:2\"], \"tp\": [\"gpu:2\"], \"dp\": [\"node\"]}",
         ", \"activations\": \"tokens\"", 4, 1, 2, 1},
        {"{\"ep\": [\"gpu:2\", \"tp\"], \"tp\": [\"gpu:2\"], \"dp\": [\"node\"]}",
         ", \"activations\": \"tokens\", \"zero\": 1", 4, 2, 2, 4},
    };
    enum { D = 1024, FE = 512, LAYERS = 4, HEADS = 8 + 4 + 4 + 8, HEAD = 128, EXPERTS = 16 };
    (void)state;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[TEXT_BYTES];
        struct play play;
        struct walk_op walk = {.program = &play.program};
        uint64_t stored = 0, updated = 0;
        case_text(
            text, TEXT_BYTES,
            "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 2, \"gpus\": 4}, "
            "\"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": "
            "\"tests/property/experts.json\", \"batch_tokens\": 65536, \"sequence_length\": "
            "1024, \"remat\": \"block\", \"offload\": \"both\"%s}}",
            rows[i].mesh, rows[i].workload);
        play_run(&play, text, NULL);
        while (walk_next(&walk)) {
            if (walk.op->kind != PROGRAM_OP_COPY) continue;
            uint64_t const bytes = walk.times * play.program.copies[walk.op->index].size_bytes;
            stored += strcmp(walk.op->name, "store activations") == 0 ? bytes : 0;
            updated += strcmp(walk.op->name, "store optimizer") == 0 ? bytes : 0;
        }
        assert_int_equal(stored, (LAYERS - 1) * UINT64_C(8192) * D * 2);
        double const norms = 2 * D + 2 * HEAD, tp = rows[i].dense;
        double const layer =
            3.0 * D * FE * rows[i].experts / rows[i].shards +
            ((double)D * HEADS * HEAD / tp + D * EXPERTS + norms) / rows[i].dense_shards;
        double const ends = (2.0 * 16384 * D / tp + D) / rows[i].dense_shards;
        case_near((double)updated, 8 * (LAYERS * layer + ends), 1e-3);
        play_close(&play);
    }
}

/* Gradients that slices reduce over the DCN leave by the PCIe that moments take. */
static void offload_and_dcn_share_pcie(void **state)
{
    (void)state;
    static const char machine[] = "\"chip\": \"tpu-v5e\", \"shape\": \"4x4\", \"slices\": 4";
    static const char mesh[] = "{\"dp\": [\"slice\"], \"fsdp\": [\"x\", \"y\"]}";
    char text[TEXT_BYTES];
    struct play here, away;
    scenario_write(text, machine, mesh, "none", 1, 1, "fair");
    play_run(&here, text, NULL);
    scenario_write(text, machine, mesh, "optimizer", 1, 1, "fair");
    play_run(&away, text, NULL);
    uint32_t const up = machine_host_port(&away.machine, false);
    uint64_t const copied = away.trace.link[up].bytes - here.trace.link[up].bytes;
    assert_int_equal(copied, 12 * (2 * UINT64_C(4096) * 16384 / 16) * 8);
    assert_true(away.trace.step_ps > here.trace.step_ps);
    play_close(&here);
    play_close(&away);
}

static void what_cannot_be_offloaded_is_refused(void **state)
{
    (void)state;
    static const struct scenario_setting one[] = {{"/workload/model/layers=1"}};
    static const struct play_options options = {
        .engine = "fast", .settings = one, .setting_count = 1};
    char text[TEXT_BYTES];
    struct play play;
    struct error error = {0};
    scenario_write(text, "\"chip\": \"h100-sxm\"", "{\"fsdp\": [\"gpu\"]}", "activations", 1, 1,
                   "fair");
    assert_int_equal(play_try(&play, text, &options, &error), STATUS_INVALID);
    assert_string_equal(error.where, "/workload/offload");
    play_close(&play);
    scenario_write(text, "\"chip\": \"h100-sxm\"", "{\"fsdp\": [\"gpu\"]}", "optimizer", 1, 1,
                   "fair");
    assert_int_equal(play_try(&play, text, &options, &error), STATUS_OK);
    play.machine.host.bytes_per_s = 0;
    assert_int_equal(workload_lower(play.arena, &play.scenario.workload, &play.machine, &play.mesh,
                                    &play.program, &error),
                     STATUS_UNSUPPORTED);
    assert_string_equal(error.where, "/workload/offload");
    play_close(&play);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_are_hidden_from_where_the_backward_pass_is_longer),
        cmocka_unit_test(activations_are_hidden_where_the_model_is_wide_enough),
        cmocka_unit_test(hbm_holds_less_by_what_is_away),
        cmocka_unit_test(it_is_the_same_however_it_is_played),
        cmocka_unit_test(experts_are_the_same_however_they_are_played),
        cmocka_unit_test(a_layer_with_experts_stores_what_it_keeps),
        cmocka_unit_test(offload_and_dcn_share_pcie),
        cmocka_unit_test(what_cannot_be_offloaded_is_refused),
    };
    return cmocka_run_group_tests_name("offload", tests, NULL, NULL);
}
