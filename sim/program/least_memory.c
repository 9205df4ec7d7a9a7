#include "sim/program/least_memory.h"

#include <string.h>

#include "sim/base/arena.h"

/* What has been taken and not given back. */
struct holding {
    int64_t bytes[PROGRAM_MEMORY_COUNT];
    int64_t total_bytes;
};

/* One slot of a template: what it changes, and its highest point on the way. */
struct slot_course {
    struct holding change, highest;
};

/* Whether the op of compute waits until another of its slot has begun, or is done. */
static bool waits_for(const struct program_op *compute, const struct program_op *other, bool done)
{
    for (uint32_t n = 0; n < compute->need_count; n++) {
        const struct program_need *need = &compute->need[n];
        if (need->stream != other->stream || need->slot != 0) continue;
        if (done ? !need->begun && need->part >= other->part_first + other->parts
                 : need->part > other->part_first)
            return true;
    }
    return false;
}

/* The op of compute in which a count of its parts is reached; of none, the first. */
static const struct program_op *compute_at(const struct program_template *template, uint32_t parts)
{
    for (uint32_t i = 0; i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        if (op->stream == PROGRAM_COMPUTE && op->part_first + op->parts >= parts) return op;
    }
    return NULL;
}

/* The op of compute before which nothing comes about that an op of another stream does: what it or
 * one before it on its stream waits for. NULL: that is not known. */
static const struct program_op *effect_not_before(const struct program_template *template,
                                                  const struct program_op *op)
{
    for (uint32_t i = (uint32_t)(op - template->op) + 1; i-- > 0;) {
        const struct program_op *former = &template->op[i];
        for (uint32_t n = 0; former->stream == op->stream && n < former->need_count; n++)
            if (former->need[n].stream == PROGRAM_COMPUTE && former->need[n].slot == 0)
                return compute_at(template, former->need[n].part);
    }
    return NULL;
}

/* The first op of compute by which what an op takes is there, and by which what it gives back may
 * be gone; NULL: that is not known. */
static const struct program_op *effect_seen_by(const struct program_template *template,
                                               const struct program_op *op,
                                               const struct program_effect *effect)
{
    if (op->stream == PROGRAM_COMPUTE) return op;
    if (effect->bytes < 0) return effect_not_before(template, op);
    for (uint32_t i = 0; i < template->op_count; i++)
        if (template->op[i].stream == PROGRAM_COMPUTE &&
            waits_for(&template->op[i], op, effect->at_end))
            return &template->op[i];
    return NULL;
}

/* Kinds of memory of which all effects are known, as bits. */
static uint32_t kinds_known(const struct program *program)
{
    uint32_t bits = (1u << PROGRAM_MEMORY_COUNT) - 1;
    for (uint32_t t = 0; t < program->template_count; t++) {
        const struct program_template *template = &program->templates[t];
        for (uint32_t i = 0; i < template->op_count; i++)
            for (uint32_t e = 0; e < template->op[i].effect_count; e++) {
                const struct program_effect *effect = &template->op[i].effect[e];
                if (effect_seen_by(template, &template->op[i], effect) == NULL)
                    bits &= ~(1u << effect->memory);
            }
    }
    return bits;
}

static void effect_add(struct holding *holding, const struct program_effect *effect)
{
    holding->bytes[effect->memory] += effect->bytes;
    holding->total_bytes += effect->bytes;
}

/* What is known to have come about when an op of compute begins, or else when it ends. */
static void effects_add(struct holding *holding, const struct program_template *template,
                        const struct program_op *compute, bool at_end, uint32_t kinds)
{
    for (uint32_t i = 0; i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        for (uint32_t e = 0; e < op->effect_count; e++) {
            const struct program_effect *effect = &op->effect[e];
            bool const ends = op == compute && effect->at_end;
            if ((kinds >> effect->memory & 1) != 0 && ends == at_end &&
                effect_seen_by(template, op, effect) == compute)
                effect_add(holding, effect);
        }
    }
}

static struct slot_course course_of(const struct program_template *template, uint32_t kinds)
{
    struct slot_course course = {.change = {.total_bytes = 0}};
    for (uint32_t i = 0; i < template->op_count; i++) {
        if (template->op[i].stream != PROGRAM_COMPUTE) continue;
        for (uint32_t at_end = 0; at_end < 2; at_end++) {
            effects_add(&course.change, template, &template->op[i], at_end != 0, kinds);
            if (course.change.total_bytes > course.highest.total_bytes)
                course.highest = course.change;
        }
    }
    return course;
}

/* Whether an op waits until another has ended. `earlier`: the other is of the slot before. */
static bool needs_end_of(const struct program_op *op, const struct program_op *other, bool earlier)
{
    for (uint32_t n = 0; n < op->need_count; n++) {
        const struct program_need *need = &op->need[n];
        if (need->stream == other->stream && need->slot == 0 && !need->begun &&
            (earlier || need->part >= other->part_first + other->parts))
            return true;
    }
    return false;
}

/* Whether an op cannot begin before another has ended: that of its stream before it, or one that it
 * or an op of its stream before it waits for, all of which is there no sooner than its end. */
static bool begins_behind(const struct program_template *template, const struct program_op *op,
                          const struct program_op *other, bool earlier)
{
    const struct program_op *const first = earlier ? template->op : other + 1;
    if (op->stream == other->stream) return true;
    if (other->stream != PROGRAM_COMPUTE && other->parts > 1) return false;
    for (const struct program_op *former = op + 1; former-- > first;)
        if (former->stream == op->stream && needs_end_of(former, other, earlier)) return true;
    return false;
}

/* Ops next to one another in the list of a slot: some, which may overlap, begin once all before
 * them have ended. */
struct window {
    uint32_t first, end;
};

/* How the ops of a template follow one another. */
struct windows {
    struct window *window;
    uint32_t count;
};

/* `former`: of the same template, or if `earlier`, of the slot before. */
static bool window_is_behind(const struct program_template *template, struct window window,
                             const struct program_template *of, struct window former, bool earlier)
{
    for (uint32_t i = window.first; i < window.end; i++)
        for (uint32_t k = former.first; k < former.end; k++)
            if (!begins_behind(template, &template->op[i], &of->op[k], earlier)) return false;
    return true;
}

/* The window from an op on: each op that does not begin behind all of it. */
static struct window window_find(const struct program_template *template, uint32_t first)
{
    struct window window = {first, first + 1};
    for (; window.end < template->op_count; window.end++) {
        struct window const next = {window.end, window.end + 1};
        if (window_is_behind(template, next, template, window, false)) break;
    }
    return window;
}

/* One that does not begin behind all of the window before is one with it. */
static enum status windows_find(struct arena *arena, const struct program_template *template,
                                struct windows *ret_windows, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, template->op_count, sizeof(struct window), &memory, reterr));
    struct window *found = memory;
    uint32_t count = 0;
    for (uint32_t first = 0; first < template->op_count;) {
        struct window window = window_find(template, first);
        first = window.end;
        while (count > 0 && !window_is_behind(template, window, template, found[count - 1], false))
            window.first = found[--count].first;
        found[count++] = window;
    }
    *ret_windows = (struct windows){found, count};
    return STATUS_OK;
}

/* Whether the ops of a slot begin once all of the slot before have ended. */
static bool slot_is_behind(const struct program *program, const struct windows *windows,
                           uint32_t template_index, uint32_t former)
{
    const struct windows *last = &windows[former];
    return window_is_behind(&program->templates[template_index], windows[template_index].window[0],
                            &program->templates[former], last->window[last->count - 1], true);
}

/* Whether windows follow one another through the program, whatever the instants. */
static bool role_is_ordered(const struct program *program, const struct windows *windows,
                            const struct program_role *role)
{
    uint32_t former = UINT32_MAX;
    for (uint32_t b = 0; b < role->block_count; b++) {
        const struct program_block *block = &role->block[b];
        uint32_t const at = block->template_index;
        const struct windows *of = &windows[at];
        if (of->count == 0) return false;
        if (block->repeat > 1 && !slot_is_behind(program, windows, at, at)) return false;
        if (former != UINT32_MAX && !slot_is_behind(program, windows, at, former)) return false;
        former = at;
    }
    return true;
}

/* Effects of a window's ops: in their order; or, of several ops, what is taken or what is given
 * back. */
enum window_effects { WINDOW_ALL, WINDOW_TAKEN, WINDOW_GIVEN };

static void window_add(const struct program_template *template, struct window window,
                       enum window_effects which, struct slot_course *course)
{
    for (uint32_t i = window.first; i < window.end; i++)
        for (uint32_t at_end = 0; at_end < 2; at_end++)
            for (uint32_t e = 0; e < template->op[i].effect_count; e++) {
                const struct program_effect *effect = &template->op[i].effect[e];
                bool const is =
                    which == WINDOW_ALL || (which == WINDOW_TAKEN) == (effect->bytes > 0);
                if (!is || effect->at_end != (at_end != 0)) continue;
                effect_add(&course->change, effect);
                if (course->change.total_bytes > course->highest.total_bytes)
                    course->highest = course->change;
            }
}

/* Of windows that follow one another; in those of several ops what is taken comes first, or `last`:
 * no course holds more than the one, nor less than the other. */
static struct slot_course course_of_windows(const struct program_template *template,
                                            const struct windows *windows, bool last)
{
    struct slot_course course = {.change = {.total_bytes = 0}};
    for (uint32_t w = 0; w < windows->count; w++) {
        struct window const window = windows->window[w];
        bool const alone = window.end == window.first + 1;
        window_add(template, window,
                   alone  ? WINDOW_ALL
                   : last ? WINDOW_GIVEN
                          : WINDOW_TAKEN,
                   &course);
        if (!alone) window_add(template, window, last ? WINDOW_TAKEN : WINDOW_GIVEN, &course);
    }
    return course;
}

static void holding_add(struct holding *sum, const struct holding *other, int64_t times)
{
    sum->total_bytes += times * other->total_bytes;
    for (uint32_t kind = 0; kind < PROGRAM_MEMORY_COUNT; kind++)
        sum->bytes[kind] += times * other->bytes[kind];
}

static struct holding resident_of(const struct program_role *role)
{
    struct holding held = {.total_bytes = 0};
    for (uint32_t kind = 0; kind < PROGRAM_MEMORY_COUNT; kind++) {
        held.bytes[kind] = (int64_t)role->resident_bytes[kind];
        held.total_bytes += held.bytes[kind];
    }
    return held;
}

/* Of a block's slots, those before the one that is highest: all but the last, if they take more
 * than they give. */
static int64_t slots_before(const struct program_block *block, const struct slot_course *course)
{
    return course->change.total_bytes > 0 ? block->repeat - 1 : 0;
}

/* The block in which a role holds most, by sums over all kinds; UINT32_MAX: it is highest before
 * the first. */
static uint32_t highest_block(const struct program_role *role, const struct slot_course *courses,
                              int64_t *ret_bytes)
{
    int64_t held_bytes = resident_of(role).total_bytes, most_bytes = held_bytes;
    uint32_t most = UINT32_MAX;
    for (uint32_t b = 0; b < role->block_count; b++) {
        const struct program_block *block = &role->block[b];
        const struct slot_course *course = &courses[block->template_index];
        int64_t const high_bytes = held_bytes + course->highest.total_bytes +
                                   slots_before(block, course) * course->change.total_bytes;
        if (high_bytes > most_bytes) {
            most_bytes = high_bytes;
            most = b;
        }
        held_bytes += block->repeat * course->change.total_bytes;
    }
    *ret_bytes = most_bytes;
    return most;
}

/* What a role holds in that block. */
static struct holding held_in(const struct program_role *role, const struct slot_course *courses,
                              uint32_t highest)
{
    struct holding held = resident_of(role);
    if (highest == UINT32_MAX) return held;
    for (uint32_t b = 0; b < highest; b++)
        holding_add(&held, &courses[role->block[b].template_index].change, role->block[b].repeat);
    const struct program_block *block = &role->block[highest];
    const struct slot_course *course = &courses[block->template_index];
    holding_add(&held, &course->change, slots_before(block, course));
    holding_add(&held, &course->highest, 1);
    return held;
}

enum memory_bound { BOUND_KNOWN, BOUND_LEAST, BOUND_MOST };

/* Of the role that holds most: by what is known of each kind of memory, or by windows. */
static void bound_find(const struct program *program, const struct windows *windows,
                       enum memory_bound bound, struct slot_course *courses,
                       struct least_memory *ret_bound)
{
    uint32_t const kinds = bound == BOUND_KNOWN ? kinds_known(program) : 0;
    struct least_memory most = {.role = 0};
    for (uint32_t t = 0; t < program->template_count; t++)
        courses[t] = bound == BOUND_KNOWN ? course_of(&program->templates[t], kinds)
                                          : course_of_windows(&program->templates[t], &windows[t],
                                                              bound == BOUND_LEAST);
    for (uint32_t r = 0; r < program->role_count; r++) {
        int64_t bytes = 0;
        uint32_t const block = highest_block(&program->roles[r], courses, &bytes);
        if ((uint64_t)bytes <= most.total_bytes) continue;
        struct holding const highest = held_in(&program->roles[r], courses, block);
        most.role = r;
        most.total_bytes = (uint64_t)highest.total_bytes;
        memcpy(most.bytes, highest.bytes, sizeof most.bytes);
    }
    *ret_bound = most;
}

static enum status windows_build(struct arena *arena, const struct program *program,
                                 struct windows **ret_windows, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, program->template_count, sizeof **ret_windows, &memory, reterr));
    *ret_windows = memory;
    for (uint32_t t = 0; t < program->template_count; t++)
        STATUS_TRY(windows_find(arena, &program->templates[t], &(*ret_windows)[t], reterr));
    return STATUS_OK;
}

enum status least_memory_of(struct arena *arena, const struct program *program,
                            struct least_memory *ret_least, struct error *reterr)
{
    struct least_memory least, most;
    struct windows *windows = NULL;
    bool ordered = true;
    void *memory = NULL;
    STATUS_TRY(
        arena_try(arena, program->template_count, sizeof(struct slot_course), &memory, reterr));
    STATUS_TRY(windows_build(arena, program, &windows, reterr));
    for (uint32_t r = 0; r < program->role_count; r++)
        ordered = ordered && role_is_ordered(program, windows, &program->roles[r]);
    bound_find(program, windows, BOUND_KNOWN, memory, ret_least);
    if (!ordered) return STATUS_OK;
    bound_find(program, windows, BOUND_LEAST, memory, &least);
    bound_find(program, windows, BOUND_MOST, memory, &most);
    if (least.total_bytes != most.total_bytes) return STATUS_OK;
    *ret_least = least;
    ret_least->is_peak = true;
    return STATUS_OK;
}
