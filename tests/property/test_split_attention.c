/*
 * Attention on GPUs whose cores share sequences, drawn: it takes no longer than with sequences that
 * stay whole, and no less where each sequence has a token more. Of decodes it takes no longer than
 * with all contexts as long as the longest, and together with prompts hardly longer. Prompts are
 * behind cached tokens, too.
 */
#include <stdio.h>

#include "tests/support/case.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES, DRAWN = 500, MOST = 12 };

static const struct play_options lowered = {.lower_only = true};
/* Shares of cores are in millionths, and costs of parts in whole keys. */
static const double SLACK = 1.002;
/* The first tile of fewer bytes hides less of what cores take, of which ops of some microseconds
 * have little. */
static const double DECODE_SLACK = 1.1;
static const double MIXED_SLACK = 1.05;

static const struct {
    const char *name;
    uint32_t tp;
} models[] = {{"llama-3-8b", 1},       {"llama-3-8b", 4},       {"llama-3-70b", 8},
              {"deepseek-v2-lite", 1}, {"deepseek-v2-lite", 4}, {"tests/property/mla.json", 2}};
static const char *const chips[] = {"a100-sxm", "h100-sxm", "b200"};
enum { MODELS = sizeof models / sizeof *models, CHIPS = sizeof chips / sizeof *chips };

struct sequences {
    uint32_t count, tokens[MOST];
};

/* A token more a sequence: where one tile becomes two, more cores share what they read besides keys
 * and what the pipeline of tiles does not hide. */
static const double MORE_SLACK = 1.3;

/* What was drawn last. */
static uint32_t model, chip, cached;
static struct sequences contexts, prompts;

/* Of one length, or most of them short. */
static struct sequences sequences_draw(uint64_t *state, uint32_t most)
{
    struct sequences of = {.count = 1 + (case_draw(state, MOST) >> case_draw(state, 3))};
    uint32_t const octaves = case_draw(state, 2) * 12;
    uint32_t const first = 1 + (case_draw(state, most) >> case_draw(state, 10));
    for (uint32_t i = 0; i < of.count; i++)
        of.tokens[i] =
            octaves == 0 ? first : 1 + (case_draw(state, most) >> case_draw(state, octaves));
    return of;
}

static struct sequences longest_of(const struct sequences *of)
{
    struct sequences all = *of;
    for (uint32_t i = 0; i < of->count; i++)
        if (of->tokens[i] > all.tokens[0]) all.tokens[0] = of->tokens[i];
    for (uint32_t i = 1; i < of->count; i++) all.tokens[i] = all.tokens[0];
    return all;
}

static void keys_write(const char *count, const char *lengths, const struct sequences *of,
                       char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "\"%s\": %u, \"%s\": [", count, of->count, lengths);
    for (uint32_t i = 0; i < of->count; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%u", i == 0 ? "" : ", ", of->tokens[i]);
    (void)snprintf(text + used, size - used, "], ");
}

static void step_write(const struct sequences *answers, const struct sequences *asked, bool splits,
                       char text[TEXT_BYTES])
{
    char answering[200] = "", asking[200] = "", behind[40] = "";
    bool const decodes = answers->count > 0, reads = asked->count > 0;
    if (decodes) keys_write("batch", "context", answers, answering, sizeof answering);
    if (reads) keys_write(decodes ? "prompts" : "batch", "prompt", asked, asking, sizeof asking);
    if (reads) (void)snprintf(behind, sizeof behind, "\"cached\": %u, ", cached);
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {\"chip\": \"%s\", \"gpus\": %u}, \"mesh\": {\"tp\": "
              "[\"gpu\"]}, \"workload\": {\"kind\": \"%s\", %s%s%s\"model\": \"%s\", "
              "\"allow_oversubscription\": true}, \"run\": {\"split_attention\": %s}}",
              chips[chip], models[model].tp,
              !reads    ? "decode"
              : decodes ? "mixed"
                        : "prefill",
              answering, asking, behind, models[model].name, splits ? "true" : "false");
}

static void draw(uint64_t *state, char text[TEXT_BYTES])
{
    uint32_t const kinds = case_draw(state, 4);
    model = case_draw(state, MODELS);
    chip = case_draw(state, CHIPS);
    cached = case_draw(state, 2) * (1 + case_draw(state, 9000));
    contexts = sequences_draw(state, 20000);
    prompts = sequences_draw(state, 1000);
    if (kinds == 0) contexts.count = 0;
    if (kinds == 1) prompts.count = 0;
    step_write(&contexts, &prompts, true, text);
}

static double taken_s(const struct sequences *answers, const struct sequences *asked, bool splits)
{
    char text[TEXT_BYTES];
    struct play play;
    step_write(answers, asked, splits, text);
    play_run(&play, text, &lowered);
    double const time_s = walk_attention_s(&play);
    play_close(&play);
    return time_s;
}

static void at_most(double time_s, double most_s, const char *what, const char *text)
{
    if (time_s > most_s) fail_msg("%g s of attention, %g s %s\nin %s", time_s, most_s, what, text);
}

static void check(struct play *play, const char *text)
{
    struct sequences const answers = longest_of(&contexts);
    double const slack = prompts.count > 0 ? MIXED_SLACK : DECODE_SLACK;
    double const time_s = walk_attention_s(play);
    at_most(time_s, SLACK * taken_s(&contexts, &prompts, false), "of whole sequences", text);
    at_most(time_s, slack * taken_s(&answers, &prompts, true), "of the longest context", text);
}

static void a_pass_takes_no_longer_than_whole_or_longer_sequences(void **state)
{
    (void)state;
    walk_drawn_all(DRAWN, draw, &lowered, check);
}

/* Sequences with a number of new tokens each: decodes, prompts, or decodes next to a prompt. */
static struct {
    uint32_t kind, count, context, tokens;
    bool splits;
} pass;

static void pass_write(char text[TEXT_BYTES])
{
    char keys[200];
    static const char *const kinds[] = {"decode", "prefill", "mixed"};
    if (pass.kind == 0)
        case_text(keys, sizeof keys, "\"batch\": %u, \"context\": %u, \"new_tokens\": %u",
                  pass.count, pass.context, pass.tokens);
    else if (pass.kind == 1)
        case_text(keys, sizeof keys, "\"batch\": %u, \"cached\": %u, \"prompt\": %u", pass.count,
                  pass.context, pass.tokens);
    else
        case_text(keys, sizeof keys,
                  "\"batch\": 2, \"context\": %u, \"prompts\": %u, \"cached\": %u, "
                  "\"prompt\": %u",
                  pass.context, pass.count, pass.context, pass.tokens);
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {\"chip\": \"%s\", \"gpus\": %u}, \"mesh\": {\"tp\": "
              "[\"gpu\"]}, \"workload\": {\"kind\": \"%s\", %s, \"model\": \"%s\", "
              "\"allow_oversubscription\": true}, \"run\": {\"split_attention\": %s}}",
              chips[chip], models[model].tp, kinds[pass.kind], keys, models[model].name,
              pass.splits ? "true" : "false");
}

/* A token before the edge of a tile of the queries that share a head of keys. Keys are half a block
 * from the edge of one. */
static void pass_draw(uint64_t *state, char text[TEXT_BYTES])
{
    static const uint32_t queries[MODELS] = {4, 4, 8, 16, 4, 8};
    static const uint32_t edges[] = {64, 128, 192, 256, 384};
    model = case_draw(state, MODELS);
    chip = case_draw(state, CHIPS);
    pass.splits = case_draw(state, 2) == 0;
    pass.kind = case_draw(state, pass.splits ? 2 : 3);
    /* Of many prompts the tiles fill all cores, and decodes' in the pass none. */
    pass.count = pass.kind == 2 ? 1 + case_draw(state, 3)
                                : 1 + (case_draw(state, 200) >> case_draw(state, 8));
    uint32_t blocks = 1 + (case_draw(state, 150) >> case_draw(state, 7));
    uint32_t edge = edges[case_draw(state, sizeof edges / sizeof *edges)];
    /* Two tiles share what L2 gives, which is twice what it gives one core. So a second tile makes
     * a pass shorter that leaves cores idle, for lack of parts. */
    bool const latent = model > 2;
    if (!latent && edge == 128 && (!pass.splits || pass.count > 4)) edge = 64;
    if (!latent && edge == 128) blocks += 100;
    pass.tokens = edge / queries[model] - 1;
    pass.context = blocks * 128 + 64;
    if (pass.kind == 0) pass.context += pass.tokens / 2;
    if (pass.kind != 0) pass.context -= pass.tokens / 2;
    pass_write(text);
}

static void longer_check(struct play *play, const char *text)
{
    char longer[TEXT_BYTES];
    double before_s = walk_attention_s(play);
    (void)text;
    for (uint32_t i = 0; i < 3; i++) {
        struct play next;
        pass.tokens++;
        pass_write(longer);
        play_run(&next, longer, &lowered);
        double const time_s = walk_attention_s(&next);
        play_close(&next);
        at_most(before_s, MORE_SLACK * time_s, "with a token more a sequence", longer);
        before_s = time_s;
    }
}

/* Where one tile becomes two, twice as many cores have keys of L2, and each tile reads its own. */
static void more_tokens_take_no_less(void **state)
{
    (void)state;
    walk_drawn_all(DRAWN, pass_draw, &lowered, longer_check);
}

/* A prompt of 400 tokens has 25 tiles on each of 8 GPUs, and a decode one. With parts all cores are
 * busy: 400 queries and 8,200 keys of 8 heads in a layer, at the rate of tensor cores, and then
 * with the merge: 3.6 us for 13.6 us. */
static void tiles_of_a_prompt_are_split_next_to_decodes(void **state)
{
    (void)state;
    model = 2;
    chip = 1;
    cached = 8000;
    prompts = (struct sequences){1, {400}};
    contexts = (struct sequences){1, {2000}};
    double const least_s = 4. * 400 * 8200 * 8 * 128 / 989.4e12;
    double const time_s = taken_s(&contexts, &prompts, true);
    assert_true(time_s > least_s && time_s < 1.35 * least_s);
    assert_true(time_s < 0.3 * taken_s(&contexts, &prompts, false));
    contexts.count = 0;
    assert_true(taken_s(&contexts, &prompts, true) <= time_s);
}

/* 9 prompts have 72 tiles for 132 cores. Parts of short prompts take longer to merge than the other
 * cores could save. */
static void parts_that_take_longer_to_merge_are_not_made(void **state)
{
    (void)state;
    model = 0;
    chip = 1;
    contexts.count = 0;
    prompts = (struct sequences){9, {32, 32, 32, 32, 32, 32, 32, 32, 32}};
    cached = 300;
    case_near(taken_s(&contexts, &prompts, true), taken_s(&contexts, &prompts, false), 1e-9);
    cached = 20000;
    assert_true(taken_s(&contexts, &prompts, true) < 0.95 * taken_s(&contexts, &prompts, false));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pass_takes_no_longer_than_whole_or_longer_sequences),
        cmocka_unit_test(more_tokens_take_no_less),
        cmocka_unit_test(tiles_of_a_prompt_are_split_next_to_decodes),
        cmocka_unit_test(parts_that_take_longer_to_merge_are_not_made),
    };
    walk_seed(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
