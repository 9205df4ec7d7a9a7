/*
 * json_parse.c: text to tree. The only file that includes jansson.
 */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json_node.h"
#include "sim/base/letter.h"

enum { PARSE_DEPTH_MAX = 64 };

/* file:line:column, with the end of a long path rather than its beginning. */
static enum status refuse_at(const struct json_document *document, uint64_t line, uint64_t column,
                             const char *message, struct error *reterr)
{
    char where[sizeof reterr->where];
    size_t const length = strlen(document->name);
    size_t const skipped = length > 140 ? length - 140 : 0;
    (void)snprintf(where, sizeof where, "%s%s:%llu:%llu", skipped ? "..." : "",
                   document->name + skipped, (unsigned long long)line, (unsigned long long)column);
    return error_set(reterr, STATUS_INVALID, where, "%s", message);
}

/* The place behind the last character that is not white space. */
static void find_end(const char *text, uint64_t text_bytes, uint64_t *ret_line,
                     uint64_t *ret_column)
{
    while (text_bytes > 0 && strchr(" \t\r\n", text[text_bytes - 1]) != NULL) text_bytes--;
    *ret_line = *ret_column = 1;
    for (uint64_t i = 0; i < text_bytes; i += letter_bytes(text + i, text_bytes - i)) {
        *ret_column += 1;
        if (text[i] != '\n') continue;
        *ret_line += 1;
        *ret_column = 1;
    }
}

static const char *reason_of(enum json_error_code code)
{
    if (code == json_error_duplicate_key) return "a key is given twice";
    if (code == json_error_numeric_overflow) return "a number is too large";
    if (code == json_error_null_character) return "a text cannot contain \\u0000";
    if (code == json_error_null_byte_in_key) return "a key cannot contain \\u0000";
    if (code == json_error_end_of_input_expected) return "something follows the end";
    return NULL;
}

/* The comma that is wrong, where a text is refused behind its `count`-th byte. NULL: none. */
static const char *comma_wrong(const char *text, uint64_t text_bytes, int count)
{
    if (count <= 0 || (uint64_t)count > text_bytes) return NULL;
    uint64_t at = (uint64_t)count - 1;
    char const refused = text[at];
    while (at > 0 && strchr(" \t\r\n", text[at - 1]) != NULL) at--;
    if (at == 0 || strchr("}],", refused) == NULL) return NULL;
    char const before = text[at - 1];
    if (refused == ',')
        return strchr("{[,:", before) != NULL ? "a comma without a value before it" : NULL;
    if (before != ',') return NULL;
    return refused == '}' ? "a comma before the closing '}'" : "a comma before the closing ']'";
}

/* Jansson's reason in the words of the other errors. What it expected, and near what, stays. */
static enum status refuse_syntax(const struct json_document *document, const json_error_t *why,
                                 const char *text, uint64_t text_bytes, struct error *reterr)
{
    static const char near_end[] = " near end of file";
    uint64_t line = why->line > 0 ? (uint64_t)why->line : 1;
    uint64_t column = why->column > 0 ? (uint64_t)why->column : 1;
    const char *const end = strstr(why->text, near_end);
    enum json_error_code const code = json_error_code(why);
    char message[2 * JSON_ERROR_TEXT_LENGTH];
    const char *near = strstr(why->text, " near ");
    if (near == NULL) near = "";
    const char *const reason = reason_of(code);
    const char *const comma = comma_wrong(text, text_bytes, why->position);
    if (end != NULL || code == json_error_premature_end_of_input) {
        find_end(text, text_bytes, &line, &column);
        if (end != NULL && end[sizeof near_end - 1] == '\0' && strstr(why->text, " expected"))
            (void)snprintf(message, sizeof message, "ends too early: %.*s", (int)(end - why->text),
                           why->text);
        else
            (void)snprintf(message, sizeof message, "ends too early");
    } else if (comma != NULL) {
        (void)snprintf(message, sizeof message, "%s", comma);
    } else if (reason != NULL) {
        (void)snprintf(message, sizeof message, "%s%s%s", reason, *near != '\0' ? "," : "", near);
    } else {
        (void)snprintf(message, sizeof message, "%s", why->text);
    }
    (void)refuse_at(document, line, column, message, reterr);
    if (code == json_error_numeric_overflow) reterr->status = STATUS_LIMIT;
    return reterr->status;
}

/* What jansson does not refuse, or refuses without saying it clearly: depth, NUL, encoding. */
static enum status scan(const struct json_document *document, uint32_t depth, const char *text,
                        uint64_t text_bytes, struct error *reterr)
{
    uint64_t line = 1, column = 1;
    bool in_string = false, escaped = false;
    if (text_bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        return refuse_at(document, 1, 1, "begins with a byte order mark; save it without one",
                         reterr);
    for (uint64_t i = 0; i < text_bytes; column++) {
        char const c = text[i];
        bool const is_ascii = (unsigned char)c < 0x80;
        uint32_t const bytes = is_ascii ? 1 : letter_bytes(text + i, text_bytes - i);
        if (bytes == 0) return refuse_at(document, line, column, "is not UTF-8 here", reterr);
        i += bytes;
        if (c == '\0') return refuse_at(document, line, column, "a NUL byte in the text", reterr);
        if (c == '\n') {
            line++;
            column = 0;
        }
        if (escaped || in_string) {
            if (!escaped && c == '"') in_string = false;
            escaped = !escaped && c == '\\';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > PARSE_DEPTH_MAX)
                return refuse_at(document, line, column, "is nested deeper than 64", reterr);
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
        }
    }
    return STATUS_OK;
}

enum status json_node_add(struct json *object, const char *key, struct json **ret_member,
                          struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(object->document->arena, 1, sizeof(struct json), &memory, reterr));
    struct json *member = memory;
    member->document = object->document;
    member->parent = object;
    member->key = arena_text(object->document->arena, key);
    if (member->key == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for the keys of the document");
    if (object->value.first == NULL) object->value.first = member;
    if (object->last != NULL) object->last->next = member;
    object->last = member;
    object->count++;
    *ret_member = member;
    return STATUS_OK;
}

static enum status copy(struct json *node, json_t *value, struct error *reterr);

static enum status copy_array(struct json *node, json_t *value, struct error *reterr)
{
    size_t const count = json_array_size(value);
    void *memory = NULL;
    STATUS_TRY(arena_try(node->document->arena, count, sizeof(struct json), &memory, reterr));
    node->kind = NODE_ARRAY;
    node->value.first = memory;
    node->count = (uint32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        struct json *element = &node->value.first[i];
        element->document = node->document;
        element->parent = node;
        element->index = i;
        STATUS_TRY(copy(element, json_array_get(value, i), reterr));
    }
    return STATUS_OK;
}

static enum status copy_object(struct json *node, json_t *value, struct error *reterr)
{
    const char *key = NULL;
    json_t *each = NULL;
    node->kind = NODE_OBJECT;
    node->value.first = NULL;
    json_object_foreach(value, key, each)
    {
        struct json *member = NULL;
        STATUS_TRY(json_node_add(node, key, &member, reterr));
        STATUS_TRY(copy(member, each, reterr));
    }
    return STATUS_OK;
}

/* Recursion is bounded by scan(): 64 deep. */
static enum status copy(struct json *node, json_t *value, struct error *reterr)
{
    node->count = 0;
    node->last = NULL;
    node->taken = false;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return copy_object(node, value, reterr);
    case JSON_ARRAY:
        return copy_array(node, value, reterr);
    case JSON_STRING:
        node->kind = NODE_STRING;
        node->value.text = arena_text(node->document->arena, json_string_value(value));
        if (node->value.text == NULL)
            return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for the texts of %s",
                             node->document->name);
        break;
    case JSON_INTEGER:
        node->kind = NODE_INTEGER;
        node->value.integer = json_integer_value(value);
        break;
    case JSON_REAL:
        node->kind = NODE_REAL;
        node->value.real = json_real_value(value);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        node->kind = NODE_BOOLEAN;
        node->value.boolean = json_typeof(value) == JSON_TRUE;
        break;
    case JSON_NULL:
        node->kind = NODE_NULL;
        break;
    }
    return STATUS_OK;
}

/* Jansson calls a text invalid, or drops what it has read, where an allocation fails. */
static _Thread_local bool memory_is_out;

static void *parse_allocate(size_t size_bytes)
{
    void *memory = malloc(size_bytes);
    if (memory == NULL) memory_is_out = true;
    return memory;
}

/* Before any thread is there. */
__attribute__((constructor)) static void allocation_set(void)
{
    json_set_alloc_funcs(parse_allocate, free);
}

enum status json_parse(struct json *node, uint32_t depth, const char *text, uint64_t text_bytes,
                       bool any, struct error *reterr)
{
    STATUS_TRY(scan(node->document, depth, text, text_bytes, reterr));
    json_error_t why;
    memory_is_out = false;
    json_t *root = json_loadb(text, (size_t)text_bytes,
                              JSON_REJECT_DUPLICATES | (any ? JSON_DECODE_ANY : 0u), &why);
    if (memory_is_out) {
        json_decref(root);
        return error_no_memory(reterr, "");
    }
    if (root == NULL) return refuse_syntax(node->document, &why, text, text_bytes, reterr);
    enum status const status = copy(node, root, reterr);
    json_decref(root);
    return status;
}
