/*
 * told_lines.h: the collectives that the listing of a program names, line by line.
 */
#ifndef TESTS_SUPPORT_TOLD_LINES_H
#define TESTS_SUPPORT_TOLD_LINES_H

#include "sim/collective/collective.h"
#include "tests/support/case.h"

enum { MOVES_MAX = 512, LINES_MAX = 256 };

/* Parts of a listing, and of the step. */
enum section { FORWARD, BACKWARD, UPDATE, MTP, SECTION_COUNT };
extern const char *const section_names[SECTION_COUNT];

/* The collectives of a section, as the program or as lines of the listing have them. */
struct moves {
    struct move {
        enum collective_kind kind;
        const char *group;          /* "tp"; NULL: of weights or their gradients. */
        uint64_t size_bytes, ranks; /* Of the program's collective. */
        bool experts;               /* Of weights: of experts', over the ranks that hold them. */
        const char *line;           /* Of the listing; NULL: of the program. */
        double line_bytes;          /* That it leaves on a chip; 0: the line has none. */
    } row[MOVES_MAX];
    uint32_t count;
};

/* The text behind its last space; the whole where it has none. */
const char *last_word(const char *text);

/* Whether an array is a weight, or the gradient of one. */
bool is_weight(const char *array);

/* Fails the test where there is no room. */
void move_add(struct moves *moves, struct move move);

/* The collectives that the text of `show program` names in each section; its lines are cut into
 * texts of their own. A module has a layer of its own, which is not listed again. Weights that are
 * gathered again have lines of the backward pass, too. */
void listing_moves(char *text, struct moves ret_moves[SECTION_COUNT]);

#endif
