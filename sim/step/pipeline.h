/*
 * pipeline.h: a step as passes of pipeline stages, of inference forward passes alone: each rank of
 * pp plays the passes of its list, and what one stage gives to the next travels as a message.
 * Without pp there is one rank with one stage. Internal to sim/step.
 */
#ifndef SIM_STEP_PIPELINE_H
#define SIM_STEP_PIPELINE_H

#include "sim/schedule/schedule.h"
#include "sim/step/lower.h"
#include "sim/step/stages.h"

/* A message goes to a neighbour along pp, who may be the one around. */
enum pipeline_way { WAY_NONE, WAY_NEXT, WAY_PREVIOUS, WAY_COUNT };

/* All in which templates differ. Without gaps, as its parts are. */
struct pipeline_variant {
    uint64_t given_bytes;      /* Bytes of gathered weights that are given back at the end. */
    uint64_t norm_elements;    /* Of a norm: gradients of the rank. */
    struct lower_part part[2]; /* The parts of two passes that overlap, the forward pass first. */
    uint8_t part_count;
    uint8_t receive; /* enum pipeline_way */
    uint8_t unused[2];
};

enum { PIPELINE_TIED = 2 };

/* The weights of a stage that its rank holds gathered. */
struct pipeline_hold {
    bool held;
    bool has[MODULE_COUNT]; /* [module]: gathered by a pass of the stage. */
    uint32_t since_slot;    /* Where it was asked for. */
    uint64_t bytes;
};

/* A role under construction. */
struct pipeline_role {
    const struct schedule_rank *list;
    struct program_block *block;
    uint64_t block_capacity;
    uint32_t block_count;
    uint32_t slot_count;
    uint32_t action_next; /* The next of the list's gathers and reductions. */
    uint32_t give_next;   /* The next of the list's weights that are given back. */
    bool tie_swapped;     /* Gradients of a tied matrix are on their way. */
    uint32_t sent_count;  /* Number of entries of `sent_stage`. */
    uint32_t *sent_stage; /* Stages whose gradients have gone to the rank of the other copy, in that
                             order. */
    struct pipeline_hold *hold; /* [stage] */
};

struct pipeline {
    struct lower *lower;
    struct schedule schedule;
    struct stages stages;
    struct pipeline_variant variant[PROGRAM_TEMPLATES_MAX]; /* [template] */
    uint16_t played;     /* The template that was asked for last. */
    uint32_t *number[2]; /* [stage · microbatches + microbatch]: the message that a forward (0) or
                            backward pass (1) sends is that of its sender's stream, from 1. */
    uint32_t tied_rank;  /* The rank that shares a matrix with the first. */
    uint32_t tied_message[PIPELINE_TIED]; /* Numbers of the messages that bring the gradients of
                                             the other, to the first stage and to `tied_rank`. */
    bool differs;  /* Only the last microbatch reduces gradients, or updates. */
    bool has_tail; /* Gradients of a tied matrix travel during other weight gradients. */
    struct pipeline_role role;
};

static inline bool pipeline_is_forward(uint32_t kind)
{
    return kind == SCHEDULE_FORWARD;
}

/* The name of a module in reports: "embedding", "layer"; of MODULE_NOTHING "stage". */
const char *pipeline_module_name(enum lower_module module);

static inline bool pipeline_pass_adds(const struct schedule_pass *pass)
{
    return pass->kind == SCHEDULE_BACKWARD || pass->kind == SCHEDULE_WEIGHT;
}

/* A block of the role under construction; it is joined to the one before where that goes on. */
void pipeline_block_add(struct pipeline *pipeline, const struct program_block *block);
/* The slots of a pass of the role's list, or of a pair; returns how many passes that are. */
uint32_t pipeline_pass_add(struct pipeline *pipeline, uint32_t rank, uint32_t index);
/* The weight gradients at the end of a rank's list, where gradients of a tied matrix travel during
 * them (`run.overlap.tied`): of all of these passes the matrix comes first, then its messages, then
 * the layers. Returns how many passes that are. */
uint32_t pipeline_tail_add(struct pipeline *pipeline, uint32_t rank, uint32_t index);
/* Whether such a tail begins with the pass. */
bool pipeline_is_tail(const struct pipeline *pipeline, uint32_t rank, uint32_t index);
/* The templates of a pass of one stage, in the order of the model's modules. */
void pipeline_pass_build(struct pipeline *pipeline, uint32_t index);

/* Between and behind the passes (pipeline_modules.c). Whether no later pass of the rank adds to the
 * same stage's gradients. */
bool pipeline_pass_is_last(const struct schedule_rank *list, uint32_t index);
/* How many of each module a stage has: of layers, how many of each kind. */
void pipeline_module_counts(const struct pipeline *pipeline, const struct stage *stage,
                            uint32_t ret_counts[MODULE_COUNT]);
/* Slots of a stage, one for each of its modules. They wait for a message more each, beginning with
 * the one behind `arrivals`, if that is not NULL. */
void pipeline_modules_add(struct pipeline *pipeline, const struct stage *stage, enum lower_act act,
                          enum program_phase phase, uint32_t microbatch, uint32_t *arrivals);
/* Slots of gradients of a tied matrix (ACT_TIE...), on the two ranks that hold it. */
void pipeline_tie_add(struct pipeline *pipeline, uint32_t rank, enum lower_act act, uint32_t pass);
/* Adds the gathers and reductions that the schedule has before a pass. */
void pipeline_actions_add(struct pipeline *pipeline, uint32_t before);
/* The gradients of stages to which no pass from here on adds go to the other copy's rank; gradients
 * that come from there, in this order, are added up. */
void pipeline_replicas_send(struct pipeline *pipeline, uint32_t before);
void pipeline_replicas_sum(struct pipeline *pipeline);

/* Messages (pipeline_messages.c). The messages of a rank have numbers in the order of its list. */
enum status pipeline_messages_number(struct pipeline *pipeline, struct error *reterr);
struct pipeline_messages {
    enum pipeline_way receive, send;
    bool around;       /* Sent from the last rank to the first, or back. */
    uint64_t arrivals; /* How many messages must have come. */
    uint32_t arrays;   /* Arrays that are sent: the model's, and one of each module before its head;
                          0: the tokens that are sampled. */
};
struct pipeline_messages pipeline_messages_of(const struct pipeline *pipeline, uint32_t rank,
                                              const struct schedule_pass *pass);
/* Where a request over the ranks of pp says how many ranks on its receiver is: along one axis an
 * offset, over two levels a shift, which carries from the inner one into the outer. */
int32_t *pipeline_distance(struct plan_request *request);
/* The message of one rank: `arrays` arrays of its tokens, sharded as between blocks; without arrays
 * the tokens that it has sampled. */
static const enum format PIPELINE_TOKEN_FORMAT = FORMAT_FP32; /* The width of a token's number. */
uint32_t pipeline_send_plan(struct pipeline *pipeline, enum pipeline_way way, bool around,
                            uint32_t arrays);

/* The template of a variant, which is built where it is new (pipeline_templates.c). */
uint16_t pipeline_template(struct pipeline *pipeline, const struct pipeline_variant *variant);
/* The template of what is done with all gradients of a module, or PROGRAM_NONE: nothing is.
 * `place`: of a module without stages; else none. */
uint16_t pipeline_rest(struct pipeline *pipeline, enum lower_module module, enum lower_act act,
                       struct mtp_position place);
/* Builds the templates of all modules and acts, in an order of their own. */
void pipeline_rests_build(struct pipeline *pipeline);
/* Mixes the ops of two passes (pipeline_pairs.c): of one from `first` on, of the other from
 * `second` on. */
void pipeline_ops_mix(struct lower *lower, uint32_t first, uint32_t second);

/* Parameters, moments and accumulated gradients of the modules that a rank holds: there from the
 * first to the last instant. */
void lower_resident(const struct ranks *ranks, const uint64_t modules[MODULE_COUNT],
                    uint64_t resident_bytes[PROGRAM_MEMORY_COUNT]);

/* The rank of the last stage, or of the one whose modules look up the embedding
 * (pipeline_check.c). */
uint32_t pipeline_tied_rank(const struct schedule *schedule, const struct stages *stages);

/* Ops of a template (pipeline_gradients.c). Two copies of a model: the gradients of a module go to
 * the rank that holds the same stages; that rank's come and are added to one's own. */
void lower_copy_send(struct lower *lower, enum lower_module module);
void lower_copies_sum(struct lower *lower, enum lower_module module);
/* A tied matrix on both ends of a pipeline: an end's gradient goes to the `other` rank, that one's
 * comes, and they are added up. This happens before all updates, which is when the other end
 * waits for it. */
void lower_tie(struct lower *lower, uint32_t other, bool head);
/* Both halves of lower_tie(): the messages, and the sum. */
void lower_tie_swap(struct lower *lower, uint32_t other, bool head);
void lower_tie_sum(struct lower *lower, bool head);

#endif
