/*
 * fold_input.h: the input of a fold, and the periods that its plans allow. Internal to sim/fold.
 */
#ifndef SIM_FOLD_FOLD_INPUT_H
#define SIM_FOLD_FOLD_INPUT_H

#include "sim/fold/fold.h"

/* The whole machine's classes, before folding: what a translation must map onto itself. */
struct fold_overrides {
    uint16_t *chip_class; /* [chip]; NULL: all are of class 0. */
    uint8_t *link_class;  /* [chip · ports + port]; NULL: all are of class 0. */
    bool chips_differ;    /* Chips are of several classes. */
};

/* fold_overrides.c: finds overridden chips and links, and fills the classes of the fold. */
enum status fold_overrides_find(struct arena *arena, const struct machine *machine,
                                struct fold *fold, struct fold_overrides *overrides,
                                struct error *reterr);
/* Whether all chips and all links are alike. Overrides may say of each chip the same, or what it is
 * without them. */
static inline bool fold_overrides_even(const struct fold_overrides *overrides)
{
    return !overrides->chips_differ && overrides->link_class == NULL;
}
/* Whether a shift by `period` along an axis maps the overridden chips and links onto themselves. */
bool fold_overrides_repeat(const struct machine *machine, const struct fold_overrides *overrides,
                           uint32_t axis, uint32_t period);

/* A machine for a program, or for some of its plans. */
struct fold_input {
    const struct machine *machine;
    const struct program *program;
    const bool *left_out; /* [plan]; NULL: none is. */
};

static inline bool fold_input_leaves_out(const struct fold_input *part, uint32_t plan)
{
    return part->left_out != NULL && part->left_out[plan];
}

/* The period that an item allows along an axis: members of a ring, and of a group on a level, are
 * mostly alike, members of a line are not, so a line repeats only after its whole extent. */
uint32_t fold_item_period(const struct machine *machine, const struct plan *plan,
                          const struct plan_item *item, uint32_t axis);

/* The period along an axis on which each pair of chips has links of its own. The members of a group
 * of the whole axis lie at the same displacements from each chip. The members of a smaller group
 * lie on either side of a chip, so its chips are told apart by the links that the group uses. The
 * period is above 1 only where messages of another group use these links too; else each chip has
 * its links to itself. */
uint32_t fold_pairs_period(const struct fold_input *part, uint32_t axis);

/* The tiers of a level that a plan's messages may use, up to the lowest one whose units hold
 * whoever they go between: whole groups, or along one dimension after the other the members of
 * each. */
uint32_t fold_tiers_below(const struct machine *machine, uint32_t level, const struct plan *plan);

/* Whether switches copy or add messages of the plan: sums then count replayed members. */
bool fold_is_tree(const struct plan *plan);

/* fold_digits.c: the digits of an axis on a level that tell chips apart, where overrides do not.
 * False: its groups and units do not nest, or something there is not asked about digits; then the
 * axis has a period. */
bool fold_digits(const struct fold_input *part, uint32_t axis,
                 struct fold_run ret_run[FOLD_RUNS_MAX], uint32_t *ret_run_count);

#endif
