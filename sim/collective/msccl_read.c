/* Reads the XML of a script: elements, attributes and what each may be. */
#include <expat.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/blank.h"
#include "sim/base/name.h"
#include "sim/base/parse_uint.h"
#include "sim/collective/msccl_steps.h"

static const uint64_t text_bytes_max = UINT64_C(1) << 30;

const char *const msccl_type_names[] = {"nop", "s",    "r",   "rcs", "rrs",
                                        "rrc", "rrcs", "cpy", "re",  NULL};
const char *const msccl_buffer_names[] = {"i", "o", "s", NULL};

enum element { ELEMENT_ALGO, ELEMENT_GPU, ELEMENT_TB, ELEMENT_STEP, ELEMENT_COUNT };
enum { ELEMENT_DIALECT = ELEMENT_COUNT }; /* The element that the newer files have. */
static const char *const element_names[] = {"algo", "gpu", "tb", "step", NULL};

/* Attributes that must be there, NULL, and those that may be, NULL. */
static const char *const attribute_names[ELEMENT_COUNT][20] = {
    {"name", "proto", "nchannels", "nchunksperloop", "ngpus", "coll", "inplace", "outofplace",
     "minBytes", "maxBytes", "nthreadblocks", "redop"},
    {"id", "i_chunks", "o_chunks", "s_chunks"},
    {"id", "send", "recv", "chan"},
    {"s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"},
};
static const uint32_t required_counts[ELEMENT_COUNT] = {7, 4, 4, 10};

struct reader {
    XML_Parser parser;
    const char *path;
    struct arena *arena;
    struct msccl_script *script;
    struct error *reterr;
    enum status status;
    bool fills;     /* The second time; the first only counts. */
    uint32_t depth; /* Elements that are open. */
    enum element open[ELEMENT_COUNT];
    uint32_t count[ELEMENT_COUNT];
    const char *const *attributes; /* Of the element at hand. */
    enum element at;
};

enum status msccl_refuse(const char *path, struct msccl_position place, enum status status,
                         struct error *reterr, const char *format, ...)
{
    char where[sizeof reterr->where], message[sizeof reterr->message];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    (void)snprintf(where, sizeof where, "%.150s:%u:%u", path, place.line, place.column);
    return error_set(reterr, status, where, "%s", message);
}

static struct msccl_position place_of(const struct reader *reader)
{
    return (struct msccl_position){
        .line = (uint32_t)XML_GetCurrentLineNumber(reader->parser),
        .column = (uint32_t)XML_GetCurrentColumnNumber(reader->parser) + 1,
    };
}

/* Ends the reading. */
static void fail(struct reader *reader, enum status status)
{
    reader->status = status;
    (void)XML_StopParser(reader->parser, XML_FALSE);
}

static const char *value_of(const struct reader *reader, const char *name)
{
    for (const char *const *at = reader->attributes; *at != NULL; at += 2)
        if (name_same(*at, name)) return at[1];
    return NULL;
}

static const char *const dialect_attributes[] = {"buf", "off", NULL};

/* Newer files of msccl's have one buffer and offset a step, and elements of another name. */
static enum status dialect_refuse(const struct reader *reader, const char *what)
{
    return msccl_refuse(reader->path, place_of(reader), STATUS_UNSUPPORTED, reader->reterr,
                        "\"%s\" is of a dialect that names one buffer a step and does not say "
                        "where copies come from; write the file with step elements (msccl: "
                        "old_format=True)",
                        what);
}

static enum status attributes_check(const struct reader *reader)
{
    const char *const *names = attribute_names[reader->at];
    struct msccl_position const place = place_of(reader);
    for (const char *const *at = reader->attributes; *at != NULL; at += 2) {
        if (reader->at == ELEMENT_STEP && dialect_attributes[name_find(*at, dialect_attributes)])
            return dialect_refuse(reader, *at);
        if (names[name_find(*at, names)] == NULL)
            return msccl_refuse(reader->path, place, STATUS_INVALID, reader->reterr,
                                "%s has no attribute \"%.40s\"%s", element_names[reader->at], *at,
                                name_offer(*at, names, "; the nearest is ", "", NULL).text);
    }
    for (uint32_t i = 0; i < required_counts[reader->at]; i++)
        if (value_of(reader, names[i]) == NULL)
            return msccl_refuse(reader->path, place, STATUS_INVALID, reader->reterr,
                                "%s lacks its attribute \"%s\"", element_names[reader->at],
                                names[i]);
    return STATUS_OK;
}

/* A number that must be there. */
static enum status number_of(const struct reader *reader, const char *name, int64_t least,
                             int64_t most, int64_t *ret_number)
{
    const char *const text = value_of(reader, name);
    const char *const digits = text + (*text == '-');
    uint64_t amount = 0;
    const char *const end = parse_uint(digits, UINT32_MAX, &amount);
    if (end == digits || *end != '\0')
        return msccl_refuse(reader->path, place_of(reader), STATUS_INVALID, reader->reterr,
                            "%s=\"%.40s\" of %s is not a number", name, text,
                            element_names[reader->at]);
    int64_t const number = *text == '-' ? -(int64_t)amount : (int64_t)amount;
    if (number < least || number > most)
        return msccl_refuse(reader->path, place_of(reader), STATUS_INVALID, reader->reterr,
                            "%s=\"%.40s\" of %s is not between %lld and %lld", name, text,
                            element_names[reader->at], (long long)least, (long long)most);
    *ret_number = number;
    return STATUS_OK;
}

/* Which of the names an attribute is. */
static enum status word_of(const struct reader *reader, const char *name, const char *const *words,
                           uint32_t *ret_index)
{
    const char *const text = value_of(reader, name);
    *ret_index = name_find(text, words);
    if (words[*ret_index] != NULL) return STATUS_OK;
    return msccl_refuse(reader->path, place_of(reader), STATUS_INVALID, reader->reterr,
                        "%s=\"%.40s\" of %s is not known%s", name, text, element_names[reader->at],
                        name_offer(text, words, "; the nearest is \"", "\"", NULL).text);
}

/* The next of those that are numbered from 0 in the order of the file. */
static enum status order_of(const struct reader *reader, const char *name, uint32_t expected)
{
    int64_t number = 0;
    STATUS_TRY(number_of(reader, name, 0, UINT32_MAX, &number));
    if (number == expected) return STATUS_OK;
    return msccl_refuse(reader->path, place_of(reader), STATUS_INVALID, reader->reterr,
                        "%s=\"%lld\" of %s comes where %u is expected", name, (long long)number,
                        element_names[reader->at], expected);
}

static enum status collective_of(const struct reader *reader, enum collective_kind *ret_kind)
{
    static const char *const names[] = {"allreduce",      "allgather", "reducescatter",
                                        "reduce_scatter", "alltoall",  NULL};
    static const enum collective_kind kinds[] = {COLLECTIVE_ALL_REDUCE, COLLECTIVE_ALL_GATHER,
                                                 COLLECTIVE_REDUCE_SCATTER,
                                                 COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALL_TO_ALL};
    const char *const text = value_of(reader, "coll");
    uint32_t const found = name_find(text, names);
    if (names[found] != NULL) {
        *ret_kind = kinds[found];
        return STATUS_OK;
    }
    return msccl_refuse(reader->path, place_of(reader), STATUS_UNSUPPORTED, reader->reterr,
                        "coll=\"%.40s\" is not modelled; allreduce, allgather, reduce_scatter and "
                        "alltoall are%s",
                        text, name_offer(text, names, ", and the nearest is ", "", "").text);
}

/* Reports have names without commas, quotes and the like: such become underscores. */
static enum status name_read(const struct reader *reader)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-.+()=";
    const char *const text = value_of(reader, "name");
    size_t const length = strlen(text);
    if (length < 1 || length > MSCCL_NAME_MAX)
        return msccl_refuse(reader->path, place_of(reader), STATUS_INVALID, reader->reterr,
                            "a name has from 1 to %d bytes", MSCCL_NAME_MAX);
    char *name = arena_text(reader->arena, text);
    if (name == NULL)
        return error_set(reader->reterr, STATUS_NO_MEMORY, reader->path, "no memory for a name");
    for (size_t i = 0; i < length; i++)
        if (strchr(plain, name[i]) == NULL) name[i] = '_';
    reader->script->name = name;
    return STATUS_OK;
}

static enum status algo_read(struct reader *reader)
{
    static const char *const protocols[] = {"Simple", "LL", "LL128", NULL};
    struct msccl_script *script = reader->script;
    int64_t channels = 0, chunks = 0, ranks = 0, in_place = 0;
    uint32_t protocol = 0;
    STATUS_TRY(word_of(reader, "proto", protocols, &protocol));
    STATUS_TRY(number_of(reader, "nchannels", 1, MSCCL_BLOCKS_MAX, &channels));
    STATUS_TRY(number_of(reader, "nchunksperloop", 1, MSCCL_CHUNKS_MAX, &chunks));
    STATUS_TRY(number_of(reader, "ngpus", 2, MSCCL_RANKS_MAX, &ranks));
    STATUS_TRY(collective_of(reader, &script->kind));
    STATUS_TRY(number_of(reader, "inplace", 0, 1, &in_place));
    STATUS_TRY(name_read(reader));
    script->protocol = protocols[protocol];
    script->channel_count = (uint32_t)channels;
    script->chunk_count = (uint32_t)chunks;
    script->in_place = in_place == 1;
    if (ranks != script->rank_count)
        return msccl_refuse(reader->path, place_of(reader), STATUS_INVALID, reader->reterr,
                            "ngpus=\"%lld\", but the file has %u gpu elements", (long long)ranks,
                            script->rank_count);
    if (script->kind != COLLECTIVE_ALL_REDUCE && chunks % ranks != 0)
        return msccl_refuse(reader->path, place_of(reader), STATUS_INVALID, reader->reterr,
                            "nchunksperloop=\"%lld\" is not a multiple of the %lld GPUs, each of "
                            "which has a part of the buffer",
                            (long long)chunks, (long long)ranks);
    return STATUS_OK;
}

static enum status gpu_read(struct reader *reader)
{
    static const char *const names[] = {"i_chunks", "o_chunks", "s_chunks"};
    uint32_t const index = reader->count[ELEMENT_GPU];
    struct msccl_gpu *gpu = &reader->script->gpu[index];
    STATUS_TRY(order_of(reader, "id", index));
    for (uint32_t i = 0; i < MSCCL_BUFFER_COUNT; i++) {
        int64_t chunks = 0;
        int64_t const most = i == MSCCL_SCRATCH ? MSCCL_CHUNKS_MAX : reader->script->chunk_count;
        STATUS_TRY(number_of(reader, names[i], 0, most, &chunks));
        gpu->chunks[i] = (uint32_t)chunks;
    }
    gpu->block_first = reader->count[ELEMENT_TB];
    gpu->place = place_of(reader);
    return STATUS_OK;
}

static enum status tb_read(struct reader *reader)
{
    struct msccl_script *script = reader->script;
    uint32_t const index = reader->count[ELEMENT_TB];
    uint32_t const gpu = reader->count[ELEMENT_GPU] - 1;
    int64_t to = 0, from = 0, channel = 0;
    int64_t const last = script->rank_count - 1;
    STATUS_TRY(order_of(reader, "id", script->gpu[gpu].block_count));
    STATUS_TRY(number_of(reader, "send", -1, last, &to));
    STATUS_TRY(number_of(reader, "recv", -1, last, &from));
    STATUS_TRY(number_of(reader, "chan", to < 0 && from < 0 ? -1 : 0, script->channel_count - 1,
                         &channel));
    if (to == gpu || from == gpu)
        return msccl_refuse(reader->path, place_of(reader), STATUS_INVALID, reader->reterr,
                            "GPU %u is its own peer; a step of type cpy copies", gpu);
    script->block[index] = (struct msccl_block){
        .gpu = gpu,
        .id = script->gpu[gpu].block_count++,
        .to = to < 0 ? msccl_none : (uint32_t)to,
        .from = from < 0 ? msccl_none : (uint32_t)from,
        .channel = (uint32_t)channel,
        .step_first = reader->count[ELEMENT_STEP],
        .receiver = msccl_none,
        .sender = msccl_none,
        .place = place_of(reader),
    };
    return STATUS_OK;
}

/* Chunks that a step uses lie in its buffer. */
static enum status chunks_check(const struct reader *reader, const char *name, uint32_t buffer,
                                int64_t first, int64_t count)
{
    const struct msccl_script *script = reader->script;
    uint32_t const gpu = reader->count[ELEMENT_GPU] - 1;
    uint32_t has = script->gpu[gpu].chunks[buffer];
    uint32_t whole = has;
    if (buffer == MSCCL_INPUT) whole = msccl_input_chunks(script);
    if (buffer == MSCCL_OUTPUT) whole = msccl_output_chunks(script);
    has = whole < has ? whole : has;
    if (first >= 0 && first + count <= has) return STATUS_OK;
    return msccl_refuse(reader->path, place_of(reader), STATUS_INVALID, reader->reterr,
                        "%s=\"%lld\" with cnt=\"%lld\" is outside buffer %s of GPU %u, which has "
                        "%u chunks",
                        name, (long long)first, (long long)count, msccl_buffer_names[buffer], gpu,
                        has);
}

static enum status step_read(struct reader *reader)
{
    struct msccl_script *script = reader->script;
    struct msccl_step *step = &script->step[reader->count[ELEMENT_STEP]];
    struct msccl_block *block = &script->block[reader->count[ELEMENT_TB] - 1];
    uint32_t type = 0, from = 0, to = 0;
    int64_t source = 0, destination = 0, count = 0, depid = 0, deps = 0, tells = 0;
    if (block->step_count == MSCCL_BLOCK_STEPS_MAX)
        return msccl_refuse(reader->path, place_of(reader), STATUS_LIMIT, reader->reterr,
                            "a threadblock of more than %d steps", MSCCL_BLOCK_STEPS_MAX);
    STATUS_TRY(order_of(reader, "s", block->step_count));
    STATUS_TRY(word_of(reader, "type", msccl_type_names, &type));
    STATUS_TRY(word_of(reader, "srcbuf", msccl_buffer_names, &from));
    STATUS_TRY(word_of(reader, "dstbuf", msccl_buffer_names, &to));
    STATUS_TRY(number_of(reader, "srcoff", -1, MSCCL_CHUNKS_MAX, &source));
    STATUS_TRY(number_of(reader, "dstoff", -1, MSCCL_CHUNKS_MAX, &destination));
    STATUS_TRY(number_of(reader, "cnt", type == MSCCL_NOP ? 0 : 1, MSCCL_CHUNKS_MAX, &count));
    STATUS_TRY(number_of(reader, "depid", -1, MSCCL_STEPS_MAX, &depid));
    STATUS_TRY(number_of(reader, "deps", -1, MSCCL_STEPS_MAX, &deps));
    STATUS_TRY(number_of(reader, "hasdep", 0, 1, &tells));
    if (msccl_type_reads(type)) STATUS_TRY(chunks_check(reader, "srcoff", from, source, count));
    if (msccl_type_writes(type)) STATUS_TRY(chunks_check(reader, "dstoff", to, destination, count));
    if ((msccl_type_sends(type) && block->to == msccl_none) ||
        (msccl_type_receives(type) && block->from == msccl_none))
        return msccl_refuse(reader->path, place_of(reader), STATUS_INVALID, reader->reterr,
                            "a step of type %s in a threadblock whose %s is -1",
                            msccl_type_names[type],
                            msccl_type_sends(type) && block->to == msccl_none ? "send" : "recv");
    *step = (struct msccl_step){
        .type = (uint8_t)type,
        .from = (uint8_t)from,
        .to = (uint8_t)to,
        .tells = tells == 1,
        .source = (uint32_t)source,
        .destination = (uint32_t)destination,
        .count = (uint32_t)count,
        .block = reader->count[ELEMENT_TB] - 1,
        .after_block = (int32_t)depid,
        .after_step = (int32_t)deps,
        .after = msccl_none,
        .place = place_of(reader),
    };
    block->step_count++;
    return STATUS_OK;
}

/* Elements stand in one another in one order only. */
static enum status nesting_check(const struct reader *reader, const char *name,
                                 enum element *ret_element)
{
    struct msccl_position const place = place_of(reader);
    static const char *const known[] = {
        [ELEMENT_ALGO] = "algo", [ELEMENT_GPU] = "gpu",    [ELEMENT_TB] = "tb",
        [ELEMENT_STEP] = "step", [ELEMENT_DIALECT] = "op", NULL};
    uint32_t const element = name_find(name, known);
    if (element == ELEMENT_DIALECT) return dialect_refuse(reader, name);
    if (element > ELEMENT_DIALECT)
        return msccl_refuse(reader->path, place, STATUS_INVALID, reader->reterr,
                            "there is no element \"%.40s\"%s", name,
                            name_offer(name, element_names, "; the nearest is ", "", NULL).text);
    if (element != reader->depth) {
        const char *const inside = element == 0 ? "nothing" : element_names[element - 1];
        return msccl_refuse(reader->path, place, STATUS_INVALID, reader->reterr,
                            "%s stands inside %s, and not here", name, inside);
    }
    *ret_element = (enum element)element;
    return STATUS_OK;
}

static enum status element_read(struct reader *reader, const char *name)
{
    static const uint32_t most[ELEMENT_COUNT] = {
        1, MSCCL_RANKS_MAX, MSCCL_RANKS_MAX * MSCCL_BLOCKS_MAX, MSCCL_STEPS_MAX};
    STATUS_TRY(nesting_check(reader, name, &reader->at));
    if (!reader->fills) {
        if (reader->count[reader->at] == most[reader->at])
            return msccl_refuse(reader->path, place_of(reader), STATUS_LIMIT, reader->reterr,
                                "more than %u %s elements", most[reader->at], name);
        return attributes_check(reader);
    }
    switch (reader->at) {
    case ELEMENT_ALGO:
        return algo_read(reader);
    case ELEMENT_GPU:
        return gpu_read(reader);
    case ELEMENT_TB:
        return tb_read(reader);
    case ELEMENT_STEP:
        return step_read(reader);
    case ELEMENT_COUNT:
        break;
    }
    return STATUS_OK;
}

static void XMLCALL on_start(void *owner, const XML_Char *name, const XML_Char **attributes)
{
    struct reader *reader = owner;
    if (reader->status != STATUS_OK) return;
    reader->attributes = (const char *const *)attributes;
    enum status const status = element_read(reader, name);
    if (status != STATUS_OK) {
        fail(reader, status);
        return;
    }
    reader->count[reader->at]++;
    reader->depth++;
}

static void XMLCALL on_end(void *owner, const XML_Char *name)
{
    struct reader *reader = owner;
    (void)name;
    if (reader->status == STATUS_OK) reader->depth--;
}

static void XMLCALL on_text(void *owner, const XML_Char *text, int length)
{
    struct reader *reader = owner;
    if (reader->status != STATUS_OK) return;
    struct msccl_position place = place_of(reader);
    for (int i = 0; i < length; i++, place.column++) {
        if (text[i] == '\n') {
            place.line++;
            place.column = 0;
            continue;
        }
        if (is_blank(text[i])) continue;
        fail(reader, msccl_refuse(reader->path, place, STATUS_INVALID, reader->reterr,
                                  "text between elements; everything stands in attributes"));
        return;
    }
}

static void XMLCALL on_doctype(void *owner, const XML_Char *name, const XML_Char *system,
                               const XML_Char *public, int has_subset)
{
    struct reader *reader = owner;
    (void)name;
    (void)system;
    (void)public;
    (void)has_subset;
    if (reader->status != STATUS_OK) return;
    fail(reader, msccl_refuse(reader->path, place_of(reader), STATUS_UNSUPPORTED, reader->reterr,
                              "a document type, which no script needs"));
}

/* Goes through the text once. */
static enum status pass(struct reader *reader, const char *text, uint64_t text_bytes)
{
    reader->parser = XML_ParserCreate(NULL);
    if (reader->parser == NULL)
        return error_set(reader->reterr, STATUS_NO_MEMORY, reader->path, "no memory to read XML");
    memset(reader->count, 0, sizeof reader->count);
    reader->depth = 0;
    XML_SetUserData(reader->parser, reader);
    XML_SetElementHandler(reader->parser, on_start, on_end);
    XML_SetCharacterDataHandler(reader->parser, on_text);
    XML_SetStartDoctypeDeclHandler(reader->parser, on_doctype);
    if (XML_Parse(reader->parser, text, (int)text_bytes, 1) != XML_STATUS_OK &&
        reader->status == STATUS_OK)
        reader->status =
            msccl_refuse(reader->path, place_of(reader), STATUS_INVALID, reader->reterr,
                         "not XML: %s", XML_ErrorString(XML_GetErrorCode(reader->parser)));
    XML_ParserFree(reader->parser);
    return reader->status;
}

static enum status memory_take(struct reader *reader)
{
    struct msccl_script *script = reader->script;
    void *memory = NULL;
    script->rank_count = reader->count[ELEMENT_GPU];
    script->block_count = reader->count[ELEMENT_TB];
    script->step_count = reader->count[ELEMENT_STEP];
    STATUS_TRY(
        arena_try(reader->arena, script->rank_count, sizeof *script->gpu, &memory, reader->reterr));
    script->gpu = memory;
    STATUS_TRY(arena_try(reader->arena, script->block_count, sizeof *script->block, &memory,
                         reader->reterr));
    script->block = memory;
    STATUS_TRY(arena_try(reader->arena, script->step_count, sizeof *script->step, &memory,
                         reader->reterr));
    script->step = memory;
    return STATUS_OK;
}

enum status msccl_read(struct arena *arena, const char *path, const char *text, uint64_t text_bytes,
                       const struct msccl_script **ret_script, struct error *reterr)
{
    void *memory = NULL;
    if (text_bytes > text_bytes_max)
        return error_set(reterr, STATUS_LIMIT, path, "has more than %llu bytes",
                         (unsigned long long)text_bytes_max);
    STATUS_TRY(arena_try(arena, 1, sizeof(struct msccl_script), &memory, reterr));
    struct reader reader = {
        .path = path, .arena = arena, .script = memory, .reterr = reterr, .status = STATUS_OK};
    STATUS_TRY(pass(&reader, text, text_bytes));
    STATUS_TRY(memory_take(&reader));
    reader.fills = true;
    STATUS_TRY(pass(&reader, text, text_bytes));
    STATUS_TRY(msccl_link(arena, path, reader.script, reterr));
    *ret_script = reader.script;
    return STATUS_OK;
}
