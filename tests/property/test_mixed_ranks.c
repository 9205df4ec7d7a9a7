/*
 * Steps of sequences of unlike lengths over data ranks, drawn: attention takes as long as on the
 * one of the ranks that takes longest, with its own sequences, as if there were no other rank. Of
 * ranks of cp, keys and values are gathered of the data rank that has most of them, whichever
 * attends longest, and so are queries.
 */
#include <stdio.h>

#include "tests/support/case.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES, DRAWN = 160, RANKS_MAX = 4, EACH_MAX = 6 };

static const char *const models[] = {"tests/property/mla.json", "tests/property/dense.json",
                                     "llama-3-8b", "deepseek-v2-lite"};
enum { MODELS = sizeof models / sizeof *models };

/* Queries are rotated of the rank that has most of them. */
static const double SLACK = 1.005, SLACK_S = 2e-7;
static const struct play_options lowered = {.lower_only = true};

/* What a data rank is made of. */
static const struct {
    const char *axis;
    uint32_t ranks;
    bool parts; /* Its ranks have a part of each prompt. */
} inners[] = {{"", 1, false}, {"\"tp\"", 2, false}, {"\"cp\"", 2, true}};
enum { INNERS = sizeof inners / sizeof *inners };

/* What was drawn last. `each`: sequences of a data rank. */
struct sequences {
    uint32_t count, each;
    uint32_t tokens[RANKS_MAX * EACH_MAX];
};
static struct {
    uint32_t model, inner, ranks, cached;
    bool splits;
    struct sequences decodes, prompts;
} drawn;

/* Most are short. */
static struct sequences sequences_draw(uint64_t *state, uint32_t most)
{
    struct sequences of = {.count = 1 + case_draw(state, drawn.ranks * EACH_MAX)};
    of.each = (of.count + drawn.ranks - 1) / drawn.ranks;
    for (uint32_t i = 0; i < of.count; i++)
        of.tokens[i] = 1 + (case_draw(state, most) >> case_draw(state, 12));
    return of;
}

/* Those of some ranks. Writes their lengths and returns how many there are. */
static uint32_t lengths_write(const struct sequences *of, uint32_t first, uint32_t ranks,
                              char *text, size_t size)
{
    uint32_t const begin = first * of->each, all = begin + ranks * of->each;
    uint32_t const end = all < of->count ? all : of->count;
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = begin; i < end; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%u", i == begin ? "" : ", ",
                                 of->tokens[i]);
    return begin < end ? end - begin : 0;
}

/* A step of some kinds of sequences of some ranks. False where they have none. */
static bool step_write(uint32_t first, uint32_t ranks, bool decodes, bool prompts,
                       char text[TEXT_BYTES])
{
    char contexts[256], asked[256], keys[700] = "", mesh[64] = "";
    uint32_t const gpus = ranks * inners[drawn.inner].ranks;
    uint32_t const answers = lengths_write(&drawn.decodes, first, ranks, contexts, sizeof contexts);
    uint32_t const asking = lengths_write(&drawn.prompts, first, ranks, asked, sizeof asked);
    decodes = decodes && answers > 0;
    prompts = prompts && asking > 0;
    if (!decodes && !prompts) return false;
    size_t used = 0;
    if (decodes)
        used += (size_t)snprintf(keys, sizeof keys, "\"batch\": %u, \"context\": [%s], ", answers,
                                 contexts);
    if (prompts)
        (void)snprintf(keys + used, sizeof keys - used,
                       "\"%s\": %u, \"prompt\": [%s], \"cached\": %u, ",
                       decodes ? "prompts" : "batch", asking, asked, drawn.cached);
    if (ranks > 1) used = (size_t)snprintf(mesh, sizeof mesh, "\"dp\": [\"gpu:%u\"]", ranks);
    if (ranks == 1) used = 0;
    if (inners[drawn.inner].ranks > 1)
        (void)snprintf(mesh + used, sizeof mesh - used, "%s%s: [\"gpu:%u\"]", ranks > 1 ? ", " : "",
                       inners[drawn.inner].axis, inners[drawn.inner].ranks);
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"gpus\": %u}, \"mesh\": "
              "{%s}, \"workload\": {\"kind\": \"%s\", %s\"model\": \"%s\", "
              "\"kv_sharding\": \"replicated\", "
              "\"allow_oversubscription\": true}, \"run\": {\"split_attention\": %s}}",
              gpus, mesh,
              !prompts   ? "decode"
              : !decodes ? "prefill"
                         : "mixed",
              keys, models[drawn.model], drawn.splits ? "true" : "false");
    return true;
}

static void draw(uint64_t *state, char text[TEXT_BYTES])
{
    drawn.model = case_draw(state, MODELS);
    drawn.inner = case_draw(state, INNERS);
    drawn.ranks = 2 + case_draw(state, RANKS_MAX - 1);
    drawn.cached = case_draw(state, 2) * (1 + case_draw(state, 300));
    drawn.splits = case_draw(state, 4) != 0;
    drawn.decodes = sequences_draw(state, 30000);
    drawn.prompts = sequences_draw(state, 2000);
    uint32_t const kinds = case_draw(state, 8);
    if (!step_write(0, drawn.ranks, kinds != 0, kinds != 1, text)) fail_msg("nothing drawn");
    if (kinds == 0) drawn.decodes.count = 0;
    if (kinds == 1) drawn.prompts.count = 0;
}

static double gathered_bytes(const struct play *play)
{
    return walk_moved_bytes(&play->program, STREAM_OF_SEQUENCE, COLLECTIVE_ALL_GATHER);
}

struct found {
    double attention_s, gathered_bytes;
};

/* Of a rank alone. */
static struct found rank_found(uint32_t rank, bool decodes, bool prompts)
{
    char text[TEXT_BYTES];
    struct play play;
    if (!step_write(rank, 1, decodes, prompts, text)) return (struct found){0, 0};
    play_run(&play, text, &lowered);
    struct found const found = {walk_attention_s(&play), gathered_bytes(&play)};
    play_close(&play);
    return found;
}

static double larger(double one, double other)
{
    return one > other ? one : other;
}

static void check(struct play *play, const char *text)
{
    double longest_s = 0, decodes_bytes = 0, prompts_bytes = 0;
    for (uint32_t rank = 0; rank < drawn.ranks; rank++) {
        longest_s = larger(longest_s, rank_found(rank, true, true).attention_s);
        if (!inners[drawn.inner].parts) continue;
        decodes_bytes = larger(decodes_bytes, rank_found(rank, true, false).gathered_bytes);
        prompts_bytes = larger(prompts_bytes, rank_found(rank, false, true).gathered_bytes);
    }
    double const time_s = walk_attention_s(play);
    if (time_s > longest_s * SLACK + SLACK_S || time_s * SLACK + SLACK_S < longest_s)
        fail_msg("attention takes %g s, %g s on the rank that takes longest\nin %s", time_s,
                 longest_s, text);
    if (inners[drawn.inner].parts)
        case_near(gathered_bytes(play), decodes_bytes + prompts_bytes, 1e-9);
}

static void a_step_attends_as_long_as_its_slowest_rank(void **state)
{
    (void)state;
    walk_drawn_all(DRAWN, draw, &lowered, check);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_attends_as_long_as_its_slowest_rank),
    };
    walk_seed(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
