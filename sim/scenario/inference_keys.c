/*
 * inference_keys.c: the rows of `workload` for steps of inference.
 */
#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/base/json.h"
#include "sim/base/units.h"
#include "sim/scenario/scenario_parts.h"

#define ROW WORKLOAD_ROW

enum { BATCH_MAX = LENGTHS_MAX, NEW_TOKENS_MAX = 256, OUTPUT_MAX = 1 << 20, PAGE_DEFAULT = 64 };
static const uint64_t tokens_max = UINT64_C(1) << 40; /* In the cache, of all sequences. */

static const char *const activations_names[] = {"model", "tokens", "replicated", NULL};
const char *const scenario_copies_names[] = {"rank", "expert", NULL};
static const char *const weights_names[] = {"stationary", "gathered", NULL};

/* --- How the cache lies on the ranks of tp --- */

static const char *const ways_names[] = {"auto", "replicated", NULL};
static const char ways_wanted[] =
    "\"auto\", \"replicated\", or an object with \"heads\", \"batch\" and \"sequence\"";

static const struct key ways_keys[] = {
    KEY_ROW(struct inference_ways, "heads", key_count, heads, .least = 1, .most = BATCH_MAX,
            .preset = 1, .help = "ranks with different heads of keys"),
    KEY_ROW(struct inference_ways, "batch", key_count, batch, .least = 1, .most = BATCH_MAX,
            .preset = 1, .help = "ranks with the same heads and different sequences"),
    KEY_ROW(struct inference_ways, "sequence", key_count, sequence, .least = 1, .most = BATCH_MAX,
            .preset = 1, .help = "ranks with the same heads and different parts of each sequence"),
    {0},
};

static enum status ways_read(const struct key *row, const struct key_reader *reader,
                             struct json *value, struct error *reterr)
{
    struct inference_ways *ways = key_field(row, reader);
    uint32_t chosen = INFERENCE_AUTO;
    if (value != NULL && json_kind(value) == JSON_OBJECT) {
        struct key_reader inner = *reader;
        inner.object = value;
        inner.base = ways;
        ways->sharding = INFERENCE_GIVEN;
        return keys_read(ways_keys, &inner, reterr);
    }
    if (value != NULL && json_kind(value) != JSON_STRING)
        return json_refuse_kind(value, ways_wanted, reterr);
    if (value != NULL) STATUS_TRY(json_choice(value, ways_names, &chosen, reterr));
    ways->sharding = (enum inference_sharding)chosen;
    return STATUS_OK;
}

static void ways_write(struct json_writer *writer, const struct key *row,
                       const struct key_source *source)
{
    const struct inference_ways *ways = key_field_of(row, source);
    if (ways->sharding != INFERENCE_GIVEN) {
        json_write_string(writer, ways_names[ways->sharding]);
        return;
    }
    struct key_source const inner = {.whole = source->whole, .base = ways};
    json_write_object(writer);
    keys_write(writer, ways_keys, &inner);
    json_write_object_end(writer);
}

static void ways_schema(struct json_writer *writer, const struct key *row)
{
    (void)row;
    json_put_array(writer, "anyOf");
    json_write_object(writer);
    key_choices_schema(writer, ways_names);
    json_write_object_end(writer);
    json_write_object(writer);
    keys_schema(writer, ways_keys);
    json_write_object_end(writer);
    json_write_array_end(writer);
}

static const struct key_kind ways_kind = {
    .read = ways_read,
    .write = ways_write,
    .schema = ways_schema,
    .values = "`auto`, `replicated`, or `{\"heads\": 8, \"batch\": 2, \"sequence\": 1}`"};

/* --- What depends on several keys --- */

/* What of a training step's plan says nothing here. */
static enum status kind_settle(const struct key_reader *reader, struct json *member,
                               struct error *reterr)
{
    struct workload_plan *plan = &scenario_of(reader)->workload;
    (void)member;
    (void)reterr;
    plan->accumulate = 1;
    plan->software.memory = WORKLOAD_MEMORY_BOOK;
    plan->formats.optimizer = plan->formats.main_gradients = FORMAT_FP32;
    /* Of the others `context` is a length. */
    if (plan->kind != WORKLOAD_PREFILL && plan->kind != WORKLOAD_GENERATE)
        plan->attention.context = WORKLOAD_CONTEXT_ALL_GATHER;
    return STATUS_OK;
}

/* Parts of the weights that are gathered before each use are stage 3 of ZeRO. */
static enum status weights_settle(const struct key_reader *reader, struct json *member,
                                  struct error *reterr)
{
    struct workload_plan *plan = &scenario_of(reader)->workload;
    (void)member;
    (void)reterr;
    plan->zero = plan->inference.weights == INFERENCE_GATHERED ? 3 : 0;
    return STATUS_OK;
}

/* The last step has most in the cache. */
static enum status generation_settle(const struct key_reader *reader, struct json *member,
                                     struct error *reterr)
{
    struct inference_generation *generation = &scenario_of(reader)->workload.inference.generation;
    (void)member;
    (void)reterr;
    generation->step = generation->output;
    return STATUS_OK;
}

static const struct key format_keys[] = {
    FORMATS_OF_ARRAYS,
    FORMATS_OF_WORK,
    FORMAT_LIKE("kv", inference.cache, formats.activations,
                .help = "number format of keys and values in the cache"),
    FORMAT_LIKE("head", inference.head, formats.weights,
                .help = "number format of the head's matrix, which many checkpoints keep wide"),
    {0},
};

#define NAMED_MODEL                                                                                \
    "a name of `podsim list models`, the path of a Hugging Face `config.json`, or such a "         \
    "[file itself](#models)"
#define ANY_MODEL                                                                                  \
    "a name of `podsim list models`, the path of a Hugging Face `config.json`, such a [file "      \
    "itself](#models), or `{\"kind\": \"mlp\", \"D\": 8192, \"F\": 32768, \"layers\": 8, "         \
    "\"matrices\": 2}`"

#define KEYS_BEFORE(of, models, text)                                                              \
    ROW("kind", key_choice, kind, .needed = true, .least = (of), .preset = (of),                   \
        .choices = scenario_kind_choice[of], .settle = kind_settle, .help = (text)),               \
        KEY("model", scenario_model_kind, .needed = true, .values.words = (models),                \
            .help = "the model that answers")

#define KEYS_BEHIND                                                                                \
    KEY("formats", key_object, .members = format_keys,                                             \
        .values.words =                                                                            \
            "`weights`, `activations`, `matmuls`, `dispatch`, `kv`, `head`: `bf16` `fp16` "        \
            "`fp32` `fp8` `int8` `int4` `fp4` `mxfp4` `nvfp4`",                                    \
        .preset_text = "`bf16`; `matmuls`, `dispatch` and `kv` as `activations`, `head` as "       \
                       "`weights`",                                                                \
        .help = "number format of each kind of tensor"),                                           \
        ROW("attention", key_choice, attention.mask, .choices = scenario_attention_names,          \
            .preset = WORKLOAD_ATTENTION_CAUSAL,                                                   \
            .help = "a query sees the keys before it and its own, or all of its sequence, as the " \
                    "book counts"),                                                                \
        ROW("activations", key_choice, activations, .choices = activations_names,                  \
            .help = "between blocks: D or tokens are sharded over `tp`, with an AllGather and a "  \
                    "ReduceScatter a block, or every rank has all, with an AllReduce"),            \
        ROW("weights", key_choice, inference.weights, .choices = weights_names,                    \
            .settle = weights_settle,                                                              \
            .help = "on ranks of `dp`: all weights on each, or a part of them on each, gathered "  \
                    "before a layer reads them, as those of `fsdp` always are"),                   \
        ROW("kv_sharding", ways_kind, inference.ways,                                              \
            .preset_text = "`auto`: heads as far as they go, then, where tokens are decoded, "     \
                           "sequences, if each rank has one, or parts of them",                    \
            .help = "how the cache lies on the ranks of `tp`, and of `tp_d`; without `tp_d` "      \
                    "`batch` or `sequence` is 1 "                                                  \
                    "([inference](inference.md#the-cache-on-the-ranks-of-tp))"),                   \
        ROUTING_SKEW, TOKEN_COPIES,                                                                \
        ROW("allow_oversubscription", key_flag, allow_oversubscription,                            \
            .help = "simulate a step that does not fit the memory")

/* Prompts, and sequences that answer, each as a kind of step has them alone or with others. */
#define KEYS_OF_PROMPTS(number)                                                                    \
    ROW((number), key_count, inference.prompts.count, .least = 1, .most = BATCH_MAX, .preset = 1,  \
        .help = "prompts"),                                                                        \
        ROW("cached", key_count, inference.prompts.cached, .most = INT64_C(1) << 24,               \
            .help = "tokens before each prompt whose keys and values are in the cache already"),   \
        ROW("prompt", key_lengths, inference.prompts.tokens, .needed = true,                       \
            .help = "tokens of each prompt")

#define KEY_OF_CHUNK                                                                               \
    ROW("chunk", key_count, inference.prompts.chunk, .most = INT64_C(1) << 24,                     \
        .help = "tokens of each prompt in one pass; 0: all tokens in one pass")

#define KEY_OF_ORDER                                                                               \
    ROW("context_order", key_choice, attention.order, .choices = scenario_context_order_names,     \
        .shown = scenario_shows_context_order, .when = "with `cp`",                                \
        .help = "a rank holds a part from each end of a causal prompt, or one part")

#define KEYS_OF_CONTEXT                                                                            \
    ROW("context", key_choice, attention.context, .choices = scenario_context_names,               \
        .preset = WORKLOAD_CONTEXT_ALL_GATHER, .shown = scenario_shows_context,                    \
        .values.instead = "tokens of each prompt are /workload/prompt", .when = "with `cp`",       \
        .help = "how its ranks attend to [shared prompts](context.md)"),                           \
        KEY_OF_ORDER

#define KEYS_OF_DECODES                                                                            \
    ROW("batch", key_count, inference.decodes.count, .needed = true, .least = 1,                   \
        .most = BATCH_MAX, .help = "sequences that get new tokens"),                               \
        ROW("new_tokens", key_count, inference.decodes.new_tokens, .least = 1,                     \
            .most = NEW_TOKENS_MAX, .preset = 1,                                                   \
            .help = "tokens of each of these sequences in this step; more than 1 verify drafts"),  \
        ROW("context", key_lengths, inference.decodes.context, .needed = true,                     \
            .help = "tokens of each of these sequences in the cache after the step, "              \
                    "including the new ones")

static const struct key workload_prefill_keys[] = {
    KEYS_BEFORE(WORKLOAD_PREFILL, ANY_MODEL,
                "the forward pass of prompts; keys and values stay in the cache"),
    KEYS_OF_PROMPTS("batch"),
    KEY_OF_CHUNK,
    KEYS_OF_CONTEXT,
    KEYS_BEHIND,
    {0},
};

static const struct key workload_decode_keys[] = {
    KEYS_BEFORE(WORKLOAD_DECODE, NAMED_MODEL, "a new token, or a few, of each sequence"),
    KEYS_OF_DECODES,
    KEYS_BEHIND,
    {0},
};

static const struct key workload_mixed_keys[] = {
    KEYS_BEFORE(WORKLOAD_MIXED, NAMED_MODEL,
                "a decode and chunks of prompts in one forward pass, as servers run them"),
    KEYS_OF_DECODES,
    KEYS_OF_PROMPTS("prompts"),
    KEY_OF_ORDER,
    KEYS_BEHIND,
    {0},
};

static const struct key workload_generate_keys[] = {
    KEYS_BEFORE(WORKLOAD_GENERATE, NAMED_MODEL,
                "the prefill of prompts, then steps in which each gets one more token"),
    KEYS_OF_PROMPTS("batch"),
    KEY_OF_CHUNK,
    KEYS_OF_CONTEXT,
    ROW("output", key_count, inference.generation.output, .needed = true, .least = 1,
        .most = OUTPUT_MAX, .settle = generation_settle,
        .help = "steps after the prefill, which gives each sequence its first token"),
    ROW("page", key_count, inference.generation.page, .least = 1, .most = OUTPUT_MAX,
        .preset = PAGE_DEFAULT,
        .help = "steps that are simulated as one: each takes the time of the last of them"),
    KEYS_BEHIND,
    {0},
};

/* --- Lengths, once the seed is known that some are drawn from --- */

/* As many lengths as sequences, each with at least `least` tokens, and `before` more in the cache.
 * `counts`: how the scenario says how many. */
static enum status lengths_build(struct arena *arena, uint64_t count, uint64_t seed, uint64_t least,
                                 uint64_t before, const char *where, const char *counts,
                                 struct lengths *lengths, struct error *reterr)
{
    units_wide tokens = 0;
    if (count == 0) return STATUS_OK;
    STATUS_TRY(lengths_draw(arena, count, seed, lengths, reterr));
    if (lengths->count != 1 && lengths->count != count)
        return error_set(reterr, STATUS_INVALID, where,
                         "has %u lengths%s %llu; one for all, or one for each", lengths->count,
                         counts, (unsigned long long)count);
    lengths->longest = 0;
    for (uint32_t i = 0; i < lengths->count; i++) {
        tokens += lengths->tokens[i] + before;
        lengths->longest = units_larger(lengths->longest, lengths->tokens[i]);
        if (lengths->tokens[i] < least)
            return error_set(reterr, STATUS_INVALID, where,
                             "%s cannot have the %llu new ones among them; the nearest length that "
                             "can: %llu",
                             counted(lengths->tokens[i], "token").text, (unsigned long long)least,
                             (unsigned long long)least);
    }
    if (lengths->count == 1) tokens *= count;
    if (tokens > tokens_max)
        return error_set(reterr, STATUS_LIMIT, where,
                         "all sequences together have more than 2^40 tokens");
    return STATUS_OK;
}

enum status scenario_lengths_build(struct arena *arena, struct scenario *scenario,
                                   struct error *reterr)
{
    struct inference_decodes *decodes = &scenario->workload.inference.decodes;
    struct inference_prompts *prompts = &scenario->workload.inference.prompts;
    uint64_t const seed = scenario->run.seed;
    bool const mixes = scenario->workload.kind == WORKLOAD_MIXED; /* Its batch is its decodes. */
    STATUS_TRY(lengths_build(arena, decodes->count, seed, decodes->new_tokens, 0,
                             "/workload/context", " for a batch of", &decodes->context, reterr));
    /* Numbers of their own. */
    return lengths_build(arena, prompts->count, ~seed, 0,
                         prompts->cached + scenario->workload.inference.generation.output,
                         "/workload/prompt", mixes ? ", and \"prompts\" is" : " for a batch of",
                         &prompts->tokens, reterr);
}

enum status scenario_batch_set(struct arena *arena, uint64_t batch, struct scenario *scenario,
                               struct error *reterr)
{
    struct inference_plan *plan = &scenario->workload.inference;
    bool const decodes = inference_batch_part(plan) == INFERENCE_DECODES;
    *(decodes ? &plan->decodes.count : &plan->prompts.count) = batch;
    return scenario_lengths_build(arena, scenario, reterr);
}

const struct key workload_kinds[] = {
#define X(kind, word) [WORKLOAD_##kind] = KEY(#word, key_object, .members = workload_##word##_keys),
    WORKLOAD_KIND_TABLE(X)
#undef X
        {0},
};
