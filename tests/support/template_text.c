#include "tests/support/template_text.h"

#include <stdlib.h>
#include <string.h>

#include "sim/program/program_text.h"
#include "tests/support/case.h"

enum { INDENT_COLUMNS = 2, NAMED_COLUMNS = 4 };

static const char *const words[TEXT_KINDS] = {"stream ", "work ", "plan ", "host_copy ",
                                              "template "};

static const char *next_line(const char *line)
{
    return line + strcspn(line, "\n") + 1;
}

void template_text_open(const struct program *program, const struct machine *machine,
                        struct template_text *ret_text)
{
    uint32_t const counts[TEXT_KINDS] = {program->stream_count, program->work_count,
                                         program->plan_count, program->copy_count,
                                         program->template_count};
    uint32_t found[TEXT_KINDS] = {0};
    *ret_text = (struct template_text){.program = program};
    program_text_write(program, machine, &ret_text->whole);
    assert_false(ret_text->whole.failed);
    for (uint32_t k = 0; k < TEXT_KINDS; k++) {
        ret_text->line[k] = calloc(counts[k] + 1, sizeof *ret_text->line[k]);
        assert_non_null(ret_text->line[k]);
    }
    for (const char *line = ret_text->whole.bytes; *line != '\0'; line = next_line(line))
        for (uint32_t k = 0; k < TEXT_KINDS; k++)
            if (strncmp(line, words[k], strlen(words[k])) == 0) {
                assert_true(found[k] < counts[k]);
                ret_text->line[k][found[k]++] = line;
            }
    assert_memory_equal(found, counts, sizeof counts);
}

void template_text_close(struct template_text *text)
{
    for (uint32_t k = 0; k < TEXT_KINDS; k++) free(text->line[k]);
    strbuf_free(&text->whole);
}

/* Up to the blank or the end of the line behind a word, of which a part may be in quotes. */
static size_t word_length(const char *word)
{
    bool quoted = false;
    size_t length = 0;
    for (; word[length] != '\n' && (quoted || word[length] != ' '); length++) {
        if (word[length] == '\\') length++;
        if (word[length] == '"' && (length == 0 || word[length - 1] != '\\')) quoted = !quoted;
    }
    return length;
}

/* Names, what streams are for, which names said when the digests were taken, and numbers of lines
 * that are written in place of their number. */
static bool is_left_out(const char *word, bool in_template)
{
    static const char *const keys[] = {"class=", "array=", "work=", "plan=", "host_copy=", "verb="};
    if (*word == '"') return true;
    if (*word >= '0' && *word <= '9') return !in_template;
    if (strncmp(word, "of=", strlen("of=")) == 0) return !in_template;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strncmp(word, keys[i], strlen(keys[i])) == 0) return true;
    return false;
}

static void add_line(const char *line, int columns, struct strbuf *text)
{
    size_t const own = strspn(line, " ");
    strbuf_add(text, "%*s", columns + (int)own, "");
    for (const char *word = line + own; *word != '\n';) {
        size_t const length = word_length(word);
        if (word == line + own || !is_left_out(word, own > 0)) {
            if (word != line + own) strbuf_add_bytes(text, " ", 1);
            strbuf_add_bytes(text, word, length);
        }
        word += length;
        if (*word == ' ') word++;
    }
    strbuf_add_bytes(text, "\n", 1);
}

/* What the line of an op names, with all lines that belong to it. */
static void add_named(const struct template_text *of, const char *op, struct strbuf *text)
{
    static const char *const keys[] = {
        [TEXT_WORK] = " work=", [TEXT_PLAN] = " plan=", [TEXT_COPY] = " host_copy="};
    const char *const end = next_line(op);
    for (uint32_t k = TEXT_WORK; k <= TEXT_COPY; k++) {
        const char *const key = strstr(op, keys[k]);
        if (key == NULL || key >= end) continue;
        const char *line = of->line[k][strtoul(key + strlen(keys[k]), NULL, 10)];
        do {
            add_line(line, NAMED_COLUMNS, text);
            line = next_line(line);
        } while (*line == ' ');
    }
}

void template_text_add(const struct template_text *of, uint32_t index, struct strbuf *text)
{
    const char *line = of->line[TEXT_TEMPLATE][index], *op = NULL;
    add_line(line, 0, text);
    for (uint32_t s = 0; s < of->program->stream_count; s++) {
        if (of->program->templates[index].stream_parts[s] == 0) continue;
        strbuf_add(text, "  %u: ", s);
        add_line(of->line[TEXT_STREAM][s], 0, text);
    }
    for (line = next_line(line); *line == ' '; line = next_line(line)) {
        if (strspn(line, " ") == INDENT_COLUMNS) {
            if (op != NULL) add_named(of, op, text);
            op = line;
        }
        add_line(line, 0, text);
    }
    if (op != NULL) add_named(of, op, text);
}
