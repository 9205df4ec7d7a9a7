/*
 * Steps of inference of models with experts, drawn: attention of whole heads or latent, sequences
 * of their own on ranks of ep and of dp, tp, and weights in two dimensions. Folded or not and by
 * either engine instants are the same; and what a chip reads of weights, keeps and reads of the
 * cache, and sends to experts, over tp_d and over cp is what a count by hand says, which knows
 * neither graphs nor programs.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/property/charged.h"
#include "tests/property/experts_places.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES, ALIKE = 100, COUNTED = 1000 };
enum { ACTIVATION_BYTES = 2, SUM_BYTES = 4, STATISTICS = 2 };

static uint32_t place, model, weights_format, cache_format;
static bool whole_cache, by_tokens, replicated, each_expert, narrow;
/* Sequences that answer, those that ask, and tokens of each. */
static uint64_t answers, context, fresh, asking, prompt, cached;
static struct charged charged;

static uint64_t shares(uint64_t amount, uint64_t ranks)
{
    return (amount + ranks - 1) / ranks;
}

/* Bytes of an array. */
static double stored(uint32_t format, uint64_t elements)
{
    return expert_formats[format].bytes * (double)elements +
           expert_formats[format].scale_bytes * (double)shares(elements, 128);
}

static bool has_mla(void)
{
    return expert_models[model].latent != 0;
}

/* --- How heads and sequences lie --- */

struct lying {
    uint64_t heads, kv_heads;        /* Of a rank of tp. */
    uint64_t holders;                /* Ranks of tp that could keep the same rows. */
    uint64_t keepers, parts, filled; /* Ranks that keep other sequences; other parts; of tp_d with
                                        equally many sequences, or 1. */
    bool by_heads, by_rows;          /* Ranks of tp_d. */
    bool turns, shares;              /* Ranks of tp: other sequences; other parts. */
};

static void heads_lie(struct lying *of)
{
    uint64_t const tp = expert_places[place].tp, all = expert_models[model].kv_heads;
    of->kv_heads = tp > all ? 1 : all / tp;
    of->holders = has_mla() ? tp : tp > all ? tp / all : 1;
    of->heads = expert_models[model].heads / tp;
}

/* As "auto" has it, unless all rows lie on all ranks. All heads of latent attention read the same
 * rows, so that sequences come first, and heads where nobody answers. */
static struct lying lying_of(void)
{
    uint64_t const wide = expert_places[place].tp_d, data = expert_places[place].data;
    uint64_t const answer = shares(answers, data), ask = shares(asking, data);
    struct lying of = {.keepers = 1, .parts = expert_places[place].cp, .filled = 1};
    heads_lie(&of);
    if (whole_cache) return of;
    bool const enough = (answer == 0 || answer >= wide) && (ask == 0 || ask >= wide);
    of.by_heads = wide > 1 && (has_mla() ? !enough && answer == 0 && of.heads % wide == 0
                                         : of.holders == 1 && of.kv_heads % wide == 0);
    of.filled = wide > 1 && !of.by_heads && enough ? wide : 1;
    of.by_rows = wide > 1 && !of.by_heads && !enough;
    bool const splits = answer > 0 && of.holders > 1;
    bool const parted = of.parts > 1 && ask > 0; /* No rank has whole prompts. */
    of.turns = splits && shares(answer, of.filled) >= of.holders && !of.by_rows && !parted;
    of.shares = splits && !of.turns;
    of.keepers = of.filled * (of.turns ? of.holders : 1);
    of.parts *= (of.shares ? of.holders : 1) * (of.by_rows ? wide : 1);
    return of;
}

/* Tokens of a data rank, of sequences that answer, of those that ask; and those of all whose logits
 * are wanted. Ranks of cp each have some of the first, and an equal part of each prompt from either
 * end. */
static uint64_t answering_of(const struct lying *of)
{
    uint64_t const own = shares(answers, expert_places[place].data);
    return of->filled * shares(own, of->filled * expert_places[place].cp) * fresh;
}

static uint64_t asking_of(const struct lying *of)
{
    uint64_t const own = shares(asking, expert_places[place].data), ways = expert_places[place].cp;
    if (ways > 1) return own * 2 * shares(prompt, 2 * ways);
    return of->filled * shares(own, of->filled) * prompt;
}

static uint64_t tokens_of(const struct lying *of)
{
    return answering_of(of) + asking_of(of);
}

static uint64_t head_rows_of(const struct lying *of)
{
    return answering_of(of) +
           of->filled * shares(shares(asking, expert_places[place].data), of->filled);
}

/* --- Drawn --- */

static void sequences_draw(uint64_t *state)
{
    enum { DECODE, PREFILL, MIXED, KINDS };
    uint32_t const kind = case_draw(state, KINDS);
    answers = asking = prompt = cached = context = fresh = 0;
    if (kind != PREFILL) {
        answers = 1 + case_draw(state, 600);
        fresh = 1 + case_draw(state, 3);
        context = fresh + case_draw(state, 4000);
    }
    if (kind != DECODE) {
        asking = 1 + case_draw(state, 40);
        prompt = 1 + case_draw(state, 1000);
        cached = case_draw(state, 2) * case_draw(state, 1000);
    }
}

static int keys_write(char *text, size_t room)
{
    if (asking == 0)
        return snprintf(text, room, "\"decode\", \"batch\": %llu, \"context\": %llu, ",
                        (unsigned long long)answers, (unsigned long long)context);
    return snprintf(text, room, "\"%s\", \"%s\": %llu, \"prompt\": %llu, \"cached\": %llu, ",
                    answers == 0 ? "prefill" : "mixed", answers == 0 ? "batch" : "prompts",
                    (unsigned long long)asking, (unsigned long long)prompt,
                    (unsigned long long)cached);
}

static void draw_of(uint64_t *state, uint32_t model_count, char text[TEXT_BYTES])
{
    place = case_draw(state, PLACES);
    do model = case_draw(state, model_count);
    while (expert_models[model].experts % expert_places[place].ep != 0);
    bool const of_gpu = strstr(expert_places[place].machine, "tpu") == NULL;
    weights_format = case_draw(state, FORMATS);
    cache_format = case_draw(state, FORMATS);
    whole_cache = case_draw(state, 4) == 0;
    sequences_draw(state);
    struct lying const of = lying_of();
    by_tokens = case_draw(state, 2) == 0 && expert_places[place].tp > 1 &&
                tokens_of(&of) % expert_places[place].tp == 0;
    each_expert = case_draw(state, 2) == 0 && of_gpu && expert_places[place].ep > 1;
    narrow = case_draw(state, 2) == 0 && expert_places[place].ep > 1;
    replicated = case_draw(state, 2) == 0 && !by_tokens && expert_places[place].ep == 1;
    char keys[TEXT_BYTES / 2];
    int length = keys_write(keys, sizeof keys);
    if (answers > 0 && asking > 0)
        length += snprintf(keys + length, sizeof keys - (size_t)length,
                           "\"batch\": %llu, \"context\": %llu, ", (unsigned long long)answers,
                           (unsigned long long)context);
    if (answers > 0)
        length += snprintf(keys + length, sizeof keys - (size_t)length, "\"new_tokens\": %llu, ",
                           (unsigned long long)fresh);
    assert_true(length > 0 && (size_t)length < sizeof keys);
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {%s, \"profile\": \"ideal\"}, \"mesh\": %s, "
              "\"workload\": {\"kind\": %s\"model\": \"%s\", \"activations\": \"%s\", "
              "\"kv_sharding\": \"%s\", \"token_copies\": \"%s\", \"allow_oversubscription\": "
              "true, \"formats\": {\"weights\": \"%s\", \"kv\": \"%s\", \"dispatch\": \"%s\"}}}",
              expert_places[place].machine, expert_places[place].mesh, keys,
              expert_models[model].name,
              by_tokens    ? "tokens"
              : replicated ? "replicated"
                           : "model",
              whole_cache ? "replicated" : "auto", each_expert ? "expert" : "rank",
              expert_formats[weights_format].name, expert_formats[cache_format].name,
              narrow ? "fp8" : "bf16");
}

static void draw_small(uint64_t *state, char text[TEXT_BYTES])
{
    draw_of(state, SMALL, text);
}

static void draw(uint64_t *state, char text[TEXT_BYTES])
{
    draw_of(state, MODELS, text);
}

static void alike_check(struct play *folded, const char *text)
{
    walk_alike(folded, text, "reference");
}

static void folded_or_not_a_step_is_the_same(void **state)
{
    (void)state;
    walk_drawn_all(ALIKE, draw_small, NULL, alike_check);
}

/* --- Counted --- */

/* Prompts that begin, each rank with all rows of its own, attend to heads that are made of the
 * latents they have just computed. */
static bool makes_heads(const struct lying *of)
{
    return has_mla() && asking > 0 && cached == 0 && !of->by_rows;
}

/* Weights of attention on a rank: of latents what goes down and up, absorbed or not. With
 * decodes and prompts that begin, both are there, and what goes up is read twice. */
static double attention_weights(const struct lying *of)
{
    uint64_t const times = makes_heads(of) && answers > 0 ? 2 : 1;
    uint64_t const wide = expert_places[place].tp_d, D = expert_models[model].width / wide;
    uint64_t const up = of->by_heads ? of->heads / wide : of->heads;
    uint64_t const values = expert_models[model].value_width, latent = expert_models[model].latent;
    uint64_t const query = expert_models[model].query_latent, H = expert_models[model].head_width;
    if (!has_mla()) return (double)(D * H * (2 * of->heads + 2 * of->kv_heads));
    uint64_t const queries = query == 0 ? D * of->heads * H : (D + up * H) * query;
    return (double)(D * (latent + expert_models[model].turned) + queries +
                    times * latent * up * (expert_models[model].plain + values) +
                    of->heads * values * D);
}

/* Experts of a rank that tokens ask for: each is missed by all with (1 - k/E)^tokens. Ranks of ep
 * read whole ones. */
static double experts_read(const struct lying *of)
{
    uint64_t const held = expert_models[model].experts / expert_places[place].ep;
    uint64_t const own = tokens_of(of) * expert_places[place].ep;
    uint64_t const all = answers * fresh + asking * prompt;
    double const each = 1 - (double)expert_models[model].top / (double)expert_models[model].experts;
    double const missed = pow(each, (double)(own < all ? own : all));
    if (expert_places[place].ep == 1) return (double)held * (1 - missed);
    return (double)(held - (uint64_t)((double)held * missed));
}

static double mlp_weights(uint64_t columns)
{
    uint64_t const D = expert_models[model].width / expert_places[place].tp_d;
    return (double)(3 * D * shares(columns, expert_places[place].tp));
}

static void weights_check(const struct play *play, const struct lying *of)
{
    uint64_t const tp = expert_places[place].tp,
                   D = expert_models[model].width / expert_places[place].tp_d;
    uint64_t const router = expert_models[model].experts * D / (by_tokens || replicated ? 1 : tp);
    double const sparse = (double)router + mlp_weights(expert_models[model].shared_width) +
                          experts_read(of) * mlp_weights(expert_models[model].expert_width);
    double const dense = (double)expert_models[model].dense,
                 layers = (double)expert_models[model].layers;
    double const all =
        layers * attention_weights(of) + dense * mlp_weights(expert_models[model].mlp_width) +
        (layers - dense) * sparse + (double)(D * shares(expert_models[model].vocabulary, tp));
    double const bytes =
        expert_formats[weights_format].bytes + expert_formats[weights_format].scale_bytes / 128;
    /* Of the matrices of experts, a part of an element is a whole one in each; and the last block
     * of any matrix has a whole scale. */
    double const scales = 16 * layers * expert_formats[weights_format].scale_bytes;
    double const more = play->roofline.counts.inference.weight_bytes - bytes * all;
    double const parts = bytes * 3 * (layers - dense) + scales;
    if (more < -1e-7 * bytes * all || more > parts + 1e-7 * bytes * all)
        fail_msg("weights have %g bytes more than the %g of the formula", more, bytes * all);
}

/* Elements of a row of the cache, in one array or in two. */
static uint64_t row_of(const struct lying *of)
{
    uint64_t const wide = of->by_heads ? expert_places[place].tp_d : 1;
    if (has_mla()) return expert_models[model].latent + expert_models[model].turned;
    return of->kv_heads / wide * expert_models[model].head_width;
}

static double cached_bytes(const struct lying *of, uint64_t rows)
{
    return (has_mla() ? 1 : 2) * stored(cache_format, rows * row_of(of));
}

/* Whether ranks of tp that share the cache have computed all rows that prompts attend to, so that
 * each attends for its own heads. */
static bool stays(const struct lying *of)
{
    return (of->turns || of->shares) && cached == 0;
}

static uint64_t asked_rows(const struct lying *of)
{
    uint64_t const own = shares(asking, expert_places[place].data);
    return shares(shares(own, of->keepers) * (cached + prompt), of->parts);
}

/* Of prompts whose parts lie on ranks of cp a pass reads what it has gathered. */
static void cache_check(const struct play *play, const struct lying *of)
{
    uint64_t const data = expert_places[place].data, ways = expert_places[place].cp;
    uint64_t const rows = shares(shares(shares(answers, data), of->keepers) * context, of->parts);
    uint64_t const asked =
        stays(of) || makes_heads(of) || (ways > 1 && cached == 0) ? 0 : asked_rows(of);
    double const layers = (double)expert_models[model].layers;
    double const bytes = layers * cached_bytes(of, rows + asked_rows(of));
    double const read =
        layers * (ways == 1 ? cached_bytes(of, rows + asked)
                            : cached_bytes(of, rows) + cached_bytes(of, ways * asked));
    case_near((double)play->program.roles[0].resident_bytes[PROGRAM_MEMORY_CACHE], bytes, 1e-9);
    charged_check(&charged, play->roofline.counts.inference.kv_read_bytes, read);
}

/* Over cp: queries of all that answer, and in fp32 what is found; of prompts latents, or keys and
 * values, new ones as they are computed where there are no others. */
static void context_check(const struct play *play, const struct lying *of)
{
    uint64_t const ways = expert_places[place].cp, H = expert_models[model].head_width;
    double const answering = (double)(ways * answering_of(of) * of->heads);
    double const layers = (double)expert_models[model].layers;
    uint64_t const key = has_mla() ? row_of(of) : H;
    uint64_t const value = has_mla() ? expert_models[model].latent : H;
    bool const own = cached == 0; /* As the rows were computed. */
    double const fresh_bytes =
        (double)((has_mla() ? 1U : 2U) * ACTIVATION_BYTES * ways * asking_of(of) * row_of(of));
    double const rows = own ? fresh_bytes : cached_bytes(of, ways * asked_rows(of));
    if (ways == 1) return;
    case_near(walk_moved_bytes(&play->program, STREAM_OF_SEQUENCE, COLLECTIVE_ALL_GATHER),
              layers * (ACTIVATION_BYTES * answering * (double)key + rows), 1e-9);
    case_near(walk_moved_bytes(&play->program, STREAM_OF_SEQUENCE, COLLECTIVE_REDUCE_SCATTER),
              layers * SUM_BYTES * answering * (double)(value + STATISTICS), 1e-9);
}

/* That none of some different ones out of a number is among those that are held. */
static double missed(double count, double held, uint64_t drawn)
{
    double probability = 1;
    for (uint64_t i = 0; i < drawn; i++)
        probability *= fmax(count - held - (double)i, 0) / (count - (double)i);
    return probability;
}

static double choose(double count, double drawn)
{
    double ways = 1;
    for (double i = 0; i < drawn; i++) ways *= (count - i) / (i + 1);
    return ways;
}

/* That a token has an expert on a rank of ep; first it has groups, then experts of these. */
static double hit(void)
{
    double const held = (double)expert_models[model].experts / expert_places[place].ep;
    double const groups = (double)expert_models[model].groups,
                 top = (double)expert_models[model].top_groups;
    uint64_t const drawn = expert_models[model].top;
    if (groups == 0) return 1 - missed((double)expert_models[model].experts, held, drawn);
    double const group = (double)expert_models[model].experts / groups, open = top * group;
    if (held <= group) return top / groups * (1 - missed(open, held, drawn));
    double const own = held / group;
    double none = 0;
    for (double hits = 0; hits <= top && hits <= own; hits++)
        none += choose(own, hits) * choose(groups - own, top - hits) / choose(groups, top) *
                missed(open, hits * group, drawn);
    return 1 - none;
}

/* Rows go to experts and come back, each a part of D: once to each rank that has some for it, or
 * once for each of them. What is expected to come to a rank is rounded up, and has rows there. */
static void exchange_check(const struct play *play, const struct lying *of)
{
    uint64_t const ep = expert_places[place].ep, own = tokens_of(of);
    uint64_t const all = answers * fresh + asking * prompt;
    uint64_t const tokens = all < ep * own ? all : ep * own;
    double const expected = (double)tokens * hit(), slack = 1e-6;
    double const part =
        (double)expert_models[model].width / expert_places[place].tp / expert_places[place].tp_d;
    double const layers = (double)(expert_models[model].layers - expert_models[model].dense);
    double const row_bytes = layers * part * (ACTIVATION_BYTES + (narrow ? 1 : ACTIVATION_BYTES));
    double const bytes = walk_moved_bytes(&play->program, STREAM_OF_EP, COLLECTIVE_ALL_TO_ALL);
    double const rows = bytes / row_bytes / (double)ep;
    if (ep == 1) {
        assert_true(bytes == 0);
        return;
    }
    if (each_expert) {
        case_near(bytes, (double)(tokens * expert_models[model].top) * row_bytes, 1e-9);
        return;
    }
    case_near(rows, round(rows), 1e-9);
    double const most = (double)shares(tokens * expert_models[model].top, ep);
    assert_true(rows >= expected - slack && rows < expected + 1 + slack);
    assert_true(rows <= most && rows <= (double)tokens);
}

/* Of attention: Q, K and V, or latents, and what is found, which goes back. All heads of a rank of
 * tp read the same latents: where ranks of tp_d have heads, they sum these, and scatter a Q that
 * has no latent. */
static void width_attention(const struct lying *of, double *ret_scattered, double *ret_gathered,
                            double *ret_summed)
{
    uint64_t const tokens = tokens_of(of), H = expert_models[model].head_width;
    uint64_t const latents = expert_models[model].latent + expert_models[model].turned;
    bool const direct = has_mla() && expert_models[model].query_latent == 0;
    bool const scatters = of->by_heads || of->filled > 1;
    uint64_t const heads = direct      ? of->heads * H
                           : has_mla() ? 0
                                       : (of->heads + 2 * of->kv_heads) * H;
    uint64_t const shared = has_mla() ? latents + expert_models[model].query_latent : 0;
    uint64_t const scattered = scatters ? heads + (of->filled > 1 ? shared : 0) : 0;
    uint64_t const found = has_mla() ? expert_models[model].latent : H;
    uint64_t const values = has_mla() ? expert_models[model].value_width : H;
    *ret_scattered = (double)(ACTIVATION_BYTES * tokens * scattered);
    *ret_gathered = scatters ? (double)(ACTIVATION_BYTES * tokens * of->heads * values) : 0;
    *ret_summed = (double)(ACTIVATION_BYTES * tokens * (heads + shared - scattered));
    if (of->by_rows) *ret_summed += (double)(SUM_BYTES * tokens * of->heads * (found + STATISTICS));
}

/* And of the other blocks: In times all columns of a rank of tp, scores of experts, logits. */
static void width_check(const struct play *play, const struct lying *of)
{
    uint64_t const tp = expert_places[place].tp, tokens = tokens_of(of),
                   ep = expert_places[place].ep;
    uint64_t const own = tokens * ep, all = answers * fresh + asking * prompt;
    uint64_t const rows = shares((own < all ? own : all) * expert_models[model].top, ep);
    double const layers = (double)expert_models[model].layers,
                 dense = (double)expert_models[model].dense;
    double const hidden = 2. * ACTIVATION_BYTES;
    double scattered, gathered, summed;
    if (expert_places[place].tp_d == 1) return;
    width_attention(of, &scattered, &gathered, &summed);
    double const of_dense = hidden * (double)(tokens * shares(expert_models[model].mlp_width, tp));
    double const scores =
        SUM_BYTES * (double)(tokens / (by_tokens ? tp : 1) * expert_models[model].experts);
    double const of_sparse =
        scores + hidden * (double)(tokens * shares(expert_models[model].shared_width, tp) +
                                   rows * shares(expert_models[model].expert_width, tp));
    double const logits =
        ACTIVATION_BYTES * (double)(head_rows_of(of) * shares(expert_models[model].vocabulary, tp));
    case_near(walk_moved_bytes(&play->program, STREAM_OF_TP_D, COLLECTIVE_REDUCE_SCATTER),
              layers * scattered, 1e-9);
    case_near(walk_moved_bytes(&play->program, STREAM_OF_TP_D, COLLECTIVE_ALL_GATHER),
              layers * gathered, 1e-9);
    case_near(walk_moved_bytes(&play->program, STREAM_OF_TP_D, COLLECTIVE_ALL_REDUCE),
              layers * summed + dense * of_dense + (layers - dense) * of_sparse + logits, 1e-9);
}

/* Queries go to who has the rows and what they find comes back; of parts of sequences a sum in
 * fp32, with a maximum and a sum of its scores for each head. */
static void queries_check(const struct play *play, const struct lying *of)
{
    uint64_t const data = expert_places[place].data, layers = expert_models[model].layers;
    uint64_t const ways = expert_places[place].cp;
    uint64_t const kept = shares(shares(answers, data), of->keepers) * fresh +
                          (stays(of) ? 0 : shares(shares(asking, data), of->keepers) * prompt);
    uint64_t const asked = stays(of) ? 0 : asking_of(of);
    uint64_t const heads = of->heads * of->holders;
    uint64_t const own = ways > 1 ? ways * answering_of(of) * of->heads : 0;
    uint64_t const most = own > kept * heads ? own : kept * heads;
    uint64_t const key = has_mla() ? row_of(of) : expert_models[model].head_width;
    uint64_t const value =
        has_mla() ? expert_models[model].latent : expert_models[model].head_width;
    double const turned = (double)(layers * most * of->holders * (key + value) * ACTIVATION_BYTES);
    double const found = (double)(layers * (ways * answering_of(of) + asked) / of->filled * heads *
                                  (value + STATISTICS) * SUM_BYTES);
    case_near(walk_moved_bytes(&play->program, STREAM_OF_KV, COLLECTIVE_ALL_TO_ALL),
              of->turns ? turned : 0, 1e-9);
    case_near(walk_moved_bytes(&play->program, STREAM_OF_KV, COLLECTIVE_REDUCE_SCATTER),
              of->shares ? found : 0, 1e-9);
}

static void counts_check(struct play *play, const char *text)
{
    struct lying const of = lying_of();
    (void)text;
    weights_check(play, &of);
    cache_check(play, &of);
    context_check(play, &of);
    exchange_check(play, &of);
    queries_check(play, &of);
    width_check(play, &of);
}

static void what_a_chip_reads_keeps_and_sends_is_what_is_counted(void **state)
{
    static const struct play_options lower_only = {.lower_only = true};
    (void)state;
    walk_drawn_all(COUNTED, draw, &lower_only, counts_check);
    charged_end(&charged);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded_or_not_a_step_is_the_same),
        cmocka_unit_test(what_a_chip_reads_keeps_and_sends_is_what_is_counted),
    };
    walk_seed(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
