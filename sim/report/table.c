#include "sim/report/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/counted.h"
#include "sim/base/letter.h"
#include "sim/base/quantity.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/kernels/kernels.h"
#include "sim/report/generation.h"

struct table_figure table_seconds(double seconds)
{
    struct table_figure figure;
    (void)quantity_text_seconds(figure.text, seconds);
    return figure;
}

struct table_figure table_duration(int64_t duration_ps)
{
    return table_seconds(units_seconds(duration_ps));
}

struct table_figure table_instant(double seconds)
{
    struct table_figure figure;
    bool const small = seconds < 0.01, large = seconds >= 1000;
    (void)snprintf(figure.text, sizeof figure.text, "%.3f %s",
                   seconds * (small   ? 1e6
                              : large ? 1
                                      : 1e3),
                   small   ? "us"
                   : large ? "s"
                           : "ms");
    return figure;
}

struct table_figure table_bytes(double bytes)
{
    struct table_figure figure;
    (void)quantity_text_bytes(figure.text, bytes);
    return figure;
}

struct table_figure table_rate(double bytes_per_s)
{
    struct table_figure figure;
    (void)quantity_text_rate(figure.text, bytes_per_s, "B/s");
    return figure;
}

struct table_figure table_flop_rate(double flop_per_s)
{
    struct table_figure figure;
    (void)quantity_text_rate(figure.text, flop_per_s, "FLOP/s");
    return figure;
}

struct table_figure table_percent(double part, double whole)
{
    struct table_figure figure;
    double const percent = whole > 0 ? 100 * part / whole : 0;
    (void)snprintf(figure.text, sizeof figure.text, "%.1f%%", percent);
    return figure;
}

struct table_figure table_count(uint64_t count)
{
    struct table_figure figure;
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%" PRIu64, count);
    size_t const length = strlen(digits);
    size_t to = 0;
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) figure.text[to++] = ',';
        figure.text[to++] = digits[i];
    }
    figure.text[to] = '\0';
    return figure;
}

uint32_t table_columns(const char *string)
{
    uint32_t columns = 0;
    for (; *string != '\0'; string++) columns += ((unsigned char)*string & 0xc0) != 0x80;
    return columns;
}

void table_name(struct strbuf *text, const char *name, uint32_t columns)
{
    bool const is_cut = table_columns(name) > columns;
    uint32_t left = is_cut && columns > 0 ? columns - 1 : columns;
    for (const char *c = name; *c != '\0'; c++) {
        bool const begins = ((unsigned char)*c & 0xc0) != 0x80;
        if (begins && left-- == 0) break;
        strbuf_add_bytes(text, c, 1);
    }
    if (is_cut) strbuf_add(text, "…");
}

void table_label(struct strbuf *text, const char *name)
{
    strbuf_add(text, "  %s", name);
    strbuf_pad(text, TABLE_LABEL_COLUMNS);
}

void table_line(struct strbuf *text, const char *name)
{
    strbuf_add(text, "%s", name);
    strbuf_pad(text, TABLE_LINE_COLUMNS);
}

void table_right(struct strbuf *text, uint32_t column, const char *figure)
{
    uint32_t const width = table_columns(figure);
    strbuf_pad(text, column > width ? column - width : 0);
    strbuf_add(text, "%s", figure);
}

void table_bar(struct strbuf *text, double part, double whole, uint32_t width)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    double share = whole > 0 ? part / whole : 0;
    uint32_t const at = strbuf_column(text) + 2;
    if (text->columns > at && width > text->columns - at) width = text->columns - at;
    if (share < 0) share = 0;
    if (share > 1) share = 1;
    uint32_t const cells = (uint32_t)(share * width * 8 + 0.5);
    if (cells > 0) strbuf_add(text, "  "); /* No blanks where nothing follows. */
    for (uint32_t i = 0; i < cells / 8; i++) strbuf_add(text, "█");
    strbuf_add(text, "%s", eighths[cells % 8]);
}

uint32_t table_wrap_columns(const struct strbuf *text)
{
    return text->columns > 0 && text->columns < TABLE_COLUMNS ? text->columns : TABLE_COLUMNS;
}

void table_wrap(struct strbuf *text, uint32_t indent, const char *sentence)
{
    uint32_t const columns = table_wrap_columns(text);
    bool first = true;
    while (*sentence != '\0') {
        size_t const length = strcspn(sentence, " ");
        uint32_t width = 0;
        for (size_t i = 0; i < length; i++) width += ((unsigned char)sentence[i] & 0xc0) != 0x80;
        if (!first && strbuf_column(text) + 1 + width > columns) {
            strbuf_add(text, "\n%*s", (int)indent, "");
            first = true;
        }
        if (!first) strbuf_add(text, " ");
        strbuf_add_bytes(text, sentence, length);
        first = false;
        sentence += length;
        while (*sentence == ' ') sentence++;
    }
    strbuf_add(text, "\n");
}

void table_wrap_close(struct strbuf *text, uint32_t indent, struct strbuf *sentence)
{
    text->failed = text->failed || sentence->failed;
    if (!sentence->failed && sentence->bytes != NULL) table_wrap(text, indent, sentence->bytes);
    strbuf_free(sentence);
}

void table_colour(struct strbuf *text, bool colour, enum table_colour which)
{
    static const char *const codes[] = {"1", "2", "32", "33", "31", "0"};
    if (colour) strbuf_add(text, "\x1b[%sm", codes[which]);
}

void table_shape(const struct machine *machine, struct strbuf *text)
{
    for (uint32_t i = 0; i < machine->axis_count; i++)
        strbuf_add(text, "%s%u", i > 0 ? "x" : "", machine->shape[i]);
}

void table_mesh(const struct mesh *mesh, const struct machine *machine, struct strbuf *text)
{
    for (uint32_t i = 0; i < mesh->order_count; i++) {
        const struct mesh_axis *axis = &mesh->axis[mesh->named[i]];
        const struct mesh_axis *own = mesh_own_axis(mesh, axis->role);
        strbuf_add(text, "%s%s %u over", i > 0 ? ", " : "", mesh_role_name(axis->role), axis->size);
        for (uint32_t p = 0; p < own->part_count; p++) {
            const struct mesh_part *part = &own->part[p];
            strbuf_add(text, " %s", machine_axis_name(machine, part->axis));
            if (part->size != machine->shape[part->axis]) strbuf_add(text, ":%u", part->size);
        }
        for (uint32_t role = 0; axis->role == MESH_EP && role < MESH_ROLE_COUNT; role++)
            if (mesh_ep_over(mesh, (enum mesh_role)role))
                strbuf_add(text, " %s", mesh_role_name((enum mesh_role)role));
    }
}

/* A title is the user's: what would steer the terminal is not passed on. */
static void heading_title(const char *title, struct strbuf *text)
{
    struct strbuf plain = {0};
    strbuf_add(&plain, "%s", title);
    if (plain.bytes != NULL) letters_replace(plain.bytes, ' ');
    table_wrap_close(text, 0, &plain);
}

/* Of a program that was read. */
static void heading_program(const struct report_input *input, struct strbuf *text)
{
    const struct program *program = input->program;
    strbuf_add(text, "\na program of %u %s", program->template_count,
               counted_noun(program->template_count, "template").text);
    if (input->generation != NULL)
        strbuf_add(text, ", and %u more, of the prefill and of the last step of each page",
                   input->generation->page_count);
    else if (program->tokens > 0)
        strbuf_add(text, ", %s %s a step", table_count(program->tokens).text,
                   counted_noun(program->tokens, "token").text);
    strbuf_add(text, "\n\n");
}

static void heading_inference(const struct workload_plan *plan, struct strbuf *text)
{
    static const struct {
        enum inference_part part;
        const char *does, *noun;
    } rows[] = {{INFERENCE_PROMPTS, "prefill", "token"},
                {INFERENCE_DECODES, "decode", "new token"}};
    const char *before = ", ";
    bool const generates = plan->kind == WORKLOAD_GENERATE;
    uint32_t const passes =
        inference_batch_passes(&plan->inference) - generates; /* Of the prefill. */
    struct strbuf line = {0};
    strbuf_add(&line, "%s", plan->model.name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct inference_sum const sum = inference_sum(plan, rows[i].part);
        if (sum.sequences == 0 || (generates && rows[i].part == INFERENCE_DECODES)) continue;
        strbuf_add(&line, "%s%s of %s %s with %s %s", before, rows[i].does,
                   table_count(sum.sequences).text, counted_noun(sum.sequences, "sequence").text,
                   table_count(sum.tokens).text, counted_noun(sum.tokens, rows[i].noun).text);
        before = " and ";
    }
    uint32_t const batches = inference_batch_count(&plan->inference);
    if (batches > 1)
        strbuf_add(&line, " in %s, %s", counted(batches, "batch").text,
                   generates || inference_goes_round(&plan->inference) ? "one on each stage"
                                                                       : "one behind another");
    if (plan->inference.prompts.chunk != 0 && passes > 1)
        strbuf_add(&line, "%s in %s of %s", batches > 1 ? ", each" : "",
                   counted(passes, "pass").text, table_count(plan->inference.prompts.chunk).text);
    if (generates)
        strbuf_add(&line, ", then %s %s of a token each",
                   table_count(plan->inference.generation.output).text,
                   counted_noun(plan->inference.generation.output, "step").text);
    if (plan->model.kind == MODEL_DECODER)
        strbuf_add(&line, ", %s in the cache",
                   table_count(inference_sum_all(plan).context_tokens).text);
    strbuf_add(text, "\n");
    table_wrap_close(text, 2, &line);
    strbuf_add(text, "\n");
}

void table_heading(const struct report_input *input, bool colour, struct strbuf *text)
{
    const struct machine *machine = input->machine;
    table_colour(text, colour, TABLE_BOLD);
    heading_title(input->title, text);
    table_colour(text, colour, TABLE_PLAIN);
    strbuf_add(text, "%s ", machine->chip.name);
    table_shape(machine, text);
    strbuf_add(text, " (%s profile", machine->chip.profile);
    if (machine->chip.kernels.stack != NULL)
        strbuf_add(text, ", kernels of %s", machine->chip.kernels.stack->title);
    strbuf_add(text, "), %s %s", table_count(machine->chip_count).text,
               counted_noun(machine->chip_count, "chip").text);
    if (input->mesh->order_count > 0) strbuf_add(text, "; ");
    table_mesh(input->mesh, machine, text);
    if (input->roofline == NULL) {
        heading_program(input, text);
        return;
    }
    if (workload_serves(input->workload)) {
        heading_inference(input->workload, text);
        return;
    }
    strbuf_add(text, "\n%s, %s %s a step", input->workload->model.name,
               table_count(input->workload->batch_tokens).text,
               counted_noun(input->workload->batch_tokens, "token").text);
    if (input->workload->model.kind == MODEL_DECODER)
        strbuf_add(text, " in sequences of %s", table_count(input->workload->sequence_length).text);
    strbuf_add(text, "\n\n");
}
