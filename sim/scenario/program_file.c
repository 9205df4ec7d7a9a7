#include "sim/scenario/program_file.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/program/program_text.h"

const char program_file_begin[] = "podsim program ";
static const char first_line[] = "podsim program 1";

enum status program_file_write(struct arena *arena, const struct scenario *scenario,
                               const struct machine *machine, const struct program *program,
                               struct strbuf *text, struct error *reterr)
{
    const char *head = scenario_text_of_program(arena, scenario);
    if (head == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a scenario");
    strbuf_add(text, "%s\n%s\n", first_line, head);
    program_text_write(program, machine, text);
    if (!text->failed) return STATUS_OK;
    return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a program's text");
}

static bool is_line(const char *begin, const char *end, const char *line)
{
    while (end > begin && (end[-1] == ' ' || end[-1] == '\r')) end--;
    return (size_t)(end - begin) == strlen(line) && memcmp(begin, line, strlen(line)) == 0;
}

static enum status refuse(const char *name, uint32_t line, const char *message,
                          struct error *reterr)
{
    char where[sizeof reterr->where];
    (void)snprintf(where, sizeof where, "%.120s:%u:1", name, line);
    return error_set(reterr, STATUS_INVALID, where, "%s", message);
}

enum status program_file_read_scenario(struct arena *arena, const char *name, const char *text,
                                       uint64_t text_bytes, const struct scenario_setting *settings,
                                       uint32_t setting_count, struct scenario *ret_scenario,
                                       struct program_file_rest *ret_rest, struct error *reterr)
{
    const char *const end = text + text_bytes;
    const char *const head = memchr(text, '\n', text_bytes);
    if (head == NULL || !is_line(text, head, first_line))
        return refuse(name, 1, "the text of a program begins with the line \"podsim program 1\"",
                      reterr);
    uint32_t line = 2;
    for (const char *at = head + 1; at < end; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *const last = newline == NULL ? end : newline;
        if (is_line(at, last, "}")) {
            *ret_rest = (struct program_file_rest){last, (uint64_t)(end - last), line};
            /* From the end of the first line, so that lines are those of the file. */
            return scenario_read_of_program(arena, name, head, (uint64_t)(last - head), settings,
                                            setting_count, ret_scenario, reterr);
        }
        at = newline == NULL ? end : newline + 1;
    }
    return refuse(name, 2, "machine, mesh and run follow as JSON that ends with a line \"}\"",
                  reterr);
}

enum status program_file_read(struct arena *arena, const char *name,
                              const struct program_file_rest *rest, const struct machine *machine,
                              struct program *ret_program, struct error *reterr)
{
    struct program_text_part *parts = NULL;
    uint32_t count = 0;
    STATUS_TRY(program_text_divide(arena, name, rest->line, rest->text, rest->text_bytes, &parts,
                                   &count, reterr));
    return program_text_read(arena, machine, name, parts->line, parts->text, parts->text_bytes,
                             ret_program, reterr);
}

enum status program_file_pages(struct arena *arena, const char *name,
                               const struct program_file_rest *rest,
                               const struct program_text_part **ret_pages, uint32_t *ret_count,
                               struct error *reterr)
{
    struct program_text_part *parts = NULL;
    uint32_t count = 0;
    STATUS_TRY(program_text_divide(arena, name, rest->line, rest->text, rest->text_bytes, &parts,
                                   &count, reterr));
    *ret_pages = parts + 1;
    *ret_count = count - 1;
    return STATUS_OK;
}
