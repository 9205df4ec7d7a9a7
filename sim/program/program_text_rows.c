#include "sim/program/program_text_rows.h"

#include <stddef.h>

#include "sim/base/units.h"
#include "sim/base/work.h"

#define BYTES_MOST (UINT64_C(1) << 56)
#define FLOP_MOST (UINT64_C(1) << 62)
#define ROWS_MOST (UINT64_C(1) << 40) /* Of a matrix, and columns. */
#define COUNT_MOST UINT32_MAX
#define TIME_MOST TIME_PS_PER_S
#define BEGIN_MOST (1000000 * TIME_PS_PER_S) /* Of hosts, each message counted. */

/* What a row says of a member: how wide it is and where it lies. */
#define MEMBER(type, member)                                                                       \
    .size = (uint8_t)sizeof(((struct type *)0)->member),                                           \
    .offset = (uint16_t)offsetof(struct type, member)
#define NUMBER(name, type, member, highest)                                                        \
    .key = name, .kind = ROW_UNSIGNED, MEMBER(type, member), .most = highest
#define SIGNED(name, type, member, highest)                                                        \
    .key = name, .kind = ROW_SIGNED, MEMBER(type, member), .most = highest
#define TEXT(name, type, member) .key = name, .kind = ROW_TEXT, MEMBER(type, member)
#define WORD(name, type, member, list)                                                             \
    .key = name, .kind = ROW_WORD, MEMBER(type, member), .words = list
#define WORDS(name, type, member, list)                                                            \
    .key = name, .kind = ROW_WORDS, MEMBER(type, member), .words = list, .instead = "none"
#define AXIS(name, type, member) .key = name, .kind = ROW_AXIS, MEMBER(type, member)

static const char *const no_yes[] = {"no", "yes", NULL};
static const char *const op_kinds[] = {"compute", "collective", "copy", "send", "receive", NULL};
static const char *const verbs[] = {"none",
#define X(name, text) text,
                                    STREAM_VERB_TABLE(X) NULL
#undef X
};
static const char *const ofs[] = {
#define X(name, text) text,
    STREAM_OF_TABLE(X) NULL
#undef X
};
static const char *const formats[] = {
#define X(name, text, nccl, bits) text,
    FORMAT_TABLE(X) NULL
#undef X
};
static const char *const memories[] = {
#define X(name, text) text,
    PROGRAM_MEMORY_TABLE(X) NULL
#undef X
};
static const char *const phases[] = {
#define X(name, text) text,
    PROGRAM_PHASE_TABLE(X) NULL
#undef X
};
static const char *const reasons[] = {
#define X(name, text) text,
    PROGRAM_REASON_TABLE(X) NULL
#undef X
};
/* In the order of enum collective_kind, as collective_kind_name() has them. */
static const char *const kinds[] = {
    "AllGather", "ReduceScatter", "AllReduce", "AllToAll", "Permute",
    "Broadcast", "Reduce",        "Gather",    "Scatter",  NULL};
static const char *const links[] = {"line", "ring", "switches", NULL};
static const char *const link_rates[] = {"alike", "machine", NULL};
static const char *const whens[] = {"done", "begun", NULL};
static const char *const ends[] = {"begin", "end", NULL};
static const char *const kernels[] = {
#define X(name, text) text,
    WORK_KERNEL_TABLE(X) WORK_FUNCTION_TABLE(X) NULL
#undef X
};
/* By enum work_cast. */
static const char *const casts[] = {"within", "tensor", "block", "row", "mx", NULL};
_Static_assert(sizeof casts / sizeof *casts == WORK_CAST_COUNT + 1, "each cast has a word");
/* By enum work_side. */
static const char *const sides[] = {"none", "rows", "inner", "columns", NULL};
static const char *const ways[] = {"chip", "host", NULL};

/* Where a key means something. */
static bool has_idle_cores(const void *line)
{
    return ((const struct work *)line)->idle_core_ppm != 0;
}

static bool has_prefetch(const void *line)
{
    return ((const struct work *)line)->prefetch_bytes != 0;
}

static bool has_async(const void *line)
{
    return ((const struct work *)line)->async_ps != 0;
}

static bool has_kernel(const void *line)
{
    return ((const struct work *)line)->kernel != WORK_KERNEL_NONE;
}

static bool gives_weights(const void *line)
{
    uint64_t const kernel = ((const struct work *)line)->kernel;
    return kernel == WORK_KERNEL_WEIGHT || kernel == WORK_KERNEL_GRADIENTS;
}

static bool is_cast_apart(const void *line)
{
    return ((const struct work *)line)->cast != WORK_CAST_WITHIN;
}

static bool is_chunked(const void *line)
{
    return ((const struct work *)line)->chunked != WORK_SIDE_NONE;
}

static bool is_of_experts(const void *line)
{
    return ((const struct work *)line)->of_experts != 0;
}

static bool is_batched(const void *line)
{
    return ((const struct work *)line)->batched != 0;
}

static bool is_function(const void *line)
{
    return ((const struct work *)line)->kernel >= WORK_KERNEL_FUNCTIONS;
}

static bool has_sums(const void *line)
{
    return ((const struct work *)line)->sum_bytes != 0;
}

static bool attends_latents(const void *line)
{
    return ((const struct work_attended *)line)->is_latent != 0;
}

static bool attends_decodes(const void *line)
{
    return ((const struct work_attended *)line)->decodes != 0;
}

static bool attends_others(const void *line)
{
    return ((const struct work_attended *)line)->is_other != 0;
}

static bool attends_all(const void *line)
{
    return ((const struct work_attended *)line)->full_tokens != 0;
}

static bool attends_parts(const void *line)
{
    return ((const struct work_attended *)line)->full_is_other != 0;
}

static bool has_inner(const void *line)
{
    return ((const struct program *)line)->inner_count > 1;
}

static bool sends(const void *line)
{
    return ((const struct program_stream *)line)->kind == PROGRAM_OP_SEND;
}

static bool moves(const void *line)
{
    return ((const struct program_stream *)line)->kind != PROGRAM_OP_COMPUTE;
}

static bool has_fewer_tokens(const void *line)
{
    return ((const struct plan_ragged *)line)->tokens != 0;
}

static bool has_root(const void *line)
{
    return collective_is_rooted(((const struct text_plan *)line)->request.kind);
}

static bool has_protocol(const void *line)
{
    return ((const struct text_plan *)line)->request.protocol.name != NULL;
}

static bool is_permute(const void *line)
{
    return ((const struct text_plan *)line)->request.kind == COLLECTIVE_PERMUTE;
}

static bool is_all_to_all(const void *line)
{
    return ((const struct text_plan *)line)->request.kind == COLLECTIVE_ALL_TO_ALL;
}

static bool of_permute(const void *line)
{
    return ((const struct text_dimension *)line)->kind == COLLECTIVE_PERMUTE;
}

static bool of_all_to_all(const void *line)
{
    return ((const struct text_dimension *)line)->kind == COLLECTIVE_ALL_TO_ALL;
}

static const struct text_row step_rows[] = {
    {NUMBER("tokens", program, tokens, INT64_MAX)},
};

static const struct text_row roles_rows[] = {
    {AXIS("along", program, role_axis), .needed = true},
    {NUMBER("stride", program, role_stride, UINT16_MAX), .needed = true},
    {NUMBER("inner_count", program, inner_count, PROGRAM_ROLES_MAX)},
    {AXIS("inner_along", program, inner_axis), .means = has_inner},
    {NUMBER("inner_stride", program, inner_stride, UINT16_MAX), .means = has_inner},
};

static const struct text_row stream_rows[] = {
    {WORD("kind", program_stream, kind, op_kinds), .needed = true},
    {WORD("verb", program_stream, use.verb, verbs), .means = moves},
    {WORDS("of", program_stream, use.of, ofs), .means = moves},
    {NUMBER("inbox", program_stream, inbox, PROGRAM_STREAMS_MAX - 1), .means = sends},
    {NUMBER("urgency", program_stream, urgency, UINT8_MAX)},
};

static const struct text_row work_rows[] = {
    {WORD("math", work, math_format, formats)},
    {NUMBER("masked_rows", work, masked_rows, ROWS_MOST)},
    {NUMBER("vector_flop", work, vector_flop, FLOP_MOST)},
    {NUMBER("hbm_read_bytes", work, hbm_read_bytes, BYTES_MOST)},
    {NUMBER("hbm_write_bytes", work, hbm_write_bytes, BYTES_MOST)},
    {NUMBER("vmem_read_bytes", work, vmem_read_bytes, BYTES_MOST)},
    {NUMBER("idle_core_ppm", work, idle_core_ppm, PPM_ONE - 1), .means = has_idle_cores},
    {NUMBER("useful_flop", work, useful_flop, FLOP_MOST)},
    {NUMBER("prefetch_bytes", work, prefetch_bytes, BYTES_MOST), .means = has_prefetch},
    {WORD("kernel", work, kernel, kernels), .means = has_kernel},
    {WORD("result", work, result, formats), .means = gives_weights},
    {NUMBER("kernel_count", work, kernel_count, UINT16_MAX), .means = is_function},
    {NUMBER("sum_bytes", work, sum_bytes, BYTES_MOST), .means = has_sums},
    {WORD("cast", work, cast, casts), .means = is_cast_apart},
    {NUMBER("chunk_count", work, chunk_count, PROGRAM_PARTS_MAX), .means = is_chunked},
    {WORD("chunked", work, chunked, sides), .means = is_chunked},
    {WORD("of_experts", work, of_experts, no_yes), .means = is_of_experts},
    {WORD("batched", work, batched, no_yes), .means = is_batched},
    {NUMBER("async_ps", work, async_ps, TIME_PS_PER_S), .means = has_async},
};

static const struct text_row matmul_rows[] = {
    {NUMBER("rows", work_matmul, rows, ROWS_MOST), .needed = true},
    {NUMBER("inner", work_matmul, inner, ROWS_MOST), .needed = true},
    {NUMBER("columns", work_matmul, columns, ROWS_MOST), .needed = true},
    {NUMBER("count", work_matmul, count, ROWS_MOST), .needed = true},
};

static const struct text_row attended_rows[] = {
    {NUMBER("tokens", work_attended, tokens, ROWS_MOST), .needed = true},
    {NUMBER("heads", work_attended, heads, ROWS_MOST), .needed = true, .least = 1},
    {NUMBER("group", work_attended, group, ROWS_MOST), .needed = true},
    {NUMBER("key_width", work_attended, key_width, ROWS_MOST), .needed = true},
    {NUMBER("value_width", work_attended, value_width, ROWS_MOST), .needed = true},
    {WORD("stored", work_attended, stored, formats), .needed = true},
    {WORD("latent", work_attended, is_latent, no_yes), .means = attends_latents},
    {WORD("decodes", work_attended, decodes, no_yes), .means = attends_decodes},
    {WORD("other", work_attended, is_other, no_yes), .means = attends_others},
    {NUMBER("full_tokens", work_attended, full_tokens, ROWS_MOST), .means = attends_all},
    {NUMBER("full_heads", work_attended, full_heads, ROWS_MOST), .means = attends_all},
    {WORD("full_other", work_attended, full_is_other, no_yes), .means = attends_parts},
};

static const struct text_row plan_rows[] = {
    {WORD("kind", text_plan, request.kind, kinds), .needed = true},
    {NUMBER("size_bytes", text_plan, request.size_bytes, BYTES_MOST), .needed = true},
    {TEXT("algorithm", text_plan, algorithm)},
    {TEXT("runs", text_plan, runs)},
    {NUMBER("element_bits", text_plan, request.element_bits, 64)},
    {NUMBER("chunks", text_plan, request.chunk_count, COUNT_MOST)},
    {NUMBER("pieces", text_plan, request.piece_count, UINT16_MAX)},
    {NUMBER("portions", text_plan, request.portion_count, UINT16_MAX)},
    {NUMBER("root", text_plan, request.root, COUNT_MOST), .means = has_root},
    {SIGNED("shift", text_plan, request.shift, INT32_MAX), .means = is_permute},
    {WORD("mirrors", text_plan, request.mirrors, no_yes), .means = is_permute},
    {WORD("spreads", text_plan, request.spreads, no_yes), .means = is_all_to_all},
    {WORD("links", text_plan, from_machine, link_rates)},
    {TEXT("protocol", text_plan, request.protocol.name), .means = has_protocol},
    {NUMBER("begin_ps", text_plan, request.protocol.begin_ps, BEGIN_MOST), .means = has_protocol},
    {NUMBER("grid_ps", text_plan, request.protocol.message_ps[0], TIME_MOST),
     .means = has_protocol},
    {NUMBER("near_ps", text_plan, request.protocol.message_ps[1], TIME_MOST),
     .means = has_protocol},
    {NUMBER("far_ps", text_plan, request.protocol.message_ps[2], TIME_MOST), .means = has_protocol},
    {NUMBER("wire_ppm", text_plan, request.protocol.wire_ppm, UINT32_MAX), .means = has_protocol},
    {NUMBER("far_wire_ppm", text_plan, request.protocol.far_ppm, UINT32_MAX),
     .means = has_protocol},
    {NUMBER("cores", text_plan, request.protocol.cores, COUNT_MOST), .means = has_protocol},
};
_Static_assert(LEVELS_MAX == 2, "messages by the grid, a near and a far level have a key each");

static const struct text_row dimension_rows[] = {
    {AXIS("axis", text_dimension, axis), .needed = true},
    {NUMBER("size", text_dimension, size, COUNT_MOST), .needed = true},
    {NUMBER("stride", text_dimension, stride, UINT16_MAX), .needed = true},
    {WORD("links", text_dimension, links, links), .needed = true},
    {SIGNED("offset", text_dimension, offset, INT32_MAX), .means = of_permute},
    {NUMBER("exchange_bytes", text_dimension, exchange_bytes, BYTES_MOST), .means = of_all_to_all},
};

static const struct text_row ragged_rows[] = {
    {NUMBER("experts", plan_ragged, expert_count, COUNT_MOST), .needed = true},
    {NUMBER("top_k", plan_ragged, top_k, COUNT_MOST), .needed = true},
    {NUMBER("token_bytes", plan_ragged, token_bytes, BYTES_MOST), .needed = true},
    {NUMBER("tokens", plan_ragged, tokens, COUNT_MOST), .means = has_fewer_tokens},
    {NUMBER("seed", plan_ragged, seed, INT64_MAX)},
    {NUMBER("skew_ppm", plan_ragged, skew_ppm, 1000000)},
    {WORD("returns", plan_ragged, returns, no_yes)},
};

static const struct text_row host_copy_rows[] = {
    {WORD("to", program_copy, to_host, ways), .needed = true},
    {NUMBER("size_bytes", program_copy, size_bytes, BYTES_MOST), .needed = true},
};

#define OP_NAMES                                                                                   \
    {                                                                                              \
        TEXT("class", program_op, class_name)                                                      \
    }
#define OP_STREAM                                                                                  \
    {                                                                                              \
        NUMBER("stream", program_op, stream, PROGRAM_STREAMS_MAX - 1), .needed = true              \
    }
#define OP_PARTS                                                                                   \
    {                                                                                              \
        NUMBER("parts", program_op, parts, PROGRAM_PARTS_MAX)                                      \
    }
#define OP_INDEX(what)                                                                             \
    {                                                                                              \
        NUMBER(what, program_op, index, UINT16_MAX), .needed = true                                \
    }

static const struct text_row compute_rows[] = {OP_STREAM, OP_PARTS, OP_INDEX("work"), OP_NAMES};
static const struct text_row collective_rows[] = {
    OP_STREAM,
    OP_PARTS,
    OP_INDEX("plan"),
    {NUMBER("operand", program_op, operand_op, PROGRAM_NONE - 1), .instead = "none",
     .instead_value = PROGRAM_NONE},
    OP_NAMES,
};
static const struct text_row copy_rows[] = {OP_STREAM, OP_INDEX("host_copy"), OP_NAMES};
static const struct text_row send_rows[] = {OP_STREAM, OP_INDEX("plan"), OP_NAMES};
static const struct text_row receive_rows[] = {OP_STREAM, OP_NAMES};

static const struct text_row need_rows[] = {
    {NUMBER("stream", program_need, stream, PROGRAM_STREAMS_MAX - 1), .needed = true},
    {SIGNED("slot", program_need, slot, INT16_MAX), .instead = "since",
     .instead_value = PROGRAM_SLOT_SINCE},
    {NUMBER("part", program_need, part, COUNT_MOST)},
    {NUMBER("per_part", program_need, per_part, COUNT_MOST)},
    {WORD("when", program_need, begun, whens)},
    {WORD("reason", program_need, reason, reasons)},
    {TEXT("array", program_need, array)},
};

static const struct text_row memory_rows[] = {
    {WORD("of", program_effect, memory, memories), .needed = true},
    {WORD("at", program_effect, at_end, ends)},
    {SIGNED("bytes", program_effect, bytes, BYTES_MOST), .needed = true},
};

static const struct text_row resident_rows[] = {
    {WORD("of", text_resident, memory, memories), .needed = true},
    {NUMBER("bytes", text_resident, bytes, BYTES_MOST), .needed = true},
};

static const struct text_row block_rows[] = {
    {NUMBER("template", program_block, template_index, UINT16_MAX), .needed = true},
    {TEXT("name", program_block, name), .needed = true},
    {WORD("phase", program_block, phase, phases)},
    {NUMBER("repeat", program_block, repeat, PROGRAM_SLOTS_MAX), .needed = true},
    {SIGNED("layer_first", program_block, layer_first, INT32_MAX)},
    {SIGNED("layer_step", program_block, layer_step, 1)},
    {NUMBER("microbatch", program_block, microbatch, COUNT_MOST)},
    {NUMBER("pass", program_block, pass, PROGRAM_BLOCKS_MAX)},
    {NUMBER("arrivals", program_block, arrivals, COUNT_MOST)},
    {NUMBER("since_slot", program_block, since_slot, COUNT_MOST)},
};

static const struct text_row page_rows[] = {
    {NUMBER("last", text_page, last, COUNT_MOST), .needed = true},
    {NUMBER("of", text_page, of, COUNT_MOST), .needed = true, .least = 1},
};

#define ROWS(list) .rows = list, .row_count = sizeof list / sizeof *list
#define NAMED(type) .named = true, .name_offset = (uint16_t)offsetof(struct type, name)
#define OP(text, list)                                                                             \
    {                                                                                              \
        .word = text, .parent = LINE_TEMPLATE, .most = PROGRAM_TEMPLATES_MAX * PROGRAM_OPS_MAX,    \
        .numbered = true, NAMED(program_op), ROWS(list)                                            \
    }

const struct text_line text_lines[LINE_COUNT] = {
    [LINE_STEP] = {.word = "step", .parent = LINE_COUNT, .most = 1, ROWS(step_rows)},
    [LINE_ROLES] = {.word = "roles", .parent = LINE_COUNT, .most = 1, ROWS(roles_rows)},
    [LINE_STREAM] = {.word = "stream",
                     .parent = LINE_COUNT,
                     .most = PROGRAM_STREAMS_MAX,
                     .numbered = true,
                     NAMED(program_stream),
                     ROWS(stream_rows)},
    [LINE_WORK] = {.word = "work",
                   .parent = LINE_COUNT,
                   .most = PROGRAM_WORKS_MAX,
                   .numbered = true,
                   ROWS(work_rows)},
    [LINE_MATMUL] = {.word = "matmul", .parent = LINE_WORK, ROWS(matmul_rows)},
    [LINE_ATTENDED] = {.word = "attended", .parent = LINE_WORK, ROWS(attended_rows)},
    [LINE_PLAN] = {.word = "plan",
                   .parent = LINE_COUNT,
                   .most = PROGRAM_PLANS_MAX,
                   .numbered = true,
                   ROWS(plan_rows)},
    [LINE_DIMENSION] = {.word = "dimension", .parent = LINE_PLAN, ROWS(dimension_rows)},
    [LINE_RAGGED] = {.word = "ragged", .parent = LINE_PLAN, ROWS(ragged_rows)},
    [LINE_HOST_COPY] = {.word = "host_copy",
                        .parent = LINE_COUNT,
                        .most = PROGRAM_COPIES_MAX,
                        .numbered = true,
                        ROWS(host_copy_rows)},
    [LINE_TEMPLATE] = {.word = "template",
                       .parent = LINE_COUNT,
                       .most = PROGRAM_TEMPLATES_MAX,
                       .numbered = true,
                       NAMED(program_template)},
    [LINE_COMPUTE] = OP("compute", compute_rows),
    [LINE_COLLECTIVE] = OP("collective", collective_rows),
    [LINE_COPY] = OP("copy", copy_rows),
    [LINE_SEND] = OP("send", send_rows),
    [LINE_RECEIVE] = OP("receive", receive_rows),
    [LINE_NEED] = {.word = "need", .parent = LINE_COMPUTE, ROWS(need_rows)},
    [LINE_MEMORY] = {.word = "memory", .parent = LINE_COMPUTE, ROWS(memory_rows)},
    [LINE_ROLE] = {.word = "role",
                   .parent = LINE_COUNT,
                   .most = PROGRAM_ROLES_MAX,
                   .numbered = true},
    [LINE_RESIDENT] = {.word = "resident", .parent = LINE_ROLE, ROWS(resident_rows)},
    [LINE_BLOCK] = {.word = "block",
                    .parent = LINE_ROLE,
                    .most = PROGRAM_BLOCKS_MAX,
                    ROWS(block_rows)},
    [LINE_END] = {.word = "end", .parent = LINE_COUNT, .most = 1},
};

/* Between programs, and in none. */
const struct text_line text_page_line = {.word = "page", .parent = LINE_COUNT, ROWS(page_rows)};
