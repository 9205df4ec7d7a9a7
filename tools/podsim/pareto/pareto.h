/*
 * pareto.h: `podsim pareto`: which steps of inference are simulated, what came out, how it is
 * shown.
 *
 * A point is a batch on a curve; a curve is one slice, mesh and length of sequences. Curves of
 * equal length answer the same question, so frontiers are of these.
 */
#ifndef TOOLS_PODSIM_PARETO_PARETO_H
#define TOOLS_PODSIM_PARETO_PARETO_H

#include <stdbool.h>

#include "sim/report/column.h"
#include "sim/report/inference_analysis.h"
#include "sim/report/inference_shares.h"
#include "tools/podsim/common/session.h"

struct strbuf;
struct worker;

enum {
    PARETO_POINTS_MAX = 4096,
    PARETO_BATCH_MOST = 1 << 20, /* The largest batch of a scenario. */
    PARETO_COUNTS_MAX = 1024,    /* The most batches, and the most lengths. */
    PARETO_VALUES_MAX = 64,      /* The most shapes, and the most meshes. */
    PARETO_SETTINGS_MAX = 2,
    PARETO_COLUMNS_MAX = 12, /* Lengths of a picture. */
};

/* What one value of an option sets in the scenario; NULL: no more. `word` is what the command line
 * calls it; NULL: the scenario's own. */
struct pareto_value {
    const char *word;
    const char *setting[PARETO_SETTINGS_MAX];
};

/* The machine of one shape, and what `auto` has taken for collectives on it: points share both. */
struct pareto_machine {
    struct session session; /* A session up to the machine. */
    struct plan_chooser chooser;
    bool is; /* False: it cannot be built, and its points say why. */
};

struct pareto_values {
    struct pareto_value *value;
    uint32_t count;
};

enum pareto_state {
    PARETO_PLAYED,
    PARETO_UNFIT,   /* The machine's memory is too small: the point is not simulated. */
    PARETO_REFUSED, /* The scenario cannot be so. */
};

struct pareto_point {
    uint32_t batch;
    enum pareto_state state;
    const char *why; /* Place and sentence of a refusal. */
    bool is_on_frontier, is_knee;
    double memory_bytes;        /* Of a chip, the peak; of PARETO_UNFIT what it holds at least. */
    bool memory_is_peak;        /* Of PARETO_UNFIT too, whose ops follow one another. */
    double length_tokens;       /* Of a sequence, the mean; unless PARETO_REFUSED. */
    uint64_t room;              /* Of PARETO_PLAYED: inference_batch_expected(). */
    struct inference_step book; /* The formula of 7.1.5. */
    double book_tokens_per_s_per_chip;

    /* Of PARETO_PLAYED. */
    double latency_s; /* Time of the step: of a decode the time of a token. */
    double tokens_per_s_per_chip;
    double tokens_per_s_per_user;
    struct inference_shares shares;
};

struct pareto_curve {
    const struct pareto_value *shape, *mesh, *length;
    struct session whole; /* Up to the mesh: what its points share, while they are simulated. */
    struct inference_model book; /* What the formula takes of the model. */
    const char *shape_text;      /* "4x4"; NULL: no point could be built. */
    const char *mesh_text;       /* "tp 16 over x y"; NULL: no point could be built. */
    uint64_t chip_count;         /* The chips; 0: no point could be built. */
    uint64_t hbm_bytes;          /* HBM of a chip. */
    double length_tokens; /* Mean tokens of a sequence; of drawn lengths the distribution's mean. */
    struct lengths_distribution drawn; /* The distribution of lengths; mean 0: lengths are given. */
    double critical_tokens;            /* B_crit of the formula (7.1.3), of a pass of each batch. */
    double critical_batch;             /* The batch of these tokens. */
    uint64_t wall;                     /* The largest batch that fits. */
    bool wall_is_estimate;         /* Steps may hold more than is known, and fewer sequences fit. */
    struct report_refused refused; /* The end of `wall`, if memory is not. */
    uint64_t book_wall;            /* By the formula (7.1.6): parameters and cache alone. */
    uint32_t knee;                 /* A point's place, or frontier_none. */
    struct pareto_point *point;    /* [batch_count] */
};

struct pareto {
    const struct options *options;
    struct arena *arena;
    struct worker *worker;
    struct session_source source;
    struct session base; /* A session up to the scenario. */
    struct chip chip;
    struct routing_drawn drawn;
    struct cancel cancel;
    const uint32_t *batch; /* Rising. */
    uint32_t batch_count;
    struct pareto_values shapes, meshes, lengths;
    struct pareto_machine *machine; /* [shapes.count] */
    double book_parameters;         /* Parameters of the formula; 0: the model's. */
    double usd_per_chip_h;          /* 0: unknown. */
    const char *price_source;       /* The source of the price, and its date. */
    struct pareto_curve *curve;     /* By length, then by shape, then by mesh. */
    uint32_t curve_count;
    uint32_t done_count; /* Points. */
    uint64_t events;
};

extern const struct option pareto_options[];

/* The options, and the curves with their points, not yet simulated. */
enum status pareto_read(struct pareto *pareto, struct error *reterr);
/* Behind everything else. */
void pareto_close(struct pareto *pareto);
/* Plays all points. */
enum status pareto_play(void *pareto, struct worker *worker, struct error *reterr);

/* Finds the wall of a curve, whose points were simulated. */
enum status pareto_find_wall(struct pareto *pareto, struct pareto_curve *curve,
                             struct error *reterr);

/* Curves of equal length lie together: the first behind those of curve `first`. */
uint32_t pareto_group_end(const struct pareto *pareto, uint32_t first);

/* The sequences whose number and lengths the points have: of what answers, or else of prompts. */
enum inference_part pareto_part(const struct pareto *pareto);
/* Points in a state. */
uint32_t pareto_count(const struct pareto *pareto, enum pareto_state state);
/* Words of a curve; where no point could be built those of the command line. */
const char *pareto_shape(const struct pareto_curve *curve);
const char *pareto_mesh(const struct pareto_curve *curve);
/* "memory holds about 52"; "at most 52, as 53 are refused" where memory does not end the batches.
 */
struct pareto_wall {
    char text[160];
};
struct pareto_wall pareto_wall(const struct pareto_curve *curve);
/* "context of 8,192 tokens", "prompts drawn (lognormal, mean 2,048 tokens)" of a curve that has one
 * or the other. */
void pareto_add_length(const struct pareto *pareto, const struct pareto_curve *curve,
                       struct strbuf *text);

/* Figures of points, numbered curve by curve (pareto_columns.c). */
extern const struct column_table pareto_table, pareto_priced_table;

/* The columns of CSV. */
extern const struct column_line pareto_cells;
void pareto_write_csv(const struct pareto *pareto, struct strbuf *text);
void pareto_write_json(const struct pareto *pareto, struct strbuf *text);
/* A self-contained SVG. */
void pareto_write_svg(const struct pareto *pareto, struct strbuf *text);
void pareto_write_text(const struct pareto *pareto, struct strbuf *text);

#endif
