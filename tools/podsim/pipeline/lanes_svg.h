/*
 * lanes_svg.h: schedules that were run, as a picture: a lane a rank, passes in the papers' colours,
 * a time axis, and below it what the fullest rank holds. All pictures of a page have one scale of
 * time and one scale of memory.
 */
#ifndef TOOLS_PODSIM_PIPELINE_LANES_SVG_H
#define TOOLS_PODSIM_PIPELINE_LANES_SVG_H

#include <stdbool.h>

#include "sim/schedule/schedule_play.h"

struct strbuf;

enum { LANES_SVG_PASSES_MAX = 200000 };

struct lanes_picture {
    const char *name, *caption; /* What it is, and its figures. */
    const struct schedule *schedule;
    const struct schedule_played *played;
    double ticks_per_unit; /* Ticks of `played` in the page's unit of time. */
    /* What is held from an instant (in ticks) on, as a share of the most on the page. */
    const double *curve_at, *curve_share;
    uint64_t curve_count;
    const char *curve_caption;
    const char *curve_most;  /* The most on the page, as words. */
    const char *end_caption; /* The makespan. */
};

/* What the pictures of a page have in common. */
struct lanes_page {
    const char *title, *subtitle;
    const char *unit; /* The unit of time: "ms"; "" where times are given without one. */
    bool has_kind[SCHEDULE_KIND_COUNT];
    bool has_chunks, has_copies, has_pairs;
    bool has_best;                         /* A picture whose name has the * of the best. */
    double longest_units, narrowest_units; /* The longest makespan, the shortest pass. */
    double lanes_height;
};

/* Makes room for one more picture. */
void lanes_page_add(struct lanes_page *page, const struct schedule *schedule,
                    const struct schedule_played *played, double ticks_per_unit);

/* The page's beginning, which returns where the first picture begins; then each picture, which
 * returns where the next begins; then the end. */
double lanes_svg_begin(const struct lanes_page *page, struct strbuf *text);
double lanes_svg_draw(const struct lanes_page *page, const struct lanes_picture *picture,
                      double top, struct strbuf *text);
void lanes_svg_end(struct strbuf *text);

#endif
