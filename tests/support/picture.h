/*
 * picture.h: whether the words of an SVG document can be read: no line through a text, no text over
 * another or across the edge of a box.
 *
 * The width of a text is that in DejaVu Sans, the widest of the fonts that viewers commonly take
 * for sans-serif.
 */
#ifndef TESTS_SUPPORT_PICTURE_H
#define TESTS_SUPPORT_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

enum { PICTURE_PARTS_MAX = 4096, PICTURE_CLASS_BYTES = 24, PICTURE_WORDS_BYTES = 160 };

struct picture_box {
    double left, top, right, bottom;
    char class[PICTURE_CLASS_BYTES];
};

struct picture_text {
    struct picture_box box;
    char words[PICTURE_WORDS_BYTES];
};

struct picture_line {
    double x1, y1, x2, y2;
    char class[PICTURE_CLASS_BYTES];
};

struct picture {
    double width, height;
    struct picture_box box[PICTURE_PARTS_MAX];
    struct picture_text text[PICTURE_PARTS_MAX];
    struct picture_line line[PICTURE_PARTS_MAX]; /* Lines, and the pieces of paths. */
    uint32_t box_count, text_count, line_count;
};

/* Fails the test if the document has more parts than fit. */
void picture_read(struct picture *picture, const char *svg);

/* Whether any of the line lies inside the box or on its edge. */
bool picture_crosses(const struct picture_line *line, const struct picture_box *box);

/* Whether no line crosses a text and no text another text, the edge of a box or the edge of the
 * page. Prints each text that is at fault. */
bool picture_is_readable(const struct picture *picture, const char *name);
/* Whether no line crosses a box of this class. Prints the first that does. */
bool picture_keeps_out(const struct picture *picture, const char *name, const char *class);

#endif
