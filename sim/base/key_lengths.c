/*
 * key_lengths.c: a key whose value is a length of all sequences, an array with those of each, or a
 * distribution that they are drawn from when their number and the seed are known.
 */
#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/key.h"
#include "sim/base/lengths.h"
#include "sim/base/random.h"
#include "sim/base/units.h"

static const int64_t length_max = INT64_C(1) << 24;

static const char *const uniform_name[] = {"uniform", NULL};
static const char *const lognormal_name[] = {"lognormal", NULL};
static const char *const exponential_name[] = {"exponential", NULL};

#define ROW(...) KEY_ROW(struct lengths_distribution, __VA_ARGS__)
#define KEYS_BEFORE(of, name)                                                                      \
    ROW("distribution", key_choice, shape, .needed = true, .least = (of), .preset = (of),          \
        .choices = (name), .help = "how lengths are distributed"),                                 \
        ROW("mean", key_count, mean, .needed = true, .least = 1, .most = INT64_C(1) << 24,         \
            .help = "their mean")
#define KEYS_BEHIND                                                                                \
    ROW("least", key_count, least, .least = 1, .most = INT64_C(1) << 24, .preset = 1,              \
        .settle = range_settle, .help = "what is drawn shorter has this length"),                  \
        ROW("most", key_count, most, .least = 1, .most = INT64_C(1) << 24,                         \
            .preset = INT64_C(1) << 24, .help = "what is drawn longer has this length")

static enum status range_settle(const struct key_reader *reader, struct json *member,
                                struct error *reterr)
{
    const struct lengths_distribution *of = reader->base;
    if (of->least <= of->mean && of->mean <= of->most) return STATUS_OK;
    return error_set(
        reterr, STATUS_INVALID, json_where(member != NULL ? member : reader->object),
        "a mean of %llu is not between the shortest length, %llu, and the longest, %llu",
        (unsigned long long)of->mean, (unsigned long long)of->least, (unsigned long long)of->most);
}

static const struct key uniform_keys[] = {
    KEYS_BEFORE(LENGTHS_UNIFORM, uniform_name),
    ROW("spread", key_share, spread_ppm, .most = PPM_ONE, .preset = PPM_ONE,
        .help = "the longest is by this share of the mean longer, the shortest shorter"),
    KEYS_BEHIND,
    {0},
};

static const struct key lognormal_keys[] = {
    KEYS_BEFORE(LENGTHS_LOGNORMAL, lognormal_name),
    ROW("sigma", key_share, sigma_ppm, .needed = true, .most = RANDOM_SIGMA_MAX * (int64_t)PPM_ONE,
        .help = "standard deviation of the logarithm"),
    KEYS_BEHIND,
    {0},
};

static const struct key exponential_keys[] = {
    KEYS_BEFORE(LENGTHS_EXPONENTIAL, exponential_name),
    KEYS_BEHIND,
    {0},
};

static const struct key distributions[] = {
    [LENGTHS_UNIFORM] = KEY("uniform", key_object, .members = uniform_keys),
    [LENGTHS_LOGNORMAL] = KEY("lognormal", key_object, .members = lognormal_keys),
    [LENGTHS_EXPONENTIAL] = KEY("exponential", key_object, .members = exponential_keys),
    {0},
};

/* The distribution of lengths as a row of its own. */
static const struct key distribution_row =
    KEY("distribution", key_variants, .members = distributions);

static const char wanted[] =
    "tokens, an array with those of each, or an object with a distribution";

static enum status lengths_read(const struct key *row, const struct key_reader *reader,
                                struct json *value, struct error *reterr)
{
    struct lengths *lengths = key_field(row, reader);
    bool const each = value != NULL && json_kind(value) == JSON_ARRAY;
    struct key_reader inner = *reader;
    void *memory = NULL;
    *lengths = (struct lengths){.count = 0};
    inner.base = &lengths->of;
    if (value == NULL) return STATUS_OK; /* It is needed. */
    if (json_kind(value) == JSON_OBJECT)
        return key_variants.read(&distribution_row, &inner, value, reterr);
    if (json_kind(value) == JSON_BOOLEAN || json_kind(value) == JSON_NULL)
        return json_refuse_kind(value, wanted, reterr);
    if (each) STATUS_TRY(key_array(value, 1, LENGTHS_MAX, reterr));
    uint32_t const count = each ? json_count(value) : 1;
    STATUS_TRY(arena_try(reader->arena, count, sizeof(uint64_t), &memory, reterr));
    uint64_t *tokens = memory;
    for (uint32_t i = 0; i < count; i++) {
        int64_t length = 0;
        struct json *const of = each ? json_at(value, i) : value;
        STATUS_TRY(json_as_count(of, 1, length_max, &length, reterr));
        tokens[i] = (uint64_t)length;
    }
    *lengths = lengths_given(tokens, count);
    return STATUS_OK;
}

static void lengths_write(struct json_writer *writer, const struct key *row,
                          const struct key_source *source)
{
    const struct lengths *lengths = key_field_of(row, source);
    struct key_source const inner = {.whole = source->whole, .base = &lengths->of};
    if (lengths->of.mean != 0) {
        key_variants.write(writer, &distribution_row, &inner);
        return;
    }
    if (lengths->count == 1) {
        json_write_unsigned(writer, lengths->tokens[0]);
        return;
    }
    json_write_array(writer);
    for (uint32_t i = 0; i < lengths->count; i++) json_write_unsigned(writer, lengths->tokens[i]);
    json_write_array_end(writer);
}

static void length_schema(struct json_writer *writer)
{
    key_types_schema(writer, key_count.type, key_count.type_too);
    json_put_string(writer, "pattern", key_count.pattern);
    json_put_integer(writer, "minimum", 1);
    json_put_integer(writer, "maximum", length_max);
}

static void lengths_schema(struct json_writer *writer, const struct key *row)
{
    (void)row;
    json_put_array(writer, "anyOf");
    json_write_object(writer);
    length_schema(writer);
    json_write_object_end(writer);
    json_write_object(writer);
    key_array_schema(writer, 1, LENGTHS_MAX);
    length_schema(writer);
    json_write_object_end(writer);
    json_write_object_end(writer);
    json_write_object(writer);
    key_variants.schema(writer, &distribution_row);
    json_write_object_end(writer);
    json_write_array_end(writer);
}

const struct key_kind key_lengths = {
    .read = lengths_read,
    .write = lengths_write,
    .schema = lengths_schema,
    .values = "tokens, an array with those of each, or a [distribution](inference.md#lengths)"};
