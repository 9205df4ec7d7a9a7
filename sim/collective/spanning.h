/*
 * spanning.h: broadcast and reduce on a torus, by trees that share no link.
 *
 * One tree for each axis and direction, each with an equal part of the array, cut into pieces. In
 * the tree of the first axis of an order, upwards, a piece goes up the root's line, from each rank
 * of it but the root up the second axis, and from each of these up the third: so far to all ranks
 * that do not stand where the root does along the first axis. These get it last, over the links
 * that close the rings of the first axis: from the rank below the root's place, beside them.
 * The tree downwards is its image.
 *
 * Every link carries at most one tree. Of those up axis 1, the tree of the order 1-2-3 takes the
 * ones of the root's line, and those that close the other lines; the order 2-3-1 the others of all
 * lines off the root's place along axis 2; the order 3-1-2 those of the lines where that is the
 * root's, but the root's own. So the array leaves the root once, by all its links at once, and
 * takes as long as it takes the links of one rank, besides the way of the last piece.
 *
 * Its way is long, all lengths less one. A small array goes by one tree for each order of axes
 * instead, which goes up and down every line to the half of it, as the two together have no link in
 * common either: a tree's part is twice as long, and its way the shortest there is.
 *
 * Source: of edge-disjoint spanning trees for one-to-all broadcast, Johnsson and Ho, "Optimum
 * broadcasting and personalized communication in hypercubes", IEEE Transactions on Computers 38(9),
 * 1989; the trees here are for tori.
 *
 * A reduction is the mirror: sums go the same trees in reverse.
 */
#ifndef SIM_COLLECTIVE_SPANNING_H
#define SIM_COLLECTIVE_SPANNING_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/collective/collective.h"

struct build; /* compose_build.h */
struct chain;
struct choice;
struct group;

/* Whether the plan is made of such trees. */
bool spanning_applies(const struct choice *choice, const struct group *group,
                      enum collective_kind kind);
/* The items of the trees of one order of axes, both ways. */
enum status spanning_add(const struct build *build, uint32_t order, const struct chain *chain,
                         uint8_t *after);
uint32_t spanning_pieces(const struct build *build);

/* Items of a tree: where a piece takes one hop after the other, all round or the shorter way, and
 * where it takes the last one. */
enum spanning_part {
    SPANNING_LINE,
    SPANNING_CLOSE,
    SPANNING_NEAR_LINE,
    SPANNING_NEAR_CLOSE,
    SPANNING_NONE, /* Not of such a tree. */
};

enum spanning_part spanning_part(const struct primitive *primitive);

#endif
