#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/program/program_text.h"
#include "sim/program/program_text_plan.h"
#include "sim/program/program_text_token.h"

/* A program that is being read. Lines of ops, blocks and what else the seal may refuse are kept. */
struct reader {
    struct text_cursor cursor;
    struct program *program;
    uint32_t count[LINE_COUNT]; /* Of the whole text. */
    uint32_t seen[LINE_COUNT];  /* Up to this line. */
    struct plan_request *requests;
    struct program_op *ops; /* Of all templates, one after the other; */
    uint32_t *op_line;      /* where each stands; */
    uint32_t op_count;      /* and how many have been read. */
    struct program_block *blocks;
    uint32_t *block_line;
    uint32_t stream_line[PROGRAM_STREAMS_MAX];
    uint32_t *template_line, *role_line;
    enum text_line_kind top; /* The line that is not indented; LINE_COUNT: none yet. */
    bool in_op;
    uint32_t resident; /* Bits of what the role has said. */
    struct text_plan plan;
    uint32_t plan_line;
};

static bool says_nothing(struct text_cursor *cursor)
{
    return !cursor_more(cursor) || *cursor->at == '#';
}

/* LINE_COUNT: none has that word. Within a template `copy` and others are ops. */
static enum text_line_kind line_find(const struct text_cursor *cursor)
{
    uint32_t const length = cursor_word(cursor);
    uint32_t kind = 0;
    while (kind < LINE_COUNT && (strlen(text_lines[kind].word) != length ||
                                 memcmp(text_lines[kind].word, cursor->at, length) != 0))
        kind++;
    return (enum text_line_kind)kind;
}

static enum status word_unknown(const struct text_cursor *cursor)
{
    const char *words[LINE_COUNT + 2] = {[LINE_COUNT] = text_page_line.word};
    char word[48];
    uint32_t length = cursor_word(cursor);
    if (length >= sizeof word) length = sizeof word - 1;
    memcpy(word, cursor->at, length);
    word[length] = '\0';
    for (uint32_t i = 0; i < LINE_COUNT; i++) words[i] = text_lines[i].word;
    return cursor_refuse(cursor, STATUS_INVALID, cursor->at, "no line begins with \"%s\"%s", word,
                         name_offer(word, words, "; the nearest that does is ", "", NULL).text);
}

/* The last line that says something is "end": who cuts a text takes that away. */
static enum status end_check(const struct reader *reader, const char *text, const char *end)
{
    struct text_cursor cursor = reader->cursor, last = reader->cursor;
    last.line++; /* Of a text that says nothing, the first. */
    while (cursor_line(&cursor, &text, end))
        if (!says_nothing(&cursor)) last = cursor;
    if (last.at < last.end && line_find(&last) == LINE_END) return STATUS_OK;
    return cursor_refuse(&last, STATUS_INVALID, last.end,
                         "the text ends here, without the line \"%s\" that is its last: it was cut "
                         "off",
                         text_lines[LINE_END].word);
}

/* How many lines of each kind there are, before memory is taken for any. */
static enum status lines_count(struct reader *reader, const char *text, const char *end)
{
    struct text_cursor cursor = reader->cursor;
    while (cursor_line(&cursor, &text, end)) {
        if (says_nothing(&cursor)) continue;
        enum text_line_kind const kind = line_find(&cursor);
        if (kind == LINE_COUNT) return word_unknown(&cursor);
        uint32_t const most = text_lines[kind].most;
        if (most != 0 && reader->count[kind] == most)
            return cursor_refuse(&cursor, STATUS_LIMIT, cursor.at,
                                 most == 1 ? "a second line \"%s\"; there is %u"
                                           : "more lines \"%s\" than a program may have: %u",
                                 text_lines[kind].word, most);
        reader->count[kind]++;
    }
    return STATUS_OK;
}

static enum status take(struct reader *reader, uint32_t count, uint64_t size_bytes, void *ret)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(reader->cursor.arena, count, size_bytes, &memory, reader->cursor.reterr));
    memcpy(ret, &memory, sizeof memory);
    return STATUS_OK;
}

static enum status tables_take(struct reader *reader)
{
    struct program *program = reader->program;
    const uint32_t *count = reader->count;
    uint32_t ops = 0;
    for (uint32_t kind = LINE_COMPUTE; kind <= LINE_RECEIVE; kind++) ops += count[kind];
    STATUS_TRY(take(reader, count[LINE_WORK], sizeof *program->works, &program->works));
    STATUS_TRY(take(reader, count[LINE_PLAN], sizeof *program->plans, &program->plans));
    STATUS_TRY(take(reader, count[LINE_PLAN], sizeof *reader->requests, &reader->requests));
    STATUS_TRY(take(reader, count[LINE_HOST_COPY], sizeof *program->copies, &program->copies));
    STATUS_TRY(take(reader, count[LINE_TEMPLATE], sizeof *program->templates, &program->templates));
    STATUS_TRY(take(reader, count[LINE_ROLE], sizeof *program->roles, &program->roles));
    STATUS_TRY(take(reader, ops, sizeof *reader->ops, &reader->ops));
    STATUS_TRY(take(reader, ops, sizeof(uint32_t), &reader->op_line));
    STATUS_TRY(take(reader, count[LINE_BLOCK], sizeof *reader->blocks, &reader->blocks));
    STATUS_TRY(take(reader, count[LINE_BLOCK], sizeof(uint32_t), &reader->block_line));
    STATUS_TRY(take(reader, count[LINE_TEMPLATE], sizeof(uint32_t), &reader->template_line));
    STATUS_TRY(take(reader, count[LINE_ROLE], sizeof(uint32_t), &reader->role_line));
    program->requests = reader->requests;
    return STATUS_OK;
}

/* What a plan, or the work, was that the line before has ended. */
static enum status top_end(struct reader *reader)
{
    struct program *program = reader->program;
    if (reader->top == LINE_WORK)
        return text_work_check(&reader->cursor, &program->works[program->work_count - 1]);
    if (reader->top != LINE_PLAN) return STATUS_OK;
    struct text_cursor cursor = reader->cursor;
    cursor.line = reader->plan_line;
    cursor.begin = cursor.at = cursor.end;
    STATUS_TRY(text_plan_build(&cursor, &reader->plan, &program->plans[program->plan_count]));
    reader->requests[program->plan_count++] = reader->plan.request;
    return STATUS_OK;
}

static enum status line_rows(struct reader *reader, enum text_line_kind kind, void *target)
{
    return cursor_rows(&reader->cursor, &text_lines[kind], target);
}

/* The number, and into `target` the name, that a line of this kind has. */
static enum status line_head(struct reader *reader, enum text_line_kind kind, uint32_t next,
                             void *target)
{
    const struct text_line *line = &text_lines[kind];
    const char *name = NULL;
    if (line->numbered) STATUS_TRY(cursor_number(&reader->cursor, line->word, next));
    if (!line->named) return STATUS_OK;
    STATUS_TRY(cursor_text(&reader->cursor, &name));
    memcpy((char *)target + line->name_offset, &name, sizeof name);
    return STATUS_OK;
}

static enum status line_read(struct reader *reader, enum text_line_kind kind, uint32_t next,
                             void *target)
{
    STATUS_TRY(line_head(reader, kind, next, target));
    return line_rows(reader, kind, target);
}

static enum status top_read(struct reader *reader, enum text_line_kind kind)
{
    struct program *program = reader->program;
    uint32_t const next = reader->seen[kind], line = reader->cursor.line;
    reader->top = kind;
    reader->in_op = false;
    if (kind == LINE_STREAM) {
        reader->stream_line[next] = line;
        program->stream_count++;
        return line_read(reader, kind, next, &program->stream[next]);
    }
    if (kind == LINE_WORK) {
        program->work_count++;
        return line_read(reader, kind, next, &program->works[next]);
    }
    if (kind == LINE_PLAN) {
        reader->plan = (struct text_plan){.algorithm = "auto"};
        reader->plan_line = line;
        return line_read(reader, kind, next, &reader->plan);
    }
    if (kind == LINE_HOST_COPY) {
        program->copy_count++;
        return line_read(reader, kind, next, &program->copies[next]);
    }
    if (kind == LINE_TEMPLATE) {
        program->templates[next].op = reader->ops + reader->op_count;
        program->templates[next].op_line = reader->op_line + reader->op_count;
        reader->template_line[next] = line;
        program->template_count++;
        return line_read(reader, kind, next, &program->templates[next]);
    }
    if (kind == LINE_ROLE) {
        program->roles[next].block = reader->blocks + reader->seen[LINE_BLOCK];
        reader->role_line[next] = line;
        reader->resident = 0;
        program->role_count++;
        return line_read(reader, kind, next, &program->roles[next]);
    }
    return line_read(reader, kind, next, program);
}

static enum status no_room(struct reader *reader, enum text_line_kind kind, uint32_t most)
{
    return cursor_refuse(&reader->cursor, STATUS_LIMIT, reader->cursor.begin,
                         "more than %u lines \"%s\" here", most, text_lines[kind].word);
}

static enum status op_read(struct reader *reader, enum text_line_kind kind)
{
    struct program *program = reader->program;
    struct program_template *template = &program->templates[program->template_count - 1];
    struct program_op *op = &reader->ops[reader->op_count];
    if (template->op_count == PROGRAM_OPS_MAX) return no_room(reader, kind, PROGRAM_OPS_MAX);
    op->kind = (enum program_op_kind)(kind - LINE_COMPUTE);
    op->operand_op = PROGRAM_NONE;
    reader->op_line[reader->op_count++] = reader->cursor.line;
    reader->in_op = true;
    STATUS_TRY(line_read(reader, kind, template->op_count++, op));
    if (op->class_name == NULL) op->class_name = op->name;
    return STATUS_OK;
}

static enum status of_op_read(struct reader *reader, enum text_line_kind kind)
{
    struct program_op *op = &reader->ops[reader->op_count - 1];
    if (kind == LINE_NEED) {
        if (op->need_count == PROGRAM_NEEDS_MAX) return no_room(reader, kind, PROGRAM_NEEDS_MAX);
        return line_rows(reader, kind, &op->need[op->need_count++]);
    }
    if (op->effect_count == PROGRAM_EFFECTS_MAX) return no_room(reader, kind, PROGRAM_EFFECTS_MAX);
    return line_rows(reader, kind, &op->effect[op->effect_count++]);
}

static enum status of_role_read(struct reader *reader, enum text_line_kind kind)
{
    struct program_role *role = &reader->program->roles[reader->program->role_count - 1];
    if (kind == LINE_BLOCK) {
        uint32_t const index = reader->seen[LINE_BLOCK];
        reader->block_line[index] = reader->cursor.line;
        role->block_count++;
        return line_rows(reader, kind, &reader->blocks[index]);
    }
    struct text_resident resident = {PROGRAM_MEMORY_PARAMETERS, 0};
    STATUS_TRY(line_rows(reader, kind, &resident));
    if ((reader->resident >> resident.memory & 1) != 0)
        return cursor_refuse(&reader->cursor, STATUS_INVALID, reader->cursor.begin,
                             "its role has said before what it holds of this");
    reader->resident |= 1u << resident.memory;
    role->resident_bytes[resident.memory] = resident.bytes;
    return STATUS_OK;
}

static enum status inner_read(struct reader *reader, enum text_line_kind kind)
{
    struct program *program = reader->program;
    if (line_is_op(kind)) return op_read(reader, kind);
    if (kind == LINE_NEED || kind == LINE_MEMORY) return of_op_read(reader, kind);
    if (kind == LINE_BLOCK || kind == LINE_RESIDENT) return of_role_read(reader, kind);
    if (kind == LINE_RAGGED) return line_rows(reader, kind, &reader->plan.request.ragged);
    if (kind == LINE_MATMUL) {
        struct work *work = &program->works[program->work_count - 1];
        if (work->matmul_count == WORK_MATMULS_MAX) return no_room(reader, kind, WORK_MATMULS_MAX);
        return line_rows(reader, kind, &work->matmul[work->matmul_count++]);
    }
    if (kind == LINE_ATTENDED) {
        struct work *work = &program->works[program->work_count - 1];
        uint32_t count = 0;
        while (count < WORK_ATTENDED_MAX && work->attended[count].heads != 0) count++;
        if (count == WORK_ATTENDED_MAX) return no_room(reader, kind, WORK_ATTENDED_MAX);
        return line_rows(reader, kind, &work->attended[count]);
    }
    struct text_dimension dimension = {.kind = reader->plan.request.kind};
    if (reader->plan.request.group.dimension_count == GROUP_DIMENSIONS_MAX)
        return no_room(reader, kind, GROUP_DIMENSIONS_MAX);
    STATUS_TRY(line_rows(reader, kind, &dimension));
    return text_dimension_add(&reader->cursor, &dimension, &reader->plan.request);
}

static enum status any_read(struct reader *reader)
{
    enum text_line_kind const kind = line_find(&reader->cursor);
    enum text_line_kind const parent = text_lines[kind].parent;
    const char *const at = reader->cursor.at;
    if (parent == LINE_COUNT) STATUS_TRY(top_end(reader));
    bool const placed = parent == LINE_COMPUTE ? reader->in_op : reader->top == parent;
    if (parent != LINE_COUNT && !placed)
        return cursor_refuse(&reader->cursor, STATUS_INVALID, at,
                             "\"%s\" belongs to %s, and none is open here", text_lines[kind].word,
                             parent == LINE_COMPUTE ? "an op" : text_lines[parent].word);
    reader->cursor.at = at + strlen(text_lines[kind].word);
    enum status const status =
        parent == LINE_COUNT ? top_read(reader, kind) : inner_read(reader, kind);
    reader->seen[kind]++;
    return status;
}

/* Parts that were left out. What an op names may be missing, which the seal refuses. */
static void parts_fill(struct reader *reader)
{
    const struct program *program = reader->program;
    for (uint32_t i = 0; i < reader->op_count; i++) {
        struct program_op *op = &reader->ops[i];
        bool const planned = op->kind == PROGRAM_OP_COLLECTIVE && op->index < program->plan_count;
        if (op->parts == 0) op->parts = planned ? program->plans[op->index].part_count : 1;
    }
}

/* The line of what the seal refuses. */
static uint32_t line_of(const struct reader *reader, const struct program_place *place)
{
    const struct program *program = reader->program;
    if (place->template_index != PROGRAM_NOWHERE && place->op != PROGRAM_NOWHERE)
        return reader
            ->op_line[program->templates[place->template_index].op - reader->ops + place->op];
    if (place->template_index != PROGRAM_NOWHERE)
        return reader->template_line[place->template_index];
    if (place->role != PROGRAM_NOWHERE && place->block != PROGRAM_NOWHERE)
        return reader
            ->block_line[program->roles[place->role].block - reader->blocks + place->block];
    if (place->role != PROGRAM_NOWHERE) return reader->role_line[place->role];
    if (place->stream != PROGRAM_NOWHERE) return reader->stream_line[place->stream];
    return reader->cursor.line;
}

/* A refusal by the place of an op or block says its line instead. */
static enum status placed(const struct reader *reader, enum status status,
                          const struct program_place *place)
{
    struct text_cursor cursor = reader->cursor;
    struct error const error = *cursor.reterr;
    if (status != STATUS_INVALID && status != STATUS_UNSUPPORTED) return status;
    cursor.line = line_of(reader, place);
    cursor.begin = cursor.at;
    return cursor_refuse(&cursor, status, cursor.at, "%s", error.message);
}

static enum status seal(struct reader *reader)
{
    const struct text_cursor *cursor = &reader->cursor;
    struct program *program = reader->program;
    struct program_place place;
    enum status status = STATUS_OK;
    parts_fill(reader);
    status = program_try_seal(cursor->arena, program, &place, cursor->reterr);
    if (status == STATUS_OK)
        status = text_roles_check(cursor->machine, program, &place, cursor->reterr);
    if (status == STATUS_OK)
        status =
            text_inboxes_check(cursor->arena, cursor->machine, program, &place, cursor->reterr);
    return placed(reader, status, &place);
}

enum status program_text_read(struct arena *arena, const struct machine *machine, const char *name,
                              uint32_t line, const char *text, uint64_t text_bytes,
                              struct program *ret_program, struct error *reterr)
{
    struct program program = {.text_name = name};
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct reader), &memory, reterr));
    struct reader *reader = memory;
    const char *const end = text + text_bytes;
    reader->cursor = (struct text_cursor){
        .arena = arena, .machine = machine, .name = name, .line = line - 1, .reterr = reterr};
    reader->cursor.begin = reader->cursor.at = reader->cursor.end = text;
    reader->program = &program;
    reader->top = LINE_COUNT;
    STATUS_TRY(end_check(reader, text, end));
    STATUS_TRY(lines_count(reader, text, end));
    STATUS_TRY(tables_take(reader));
    while (cursor_line(&reader->cursor, &text, end))
        if (!says_nothing(&reader->cursor)) STATUS_TRY(any_read(reader));
    STATUS_TRY(top_end(reader));
    STATUS_TRY(seal(reader));
    *ret_program = program;
    return STATUS_OK;
}
