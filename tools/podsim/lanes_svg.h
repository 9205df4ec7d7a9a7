/*
 * lanes_svg.h: played schedules as a picture: a lane a rank, passes in the papers' colours, and
 * beneath it what the fullest rank holds.
 */
#ifndef TOOLS_PODSIM_LANES_SVG_H
#define TOOLS_PODSIM_LANES_SVG_H

#include <stdbool.h>

#include "sim/schedule/schedule_play.h"

struct text;

enum { LANES_SVG_PASSES_MAX = 200000 };

struct lanes_picture {
    const char *name, *caption;
    const struct schedule *schedule;
    const struct schedule_played *played;
    double scale; /* Pixels a tick. */
    /* What is held from an instant (in ticks) on, as a share of the curve's height. */
    const double *curve_at, *curve_share;
    uint64_t curve_count;
    const char *curve_caption;
    const char *end_caption; /* The makespan. */
};

/* What the pictures of a document have. */
struct lanes_legend {
    bool has_kind[SCHEDULE_KIND_COUNT];
    bool has_chunks, has_copies, has_pairs;
};

void lanes_legend_add(struct lanes_legend *legend, const struct schedule *schedule);

/* Pixels that a makespan of the longest may take. */
double lanes_svg_width(void);
/* Pixels that a picture of so many ranks takes, and of the heading. */
double lanes_svg_height(uint32_t rank_count);
double lanes_svg_head_height(void);

/* The document's beginning with title and legend; then each picture below the last, which returns
 * where the next begins; then the end. */
void lanes_svg_begin(const char *title, const char *subtitle, double height,
                     const struct lanes_legend *legend, struct text *text);
double lanes_svg_draw(const struct lanes_picture *picture, double top, struct text *text);
void lanes_svg_end(struct text *text);

#endif
