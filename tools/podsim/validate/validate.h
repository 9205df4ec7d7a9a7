/*
 * validate.h: `podsim validate`: every published row is simulated, and its prediction is compared
 * with the measurement, row by row and test by test. Two yardsticks stand next to each test: one
 * share of the peak for all of its rows, and the share of the chip in other publications.
 */
#ifndef TOOLS_PODSIM_VALIDATE_VALIDATE_H
#define TOOLS_PODSIM_VALIDATE_VALIDATE_H

#include "tools/podsim/common/options.h"
#include "tools/podsim/common/residuals.h"
#include "tools/podsim/validate/published.h"

struct column_line;
struct strbuf;
struct worker;

enum { VALIDATE_EVENTS_MAX = 400 * 1000 * 1000 };
enum { VALIDATE_WHY_BYTES = 384, VALIDATE_STACK_BYTES = 32 };
enum { VALIDATE_OUTSIDE_BYTES = 64 };

enum validate_state {
    VALIDATE_LEFT, /* Not asked for. */
    VALIDATE_PLAYED,
    VALIDATE_REFUSED, /* The row cannot be simulated; `why` gives the reason. */
};

/* Between which times a row would lie by the residuals of others, as ratios to its prediction. */
struct validate_interval {
    bool is;
    double low, high;
    bool covers; /* The measurement. */
};

/* Residuals that are left out when a row's interval is taken. */
enum validate_fold {
    VALIDATE_PUBLICATION, /* Residuals of the row's publication. */
    VALIDATE_MODEL,       /* Residuals of the row's model in its publication. */
    VALIDATE_FOLDS
};

/* What came of a row. */
struct validate_result {
    enum validate_state state;
    char why[VALIDATE_WHY_BYTES];
    const char *scenario; /* The row's scenario as text; NULL: it cannot be written. */
    double useful_s; /* The FLOP of the model, attention's too, at the chips' peak; 0: unknown. */
    double predicted_s; /* From the end of a step to the end of the next, or of one step. */
    /* Times of one step, as `podsim run` has them; 0: there is none. */
    double compute_s, exposed_s, idle_s;
    double peak_bytes; /* Bytes that PyTorch would have allocated at most. */
    double over;       /* The share of the chip's memory by which the peak is larger; 0: it fits. */
    char stack[VALIDATE_STACK_BYTES]; /* The stack whose kernels the row has; "": the profile's. */
    bool stack_is_missing;            /* The preset's stack has no tables of this chip. */
    bool has_kind;                    /* The row was simulated with measured kernels. */
    struct residual_kind kind;        /* For intervals. */
    struct validate_interval interval[VALIDATE_FOLDS]; /* Of a test nothing is left out, as nothing
                                                          of it is in the residuals. */
};

/* How far a set is off. Errors are predicted over measured, less 1. */
struct validate_score {
    uint32_t played, refused;
    double mean, mean_absolute, worst;
    const struct published_row *worst_row;
    double factor;         /* Factor that the predictions have in common: their geometric mean. */
    double ratio_absolute; /* Mean absolute error behind that factor. */
    double inside;         /* Mean absolute error of one best share of the peak for the set. */
    double outside; /* Mean absolute error of the median share of a chip and precision in rows that
                       are learned from. */
    uint32_t outside_rows; /* Rows of the set whose chip, precision and work such rows have. */
    char outside_said[VALIDATE_OUTSIDE_BYTES]; /* For a screen; "none: no steps of b200". */
    /* Sets of rows that differ in layout or schedule alone, three at least. */
    uint32_t layout_sets;
    double rank;          /* Spearman's correlation of rates, mean over these. */
    double regret;        /* What the layout that podsim would choose loses, mean over these. */
    uint32_t base_rows;   /* Rows that are compared with another of the same set. */
    double base_absolute; /* Mean absolute error of the ratios to it. */
    uint32_t memory_rows;
    double memory_mean, memory_absolute;
};

enum validate_subject {
    VALIDATE_OF_CHIP,  /* Rows that podsim may learn from. */
    VALIDATE_OF_TEST,  /* Nothing of its rows is in the residuals. */
    VALIDATE_OF_WORK,  /* Rows of chips, by their work. */
    VALIDATE_OF_LEVEL, /* Rows of chips, with intervals that hold more or fewer of 100. */
    VALIDATE_SUBJECTS
};

/* How well intervals hold. The last of chips and of tests is all. */
struct validate_coverage {
    enum validate_subject of;
    const char *name; /* "h100-sxm"; "T10"; "serving"; "60 of 100 measurements" */
    uint32_t rows, publications;
    double covered_once;               /* Share of a publication's rows, the mean. */
    double covered[VALIDATE_FOLDS];    /* Share of the rows. */
    double half_width[VALIDATE_FOLDS]; /* Half of high less low, over the prediction: the median. */
};

struct validate {
    const struct options *options;
    struct arena *arena;
    struct worker *worker;
    uint32_t thread_count; /* -j */
    uint64_t events_max;   /* A row that needs more is refused, on every machine alike. */
    struct published published;
    struct validate_result *result; /* [row] */
    bool *wanted;                   /* [set] */
    struct validate_score *score;   /* [set] */
    /* Residuals of the rows that were simulated and may be learned from, and how far intervals
     * reach by them. */
    struct residuals residuals;
    struct validate_coverage *coverage; /* Chips, works, tests, levels. */
    uint32_t coverage_count;            /* 0: not all of these rows were simulated. */
};

/* Rows that are wanted, in the order of sets. */
const struct validate_result *validate_result_of(const struct validate *validate,
                                                 const struct published_row *row);
/* Predicted over measured, less 1. */
double validate_error(const struct validate *validate, const struct published_row *row);

/* Whether row `r` of a set is the first that names its preset's stack for its chip. */
bool validate_names_stack(const struct validate *validate, const struct published_set *set,
                          uint32_t r);

/* Writes the scenarios of all rows, and plays those of the sets that are wanted. */
enum status validate_play(void *validate, struct worker *worker, struct error *reterr);
/* One row of a collective. */
enum status validate_collective(const struct published_row *row, struct validate_result *result,
                                struct error *reterr);
/* Scores of the sets that are wanted. */
enum status validate_score(struct validate *validate, struct error *reterr);

/* Residuals of what was simulated, and how far intervals reach by them. Where all that podsim may
 * learn from was simulated, also the interval of each row, and how well they hold. */
enum status validate_intervals(struct validate *validate, struct error *reterr);

void validate_write_text(const struct validate *validate, struct strbuf *text);
void validate_write_json(const struct validate *validate, struct strbuf *text);
/* The columns of CSV. */
extern const struct column_line validate_cells;
void validate_write_csv(const struct validate *validate, struct strbuf *text);
void validate_write_svg(const struct validate *validate, struct strbuf *text);
/* The tables of docs/accuracy-published.md. */
void validate_write_markdown(const struct validate *validate, struct strbuf *text);
/* workloads/residuals.json. */
void validate_write_residuals(const struct validate *validate, struct strbuf *text);

#endif
