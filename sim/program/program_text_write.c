#include <stddef.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/program/program_text.h"
#include "sim/program/program_text_rows.h"

/* A text that is being written. */
struct out {
    const struct program *program;
    const struct machine *machine;
    struct strbuf *text;
};

static void quoted(struct strbuf *text, const char *value)
{
    strbuf_add_bytes(text, "\"", 1);
    while (*value != '\0') {
        size_t const plain = strcspn(value, "\"\\");
        strbuf_add_bytes(text, value, plain);
        value += plain;
        if (*value != '\0') strbuf_add(text, "\\%c", *value++);
    }
    strbuf_add_bytes(text, "\"", 1);
}

static uint64_t member_unsigned(const void *member, uint8_t size)
{
    uint8_t byte;
    uint16_t half;
    uint32_t word;
    uint64_t whole;
    switch (size) {
    case sizeof byte:
        memcpy(&byte, member, sizeof byte);
        return byte;
    case sizeof half:
        memcpy(&half, member, sizeof half);
        return half;
    case sizeof word:
        memcpy(&word, member, sizeof word);
        return word;
    default:
        memcpy(&whole, member, sizeof whole);
        return whole;
    }
}

/* The sign goes up to the width of the member. */
static int64_t member_signed(const void *member, uint8_t size)
{
    uint64_t const bits = member_unsigned(member, size);
    uint64_t const sign = UINT64_C(1) << (8 * size - 1);
    return (bits & sign) == 0 ? (int64_t)bits : -(int64_t)(2 * sign - bits - 1) - 1;
}

static void add_word(struct strbuf *text, const char *word)
{
    if (strchr(word, ' ') != NULL)
        quoted(text, word);
    else
        strbuf_add(text, "%s", word);
}

/* The words of the bits that are set. */
static void add_words(struct strbuf *text, const char *const *words, uint64_t bits)
{
    const char *comma = "";
    for (uint32_t i = 0; words[i] != NULL; i++) {
        if ((bits >> i & 1) == 0) continue;
        strbuf_add(text, "%s%s", comma, words[i]);
        comma = ",";
    }
}

static void add_row(const struct out *out, const struct text_row *row, const void *line)
{
    const void *member = (const char *)line + row->offset;
    const char *value = NULL;
    if (row->kind == ROW_TEXT) memcpy(&value, member, sizeof value);
    if (row->kind == ROW_TEXT && value == NULL) return;
    if (row->means != NULL && !row->means(line)) return;
    strbuf_add(out->text, " %s=", row->key);
    bool const is_instead =
        row->instead != NULL &&
        (row->kind == ROW_SIGNED
             ? member_signed(member, row->size) == row->instead_value
             : member_unsigned(member, row->size) == (uint64_t)row->instead_value);
    if (is_instead) {
        strbuf_add(out->text, "%s", row->instead);
        return;
    }
    switch (row->kind) {
    case ROW_UNSIGNED:
        strbuf_add(out->text, "%llu", (unsigned long long)member_unsigned(member, row->size));
        break;
    case ROW_SIGNED:
        strbuf_add(out->text, "%lld", (long long)member_signed(member, row->size));
        break;
    case ROW_TEXT:
        quoted(out->text, value);
        break;
    case ROW_WORD:
        add_word(out->text, row->words[member_unsigned(member, row->size)]);
        break;
    case ROW_WORDS:
        add_words(out->text, row->words, member_unsigned(member, row->size));
        break;
    case ROW_AXIS:
        add_word(out->text,
                 machine_axis_name(out->machine, (uint32_t)member_unsigned(member, row->size)));
        break;
    }
}

static void add_line(const struct out *out, uint32_t indent, enum text_line_kind kind,
                     uint32_t number, const void *line)
{
    const struct text_line *of = &text_lines[kind];
    strbuf_add(out->text, "%*s%s", (int)(2 * indent), "", of->word);
    if (of->numbered) strbuf_add(out->text, " %u", number);
    if (of->named) {
        const char *name = NULL;
        memcpy(&name, (const char *)line + of->name_offset, sizeof name);
        strbuf_add(out->text, " ");
        quoted(out->text, name);
    }
    for (uint32_t i = 0; i < of->row_count; i++) add_row(out, &of->rows[i], line);
    strbuf_add(out->text, "\n");
}

static void add_work(const struct out *out, uint32_t index)
{
    const struct work *work = &out->program->works[index];
    add_line(out, 0, LINE_WORK, index, work);
    for (uint32_t i = 0; i < work->matmul_count; i++)
        add_line(out, 1, LINE_MATMUL, i, &work->matmul[i]);
    for (uint32_t i = 0; i < WORK_ATTENDED_MAX; i++)
        if (work->attended[i].heads != 0) add_line(out, 1, LINE_ATTENDED, i, &work->attended[i]);
}

static enum text_links links_of(const struct group_dimension *dimension)
{
    if (dimension->switched) return TEXT_SWITCHES;
    return dimension->ring ? TEXT_RING : TEXT_LINE;
}

/* An algorithm that nobody chose is "auto". What comes out of a file is of `podsim collective`,
 * whose programs are not written. */
static void add_plan(const struct out *out, uint32_t index)
{
    const struct plan_request *request = &out->program->requests[index];
    SIM_ASSERT(request->script == NULL);
    struct algorithm_text const algorithm = algorithm_text(&request->algorithm);
    struct text_plan plan = {.request = *request,
                             .algorithm = algorithm.text,
                             .runs = out->program->plans[index].algorithm_name,
                             .from_machine = request->bytes_per_s[0] != 0};
    add_line(out, 0, LINE_PLAN, index, &plan);
    for (uint32_t d = 0; d < request->group.dimension_count; d++) {
        const struct group_dimension *of = &request->group.dimension[d];
        struct text_dimension const dimension = {.axis = of->axis,
                                                 .size = of->size,
                                                 .stride = of->stride,
                                                 .links = links_of(of),
                                                 .offset = request->offset[d],
                                                 .exchange_bytes = request->exchange_bytes[d],
                                                 .kind = request->kind};
        add_line(out, 1, LINE_DIMENSION, d, &dimension);
    }
    if (request->ragged.expert_count != 0) add_line(out, 1, LINE_RAGGED, 0, &request->ragged);
}

static void add_template(const struct out *out, uint32_t index)
{
    const struct program_template *template = &out->program->templates[index];
    add_line(out, 0, LINE_TEMPLATE, index, template);
    for (uint32_t i = 0; i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        add_line(out, 1, (enum text_line_kind)(LINE_COMPUTE + op->kind), i, op);
        for (uint32_t n = 0; n < op->need_count; n++) add_line(out, 2, LINE_NEED, n, &op->need[n]);
        for (uint32_t e = 0; e < op->effect_count; e++)
            add_line(out, 2, LINE_MEMORY, e, &op->effect[e]);
    }
}

static void add_role(const struct out *out, uint32_t index)
{
    const struct program_role *role = &out->program->roles[index];
    add_line(out, 0, LINE_ROLE, index, role);
    for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++) {
        struct text_resident const resident = {(enum program_memory)m, role->resident_bytes[m]};
        if (m < PROGRAM_OVERHEAD_FIRST || resident.bytes != 0)
            add_line(out, 1, LINE_RESIDENT, m, &resident);
    }
    for (uint32_t b = 0; b < role->block_count; b++)
        add_line(out, 1, LINE_BLOCK, b, &role->block[b]);
}

void program_text_write_page(uint64_t last, uint64_t of, struct strbuf *text)
{
    struct out const out = {.text = text};
    struct text_page const page = {last, of};
    strbuf_add(text, "\n%s", text_page_line.word);
    for (uint32_t i = 0; i < text_page_line.row_count; i++)
        add_row(&out, &text_page_line.rows[i], &page);
    strbuf_add(text, "\n");
}

void program_text_write(const struct program *program, const struct machine *machine,
                        struct strbuf *text)
{
    struct out const out = {.program = program, .machine = machine, .text = text};
    SIM_ASSERT(program->requests != NULL || program->plan_count == 0);
    add_line(&out, 0, LINE_STEP, 0, program);
    if (program->role_count > 1) add_line(&out, 0, LINE_ROLES, 0, program);
    strbuf_add(text, "\n");
    for (uint32_t i = 0; i < program->stream_count; i++)
        add_line(&out, 0, LINE_STREAM, i, &program->stream[i]);
    strbuf_add(text, "\n");
    for (uint32_t i = 0; i < program->work_count; i++) add_work(&out, i);
    strbuf_add(text, "\n");
    for (uint32_t i = 0; i < program->plan_count; i++) add_plan(&out, i);
    for (uint32_t i = 0; i < program->copy_count; i++) {
        if (i == 0) strbuf_add(text, "\n");
        add_line(&out, 0, LINE_HOST_COPY, i, &program->copies[i]);
    }
    for (uint32_t i = 0; i < program->template_count; i++) {
        strbuf_add(text, "\n");
        add_template(&out, i);
    }
    for (uint32_t i = 0; i < program->role_count; i++) {
        strbuf_add(text, "\n");
        add_role(&out, i);
    }
    strbuf_add(text, "\n");
    add_line(&out, 0, LINE_END, 0, program);
}
