#include "tests/support/case.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/embed.h"
#include "sim/machine/overrides.h"
#include "sim/measure/measure_group.h"
#include "sim/scenario/scenario.h"
#include "tests/support/refusals.h"

/* Written at build time from topology/chips/. */
extern const struct embed_file chip_files[];
extern const unsigned chip_files_count;

static const char *const status_words[] = {[STATUS_OK] = "ok",
                                           [STATUS_INVALID] = "invalid",
                                           [STATUS_UNSUPPORTED] = "unsupported",
                                           [STATUS_NOT_FOUND] = "not found",
                                           [STATUS_LIMIT] = "limit",
                                           [STATUS_NO_MEMORY] = "no memory",
                                           [STATUS_IO] = "input or output",
                                           [STATUS_STUCK] = "stuck",
                                           [STATUS_INTERRUPTED] = "interrupted"};

struct arena *case_arena;
struct error case_error;

int case_arena_up(void **state)
{
    (void)state;
    case_arena = arena_create(0);
    case_error = (struct error){.status = STATUS_OK};
    return case_arena == NULL;
}

int case_arena_down(void **state)
{
    (void)state;
    arena_destroy(case_arena);
    case_arena = NULL;
    return 0;
}

void case_ok_at(enum status status, const char *file, int line)
{
    if (status != STATUS_OK) {
        print_error("%s: %s\n", case_error.where, case_error.message);
        _fail(file, line);
    }
    case_error = (struct error){.status = STATUS_OK};
}

void case_refused_at(enum status status, enum status wanted, const char *where, const char *words,
                     const char *file, int line)
{
    bool const as_wanted = wanted == STATUS_OK ? status != STATUS_OK : status == wanted;
    if (!as_wanted || case_error.status != status ||
        (where != NULL && strcmp(case_error.where, where) != 0) ||
        strstr(case_error.message, words) == NULL) {
        print_error("%s: %s: %s\nand not %s, %s: %s\n", status_words[status], case_error.where,
                    case_error.message, wanted == STATUS_OK ? "a refusal" : status_words[wanted],
                    where == NULL ? "anywhere" : where, words);
        _fail(file, line);
    }
    refusals_hold(&case_error, file);
}

struct machine case_machine_at(const char *text, const char *file, int line)
{
    struct machine_plan plan;
    case_ok_at(scenario_machine_parse(case_arena, text, "--machine", &plan, &case_error), file,
               line);
    return case_machine_built_at(&plan, file, line);
}

struct machine case_machine_built_at(const struct machine_plan *plan, const char *file, int line)
{
    struct machine machine = {0};
    case_ok_at(machine_build(case_arena, plan, &machine, &case_error), file, line);
    return machine;
}

void case_override_chips_at(struct arena *arena, struct machine *machine,
                            const struct machine_chip_override *chips, uint32_t count,
                            const char *file, int line)
{
    case_ok_at(overrides_check_chips(arena, chips, count, machine, &case_error), file, line);
}

const char *case_chip_json(const char *name)
{
    for (unsigned i = 0; i < chip_files_count; i++)
        if (strcmp(chip_files[i].name, name) == 0) return chip_files[i].bytes;
    fail_msg("%s is no chip of the catalogue", name);
    return NULL;
}

struct group case_group_at(const struct machine *machine, const char *axes, const char *file,
                           int line)
{
    struct group group = {.dimension_count = 0};
    case_ok_at(measure_group(machine, axes, "--axes", &group, &case_error), file, line);
    return group;
}

struct plan case_plan_at(const struct plan_request *request, const char *file, int line)
{
    struct plan plan = {0};
    case_ok_at(plan_build(case_arena, request, "/test", &plan, &case_error), file, line);
    return plan;
}

void case_near_at(double got, double wanted, double share, const char *file, int line)
{
    double const slack = (wanted < 0 ? -wanted : wanted) * share;
    if (got >= wanted - slack && got <= wanted + slack) return;
    print_error("%.15g is not within %g of %.15g\n", got, share, wanted);
    _fail(file, line);
}

uint32_t case_chance = 1;

uint32_t case_below(uint32_t count)
{
    /* Numerical Recipes, 2nd edition, 7.1. */
    case_chance = case_chance * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)case_chance * count >> 32);
}

uint32_t case_among(const uint32_t *values, uint32_t count)
{
    return values[case_below(count)];
}

void case_text(char *text, size_t size, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int const length = vsnprintf(text, size, format, values);
    va_end(values);
    assert_true(length > 0 && (size_t)length < size);
}

uint64_t case_random(uint64_t *state)
{
    /* splitmix64 (Steele, Lea and Flood, 2014). */
    uint64_t mixed = *state += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

uint32_t case_draw(uint64_t *state, uint32_t count)
{
    return (uint32_t)(case_random(state) % count);
}

const char *case_pick(uint64_t *state, const char *const *texts, size_t count)
{
    return texts[case_random(state) % count];
}
