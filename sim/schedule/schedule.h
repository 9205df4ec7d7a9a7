/*
 * schedule.h: pipeline schedules: which rank does which pass of which microbatch after which.
 *
 * A model is cut into stages, stage 0 the first. A rank holds one stage or several (chunks); with
 * two copies of the model, each copy takes half of the microbatches. A schedule is an order of
 * passes for each rank and nothing more: when a pass begins follows from the order and from what it
 * needs (schedule_play.h), so the same schedule can be run with other times.
 *
 * A pass needs, of its own microbatch: a forward pass that of the stage before; a backward pass, or
 * its first half (the input gradient), the forward pass of its stage and the backward pass or input
 * gradient of the stage behind; a weight gradient its input gradient.
 *
 * A new schedule is one file in workloads/schedules and one line in workloads/schedules.def.
 */
#ifndef SIM_SCHEDULE_SCHEDULE_H
#define SIM_SCHEDULE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/cancel.h"
#include "sim/base/status.h"

struct arena;

enum {
    SCHEDULE_RANKS_MAX = 4096,
    SCHEDULE_STAGES_MAX = 32768,
    SCHEDULE_MICROBATCHES_MAX = 1 << 20,
    SCHEDULE_PASSES_MAX = 1 << 26, /* The most passes of all ranks together. */
    SCHEDULE_CHUNKS_MAX = 64,
};

#define SCHEDULE_KIND_TABLE(X)                                                                     \
    X(FORWARD, "F", "forward")                                                                     \
    X(BACKWARD, "B", "backward") /* Both gradients. */                                             \
    X(INPUT, "I", "input gradient")                                                                \
    X(WEIGHT, "W", "weight gradient")

enum schedule_kind {
#define X(name, letter, text) SCHEDULE_##name,
    SCHEDULE_KIND_TABLE(X)
#undef X
        SCHEDULE_KIND_COUNT,
};

const char *schedule_kind_letter(enum schedule_kind kind); /* "F" */
const char *schedule_kind_name(enum schedule_kind kind);   /* "forward" */

struct schedule_pass {
    uint32_t microbatch;
    uint16_t stage;
    uint8_t kind; /* enum schedule_kind */
    bool paired;  /* Runs overlapped with the next of the list, as one: DualPipe's F&B. */
};

/* What a rank does with the weights and gradients of a stage between its passes. */
#define SCHEDULE_ACT_TABLE(X)                                                                      \
    X(UNSHARD, "UNSHARD")    /* Gathers the weights. */                                            \
    X(RESHARD, "RESHARD")    /* Gives back what is gathered. */                                    \
    X(REDUCE, "REDUCE_GRAD") /* Reduces the gradients. */

enum schedule_act {
#define X(name, word) SCHEDULE_##name,
    SCHEDULE_ACT_TABLE(X)
#undef X
        SCHEDULE_ACT_COUNT,
};

const char *schedule_act_word(enum schedule_act act); /* "UNSHARD" */

struct schedule_action {
    uint32_t before; /* The pass of the list that it stands before; the count: behind the last. */
    uint16_t stage;
    uint8_t act; /* enum schedule_act */
};

struct schedule_rank {
    struct schedule_pass *pass;
    uint32_t count;
    const uint32_t *cell; /* [pass]: where it stands in its line of a file; NULL: not from one. */
    struct schedule_action *action; /* In order; none: each pass gathers for itself, and gradients
                                       are reduced with the last of a stage. */
    uint32_t action_count;
    const uint32_t *action_cell; /* [action]: as `cell`. */
};

struct schedule {
    const char *name; /* "interleaved:2" */
    uint32_t rank_count;
    uint32_t stage_count;
    uint32_t microbatch_count;
    uint32_t chunk_count; /* Stages of a rank, of one copy; in a file, of the rank with most. */
    uint32_t copy_count;  /* 1, or 2: the first half of the microbatches takes copy 0. */
    bool has_gathers;     /* Actions say when weights are gathered. */
    bool has_reductions;  /* Actions say when gradients of some stages are reduced. */
    bool goes_round; /* Passes go round and round: what the last stage gives is for the first one's
                        next time, and what each list begins with came the time before. */
    uint32_t answer_passes; /* Passes of a batch, the prefill's and the first of its answer. That
                               one is the last, and begins at the first stage with what the last
                               stage gave in the prefill. 0: no pass is of an answer. */
    uint16_t *rank_of;      /* [copy][stage] */
    struct schedule_rank *rank;
};

static inline uint32_t schedule_rank_of(const struct schedule *schedule, uint32_t stage,
                                        uint32_t microbatch)
{
    uint32_t const copy = microbatch / (schedule->microbatch_count / schedule->copy_count);
    return schedule->rank_of[copy * schedule->stage_count + stage];
}

/* Whether the rank holds the stage, of either copy. */
static inline bool schedule_rank_holds(const struct schedule *schedule, uint32_t rank,
                                       uint32_t stage)
{
    bool holds = false;
    for (uint32_t copy = 0; copy < schedule->copy_count; copy++)
        holds = holds || schedule->rank_of[copy * schedule->stage_count + stage] == rank;
    return holds;
}

/* Stages that the rank holds, of one copy. */
static inline uint32_t schedule_rank_chunks(const struct schedule *schedule, uint32_t rank)
{
    uint32_t count = 0;
    for (uint32_t stage = 0; stage < schedule->stage_count; stage++)
        count += schedule->rank_of[stage] == rank;
    return count;
}

/* Durations in ticks. What a pass of one chunk takes, whatever its stage. */
struct schedule_times {
    int64_t forward;
    int64_t input;
    int64_t weight;
    int64_t pair;     /* Of an overlapped forward and backward pass; 0: as long as both. */
    int64_t hop;      /* Between ranks, pure latency. */
    int64_t backward; /* Of a whole backward pass; 0: as long as both gradients. */
    const struct schedule_times *of_rank; /* [rank]: times of ranks that differ, none longer than
                                             `times`; NULL: all ranks have `times`. */
};

/* A rank's own; the hop is that of all. */
static inline const struct schedule_times *schedule_times_of(const struct schedule_times *times,
                                                             uint32_t rank)
{
    return times->of_rank == NULL ? times : &times->of_rank[rank];
}

/* Of a chunk's activations, what an input gradient leaves to the weight gradient; and how much more
 * than before it there is while it runs, at most. */
struct schedule_kept {
    uint32_t kept_ppm, rise_ppm;
};

/* What a schedule is built for. */
struct schedule_request {
    uint32_t rank_count;
    uint32_t microbatch_count;
    uint32_t chunk_count;        /* 0: the form's own. */
    struct schedule_times times; /* Formulas, and schedules that heed times, go by them. */
    uint32_t held_max;           /* "auto": chunks' activations a rank may hold; 0: as 1F1B. */
    uint32_t kept_ppm; /* "auto": the share of held activations that an input gradient leaves. */
    const struct schedule_kept *kept_of_rank; /* [rank]: where ranks are unlike; NULL: all have
                                                 that, and it rises to no more. */
    const struct cancel *cancel;
};

static inline uint32_t schedule_kept_ppm(const struct schedule_request *request, uint32_t rank)
{
    return request->kept_of_rank == NULL ? request->kept_ppm : request->kept_of_rank[rank].kept_ppm;
}

/* The passes of one rank as they are listed. */
struct schedule_list {
    struct schedule_pass *pass;
    uint32_t count, capacity;
    uint32_t microbatch_count; /* Later ones are dropped, for forms that list whole rounds. */
};

void schedule_add(struct schedule_list *list, enum schedule_kind kind, uint32_t stage,
                  uint32_t microbatch);
/* Two passes that run as one. */
void schedule_add_pair(struct schedule_list *list, uint32_t forward_stage,
                       uint32_t forward_microbatch, uint32_t backward_stage,
                       uint32_t backward_microbatch);

/* How the published bubble of a form is measured. */
enum schedule_measure {
    SCHEDULE_NO_FORMULA,
    SCHEDULE_MAKESPAN, /* End of the last pass less a rank's work. */
    SCHEDULE_PER_RANK, /* Worst rank: from its first pass to its last, less its work. */
};

struct schedule_formula {
    enum schedule_measure measure;
    int64_t
        bubble_ticks;  /* The published bubble; may be negative where the formula does not hold. */
    bool exact;        /* With these times the schedule is known to meet it, without hops. */
    const char *text;  /* "(p-1)(F+B)/v" */
    const char *holds; /* When it is exact, without hops: "W <= F"; NULL: always. */
};

/* Activations that a rank holds at most, in passes of a chunk: `whole` passes keep everything,
 * `kept` passes only what their weight gradients need. */
struct schedule_peak {
    uint32_t whole, kept;
};

/* A way to schedule. */
struct schedule_form {
    const char *name;    /* The name on the command line: "zb-h1". */
    const char *pytorch; /* The name in torch.distributed.pipelining, if another; or NULL. */
    const char *help;
    const char *source;
    uint32_t chunks;         /* Chunks of a rank; 0: as many as are asked for, at least 2. */
    uint32_t model_replicas; /* Of the model: 1, or 2, where each stage lies on two ranks. */
    bool heeds_times; /* The order of passes depends on the times of passes: a search found it. */
    bool is_baseline; /* No schedule that anybody would use; "all" leaves it out. */
    bool from_both_ends; /* Rank r holds stage r and, from the other end, stage 2p-1-r. */
    /* Why it cannot be, with the rule and the nearest counts, in `buffer`; NULL if it can. */
    const char *(*refuses)(const struct schedule_request *request, char *buffer,
                           uint32_t buffer_bytes);
    /* `list` lists one rank; `list_all` lists all ranks, if ranks depend on each other. Exactly one
     * is set. */
    void (*list)(const struct schedule_request *request, uint32_t rank, struct schedule_list *list);
    enum status (*list_all)(struct arena *arena, const struct schedule_request *request,
                            struct schedule_list *lists, struct error *reterr);
    struct schedule_formula (*formula)(const struct schedule_request *request);
    struct schedule_peak (*peak)(const struct schedule_request *request, uint32_t rank);
};

extern const struct schedule_form *const schedule_form_table[];
extern const uint32_t schedule_form_count;

/* The form at a place below the count in the order of names, in which lists have them: the table is
 * in the order of files, whose names begin with no digit. */
const struct schedule_form *schedule_form_at(uint32_t place);

/* "zb-h1", "interleaved:4", "ZBVZeroBubble" to a form and its chunks, in any case. Errors:
 * STATUS_NOT_FOUND with the nearest name, STATUS_INVALID. */
enum status schedule_form_parse(const char *text, const char *where,
                                const struct schedule_form **ret_form, uint32_t *ret_chunks,
                                struct error *reterr);

/* No instant of `passes`, nor a form's formula, can overflow: each pass adds at most one of
 * each duration to the longest way. */
enum status schedule_times_check(const struct schedule_times *times, uint64_t passes,
                                 const char *where, struct error *reterr);

/* Whether there is such a schedule, of whatever times; `chunk_count` is not 0. Errors:
 * STATUS_INVALID with the rule and the nearest counts that fit, STATUS_LIMIT. */
enum status schedule_request_check(const struct schedule_form *form,
                                   const struct schedule_request *request, const char *where,
                                   struct error *reterr);

/* A schedule without its passes: its name, its counts and where its stages lie. Errors as of
 * schedule_request_check(), and STATUS_NO_MEMORY. */
enum status schedule_places(struct arena *arena, const struct schedule_form *form,
                            const struct schedule_request *request, const char *where,
                            struct schedule *ret_schedule, struct error *reterr);

/* Builds and checks (schedule_check.h). Errors: STATUS_INVALID with the rule and the nearest counts
 * that fit, STATUS_LIMIT, STATUS_NO_MEMORY, STATUS_INTERRUPTED. */
enum status schedule_build(struct arena *arena, const struct schedule_form *form,
                           const struct schedule_request *request, const char *where,
                           struct schedule *ret_schedule, struct error *reterr);

#endif
