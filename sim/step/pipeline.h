/*
 * pipeline.h: a training step over pipeline stages: each rank of pp plays the passes of its list,
 * and what one stage gives to the next travels as a message. Internal to sim/step.
 */
#ifndef SIM_STEP_PIPELINE_H
#define SIM_STEP_PIPELINE_H

#include "sim/schedule/schedule.h"
#include "sim/step/lower.h"
#include "sim/step/stages.h"

/* What a template is made of. `nothing`: a stage that has neither layers nor ends in this pass, and
 * only hands on what it gets. */
enum pipeline_module {
    MODULE_EMBEDDING,
    MODULE_LAYER,   /* A layer with one MLP. */
    MODULE_EXPERTS, /* A layer with experts. */
    MODULE_MTP,
    MODULE_MTP_HEAD, /* Of one on another stage. */
    MODULE_HEAD,
    MODULE_NOTHING,
    MODULE_COUNT,
};

/* A message goes to a neighbour along pp, who may be the one around. */
enum pipeline_way { WAY_NONE, WAY_NEXT, WAY_PREVIOUS };

/* What one pass does in a template. */
struct pipeline_pass {
    uint8_t module;   /* enum pipeline_module */
    uint8_t kind;     /* enum schedule_kind */
    uint8_t send;     /* enum pipeline_way */
    uint8_t keeping;  /* enum lower_weights */
    bool windowed;    /* A layer that attends to a window. */
    bool updated;     /* Weights of the last step's update are gathered. */
    bool head_stays;  /* Of the head: see struct lower. */
    bool receives;    /* Its input comes as a message. */
    bool since;       /* Gathers wait for what the block says. */
    uint8_t arrays;   /* Number of arrays [B_X, D] between blocks that are sent. */
    bool around;      /* It is sent from the last rank to the first, or back. */
    bool last;        /* Gradients are reduced after it. */
    bool last_lookup; /* The gradient of an embedding that both ends use is reduced after it. */
    struct mtp_position place; /* Of a module that predicts further tokens. */
};

/* All in which templates differ. */
struct pipeline_variant {
    struct pipeline_pass part[2]; /* Of two passes that overlap, the forward pass first. */
    uint32_t part_count;
    enum pipeline_way receive;
    uint64_t given_bytes; /* Of gathered weights, at its end. */
};

enum { PIPELINE_TIED = 2 };

/* The weights of a stage that its rank holds gathered. */
struct pipeline_hold {
    bool held;
    bool has[MODULE_COUNT]; /* [module]: gathered by a pass of the stage. */
    uint32_t since_slot;    /* Where it was asked for. */
    uint64_t bytes;
};

struct pipeline {
    struct lower *lower;
    uint64_t dense_layers; /* From the first on: they have one MLP. */
    struct schedule schedule;
    struct stages stages;
    struct pipeline_variant variant[PROGRAM_TEMPLATES_MAX];
    uint16_t variant_template[PROGRAM_TEMPLATES_MAX];
    uint32_t variant_count;
    uint32_t *number[2]; /* [stage · microbatches + microbatch]: the message that a forward (0) or
                            backward pass (1) sends is that of its sender's stream, from 1. */
    uint16_t update[MODULE_COUNT]; /* [module]: the template of the update, or PROGRAM_NONE. */
    uint16_t reduce[MODULE_COUNT]; /* [module]: the template of the reduction, or PROGRAM_NONE. */
    uint16_t send_replica[MODULE_COUNT];  /* [module]: the template that sends gradients to the rank
                                        of the  other copy. */
    uint16_t sum_replicas[MODULE_COUNT];  /* [module]: the template that adds the gradients of the
                                         other  copy. */
    uint32_t tied_rank;                   /* Which shares a matrix with the first. */
    uint16_t tied[PIPELINE_TIED];         /* Templates of the first stage and of `tied_rank`. */
    uint32_t tied_message[PIPELINE_TIED]; /* Numbers of the messages that bring the gradients of
                                              the other. */
    bool differs;                         /* Only the last microbatch reduces gradients. */

    /* The role under construction. */
    const struct schedule_rank *list;
    struct program_block *block;
    uint64_t block_capacity;
    uint32_t block_count;
    uint32_t slot_count;
    uint32_t action_next; /* Of the list: gathers and reductions. */
    uint32_t give_next;   /* Of the list: what is given back. */
    uint32_t *sent_stage; /* Stages whose gradients have gone to the rank of the other copy, in that
                             order. */
    uint32_t sent_count;  /* Number of entries of `sent_stage`. */
    struct pipeline_hold *hold; /* [stage] */
};

static inline bool pipeline_is_forward(uint32_t kind)
{
    return kind == SCHEDULE_FORWARD;
}

/* As they are shown: "embedding", "layer"; of MODULE_NOTHING "stage". */
const char *pipeline_module_name(enum pipeline_module module);

static inline bool pipeline_pass_adds(const struct schedule_pass *pass)
{
    return pass->kind == SCHEDULE_BACKWARD || pass->kind == SCHEDULE_WEIGHT;
}

/* A block of the role under construction; it is joined to the one before where that goes on. */
void pipeline_block_add(struct pipeline *pipeline, const struct program_block *block);

/* Between and behind the passes (pipeline_modules.c). Whether no later pass of the rank adds to the
 * same stage's gradients. */
bool pipeline_pass_is_last(const struct schedule_rank *list, uint32_t index);
/* Slots of a stage, one for each of its units, from the head down: a template each. They wait
 * for a message more each, beginning with the one behind `arrivals`, if that is not NULL. */
void pipeline_modules_add(struct pipeline *pipeline, const struct stage *stage,
                          const uint16_t templates[MODULE_COUNT], enum program_phase phase,
                          uint32_t microbatch, uint32_t *arrivals);
/* Gathers that are asked for, and reductions, before a pass. */
void pipeline_actions_add(struct pipeline *pipeline, uint32_t before);
/* The gradients of stages to which no pass from here on adds go to the other copy's rank; gradients
 * that come from there, in this order, are added up. */
void pipeline_replicas_send(struct pipeline *pipeline, uint32_t before);
void pipeline_replicas_sum(struct pipeline *pipeline);

/* Messages (pipeline_messages.c). Those of each rank are numbered in the order of its list. */
enum status pipeline_messages_number(struct pipeline *pipeline, struct error *reterr);
struct pipeline_messages {
    enum pipeline_way receive, send;
    bool around;       /* Sent from the last rank to the first, or back. */
    uint64_t arrivals; /* How many must have come. */
    uint32_t arrays;   /* Of what is sent: the model's, and of each module before its head. */
};
struct pipeline_messages pipeline_messages_of(const struct pipeline *pipeline, uint32_t rank,
                                              const struct schedule_pass *pass);
/* Where a request over the ranks of pp says how many ranks on its receiver is: along one axis an
 * offset, over two levels a shift, which carries from the inner one into the outer. */
int32_t *pipeline_distance(struct plan_request *request);
/* One rank's message of what a data rank's tokens are, sharded as it is between blocks. */
uint32_t pipeline_send_plan(struct pipeline *pipeline, enum pipeline_way way, bool around,
                            uint32_t arrays);

/* Templates (pipeline_templates.c). */
uint16_t pipeline_template(struct pipeline *pipeline, const struct pipeline_variant *variant);
/* The ops from `first` on are of one pass, those from `second` on of another: they are mixed
 * (pipeline_pairs.c). */
void pipeline_ops_mix(struct lower *lower, uint32_t first, uint32_t second);
/* Reductions without a pass, and updates. */
void pipeline_rests_build(struct pipeline *pipeline);
/* Bytes that the gathered weights of a unit take. */
uint64_t pipeline_gathered_bytes(const struct pipeline *pipeline, enum pipeline_module module);

/* Fills templates and roles: role r is rank r of pp. Failures go to lower->build.status. */
void lower_pipeline(struct lower *lower);

/* What of a model a rank holds. */
struct lower_holding {
    uint64_t layers[LAYER_KINDS];
    uint64_t mtp_modules; /* Modules, each of which has a layer that `layers` does not count. */
    bool embedding, head;
};

/* Their parameters, moments and accumulated gradients: there from the first to the last instant. */
void lower_resident(const struct ranks *ranks, const struct lower_holding *holding,
                    uint64_t resident_bytes[PROGRAM_MEMORY_COUNT]);

/* Tokens and useful FLOP of the whole step (lower_totals.c, as the above). */
void lower_totals(const struct ranks *ranks, struct program *program);

/* The rank of the last stage, or of the one whose modules look up the embedding
 * (pipeline_check.c). */
uint32_t pipeline_tied_rank(const struct schedule *schedule, const struct stages *stages);

/* A tied matrix on both ends of a pipeline (pipeline_gradients.c): a template in which an end's
 * gradient goes to the other, that one's comes, and they are added up; and the block that plays it
 * before all updates, which is when the other end waits for it, and has got `arrivals` messages. */
uint16_t lower_tied(struct lower *lower, uint32_t other, bool head);
struct program_block lower_tied_block(const struct schedule *schedule, bool head,
                                      uint16_t template_index, uint64_t arrivals);

/* Two copies of a model (pipeline_gradients.c): a template in which the gradients of units go to
 * the rank that holds the same stages; and one in which that rank's come and are added to one's
 * own. */
uint16_t lower_replica_send(struct lower *lower, const struct delayed_update *of);
uint16_t lower_replica_sum(struct lower *lower, const struct delayed_update *of);

#endif
