/*
 * op.h: a kind of op: what it asks of a chip in each pass, what it reads, what it moves. A new one
 * is one file in workloads/ops, with its line in workloads/ops.def; and a member of graph_op's
 * union, if its ops have numbers of their own. Passes ask what a kind states, never which it is.
 */
#ifndef SIM_GRAPH_OP_H
#define SIM_GRAPH_OP_H

#include "sim/base/work.h"
#include "sim/collective/collective.h"
#include "sim/graph/shard.h"

enum { OP_READS_MAX = 8, OP_MOVES_MAX = 3 };

enum op_pass {
    OP_FORWARD,
    OP_AGAIN,       /* The forward pass again, for the backward pass. */
    OP_AGAIN_ALONE, /* The forward pass again, without the fused sum, which was kept. */
    OP_INPUT_GRADIENT,
    OP_WEIGHT_GRADIENT,
    OP_BOTH_GRADIENTS, /* In one kernel. */
    OP_LEFT_GRADIENT,  /* The gradient of the first of two inputs alone. */
    OP_RIGHT_GRADIENT, /* The gradient of the second of two inputs alone. */
    OP_CAST,           /* Gradients of results are cast to the format of the products (casts.h). */
    OP_CAST_SECOND,    /* Second arrays are made of arrays that tp has gathered (casts.h). */
    OP_CAST_WEIGHTS,   /* Weights are cast to the format of the products, forward or backward
                          (casts.h). */
    OP_INPUT_CASTS,    /* Inputs of products are cast to 16 bits, or gradients of the inputs back
                          (asides.h). */
    OP_AUTOCAST_WEIGHTS, /* Weights in fp32 are cast to 16 bits (asides.h). */
    OP_SHARDS,           /* Weights are cast and copied around a gather (asides.h). */
    OP_PADS,             /* Copies around attention, or of gradients of parts (asides.h). */
    OP_BIASES,           /* Gradients of biases are added up (asides.h). */
    OP_GRADIENT_CASTS,   /* Gradients of weights in fp32 are cast to fp32 (asides.h). */
    OP_SUMS,             /* Gradients of weights are added to earlier ones (asides.h). */
    OP_COPIES,           /* Gradients of weights are copied for their reduction (asides.h). */
};

/* Ranks that a collective is over. */
enum op_axis {
    OP_AXIS_TP,
    OP_AXIS_TP_D,
    OP_AXIS_EP,
    OP_AXIS_SEQUENCE, /* Ranks that share sequences. */
    OP_AXIS_HOLDERS,  /* Ranks of tp with the same weights, and each a part of their gradients. */
};

/* A collective: all that a pass asks, so that no pass asks for the op. Kinds of ops state their own
 * collectives, and steps.c states the collectives that follow from shardings. */
struct op_move {
    enum collective_kind kind;
    enum op_axis axis;
    enum format format; /* The format of its elements, in which a reduction adds them. */
    uint64_t bytes;

    /* Values that the collective waits for; values that later steps wait for. One or more each. A
     * listing has the first of each, and names the others. */
    struct graph_value read[GRAPH_VALUES_MAX], written[GRAPH_VALUES_MAX];
    uint8_t read_count, written_count;
    struct sharding sums; /* The array that travels in place of the values, as the collective leaves
                             the array: sums over columns. Without dimensions: values travel. */

    /* How programs, rooflines and listings name the collective. */
    const char *name; /* "Merge". NULL: the names of the values that are written, "Q K V". */
    bool bare;        /* The name has no prefix of the block. */

    /* When the collective runs. */
    bool before; /* The collective comes before the op's compute. */
    bool apart;  /* No product runs chunk by chunk with the collective. */
    bool rounds; /* Parts go round one by one, along with the op's compute. */

    bool spreads; /* Over ep: rows go out to experts. Else rows come back. */
};

/* FLOP of a pass that are not useful, by the reason. A repetition has `duplicated` alone: all else
 * of its FLOP are a repetition's. */
struct op_spare {
    uint64_t duplicated; /* Several ranks of tp compute the same. */
    uint64_t padding;    /* Dimensions are padded so that all ranks have equal shares. */
    int64_t rows; /* Rows that not every rank has. Below 0 where the rank that takes longest does
                     less than the mean rank. */
    uint64_t waiting; /* What the rank that has most has above the mean. */
    uint64_t again;   /* A gradient's kernel computes what the forward pass has not written. */
};

/* Of an op that a product computes on the way: vector FLOP of an element of the result. */
struct op_fused {
    uint64_t flop;
    uint64_t flop_backward; /* Vector FLOP of an element of the op's gradient. */
    bool reads_inputs;      /* The gradient of the op reads the op's inputs. */
};

/* A phrase that a listing adds to the line of a result, or "". */
enum { OP_REMARK_BYTES = 64 };
struct op_remark {
    char text[OP_REMARK_BYTES];
};

/* How a listing writes an op: "Norm(%)". % stands for the next input, @ for the names of all, + for
 * their sum, $ for the op's name, & for its weight. Its gradient is the function's name with a
 * prime, "Norm'". Inputs before the function are factors, "% * sigmoid(%)". */
struct op_notation {
    const char *formula; /* NULL: it is listed by its products, or by what it moves. */
    const char *remark, *remark_backward;
    struct op_remark (*remark_further)(const struct graph *graph); /* NULL: none. */
    const char *remark_split; /* Of a result whose rows lie in parts. */
    const char *remark_sum;   /* Of the stream's sum that the op computes on the way. */
    bool casts;               /* A result says its format, where the input has another. */
};

struct op_kind {
    const char *name;
    const char *help;
    const char *source; /* The source of its counts. */
    struct op_notation notation;

    /* What a pass asks of a chip. Nothing at all: the pass has no such compute. NULL: no pass has
     * one. */
    void (*work)(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct work *ret_work);

    /* Tensors of the forward pass that a gradient reads. (Forward, an op reads its inputs.) NULL:
     * none. */
    uint8_t (*reads)(const struct graph *graph, const struct graph_op *op, enum op_pass pass,
                     tensor ret_reads[OP_READS_MAX]);

    /* Collectives of its own, in addition to what follows from shardings. NULL: it has none. */
    uint8_t (*moves)(const struct graph_sharded *sharded, const struct graph_op *op,
                     enum op_pass pass, struct op_move ret_moves[OP_MOVES_MAX]);

    /* NULL: it multiplies nothing. */
    void (*spare)(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                  struct op_spare *ret_spare);

    /* Collectives that follow from its shardings. NULL: inputs are gathered over axes that do not
     * split the result, and a sum that ends in the op is reduced. */
    struct graph_shard (*shard)(const struct graph *graph, const struct graph_op *op);

    /* Adds, tensor by tensor, axes that gradients of inputs and weights are sums over. NULL: the
     * axes of the results' gradients. */
    void (*due)(const struct graph_sharded *sharded, const struct graph_op *op,
                uint32_t due[GRAPH_TENSORS_MAX]);

    /* The array of a recipe of fp8 that the result is, where products read it (casts.h). NULL: what
     * another library's kernel has written. */
    enum recipe_array (*cast_as)(const struct graph *graph);

    /* NULL: no product computes it on the way. */
    struct op_fused (*fused)(const struct graph_op *op);

    bool weights_apart;  /* The op is linear in its weights, which are matrices: their gradient is a
                            pass of its own. Else the inputs' pass gives it. */
    bool inputs_apart;   /* The op has two inputs, whose gradients are passes of their own. */
    bool passes_on;      /* The gradient of an input is the gradient of the result. */
    bool takes_rows;     /* The result is some rows of the input. */
    bool quantises;      /* The result is an operand of products, cast as their recipe says. */
    bool gives_gradient; /* The result is already the gradient of the input. */
    bool attends;        /* The op is attention: scores, and the product with values. */
    bool shares_sequence;    /* All inputs but the first are read of whole sequences. */
    bool passes_round;       /* The parts of two ranks lie here at once. */
    bool computes_functions; /* An input may be a function that the op computes (`fused`). */
    bool computes_sums;      /* An input may be a fused sum, which the op computes or adds to. */
    bool lies_in_input;      /* The result, in the first input's format, lies in memory where that
                                input lies, and adds no bytes (graph_lies_in()). */
};

extern const struct op_kind *const op_kind_table[];
extern const uint32_t op_kind_count;

#define OP(name) extern const struct op_kind op_kind_##name;
#include "workloads/ops.def"
#undef OP

/* "tp", "kv": as a listing and a schedule name the ranks. */
const char *op_axis_name(enum op_axis axis);
/* "forward", "d inputs" */
const char *op_pass_name(enum op_pass pass);

static inline bool op_is_forward(enum op_pass pass)
{
    return pass <= OP_AGAIN_ALONE;
}

/* Whether the steps of a pass are additional kernels alone: casts, or those of a framework. */
static inline bool op_is_aside(enum op_pass pass)
{
    return pass >= OP_CAST;
}

/* Whether kernels of a pass write what gradients of weights are reduced from. */
static inline bool op_fills_gradient(enum op_pass pass)
{
    return pass == OP_BIASES || pass == OP_GRADIENT_CASTS || pass == OP_SUMS || pass == OP_COPIES;
}

static inline bool op_gives_input(enum op_pass pass)
{
    return !op_is_forward(pass) && pass != OP_WEIGHT_GRADIENT && !op_is_aside(pass);
}

static inline bool op_gives_weight(enum op_pass pass)
{
    return pass == OP_WEIGHT_GRADIENT || pass == OP_BOTH_GRADIENTS;
}

/* Whether a pass of the op gives gradients of weights: without a pass of their own they come with
 * the inputs' gradients. */
static inline bool op_gives_weights(const struct graph_op *op, enum op_pass pass)
{
    return (!op->kind->weights_apart && !op_is_aside(pass)) || op_gives_weight(pass);
}

/* What a pass of an op asks of a chip, reads and moves, whether its kind states it or not. */
struct work op_work(const struct graph_sharded *sharded, const struct graph_op *op,
                    enum op_pass pass);
uint8_t op_reads(const struct graph *graph, const struct graph_op *op, enum op_pass pass,
                 tensor ret_reads[OP_READS_MAX]);
uint8_t op_moves(const struct graph_sharded *sharded, const struct graph_op *op, enum op_pass pass,
                 struct op_move ret_moves[OP_MOVES_MAX]);

/* Further values of a collective: one that is read; one that is written; a tensor, or its gradient,
 * that is gathered or reduced; all results, made of all inputs, or backward all gradients of
 * inputs, made of gradients of results. */
void op_move_reads(struct op_move *move, tensor of, bool gradient, bool full);
void op_move_writes(struct op_move *move, tensor of, bool gradient, bool full);
void op_move_tensor(struct op_move *move, tensor of, bool gradient);
void op_move_carries(struct op_move *move, const struct graph_op *op, enum op_pass pass);

static inline bool op_has_work(const struct work *work)
{
    return work->matmul_count + work->vector_flop + work->hbm_read_bytes + work->hbm_write_bytes !=
           0;
}

/* As a member of op_kind: a rank has what it needs, or moves it by collectives of the op's own. */
struct graph_shard op_shard_none(const struct graph *graph, const struct graph_op *op);

/* Elements by their format, which become bytes together. */
struct op_bytes {
    uint64_t elements[FORMAT_COUNT];
};

/* Tensors of an op, as it reads and writes them: inputs gathered, results before they are reduced;
 * of an input that is fused, the inputs of that. Their values, or their gradients. */
void op_bytes_in(const struct graph_sharded *sharded, const struct graph_op *op, uint8_t input,
                 bool gradient, struct op_bytes *bytes);
void op_bytes_ins(const struct graph_sharded *sharded, const struct graph_op *op, bool gradient,
                  struct op_bytes *bytes);
void op_bytes_outs(const struct graph_sharded *sharded, const struct graph_op *op, bool gradient,
                   struct op_bytes *bytes);
uint64_t op_bytes_sum(const struct op_bytes *bytes);
/* Of weights, with their scales. */
uint64_t op_bytes_stored_sum(const struct op_bytes *bytes);

/* Work of a pass that reads all inputs and writes all results; backward it reads the gradients of
 * results and writes the gradients of inputs. `read`: what it reads besides. */
struct work op_streamed(const struct graph_sharded *sharded, const struct graph_op *op,
                        enum op_pass pass, struct op_bytes read, uint64_t vector_flop);

/* How the graph's fusion makes a function between matmuls of `elements`: adds the bytes of further
 * kernels. A work of several functions has the rates of the first. Without a fusion nothing. */
void op_function(const struct graph *graph, enum work_function function, enum op_pass pass,
                 uint64_t elements, struct work *work);

/* Adds the kernels of a norm to its work; they depend on what the norm reads. */
void op_norm(const struct graph *graph, const struct graph_op *op, enum op_pass pass,
             uint64_t elements, struct work *work);

/* Vector FLOP that rotate what an op reads by position. */
uint64_t op_rotated_flop(const struct graph *graph, const struct graph_op *op);

/* Whether numbers of a format lie wider than they are wanted, and the vector unit narrows them by
 * one FLOP each. Measured kernels have it in their times, and a step of training does not count it.
 */
static inline bool op_narrows(const struct graph *graph, enum format from, enum format to)
{
    const struct graph_terms *terms = graph->terms;
    return terms->cache.is_there && !terms->policy.names_kernels &&
           format_bits(from) > format_bits(to);
}

/* The format in which an op's products read a weight: of copies, or autocast has cast weights in
 * fp32. Measured kernels multiply numbers of their own format: engines cast weights that are wider
 * as they load them, and recipes of fp8 have kernels that do. */
enum format op_weight_format(const struct graph *graph, const struct graph_op *op, tensor weight);

/* Elements of an input as it is read, and of a result before it is reduced. */
uint64_t op_in_elements(const struct graph_sharded *sharded, const struct graph_op *op,
                        uint8_t input);
uint64_t op_out_elements(const struct graph_sharded *sharded, const struct graph_op *op,
                         uint8_t result);

#endif
