/*
 * notes.h: why a step is not its roofline: each difference, computed from the trace and the counts.
 */
#ifndef SIM_REPORT_NOTES_H
#define SIM_REPORT_NOTES_H

#include "sim/base/status.h"
#include "sim/report/analysis.h"
#include "sim/report/report.h"

struct arena;

enum { NOTES_MAX = 32, NOTES_PARTS_MAX = 48 };

/* One part of what lies between the roofline's lower bound and the step. */
struct notes_part {
    const char *name;
    const char *less; /* The name without the word "less"; NULL: the name has no such word. */
    double seconds;
    /* The class whose exposed time the part is; NULL: it is of no class alone. */
    const struct analysis_class *of;
};

struct notes {
    const char *text[NOTES_MAX]; /* One sentence or two each. */
    bool always[NOTES_MAX];      /* A screen has this one, however many stand before it. */
    uint32_t count;
    bool lacks_memory;                       /* A note is missing, as there was no memory for it. */
    struct notes_part part[NOTES_PARTS_MAX]; /* Parts that add up to step - lower. */
    uint32_t part_count;
};

enum status notes_build(struct arena *arena, const struct report_input *input,
                        const struct analysis *analysis, struct notes *ret_notes,
                        struct error *reterr);

/* One more note, from a format. */
void notes_add(struct arena *arena, struct notes *notes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A screen has the notes from `first` on, however many stand before them. */
static inline void notes_always(struct notes *notes, uint32_t first)
{
    for (uint32_t i = first; i < notes->count; i++) notes->always[i] = true;
}

/* How many hundredths of the whole a part is; 0 of nothing. */
double notes_percent(double part, double whole);

#endif
