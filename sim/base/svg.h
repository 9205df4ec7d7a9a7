/*
 * svg.h: pictures as SVG documents: boxes, lines, words, patterns. A document stands by itself, is
 * the same bytes on every machine, and follows the viewer's light or dark colours.
 *
 * Coordinates are pixels, x to the right, y downwards. `style` is one or more CSS classes with
 * spaces between them: a page's own, or one of these:
 *
 *   title head small tiny   sizes of words
 *   mid end                 words are centred on x, or end at x
 *   on                      words on a coloured box: dark with a light edge
 *   ink soft paper faint    boxes: of the words' colour, grey, the page's colour, a shade off it
 *   edge                    boxes: an edge and no inside
 *   axis grid               lines: strong and weak ones
 *   dashed                  lines: with gaps
 *   f0 to f23, l0 to l23    boxes and lines of a series, told apart by colour, then by pattern
 */
#ifndef SIM_BASE_SVG_H
#define SIM_BASE_SVG_H

#include <stdint.h>

#include "sim/base/strbuf.h"

enum { SVG_SERIES_MAX = 24, SVG_CLASS_BYTES = 16 };

struct svg_page {
    double width, height;
    const char *title;   /* What a reader without eyes is told; plain text. */
    const char *classes; /* CSS rules of the page's own; NULL: none. */
    const char *dark;    /* What of these rules differs on a dark screen; NULL: nothing. */
    uint32_t series_count;
};

void svg_begin(struct strbuf *text, const struct svg_page *page);
void svg_end(struct strbuf *text);

/* Plain text of any length, NULL for none: what XML reserves is escaped. */
void svg_words(struct strbuf *text, double x, double y, const char *style, const char *words);
void svg_say(struct strbuf *text, double x, double y, const char *style, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void svg_box(struct strbuf *text, double x, double y, double width, double height,
             const char *style);
/* A box that says `title` under the pointer. */
void svg_titled_box(struct strbuf *text, double x, double y, double width, double height,
                    const char *style, const char *title);
void svg_line(struct strbuf *text, double x1, double y1, double x2, double y2, const char *style);
void svg_circle(struct strbuf *text, double x, double y, double radius, const char *style);

/* A path: goes from point to point, ends open or as an area. */
void svg_path_begin(struct strbuf *text, const char *style);
void svg_path_to(struct strbuf *text, double x, double y);
void svg_path_end(struct strbuf *text);

/* A class of all that is drawn between. */
void svg_group_begin(struct strbuf *text, const char *style);
void svg_group_end(struct strbuf *text);

/* The class of a series' boxes ("f7") or lines ("l7"). */
const char *svg_fill(char buffer[SVG_CLASS_BYTES], uint32_t series);
const char *svg_stroke(char buffer[SVG_CLASS_BYTES], uint32_t series);

#endif
