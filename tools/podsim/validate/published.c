#include "tools/podsim/validate/published.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/embed.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/common/placing.h"

/* Written at build time from workloads/published/. */
extern const struct embed_file published_files[];
extern const unsigned published_files_count;

enum { FILE_VERSION = 1, ROWS_MAX = 4096, SETS_MAX = 128, RANKS_MOST = 1 << 20 };
static const double SECONDS_MOST = 1e6, BYTES_MOST = 1e15, GIB = 1073741824.0, GB = 1e9;

const char *const published_kind_names[] = {
    [PUBLISHED_STEP] = "train_step",       [PUBLISHED_PREFILL] = "prefill",
    [PUBLISHED_DECODE] = "decode",         [PUBLISHED_GENERATE] = "generate",
    [PUBLISHED_COLLECTIVE] = "collective", NULL};

static const char *const row_keys[] = {"id",
                                       "tests",
                                       "learned",
                                       "chip",
                                       "chips",
                                       "gpus",
                                       "nodes",
                                       "shape",
                                       "slices",
                                       "network",
                                       "hbm",
                                       "power_w",
                                       "preset",
                                       "recompute",
                                       "recompute_layers",
                                       "precision",
                                       "recipe",
                                       "gradients",
                                       "main_gradients",
                                       "gradient_sums",
                                       "backward_order",
                                       "schedule",
                                       "layout",
                                       "context",
                                       "zero",
                                       "tp_overlap",
                                       "overlap",
                                       "mtp",
                                       "persistent_layernorm",
                                       "capacity_factor",
                                       "model",
                                       "ranks",
                                       "sequences",
                                       "microbatch",
                                       "length",
                                       "seconds",
                                       "derived",
                                       "peak_gib",
                                       "peak_gb",
                                       "confidence",
                                       "assumed",
                                       "lacks",
                                       "kind",
                                       "batch",
                                       "output",
                                       "weights",
                                       "activations",
                                       "operation",
                                       "algorithm",
                                       "bytes",
                                       "token_copies",
                                       "loss_fusion",
                                       "attention_kernel",
                                       "registered",
                                       "matmul_chunks",
                                       NULL};

/* A row and what its file says of all rows. */
struct facts {
    struct json *row, *common;
};

static struct json *take(const struct facts *facts, const char *key)
{
    struct json *value = json_take(facts->row, key);
    return value != NULL ? value : json_take(facts->common, key);
}

static enum status text(const struct facts *facts, const char *key, const char **ret,
                        struct error *reterr)
{
    struct json *value = take(facts, key);
    *ret = NULL;
    return value == NULL ? STATUS_OK : json_as_string(value, ret, reterr);
}

static enum status number(const struct facts *facts, const char *key, int64_t otherwise,
                          int64_t most, int64_t *ret, struct error *reterr)
{
    struct json *value = take(facts, key);
    *ret = otherwise;
    return value == NULL ? STATUS_OK : json_as_integer(value, 0, most, ret, reterr);
}

static enum status count(const struct facts *facts, const char *key, uint32_t *ret,
                         struct error *reterr)
{
    int64_t value = 0;
    STATUS_TRY(number(facts, key, 0, RANKS_MOST, &value, reterr));
    *ret = (uint32_t)value;
    return STATUS_OK;
}

static enum status real(const struct facts *facts, const char *key, double most, double *ret,
                        struct error *reterr)
{
    struct json *value = take(facts, key);
    *ret = 0;
    return value == NULL ? STATUS_OK : json_as_real(value, 0, most, ret, reterr);
}

/* Whether it is said, and so. */
static enum status said(const struct facts *facts, const char *key, int32_t *ret,
                        struct error *reterr)
{
    struct json *value = take(facts, key);
    bool flag = false;
    *ret = PUBLISHED_UNSAID;
    if (value == NULL) return STATUS_OK;
    STATUS_TRY(json_as_boolean(value, &flag, reterr));
    *ret = flag;
    return STATUS_OK;
}

static enum status machine_read(const struct facts *facts, struct published_machine *machine,
                                struct error *reterr)
{
    STATUS_TRY(text(facts, "chip", &machine->chip, reterr));
    STATUS_TRY(text(facts, "shape", &machine->shape, reterr));
    STATUS_TRY(count(facts, "chips", &machine->chips, reterr));
    STATUS_TRY(count(facts, "gpus", &machine->gpus, reterr));
    STATUS_TRY(count(facts, "nodes", &machine->nodes, reterr));
    STATUS_TRY(count(facts, "slices", &machine->slices, reterr));
    STATUS_TRY(count(facts, "power_w", &machine->power_w, reterr));
    machine->network = take(facts, "network");
    return real(facts, "hbm", 1, &machine->hbm_share, reterr);
}

static enum status policy_read(const struct facts *facts, struct published_policy *policy,
                               struct error *reterr)
{
    int64_t zero = 0;
    STATUS_TRY(text(facts, "preset", &policy->preset, reterr));
    STATUS_TRY(text(facts, "recompute", &policy->recompute, reterr));
    STATUS_TRY(count(facts, "recompute_layers", &policy->recompute_layers, reterr));
    STATUS_TRY(text(facts, "precision", &policy->precision, reterr));
    STATUS_TRY(text(facts, "recipe", &policy->recipe, reterr));
    STATUS_TRY(text(facts, "gradients", &policy->gradients, reterr));
    STATUS_TRY(text(facts, "weights", &policy->weights, reterr));
    STATUS_TRY(text(facts, "schedule", &policy->schedule, reterr));
    STATUS_TRY(text(facts, "layout", &policy->layout, reterr));
    STATUS_TRY(text(facts, "context", &policy->context, reterr));
    STATUS_TRY(text(facts, "activations", &policy->activations, reterr));
    STATUS_TRY(text(facts, "gradient_sums", &policy->gradient_sums, reterr));
    STATUS_TRY(text(facts, "backward_order", &policy->backward_order, reterr));
    STATUS_TRY(text(facts, "main_gradients", &policy->main_gradients, reterr));
    STATUS_TRY(text(facts, "loss_fusion", &policy->loss_fusion, reterr));
    STATUS_TRY(text(facts, "attention_kernel", &policy->attention_kernel, reterr));
    STATUS_TRY(text(facts, "matmul_chunks", &policy->matmul_chunks, reterr));
    STATUS_TRY(text(facts, "token_copies", &policy->token_copies, reterr));
    STATUS_TRY(number(facts, "zero", PUBLISHED_UNSAID, 3, &zero, reterr));
    policy->zero = (int32_t)zero;
    STATUS_TRY(said(facts, "tp_overlap", &policy->tp_overlap, reterr));
    STATUS_TRY(said(facts, "overlap", &policy->overlap, reterr));
    STATUS_TRY(said(facts, "mtp", &policy->mtp, reterr));
    STATUS_TRY(said(facts, "persistent_layernorm", &policy->persistent_layernorm, reterr));
    return real(facts, "capacity_factor", RANKS_MOST, &policy->capacity_factor, reterr);
}

static enum status ranks_read(const struct facts *facts, uint32_t *ret_ranks, struct error *reterr)
{
    struct json *object = take(facts, "ranks");
    for (uint32_t role = 0; role < MESH_ROLE_COUNT; role++) ret_ranks[role] = 1;
    if (object == NULL) return STATUS_OK;
    STATUS_TRY(json_as_object(object, reterr));
    for (uint32_t role = 0; role < MESH_ROLE_COUNT; role++) {
        struct json *value = json_take(object, mesh_role_names[role]);
        int64_t ranks = 1;
        if (value != NULL) STATUS_TRY(json_as_integer(value, 1, RANKS_MOST, &ranks, reterr));
        ret_ranks[role] = (uint32_t)ranks;
    }
    return json_end(object, mesh_role_names, reterr);
}

/* Of more ranks than chips those of experts lie over others: over tp and cp, then over replicas. */
static void ranks_settle(struct published_row *row)
{
    uint32_t *ranks = row->ranks, over = 0;
    uint64_t all = 1;
    for (uint32_t role = 0; role < MESH_ROLE_COUNT; role++) all *= ranks[role];
    if (all <= row->machine.chips || ranks[MESH_EP] == 1) return;
    uint64_t const own = placing_own_ep(ranks[MESH_TP], ranks[MESH_CP], ranks[MESH_EP], &over);
    if (own == 0 || ranks[MESH_DP] % own != 0) return;
    row->ep_over = over;
    ranks[MESH_DP] /= (uint32_t)own;
    ranks[MESH_EP] = (uint32_t)own;
}

static enum status kind_read(const struct facts *facts, enum published_kind *ret_kind,
                             struct error *reterr)
{
    struct json *value = take(facts, "kind");
    uint32_t kind = PUBLISHED_STEP;
    if (value != NULL) STATUS_TRY(json_choice(value, published_kind_names, &kind, reterr));
    *ret_kind = (enum published_kind)kind;
    return STATUS_OK;
}

/* All sequences of a step of inference are one batch. */
static enum status collective_read(const struct facts *facts, struct published_row *row,
                                   struct error *reterr)
{
    int64_t value = 0;
    int32_t registered = 0;
    STATUS_TRY(said(facts, "registered", &registered, reterr));
    row->collective.registered = registered == 1;
    STATUS_TRY(text(facts, "operation", &row->collective.operation, reterr));
    STATUS_TRY(text(facts, "algorithm", &row->collective.algorithm, reterr));
    STATUS_TRY(number(facts, "bytes", 0, INT64_C(1) << 40, &value, reterr));
    row->collective.size_bytes = (uint64_t)value;
    return STATUS_OK;
}

static enum status batch_read(const struct facts *facts, struct published_row *row,
                              struct error *reterr)
{
    int64_t value = 0;
    STATUS_TRY(number(facts, "sequences", 0, INT64_C(1) << 32, &value, reterr));
    row->sequences = (uint64_t)value;
    STATUS_TRY(number(facts, "microbatch", 0, INT64_C(1) << 32, &value, reterr));
    row->microbatch = (uint64_t)value;
    STATUS_TRY(number(facts, "length", 0, INT64_C(1) << 32, &value, reterr));
    row->length_tokens = (uint64_t)value;
    STATUS_TRY(number(facts, "output", 0, INT64_C(1) << 32, &value, reterr));
    row->output_tokens = (uint64_t)value;
    if (row->kind == PUBLISHED_STEP || row->kind == PUBLISHED_COLLECTIVE) return STATUS_OK;
    STATUS_TRY(number(facts, "batch", 1, INT64_C(1) << 32, &value, reterr));
    row->sequences = row->microbatch = (uint64_t)value;
    return STATUS_OK;
}

/* Lists of words, joined. */
static enum status words_read(struct arena *arena, const struct facts *facts, const char *key,
                              const char **ret, struct error *reterr)
{
    struct json *list = take(facts, key);
    struct strbuf joined = {0};
    enum status status = STATUS_OK;
    *ret = NULL;
    if (list == NULL) return STATUS_OK;
    for (uint32_t i = 0; i < json_count(list) && status == STATUS_OK; i++) {
        const char *word = NULL;
        status = json_as_string(json_at(list, i), &word, reterr);
        if (status == STATUS_OK) strbuf_add(&joined, "%s%s", i == 0 ? "" : "; ", word);
    }
    if (status == STATUS_OK) *ret = joined.failed ? NULL : arena_text(arena, joined.bytes);
    strbuf_free(&joined);
    if (status == STATUS_OK && *ret == NULL) return error_no_memory(reterr, "");
    return status;
}

static enum status tests_read(const struct facts *facts, struct published_row *row,
                              struct error *reterr)
{
    struct json *list = take(facts, "tests");
    int32_t learned = 0;
    STATUS_TRY(said(facts, "learned", &learned, reterr));
    row->learned = learned == 1;
    if (list == NULL) return STATUS_OK;
    if (json_count(list) > PUBLISHED_TESTS_MAX)
        return error_set(reterr, STATUS_LIMIT, json_where(list), "has too many tests");
    for (uint32_t i = 0; i < json_count(list); i++)
        STATUS_TRY(json_as_string(json_at(list, i), &row->test[row->test_count++], reterr));
    return STATUS_OK;
}

static enum status measured_read(const struct facts *facts, struct published_row *row,
                                 struct error *reterr)
{
    const char *confidence = NULL;
    double gib = 0, gb = 0;
    int32_t derived = 0;
    STATUS_TRY(real(facts, "seconds", SECONDS_MOST, &row->seconds, reterr));
    STATUS_TRY(said(facts, "derived", &derived, reterr));
    row->derived = derived == 1;
    STATUS_TRY(real(facts, "peak_gib", BYTES_MOST, &gib, reterr));
    STATUS_TRY(real(facts, "peak_gb", BYTES_MOST, &gb, reterr));
    row->peak_bytes = gib * GIB + gb * GB;
    STATUS_TRY(text(facts, "confidence", &confidence, reterr));
    row->low_confidence = confidence != NULL && strcmp(confidence, "low") == 0;
    return STATUS_OK;
}

static enum status row_read(struct arena *arena, const struct facts *facts, struct json *models,
                            struct published_row *row, struct error *reterr)
{
    STATUS_TRY(text(facts, "id", &row->id, reterr));
    STATUS_TRY(tests_read(facts, row, reterr));
    STATUS_TRY(machine_read(facts, &row->machine, reterr));
    STATUS_TRY(policy_read(facts, &row->policy, reterr));
    STATUS_TRY(ranks_read(facts, row->ranks, reterr));
    ranks_settle(row);
    STATUS_TRY(kind_read(facts, &row->kind, reterr));
    STATUS_TRY(batch_read(facts, row, reterr));
    STATUS_TRY(collective_read(facts, row, reterr));
    STATUS_TRY(measured_read(facts, row, reterr));
    STATUS_TRY(words_read(arena, facts, "assumed", &row->assumed, reterr));
    STATUS_TRY(text(facts, "lacks", &row->lacks, reterr));
    STATUS_TRY(text(facts, "model", &row->model_name, reterr));
    if (row->model_name != NULL)
        STATUS_TRY(json_need(models, row->model_name, &row->model, reterr));
    return json_end(facts->row, row_keys, reterr);
}

/* --- Sets --- */

struct reading {
    struct arena *arena;
    struct published *published;
    const char *group, *source;
    struct json *tests;
};

static struct published_set *set_find(struct published *published, const char *name, bool learned)
{
    for (uint32_t i = 0; i < published->set_count; i++)
        if (strcmp(published->set[i].name, name) == 0 && published->set[i].learned == learned)
            return &published->set[i];
    return NULL;
}

/* Tests come before groups, and both by name. */
static bool is_before(const struct published_set *set, const char *name, bool learned)
{
    return set->learned != learned ? learned : strcmp(set->name, name) < 0;
}

/* The place of a new set. */
static struct published_set *set_insert(struct published *published, const char *name, bool learned)
{
    uint32_t at = published->set_count++;
    for (; at > 0 && !is_before(&published->set[at - 1], name, learned); at--)
        published->set[at] = published->set[at - 1];
    return &published->set[at];
}

static enum status percent_read(struct json *object, const char *key, double *ret,
                                struct error *reterr)
{
    struct json *value = json_take(object, key);
    if (value == NULL) return STATUS_OK;
    STATUS_TRY(json_as_real(value, 0, 100, ret, reterr));
    *ret /= 100;
    return STATUS_OK;
}

static enum status set_begin(struct reading *reading, const char *name, bool learned,
                             struct published_set **ret_set, struct error *reterr)
{
    struct published *published = reading->published;
    struct json *test = NULL, *title = NULL;
    void *memory = NULL;
    *ret_set = set_find(published, name, learned);
    if (*ret_set != NULL) return STATUS_OK;
    if (published->set_count == SETS_MAX)
        return error_set(reterr, STATUS_LIMIT, name, "there are too many tests");
    struct published_set *set = set_insert(published, name, learned);
    *set = (struct published_set){
        .name = name, .title = name, .source = reading->source, .learned = learned};
    STATUS_TRY(arena_try(reading->arena, ROWS_MAX, sizeof(void *), &memory, reterr));
    set->row = memory;
    *ret_set = set;
    if (learned) return STATUS_OK;
    STATUS_TRY(json_need(reading->tests, name, &test, reterr));
    STATUS_TRY(json_need(test, "title", &title, reterr));
    STATUS_TRY(json_as_string(title, &set->title, reterr));
    STATUS_TRY(percent_read(test, "aim_percent", &set->aim, reterr));
    return percent_read(test, "ratio_aim_percent", &set->ratio_aim, reterr);
}

static enum status set_add(struct reading *reading, const char *name, bool learned,
                           const struct published_row *row, struct error *reterr)
{
    struct published_set *set = NULL;
    STATUS_TRY(set_begin(reading, name, learned, &set, reterr));
    set->row[set->row_count++] = row;
    return STATUS_OK;
}

/* --- Files --- */

static enum status file_rows_read(struct reading *reading, struct json *document,
                                  struct error *reterr)
{
    struct published *published = reading->published;
    struct json *rows = NULL, *models = NULL;
    struct facts facts;
    STATUS_TRY(json_need(document, "rows", &rows, reterr));
    STATUS_TRY(json_need(document, "models", &models, reterr));
    STATUS_TRY(json_need(document, "common", &facts.common, reterr));
    for (uint32_t i = 0; i < json_count(rows); i++) {
        if (published->row_count == ROWS_MAX)
            return error_set(reterr, STATUS_LIMIT, json_where(rows), "has too many rows");
        struct published_row *row = &published->row[published->row_count++];
        facts.row = json_at(rows, i);
        *row = (struct published_row){.group = reading->group};
        STATUS_TRY(row_read(reading->arena, &facts, models, row, reterr));
        for (uint32_t t = 0; t < row->test_count; t++)
            STATUS_TRY(set_add(reading, row->test[t], false, row, reterr));
        if (row->learned) STATUS_TRY(set_add(reading, row->group, true, row, reterr));
    }
    return json_end(facts.common, row_keys, reterr);
}

static enum status file_read(struct reading *reading, const struct embed_file *file,
                             struct error *reterr)
{
    static const char *const keys[] = {"podsim_published", "group",  "source", "tests",
                                       "models",           "common", "rows",   NULL};
    struct json *document = NULL, *value = NULL;
    int64_t version = 0;
    STATUS_TRY(json_read_text(reading->arena, file->name, file->bytes, file->size_bytes, &document,
                              reterr));
    STATUS_TRY(json_need(document, "podsim_published", &value, reterr));
    STATUS_TRY(json_as_integer(value, FILE_VERSION, FILE_VERSION, &version, reterr));
    STATUS_TRY(json_need(document, "group", &value, reterr));
    STATUS_TRY(json_as_string(value, &reading->group, reterr));
    STATUS_TRY(json_need(document, "source", &value, reterr));
    STATUS_TRY(json_as_string(value, &reading->source, reterr));
    STATUS_TRY(json_need(document, "tests", &reading->tests, reterr));
    STATUS_TRY(file_rows_read(reading, document, reterr));
    return json_end(document, keys, reterr);
}

enum status published_read(struct arena *arena, struct published *ret_published,
                           struct error *reterr)
{
    struct reading reading = {.arena = arena, .published = ret_published};
    void *memory = NULL;
    *ret_published = (struct published){.row_count = 0};
    STATUS_TRY(arena_try(arena, ROWS_MAX, sizeof(struct published_row), &memory, reterr));
    ret_published->row = memory;
    STATUS_TRY(arena_try(arena, SETS_MAX, sizeof(struct published_set), &memory, reterr));
    ret_published->set = memory;
    for (unsigned i = 0; i < published_files_count; i++) {
        enum status const status = file_read(&reading, &published_files[i], reterr);
        if (status != STATUS_OK) error_in_file(reterr, published_files[i].name);
        STATUS_TRY(status);
    }
    return STATUS_OK;
}
