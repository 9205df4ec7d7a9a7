#include "sim/base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/arena.h"
#include "sim/base/files_read.h"
#include "sim/base/json_node.h"
#include "sim/base/letter.h"
#include "sim/base/strbuf.h"

_Static_assert((int)JSON_NULL == NODE_NULL && (int)JSON_BOOLEAN == NODE_BOOLEAN &&
                   (int)JSON_INTEGER == NODE_INTEGER && (int)JSON_REAL == NODE_REAL &&
                   (int)JSON_STRING == NODE_STRING && (int)JSON_ARRAY == NODE_ARRAY &&
                   (int)JSON_OBJECT == NODE_OBJECT,
               "the kinds of the tree are the kinds that readers see");

enum status json_read_text(struct arena *arena, const char *name, const char *text,
                           uint64_t text_bytes, struct json **ret_json, struct error *reterr)
{
    if (text_bytes > JSON_FILE_BYTES_MAX)
        return error_set(reterr, STATUS_LIMIT, name, "is longer than %d bytes, the maximum",
                         JSON_FILE_BYTES_MAX);
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct json_document), &memory, reterr));
    struct json_document *document = memory;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct json), &memory, reterr));
    struct json *root = memory;
    document->arena = arena;
    document->name = arena_text(arena, name);
    if (document->name == NULL) return error_set(reterr, STATUS_NO_MEMORY, name, "no memory");
    root->document = document;
    STATUS_TRY(json_parse(root, 0, text, text_bytes, false, reterr));
    *ret_json = root;
    return STATUS_OK;
}

static enum status refuse(const char *path, int cause, struct error *reterr)
{
    return error_set(reterr, STATUS_IO, path, "cannot be read: %s",
                     cause == ENOENT ? "no such file" : strerror(cause));
}

/* Reads at most one byte more than is allowed. */
static enum status read_all(int file, const char *path, char *text, uint64_t *ret_bytes,
                            struct error *reterr)
{
    uint64_t bytes = 0;
    for (;;) {
        ssize_t const count = read(file, text + bytes, (size_t)(JSON_FILE_BYTES_MAX + 1 - bytes));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return refuse(path, errno, reterr);
        bytes += (uint64_t)count;
        if (count == 0 || bytes > JSON_FILE_BYTES_MAX) break;
    }
    *ret_bytes = bytes;
    return STATUS_OK;
}

static enum status check_file(int file, const char *path, struct error *reterr)
{
    struct stat found;
    if (fstat(file, &found) != 0) return refuse(path, errno, reterr);
    if (S_ISDIR(found.st_mode))
        return error_set(reterr, STATUS_IO, path, "is a folder, not a file");
    if (S_ISFIFO(found.st_mode))
        return error_set(reterr, STATUS_IO, path, "is a pipe, not a regular file");
    if (!S_ISREG(found.st_mode))
        return error_set(reterr, STATUS_IO, path,
                         "is a device or a socket, neither a regular file nor a pipe");
    return STATUS_OK;
}

enum status json_read_file(struct arena *arena, const char *path, struct json **ret_json,
                           struct error *reterr)
{
    int const file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY); /* A pipe must not hang us. */
    if (file < 0) return refuse(path, errno, reterr);
    char *text = NULL;
    uint64_t text_bytes = 0;
    enum status status = check_file(file, path, reterr);
    if (status == STATUS_OK) status = files_read_add(file, path, reterr);
    if (status != STATUS_OK) goto out;
    text = malloc(JSON_FILE_BYTES_MAX + 1);
    if (text == NULL) {
        status = error_set(reterr, STATUS_NO_MEMORY, path, "no memory to read it");
        goto out;
    }
    status = read_all(file, path, text, &text_bytes, reterr);
    if (status == STATUS_OK)
        status = json_read_text(arena, path, text, text_bytes, ret_json, reterr);
out:
    free(text);
    (void)close(file);
    return status;
}

void json_free(struct json *document)
{
    *document = (struct json){.kind = NODE_NULL}; /* Use after it finds nothing. */
}

/* One step of a JSON pointer (RFC 6901), ~1 and ~0 undone; false where the escape is not one. */
static bool pointer_step(const char *from, const char *end, char *key)
{
    for (; from < end; from++) {
        char c = *from;
        if (c == '~') {
            from++;
            if (from == end || (*from != '0' && *from != '1')) return false;
            c = *from == '0' ? '~' : '/';
        }
        *key++ = c;
    }
    *key = '\0';
    return true;
}

/* One more element. The others move, and their children know them by address. */
static enum status append(struct json *array, struct json **ret_element, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(array->document->arena, (uint64_t)array->count + 1, sizeof(struct json),
                         &memory, reterr));
    struct json *const elements = memory;
    for (uint32_t i = 0; i < array->count; i++) {
        struct json *const element = &elements[i];
        *element = array->value.first[i];
        if (element->kind == NODE_ARRAY)
            for (uint32_t k = 0; k < element->count; k++) element->value.first[k].parent = element;
        if (element->kind == NODE_OBJECT)
            for (struct json *child = element->value.first; child != NULL; child = child->next)
                child->parent = element;
    }
    struct json *const last = &elements[array->count];
    *last = (struct json){.document = array->document, .parent = array, .index = array->count};
    last->kind = NODE_OBJECT; /* Unless it is the last step, which overwrites it. */
    array->value.first = elements;
    array->count++;
    *ret_element = last;
    return STATUS_OK;
}

static bool is_index(const char *key)
{
    return *key != '\0' && key[strspn(key, "0123456789")] == '\0';
}

static enum status step_into(struct json *node, const char *key, struct json **ret_node,
                             struct error *reterr)
{
    bool const empty = node->kind == NODE_OBJECT && node->count == 0;
    if (node->made && empty && strcmp(key, "0") == 0) node->kind = NODE_ARRAY;
    if (node->made && empty && is_index(key) && node->kind == NODE_OBJECT)
        return error_set(
            reterr, STATUS_INVALID, json_where(node),
            "is not there, so it has no element \"%.64s\"; the first to be set is \"0\"", key);
    if (node->kind == NODE_OBJECT) {
        for (struct json *member = node->value.first; member != NULL; member = member->next) {
            if (strcmp(member->key, key) == 0) {
                *ret_node = member;
                return STATUS_OK;
            }
        }
        STATUS_TRY(json_node_add(node, key, ret_node, reterr));
        (*ret_node)->kind = NODE_OBJECT; /* Unless it is the last step, which overwrites it. */
        (*ret_node)->made = true;
        return STATUS_OK;
    }
    if (node->kind != NODE_ARRAY)
        return error_set(reterr, STATUS_INVALID, json_where(node),
                         "is neither an object nor an array, so it has no \"%.64s\"", key);
    uint64_t index = 0;
    bool good = *key != '\0' && (key[0] != '0' || key[1] == '\0');
    for (const char *c = key; good && *c != '\0'; c++) {
        good = *c >= '0' && *c <= '9' && index < UINT32_MAX;
        index = index * 10 + (uint64_t)(*c - '0');
    }
    if (good && index == node->count) return append(node, ret_node, reterr);
    if (!good || index > node->count)
        return error_set(reterr, STATUS_INVALID, json_where(node),
                         "is an array of %u elements and has no element \"%.64s\"", node->count,
                         key);
    *ret_node = &node->value.first[index];
    return STATUS_OK;
}

static enum status set_value(struct json *node, uint32_t depth, const char *value,
                             struct error *reterr)
{
    struct error why = {0};
    struct json trial = *node;
    if (json_parse(&trial, depth, value, strlen(value), true, &why) == STATUS_OK) {
        /* Children know their parent by address: parse again, now in place. */
        return json_parse(node, depth, value, strlen(value), true, reterr);
    }
    if (why.status == STATUS_NO_MEMORY) {
        *reterr = why;
        return reterr->status;
    }
    static const char largest[] = "; no key takes more than 9223372036854775807";
    bool const number = strspn(value, "+-.0123456789Ee") == strlen(value);
    if (number && why.status == STATUS_LIMIT)
        return error_set(reterr, STATUS_INVALID, json_where(node), "%.60s is too large%s", value,
                         largest);
    if (strchr("{[\"", value[0]) != NULL && value[0] != '\0')
        return error_set(reterr, STATUS_INVALID, json_where(node), "the value given: %s%s",
                         why.message, why.status == STATUS_LIMIT ? largest : "");
    node->kind = NODE_STRING;
    node->count = 0;
    node->value.text = arena_text(node->document->arena, value);
    if (node->value.text == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a setting");
    return STATUS_OK;
}

static void remove_member(struct json *member)
{
    struct json *const object = member->parent;
    struct json *before = NULL, **link = &object->value.first;
    for (; *link != member; link = &before->next) before = *link;
    *link = member->next;
    if (object->last == member) object->last = before;
    object->count--;
}

enum status json_set(struct json *document, const char *setting, struct error *reterr)
{
    const char *equals = strchr(setting, '=');
    uint64_t const length = strlen(setting);
    if (setting[0] != '/' || equals == NULL)
        return error_set(reterr, STATUS_INVALID, "--set",
                         "\"%.64s\" is not a setting; one is written like /run/seed=2", setting);
    for (uint64_t i = 0, bytes = 0; i < length; i += bytes) {
        bytes = letter_bytes(setting + i, length - i);
        if (bytes == 0) return error_set(reterr, STATUS_INVALID, "--set", "is not UTF-8");
    }
    struct json *node = document;
    uint32_t depth = 0;
    char *key = arena_take(document->document->arena, 1, length + 1);
    if (key == NULL) return error_set(reterr, STATUS_NO_MEMORY, "--set", "no memory for it");
    for (const char *from = setting; from < equals; depth++) {
        const char *end = memchr(from + 1, '/', (size_t)(equals - from - 1));
        if (end == NULL) end = equals;
        if (!pointer_step(from + 1, end, key))
            return error_set(reterr, STATUS_INVALID, "--set",
                             "\"%.64s\" has a ~ that is neither ~0 nor ~1", setting);
        if (depth >= JSON_DEPTH_MAX)
            return error_set(reterr, STATUS_INVALID, "--set", "is nested deeper than %d",
                             JSON_DEPTH_MAX);
        STATUS_TRY(step_into(node, key, &node, reterr));
        from = end;
    }
    bool const was_there = !node->made;
    STATUS_TRY(set_value(node, depth, equals + 1, reterr));
    node->made = false;
    struct json *const holder = node->parent;
    if (node->kind == NODE_NULL && was_there && holder != NULL && holder->kind == NODE_OBJECT)
        remove_member(node);
    return STATUS_OK;
}

enum status json_set_list(struct json *document, struct error *reterr, const char *format,
                          va_list arguments)
{
    struct strbuf text = {.bytes = NULL};
    strbuf_add_list(&text, format, arguments);
    enum status const status =
        text.failed ? error_no_memory(reterr, "") : json_set(document, text.bytes, reterr);
    strbuf_free(&text);
    return status;
}
