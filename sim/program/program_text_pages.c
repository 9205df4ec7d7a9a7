#include <string.h>

#include "sim/base/arena.h"
#include "sim/program/program_text.h"
#include "sim/program/program_text_token.h"

static bool is_page(struct text_cursor *cursor)
{
    return cursor_more(cursor) && cursor_says(cursor, text_page_line.word);
}

/* Pages follow one another up to the last step, which all of them name. */
static enum status page_read(struct text_cursor *cursor, bool is_first, struct text_page *page)
{
    struct text_page const former = *page;
    const char *const at = cursor->at;
    cursor->at += strlen(text_page_line.word);
    STATUS_TRY(cursor_rows(cursor, &text_page_line, page));
    if (is_first ? page->last != 0 : page->last <= former.last)
        return cursor_refuse(cursor, STATUS_INVALID, at,
                             "pages begin with last=0, the prefill, and the last step of each is "
                             "behind that of the page before");
    if (page->last > page->of || (!is_first && page->of != former.of))
        return cursor_refuse(cursor, STATUS_INVALID, at,
                             "all pages have the same of, the last step of the last page");
    return STATUS_OK;
}

enum status program_text_divide(struct arena *arena, const char *name, uint32_t line,
                                const char *text, uint64_t text_bytes,
                                struct program_text_part **ret_parts, uint32_t *ret_count,
                                struct error *reterr)
{
    const char *const end = text + text_bytes, *rest = text;
    struct text_cursor cursor = {.arena = arena, .name = name, .reterr = reterr};
    struct text_page page = {0};
    uint32_t count = 1, at = 0;
    void *memory = NULL;
    while (cursor_line(&cursor, &rest, end)) count += is_page(&cursor);
    STATUS_TRY(arena_try(arena, count, sizeof **ret_parts, &memory, reterr));
    struct program_text_part *parts = memory;
    parts[0] = (struct program_text_part){.text = text, .line = line};
    cursor.line = line - 1;
    for (rest = text; cursor_line(&cursor, &rest, end);) {
        if (!is_page(&cursor)) continue;
        parts[at].text_bytes = (uint64_t)(cursor.begin - parts[at].text);
        STATUS_TRY(page_read(&cursor, at == 0, &page));
        parts[++at] =
            (struct program_text_part){.last = page.last, .text = cursor.end, .line = cursor.line};
    }
    parts[at].text_bytes = (uint64_t)(end - parts[at].text);
    if (page.last != page.of)
        return cursor_refuse(&cursor, STATUS_INVALID, cursor.at,
                             "the text ends here, with the page of step %llu of %llu: it was cut "
                             "off",
                             (unsigned long long)page.last, (unsigned long long)page.of);
    *ret_parts = parts;
    *ret_count = count;
    return STATUS_OK;
}
