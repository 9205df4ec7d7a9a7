/*
 * letter.h: letters of a text in UTF-8, and what a terminal makes of each.
 */
#ifndef SIM_BASE_LETTER_H
#define SIM_BASE_LETTER_H

#include <stdbool.h>
#include <stdint.h>

enum letter {
    LETTER_SEEN,   /* A terminal shows the letter. */
    LETTER_UNSEEN, /* Nothing is shown: joiners, blanks without width. */
    LETTER_OBEYED, /* C0, DEL, C1, ends of lines, and marks that turn the direction of a text. */
    LETTER_NONE,   /* A byte that is not of UTF-8, or a number that stands for no letter. */
};

/* The length in bytes of the letter at `text`; 0 if it is not UTF-8 (overlong, surrogate, cut). */
uint32_t letter_bytes(const char *text, uint64_t text_bytes);

/* What the letter at `text` is, and its length: 1 where it is not UTF-8. The text must not be at
 * its end, which is a 0. */
enum letter letter_at(const char *text, uint32_t *ret_bytes);

/* The letter's number in Unicode. `bytes` is the letter's length, as letter_bytes() says it. */
uint32_t letter_number(const char *text, uint32_t bytes);

/* Whether a text is one line that steers no terminal: no LETTER_OBEYED and no LETTER_NONE. */
bool letters_are_plain(const char *text);

/* Puts `by` for each letter that is not LETTER_SEEN, as names out of files and of the command line
 * may hold. The text becomes one line in UTF-8, and no longer. */
void letters_replace(char *text, char by);

#endif
