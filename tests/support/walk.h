/*
 * walk.h: what tests of many steps walk over: the shipped scenarios, steps drawn from a seed, the
 * ops of a program, and a step simulated in other ways.
 */
#ifndef TESTS_SUPPORT_WALK_H
#define TESTS_SUPPORT_WALK_H

#include "tests/support/play.h"

/* Plays the scenarios of scenarios/ (each n-th where tests are thinned) and hands over each. Those
 * whose path contains a text of `without` (ended by NULL; may be NULL) are left out. */
void walk_shipped(const struct play_options *options, const char *const *without,
                  void (*check)(struct play *play, const char *path));

/* Draws begin with seed 1, or with the number that the program is given first. Prints it. */
void walk_seed(int argc, char **argv);
/* The state of chance at the n-th draw. */
uint64_t walk_draw(uint32_t n);

enum { WALK_TEXT_BYTES = 1024 };

/* Plays the n-th scenario that `draw` writes, and hands it over. If it is refused, returns why. */
enum status walk_drawn(uint32_t n, void (*draw)(uint64_t *state, char text[WALK_TEXT_BYTES]),
                       const struct play_options *options,
                       void (*check)(struct play *play, const char *text), struct error *reterr);

/* An op of a program, as one block of one role has it. Begins with {.program = program}. */
struct walk_op {
    const struct program *program;
    const struct program_op *op;
    uint32_t times; /* Slots of the block. */
    uint32_t role;
    uint32_t block;
    uint32_t index; /* Of the next op in the block's template. */
};

/* Checks `count` draws, thinned. A draw that is refused fails the test. */
void walk_drawn_all(uint32_t count, void (*draw)(uint64_t *state, char text[WALK_TEXT_BYTES]),
                    const struct play_options *options,
                    void (*check)(struct play *play, const char *text));

/* The next op, role by role; false behind the last one. */
bool walk_next(struct walk_op *walk);

/* All collectives of a program, and the bytes of their arrays. */
struct walk_collectives {
    uint64_t count, bytes;
};
struct walk_collectives walk_collectives(const struct program *program);

/* Bytes of the collectives of a kind over some ranks; of messages to other stages. */
double walk_moved_bytes(const struct program *program, enum stream_of ranks,
                        enum collective_kind kind);
double walk_sent_bytes(const struct program *program);
/* Fails the test unless gradients that copies of the model exchange are as many messages and bytes
 * in the program as in the roofline's counts. */
void walk_copies_agree(const struct play *play, const char *text);

/* The time of all attention ops of a lowered step, each once for all layers of its kind and alone
 * on its chip: collectives of a step use HBM at the same time. */
double walk_attention_s(const struct play *play);

/* Simulates all chips, by the fast engine and by `engine` (NULL: by the fast one alone), and fails
 * the test unless instants, exposed time, links, ranks of a pipeline and their memory are those of
 * the folded play, and not below its roofline. */
void walk_alike(const struct play *folded, const char *text, const char *engine);

#endif
