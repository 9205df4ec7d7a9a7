/*
 * Context parallelism, played: where a ring stops hiding that keys and values pass by, beside the
 * closed form; what zigzag order saves; that instants are the same in full.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/base/units.h"
#include "tests/support/play.h"

enum { TEXT_BYTES = 1024, RANKS = 8, TOKENS_MAX = 1 << 15, HEAD_WIDTH = 128 };

struct setup {
    const char *name, *machine, *mesh, *model;
    uint32_t sequences; /* Of the whole machine. */
    uint32_t heads, kv_heads;
    double flop_per_s, bytes_per_s, hop_s; /* Of the machine, as its data sheet has them. */
    uint32_t step;                         /* Of the tokens of a rank. */
};

static const struct setup setups[] = {
    {"8B, v5p ring", "\"chip\": \"tpu-v5p\", \"shape\": \"8x4x4\"",
     "{\"cp\": [\"x\"], \"dp\": [\"y\", \"z\"]}", "llama-3-8b", 16, 32, 8, 459e12, 90e9, 1e-6, 16},
    {"13B without GQA, v5p ring", "\"chip\": \"tpu-v5p\", \"shape\": \"8x4x4\"",
     "{\"cp\": [\"x\"], \"dp\": [\"y\", \"z\"]}", "llama-2-13b", 16, 40, 40, 459e12, 90e9, 1e-6,
     16},
    {"13B without GQA, 8 H100 of a node", "\"chip\": \"h100-sxm\"", "{\"cp\": [\"gpu\"]}",
     "llama-2-13b", 1, 40, 40, 990e12, 450e9, 0.6e-6, 16},
    {"8B, 8 nodes of H100", "\"chip\": \"h100-sxm\", \"nodes\": 8",
     "{\"cp\": [\"node\"], \"dp\": [\"gpu\"]}", "llama-3-8b", 8, 32, 8, 990e12, 50e9, 1.45e-6, 16},
};

static void text_of(char text[TEXT_BYTES], const struct setup *setup, uint64_t rank_tokens,
                    const char *context, const char *order)
{
    uint64_t const length = rank_tokens * RANKS;
    int const written = snprintf(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"title\": \"context\", \"machine\": {%s, \"profile\": \"ideal\"}, "
        "\"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": \"%s\", "
        "\"batch_tokens\": %llu, \"sequence_length\": %llu, \"attention\": \"causal\", "
        "\"context\": \"%s\", \"context_order\": \"%s\", \"allow_oversubscription\": true}}",
        setup->machine, setup->mesh, setup->model, (unsigned long long)(length * setup->sequences),
        (unsigned long long)length, context, order);
    assert_true(written > 0 && written < TEXT_BYTES);
}

static const struct trace_class *class_of(const struct play *play, const char *name)
{
    for (uint32_t i = 0; i < play->program.class_count; i++)
        if (strcmp(play->program.class_names[i], name) == 0) return &play->trace.classes[i];
    fail_msg("no class is called %s", name);
    return NULL;
}

/* In the forward pass nothing else is waited for; in the backward pass gradients may share links.
 */
static int64_t exposed_ps(const struct setup *setup, uint64_t rank_tokens)
{
    char text[TEXT_BYTES];
    struct play play;
    text_of(text, setup, rank_tokens, "ring", "zigzag");
    play_run(&play, text, NULL);
    int64_t const exposed = play.trace.phase[PROGRAM_PHASE_FORWARD].exposed_ps;
    play_close(&play);
    return exposed;
}

/* The tokens of a rank from which on nothing is exposed. */
static uint64_t crossing(const struct setup *setup)
{
    uint64_t low = 1, high = TOKENS_MAX / setup->step;
    while (high - low > 1) {
        uint64_t const middle = (low + high) / 2;
        if (exposed_ps(setup, middle * setup->step) > 0)
            low = middle;
        else
            high = middle;
    }
    return high * setup->step;
}

/* 4·q·K·H bytes pass by while q·(8q + 128) / 2 scores a head, padded, are computed in 8 parts of 4
 * FLOP for each element of a head. */
static double closed_form(const struct setup *setup)
{
    uint64_t tokens = setup->step;
    for (; tokens < TOKENS_MAX; tokens += setup->step) {
        double const q = (double)tokens;
        double const pass_s =
            4 * q * setup->kv_heads * HEAD_WIDTH / setup->bytes_per_s + setup->hop_s;
        uint64_t const columns = units_round_up(tokens * RANKS + 1, 128);
        double const part_s =
            4 * q / 2 * (double)columns / RANKS * HEAD_WIDTH * setup->heads / setup->flop_per_s;
        if (part_s >= pass_s) break;
    }
    return (double)tokens;
}

static void a_ring_hides_from_the_closed_forms_tokens_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) {
        const struct setup *setup = &setups[i];
        double const rule =
            2 * setup->flop_per_s / setup->bytes_per_s * setup->kv_heads / setup->heads;
        double const wanted = closed_form(setup);
        double const got = (double)crossing(setup);
        print_message("    %-28s C/w·2K/N %7.0f  exact %7.0f  played %7.0f\n", setup->name, rule,
                      wanted, got);
        if (got < 0.98 * wanted || got > 1.02 * wanted) fail_msg("%s", setup->name);
    }
}

static int64_t attention_ps(const char *context, const char *order)
{
    char text[TEXT_BYTES];
    struct play play;
    text_of(text, &setups[0], 16384, context, order);
    play_run(&play, text, NULL);
    int64_t const time = class_of(&play, "attention.flash")->busy_ps;
    play_close(&play);
    return time;
}

/* 2 - 1/8 times as long, at both. */
static void zigzag_takes_about_half_as_long_as_contiguous(void **state)
{
    (void)state;
    static const char *const ways[] = {"ring", "all_gather"};
    for (size_t i = 0; i < 2; i++) {
        double const ratio =
            (double)attention_ps(ways[i], "contiguous") / (double)attention_ps(ways[i], "zigzag");
        print_message("    %s: contiguous takes %.4f times as long\n", ways[i], ratio);
        assert_true(ratio > 1.87 && ratio < 1.88);
    }
    assert_int_equal(attention_ps("ulysses", "contiguous"), attention_ps("ulysses", "zigzag"));
}

/* On rings, lines, several axes and levels: folding changes no instant, and no step is below its
 * roofline. */
static void a_folded_step_is_the_full_one(void **state)
{
    (void)state;
    static const char *const ways[] = {"ring", "all_gather", "ulysses"};
    static const struct {
        struct setup setup;
        uint32_t way_first; /* Of `ways`. */
        uint64_t rank_tokens;
    } rows[] = {
        {{.machine = "\"chip\": \"tpu-v5p\", \"shape\": \"8x4x4\"",
          .mesh = "{\"cp\": [\"x\"], \"fsdp\": [\"y\", \"z\"]}",
          .sequences = 16},
         0,
         1024},
        {{.machine = "\"chip\": \"tpu-v5p\", \"shape\": \"2x2x1\"",
          .mesh = "{\"cp\": [\"x\"], \"tp\": [\"y\"]}",
          .sequences = 1},
         0,
         512},
        {{.machine = "\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
          .mesh = "{\"cp\": [\"x\", \"y\"], \"dp\": [\"z\"]}",
          .sequences = 4},
         1,
         1024},
        {{.machine = "\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"",
          .mesh = "{\"tp\": [\"x\"], \"cp\": [\"y\"]}",
          .sequences = 1},
         1,
         512},
        {{.machine = "\"chip\": \"h100-sxm\", \"nodes\": 2",
          .mesh = "{\"cp\": [\"node\", \"gpu\"]}",
          .sequences = 1},
         1,
         2048},
        {{.machine = "\"chip\": \"h100-sxm\", \"nodes\": 4",
          .mesh = "{\"cp\": [\"node\"], \"tp\": [\"gpu\"]}",
          .sequences = 1},
         0,
         1024},
    };
    for (size_t i = 0; i < 3 * sizeof rows / sizeof *rows; i++) {
        int64_t step_ps[2] = {0};
        struct setup setup = rows[i / 3].setup;
        setup.model = "llama-3-8b";
        for (uint32_t full = 0; full < 2 && i % 3 >= rows[i / 3].way_first; full++) {
            char text[TEXT_BYTES];
            struct play play;
            text_of(text, &setup, rows[i / 3].rank_tokens, ways[i % 3], "zigzag");
            play_run(&play, text, &(struct play_options){.full = full});
            step_ps[full] = play.trace.step_ps;
            double const lower_ps = play.roofline.lower_s * TIME_PS_PER_S;
            if ((double)step_ps[full] < lower_ps * (1 - 1e-9))
                fail_msg("%s by %s: %.6g of the bound", setup.mesh, ways[i % 3],
                         (double)step_ps[full] / lower_ps);
            play_close(&play);
        }
        assert_int_equal(step_ps[0], step_ps[1]);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_hides_from_the_closed_forms_tokens_on),
        cmocka_unit_test(zigzag_takes_about_half_as_long_as_contiguous),
        cmocka_unit_test(a_folded_step_is_the_full_one),
    };
    return cmocka_run_group_tests_name("context", tests, NULL, NULL);
}
