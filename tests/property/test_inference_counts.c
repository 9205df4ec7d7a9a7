/*
 * Steps of inference, drawn: what a chip reads of weights, keeps and reads of the cache, and sends
 * of queries, over tp_d, over cp and to the next stage, is what a count by hand says, which knows
 * neither graphs nor programs.
 */
#include <math.h>

#include "sim/graph/op.h"
#include "tests/property/charged.h"
#include "tests/property/inference_drawn.h"
#include "tests/support/play.h"

enum { COUNTED = 1000 };

static uint64_t counted_batch; /* Of those in flight the one that is counted. */

static uint64_t answer_count(void)
{
    return passes[pass_count - 1].answer.count;
}

/* Stages each have a batch of decodes; of prompts there may be fewer. */
static uint64_t batch_count(void)
{
    uint64_t const stages = inference_places[place].pp, ask = passes[0].ask.count;
    return answer_count() > 0 || ask > stages ? stages : ask;
}

static uint64_t shares(uint64_t amount, uint64_t ranks)
{
    return (amount + ranks - 1) / ranks;
}

/* Of a data rank, in the batch. */
static uint64_t share_of(uint64_t count)
{
    uint64_t const batches = batch_count();
    return shares(count * (counted_batch + 1) / batches - count * counted_batch / batches,
                  inference_places[place].data);
}

/* As "auto" has it, unless all rows lie on all ranks. Caches of all batches lie alike. */
static struct lying lying_of(void)
{
    uint64_t const wide = inference_places[place].tp_d;
    uint64_t const ways = inference_places[place].cp;
    bool const ulysses = context == CONTEXT_ULYSSES;
    struct lying of = {.keepers = 1, .parts = ulysses ? 1 : ways, .filled = 1};
    uint64_t least = UINT64_MAX;
    bool enough = true;
    for (counted_batch = 0; counted_batch < batch_count(); counted_batch++) {
        uint64_t const answer = share_of(answer_count()), ask = share_of(passes[0].ask.count);
        enough = enough && (answer == 0 || answer >= wide) && (ask == 0 || ask >= wide);
        if (answer < least) least = answer;
    }
    inference_heads_lie(place, model, &of);
    if (whole_cache) return of;
    of.by_heads = wide > 1 && of.holders == 1 && of.kv_heads % wide == 0;
    of.by_rows = wide > 1 && !of.by_heads && !enough;
    of.filled = wide > 1 && !of.by_heads && enough ? wide : 1;
    bool const splits = least > 0 && of.holders > 1;
    bool const parted = ways > 1 && passes[0].ask.count > 0;
    of.turns = splits && shares(least, of.filled) >= of.holders && !of.by_rows && !parted;
    of.shares = splits && !of.turns;
    of.keepers = of.filled * (of.turns ? of.holders : 1);
    of.parts *= (of.shares ? of.holders : 1) * (of.by_rows ? wide : 1);
    return of;
}

/* Of the sequences of a rank that keeps some, or parts of them, in all batches. */
static uint64_t rows_of(const struct alike *all, const struct lying *of)
{
    uint64_t rows = 0;
    for (counted_batch = 0; counted_batch < batch_count(); counted_batch++)
        rows += shares(shares(share_of(all->count), of->keepers) * all->keys, of->parts);
    return rows;
}

/* In a pass, of so many ranks' shares of the sequences. Ranks of cp each have some of those that
 * answer, and of each prompt an equal part, two if one is from each end. */
static uint64_t answering_of(uint32_t pass, uint64_t ranks)
{
    return shares(share_of(passes[pass].answer.count), ranks * inference_places[place].cp) *
           passes[pass].answer.new_tokens;
}

static uint64_t asking_of(uint32_t pass, uint64_t ranks)
{
    const struct alike *ask = &passes[pass].ask;
    uint64_t const ways = inference_places[place].cp, ends = context == CONTEXT_ULYSSES ? 1 : 2;
    if (ways == 1) return shares(share_of(ask->count), ranks) * ask->new_tokens;
    return share_of(ask->count) * shares(ask->new_tokens, ends * ways) * ends;
}

/* New tokens in all passes. */
static uint64_t tokens_of(uint64_t ranks)
{
    uint64_t tokens = 0;
    for (uint32_t p = 0; p < pass_count; p++)
        for (counted_batch = 0; counted_batch < batch_count(); counted_batch++)
            tokens += answering_of(p, ranks) + asking_of(p, ranks);
    return tokens;
}

/* Those whose logits are wanted: of a prompt the last. */
static uint64_t asking_rows_of(uint64_t ranks)
{
    uint64_t rows = 0;
    for (counted_batch = 0; counted_batch < batch_count(); counted_batch++)
        rows += shares(share_of(passes[0].ask.count), ranks);
    return rows;
}

static uint64_t head_rows_of(uint64_t ranks)
{
    const struct alike *answer = &passes[pass_count - 1].answer;
    uint64_t rows = asking_rows_of(ranks);
    for (counted_batch = 0; counted_batch < batch_count(); counted_batch++)
        rows += shares(share_of(answer->count), ranks * inference_places[place].cp) *
                answer->new_tokens;
    return rows;
}

/* What a message brings to the next stage is as large as activations are between blocks; tokens go
 * back from the last stage to the first: of a decode for the next one, of a generation's prefill
 * for the step. */
static void messages_check(const struct play *play)
{
    uint64_t const width =
        inference_models[model].width / (replicated ? 1 : inference_places[place].tp);
    uint64_t const back = generates ? asking_rows_of(1) : answer_count() > 0 ? head_rows_of(1) : 0;
    uint64_t const wanted = 2 * (inference_places[place].pp - 1) * tokens_of(1) * width + 4 * back;
    if (inference_places[place].pp > 1)
        case_near(walk_sent_bytes(&play->program), (double)wanted, 1e-9);
}

/* Whether prompts of a pass attend to new tokens alone, which need not come from the cache. */
static bool begins(uint32_t pass)
{
    return passes[pass].ask.keys == passes[pass].ask.new_tokens;
}

/* Whether ranks of tp with the same heads, that share the cache, have computed all rows that
 * prompts of a pass attend to: then each attends for its own heads. */
static bool stays(uint32_t pass, const struct lying *of)
{
    const struct alike *ask = &passes[pass].ask;
    return (of->turns || of->shares) && ask->count > 0 && ask->keys == ask->new_tokens;
}

/* Of one batch, rows of a rank of cp's prompts. */
static uint64_t parts_of(const struct alike *ask, const struct lying *of)
{
    return shares(shares(share_of(ask->count), of->keepers) * ask->keys, of->parts);
}

/* Ranks of cp gather keys and values of prompts, those of the cache in its format; of decodes they
 * gather queries, and merge in fp32 what is found for them, with the maximum and the sum of each
 * head's scores. Or they turn tokens into heads, all that they have, and what is found back. */
static void context_check(const struct play *play, const struct lying *of)
{
    uint64_t const H = inference_models[model].head_width, layers = inference_models[model].layers;
    uint64_t const ways = inference_places[place].cp;
    uint64_t const kv_heads = of->kv_heads > ways ? of->kv_heads : ways;
    double const cache_bytes = inference_formats[cache_format].bytes;
    double gathered = 0, merged = 0, turned = 0;
    if (ways == 1) return;
    for (uint32_t p = 0; p < pass_count; p++)
        for (counted_batch = 0; counted_batch < batch_count(); counted_batch++) {
            double const answering = (double)(ways * answering_of(p, 1));
            double const asking = (double)(ways * asking_of(p, 1));
            double const rows =
                (double)(2 * ways * parts_of(&passes[p].ask, of) * of->kv_heads * H);
            gathered += 2 * answering * (double)(of->heads * H);
            gathered += begins(p) || stays(p, of) ? 4 * asking * (double)(of->kv_heads * H)
                                                  : rows * cache_bytes;
            merged += 4 * answering * (double)(of->heads * (H + 2));
            turned += 2 * (answering + asking) * (double)(2 * (of->heads + kv_heads) * H);
        }
    bool const ulysses = context == CONTEXT_ULYSSES;
    case_near(walk_moved_bytes(&play->program, STREAM_OF_SEQUENCE, COLLECTIVE_ALL_GATHER),
              ulysses ? 0 : (double)layers * gathered, 1e-9);
    case_near(walk_moved_bytes(&play->program, STREAM_OF_SEQUENCE, COLLECTIVE_REDUCE_SCATTER),
              ulysses ? 0 : (double)layers * merged, 1e-9);
    case_near(walk_moved_bytes(&play->program, STREAM_OF_SEQUENCE, COLLECTIVE_ALL_TO_ALL),
              ulysses ? (double)layers * turned : 0, 1e-9);
}

/* What a pass reads of the cache: of prompts that ranks of cp share, all that is gathered. */
static uint64_t read_of(uint32_t pass, const struct lying *of)
{
    bool const shared = inference_places[place].cp > 1 && context != CONTEXT_ULYSSES;
    uint64_t read = rows_of(&passes[pass].answer, of);
    if (stays(pass, of)) return read;
    if (!shared) return read + rows_of(&passes[pass].ask, of);
    for (counted_batch = 0; counted_batch < batch_count() && !begins(pass); counted_batch++)
        read += inference_places[place].cp * parts_of(&passes[pass].ask, of);
    return read;
}

/* Queries of ranks of tp with the same heads go to who has the rows and what they find comes back;
 * of parts of sequences a sum in fp32, with a maximum and a sum of its scores for each head. Over
 * cp the queries of all that answer have come before. */
static void holders_check(const struct play *play, const struct lying *of)
{
    uint64_t const H = inference_models[model].head_width, layers = inference_models[model].layers;
    uint64_t const ways = inference_places[place].cp, width = of->heads * of->holders;
    uint64_t turned = 0, found = 0;
    for (uint32_t p = 0; p < pass_count; p++)
        for (counted_batch = 0; counted_batch < batch_count(); counted_batch++) {
            uint64_t const kept = shares(share_of(passes[p].answer.count), of->keepers) *
                                      passes[p].answer.new_tokens +
                                  (stays(p, of) ? 0 : asking_of(p, of->keepers));
            uint64_t const asking = stays(p, of) ? 0 : asking_of(p, of->filled);
            uint64_t const own = ways * answering_of(p, 1) * of->heads;
            uint64_t const most = ways > 1 && own > kept * width ? own : kept * width;
            turned += most * H * 2 * of->holders;
            found += (ways * answering_of(p, of->filled) + asking) * width;
        }
    case_near(walk_moved_bytes(&play->program, STREAM_OF_KV, COLLECTIVE_ALL_TO_ALL),
              of->turns ? (double)(2 * layers * turned) : 0, 1e-9);
    case_near(walk_moved_bytes(&play->program, STREAM_OF_KV, COLLECTIVE_REDUCE_SCATTER),
              of->shares ? (double)(4 * layers * found * (H + 2)) : 0, 1e-9);
}

/* What travels over ranks of tp_d: Q, K and V, what attention finds, F of the MLP twice, logits. */
static void width_check(const struct play *play, const struct lying *of)
{
    uint64_t const tp = inference_places[place].tp, H = inference_models[model].head_width;
    uint64_t const tokens = of->filled * tokens_of(of->filled);
    uint64_t const in = tokens * (of->heads + 2 * of->kv_heads) * H;
    uint64_t const found = tokens * of->heads * H;
    uint64_t const hidden = 2 * tokens * shares(inference_models[model].mlp_width, tp);
    uint64_t const last = of->filled * head_rows_of(of->filled);
    uint64_t const logits = last * shares(inference_models[model].vocabulary, tp);
    bool const scatters = of->by_heads || of->filled > 1;
    uint64_t merged = 0; /* In fp32, with the maximum and the sum of each head's scores. */
    if (inference_places[place].tp_d == 1) return;
    if (of->by_rows) merged = 4 * (found + 2 * tokens * of->heads);
    double const layers = (double)inference_models[model].layers;
    case_near(walk_moved_bytes(&play->program, STREAM_OF_TP_D, COLLECTIVE_REDUCE_SCATTER),
              scatters ? layers * (double)(2 * in) : 0, 1e-9);
    case_near(walk_moved_bytes(&play->program, STREAM_OF_TP_D, COLLECTIVE_ALL_GATHER),
              scatters ? layers * (double)(2 * found) : 0, 1e-9);
    case_near(walk_moved_bytes(&play->program, STREAM_OF_TP_D, COLLECTIVE_ALL_REDUCE),
              layers * (double)(2 * hidden + (scatters ? 0 : 2 * in) + merged) +
                  (double)(2 * logits),
              1e-9);
}

/* Each pass gathers all weights, and norms with them: of layers two, of the head one. */
static void gathers_check(const struct play *play, uint64_t of_layer)
{
    uint64_t const width = inference_models[model].width / inference_places[place].tp_d,
                   tp = inference_places[place].tp;
    uint64_t const norm = replicated ? width : width / tp;
    uint64_t const table = width * shares(inference_models[model].vocabulary, tp);
    uint64_t const elements =
        batch_count() *
        (pass_count * (inference_models[model].layers * (of_layer + 2 * norm) + table) +
         head_count * (table + norm));
    bool const splits = gathers || strstr(inference_places[place].mesh, "fsdp") != NULL;
    double const bytes = inference_formats[weights_format].bytes * (double)elements;
    case_near(walk_moved_bytes(&play->program, gathers ? STREAM_OF_DP : STREAM_OF_FSDP,
                               COLLECTIVE_ALL_GATHER),
              splits ? bytes : 0, 1e-6);
}

static struct charged charged;

static void counts_check(struct play *play, const char *text)
{
    struct lying const of = lying_of();
    uint64_t const tp = inference_places[place].tp, H = inference_models[model].head_width;
    uint64_t const D = inference_models[model].width / inference_places[place].tp_d;
    uint64_t const of_layer = D * H * (2 * of.heads + 2 * of.kv_heads) +
                              3 * D * shares(inference_models[model].mlp_width, tp);
    uint64_t const weights =
        batch_count() * (pass_count * inference_models[model].layers * of_layer +
                         head_count * D * shares(inference_models[model].vocabulary, tp));
    double const stages = inference_places[place].pp;
    uint64_t const ways = inference_places[place].cp, by_ways = of.kv_heads / ways;
    uint64_t const kv_heads = context == CONTEXT_ULYSSES ? (by_ways > 0 ? by_ways : 1)
                              : of.by_heads ? of.kv_heads / inference_places[place].tp_d
                                            : of.kv_heads;
    /* Each pass reads what is there behind it, and what the last one has stays. */
    uint64_t rows = 0, read = 0;
    for (uint32_t p = 0; p < pass_count; p++) {
        rows = rows_of(&passes[p].answer, &of) + rows_of(&passes[p].ask, &of);
        read += read_of(p, &of);
    }
    double const weight_bytes = inference_formats[weights_format].bytes;
    double const cache_bytes = inference_formats[cache_format].bytes;
    double const cache = (double)inference_models[model].layers / stages *
                         (double)(2 * rows * kv_heads * H) * cache_bytes;
    const struct workload_counts *counted = &play->roofline.counts;
    case_near(counted->inference.weight_bytes, weight_bytes * (double)weights / stages, 1e-9);
    charged_check(&charged, counted->inference.kv_read_bytes, cache / (double)rows * (double)read);
    case_near((double)play->program.roles[0].resident_bytes[PROGRAM_MEMORY_CACHE], cache, 1e-9);
    holders_check(play, &of);
    width_check(play, &of);
    gathers_check(play, of_layer);
    messages_check(play);
    context_check(play, &of);
    (void)text;
}

static void what_a_chip_reads_and_keeps_is_what_is_counted(void **state)
{
    static const struct play_options lower_only = {.lower_only = true};
    (void)state;
    counts = true;
    walk_drawn_all(COUNTED, draw, &lower_only, counts_check);
    charged_end(&charged);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_chip_reads_and_keeps_is_what_is_counted),
    };
    walk_seed(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
