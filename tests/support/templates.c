#include "tests/support/templates.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "tests/support/case.h"
#include "tests/support/template_text.h"

enum { DIGEST_DIGITS = 8, PATH_BYTES = 128 };

/* Memory is held apart from all else: it may be counted anew where what is done stays. */
enum side { DOES, MEMORY, SIDES };
static const char *const side_suffix[SIDES] = {"", "-memory"};

static struct held {
    char path[PATH_BYTES];
    FILE *written;      /* While blessing; else NULL. */
    struct strbuf kept; /* All of the file; */
    const char *after;  /* the line behind the one that was found last. */
} all_held[SIDES];

static bool is_blessing(void)
{
    const char *const bless = getenv("PODSIM_BLESS");
    return bless != NULL && strcmp(bless, "yes") == 0;
}

static void side_open(const char *name, enum side side)
{
    struct held *held = &all_held[side];
    char part[4096];
    size_t count = 0;
    (void)snprintf(held->path, sizeof held->path, "tests/golden/templates/%s%s.expect", name,
                   side_suffix[side]);
    FILE *file = fopen(held->path, is_blessing() ? "w" : "r");
    if (file == NULL) fail_msg("%s: %s", held->path, strerror(errno));
    if (is_blessing()) {
        held->written = file;
        return;
    }
    while ((count = fread(part, 1, sizeof part, file)) > 0)
        strbuf_add_bytes(&held->kept, part, count);
    (void)fclose(file);
    assert_true(held->kept.size_bytes > 0 && !held->kept.failed);
    held->after = held->kept.bytes;
}

void templates_open(const char *name)
{
    for (uint32_t side = 0; side < SIDES; side++) side_open(name, (enum side)side);
}

int templates_close(int failed_count)
{
    for (uint32_t side = 0; side < SIDES; side++) {
        struct held *held = &all_held[side];
        if (held->written != NULL) assert_int_equal(fclose(held->written), 0);
        strbuf_free(&held->kept);
        held->written = NULL;
    }
    return failed_count;
}

/* FNV-1a (Fowler, Noll, Vo; draft-eastlake-fnv-21, 64 bits). */
static uint64_t digest_add(uint64_t digest, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        digest = (digest ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return digest;
}

/* Of a template's lines. Of memory: what each op takes and gives, and the ops by their kinds. */
static uint64_t digest_of(const struct strbuf *text, enum side side)
{
    static const char word[] = "memory ";
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (const char *at = text->bytes; *at != '\0';) {
        const char *const begin = at + strspn(at, " ");
        size_t const length = strcspn(at, "\n") + 1;
        bool const memory = strncmp(begin, word, sizeof word - 1) == 0;
        bool const op = begin == at + 2;
        if (memory == (side == MEMORY))
            digest = digest_add(digest, at, length);
        else if (side == MEMORY && op)
            digest = digest_add(digest, begin, strcspn(begin, " "));
        at += length;
    }
    return digest;
}

/* "NAME: 01234567 89abcdef", a digest a template. */
static void lines_make(const char *of, const struct template_text *texts,
                       struct strbuf lines[SIDES])
{
    for (uint32_t side = 0; side < SIDES; side++) strbuf_add(&lines[side], "%s:", of);
    for (uint32_t t = 0; t < texts->program->template_count; t++) {
        struct strbuf text = {0};
        template_text_add(texts, t, &text);
        assert_false(text.failed);
        for (uint32_t side = 0; side < SIDES; side++)
            strbuf_add(&lines[side], " %08x",
                       (unsigned)(digest_of(&text, (enum side)side) & 0xffffffff));
        strbuf_free(&text);
    }
    for (uint32_t side = 0; side < SIDES; side++) strbuf_add(&lines[side], "\n");
}

/* Programs come in the order of the file, as a rule. */
static const char *line_find(struct held *held, const char *of)
{
    size_t const length = strlen(of);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (const char *at = pass == 0 ? held->after : held->kept.bytes; *at != '\0';) {
            const char *const end = strchr(at, '\n');
            if (end == NULL) break;
            held->after = end + 1;
            if (strncmp(at, of, length) == 0 && at[length] == ':') return at;
            at = end + 1;
        }
    }
    return NULL;
}

static void differ(const struct held *held, const char *of, const struct template_text *texts,
                   const char *ours, const char *kept)
{
    const struct program *program = texts->program;
    struct strbuf text = {0};
    size_t const begin = strlen(of) + 1;
    uint32_t index = 0;
    for (; index < program->template_count; index++) {
        size_t const at = begin + (size_t)index * (DIGEST_DIGITS + 1);
        if (strncmp(ours + at, kept + at, DIGEST_DIGITS + 1) != 0) break;
    }
    if (index == program->template_count)
        fail_msg("%s: %s has fewer templates than it had", held->path, of);
    template_text_add(texts, index, &text);
    (void)fputs(text.bytes, stdout);
    (void)fflush(stdout);
    strbuf_free(&text);
    fail_msg("%s: template %u of %s (%s), printed above, does something else than it did;\n"
             "if that is meant: tests/golden/golden.sh --bless build/podsim . templates",
             held->path, index, of, program->templates[index].name);
}

void templates_hold(const char *of, const struct program *program, const struct machine *machine)
{
    struct strbuf lines[SIDES] = {{0}};
    struct template_text texts;
    template_text_open(program, machine, &texts);
    lines_make(of, &texts, lines);
    for (uint32_t side = 0; side < SIDES; side++) {
        struct held *held = &all_held[side];
        const struct strbuf *line = &lines[side];
        assert_false(line->failed);
        if (held->written != NULL) {
            (void)fputs(line->bytes, held->written);
            continue;
        }
        const char *const kept = line_find(held, of);
        if (kept == NULL) fail_msg("%s has no line for %s", held->path, of);
        if (strncmp(kept, line->bytes, line->size_bytes) != 0)
            differ(held, of, &texts, line->bytes, kept);
    }
    for (uint32_t side = 0; side < SIDES; side++) strbuf_free(&lines[side]);
    template_text_close(&texts);
}
