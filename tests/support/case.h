/*
 * case.h: what tests begin with: cmocka with all that it needs, an arena, machines, groups and
 * plans out of a few words, refusals and figures held to what is wanted, chance.
 *
 * Whatever a case does not give fails the test, with the error, at the line that asked.
 */
#ifndef TESTS_SUPPORT_CASE_H
#define TESTS_SUPPORT_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/base/arena.h"
#include "sim/collective/plan.h"
#include "sim/machine/machine.h"
#include "tests/support/refusals.h"

/* Open from case_arena_up() to case_arena_down(), which are a group's or a test's. */
extern struct arena *case_arena;
int case_arena_up(void **state);
int case_arena_down(void **state);

/* For the calls below. A refusal stays in it, to be asked for more than its words. */
extern struct error case_error;

/* Given what a call returned that was handed &case_error. `wanted` STATUS_OK: any but that one.
 * `where` NULL: anywhere. `words` are part of the message, all of which is held against
 * what was kept (refusals.h). */
#define case_ok(status) case_ok_at(status, __FILE__, __LINE__)
#define case_refused(status, wanted, where, words)                                                 \
    case_refused_at(status, wanted, where, words, __FILE__, __LINE__)

/* "h100-sxm:nodes=4", as on a command line. */
#define case_machine(text) case_machine_at(text, __FILE__, __LINE__)
#define case_machine_built(plan) case_machine_built_at(plan, __FILE__, __LINE__)
/* Overrides these chips of a machine, and no others; a count of 0 overrides none. The arena has to
 * live as long as the machine. */
#define case_override_chips(arena, machine, chips, count)                                          \
    case_override_chips_at(arena, machine, chips, count, __FILE__, __LINE__)
/* The JSON of a chip of the catalogue, by its full name. */
const char *case_chip_json(const char *name);
/* "node:2,gpu"; NULL: all of the machine. */
#define case_group(machine, axes) case_group_at(machine, axes, __FILE__, __LINE__)
#define case_plan(...) case_plan_at(__VA_ARGS__, __FILE__, __LINE__)

/* A claim about the scenario `text`. */
#define case_that(claim, text)                                                                     \
    do {                                                                                           \
        if (!(claim)) fail_msg("%s\nin %s", #claim, text);                                         \
    } while (0)

/* Within `share` of what is wanted. */
#define case_near(got, wanted, share) case_near_at(got, wanted, share, __FILE__, __LINE__)

/* The next number of a sequence that its first state gives. */
uint64_t case_random(uint64_t *state);
/* Of the same sequence, a number less than `count`. */
uint32_t case_draw(uint64_t *state, uint32_t count);

/* Less than `count`, or one of so many values, of a sequence of 32 bits; it begins with 1, unless a
 * test says otherwise. */
extern uint32_t case_chance;
uint32_t case_below(uint32_t count);
uint32_t case_among(const uint32_t *values, uint32_t count);

/* Fails the test if the text does not fit. */
void case_text(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* One of the texts. The order in which arguments and members are evaluated is not specified: two
 * draws stand in two statements. */
#define CASE_PICK(state, ...)                                                                      \
    case_pick(state, (const char *const[]){__VA_ARGS__},                                           \
              sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))
const char *case_pick(uint64_t *state, const char *const *texts, size_t count);

void case_ok_at(enum status status, const char *file, int line);
void case_refused_at(enum status status, enum status wanted, const char *where, const char *words,
                     const char *file, int line);
struct machine case_machine_at(const char *text, const char *file, int line);
struct machine case_machine_built_at(const struct machine_plan *plan, const char *file, int line);
void case_override_chips_at(struct arena *arena, struct machine *machine,
                            const struct machine_chip_override *chips, uint32_t count,
                            const char *file, int line);
struct group case_group_at(const struct machine *machine, const char *axes, const char *file,
                           int line);
struct plan case_plan_at(const struct plan_request *request, const char *file, int line);
void case_near_at(double got, double wanted, double share, const char *file, int line);

#endif
