#include "sim/kernels/kernel_of_work.h"

#include <stddef.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/kernels/kernel_lookups.h"

static bool attends(const struct work *work)
{
    return work->kernel == WORK_KERNEL_ATTENTION || work->kernel == WORK_KERNEL_ATTENTION_BACKWARD;
}

static bool is_of_experts(const struct work *work)
{
    return work->kernel == WORK_KERNEL_EXPERTS_IN || work->kernel == WORK_KERNEL_EXPERTS_OUT;
}

/* Sides in the order m, n, k: a weight's gradient contracts the rows. */
static void sides_set(enum kernel_layout layout, const struct work_matmul *of,
                      uint64_t side[KERNEL_SIDES_MAX])
{
    bool const is_input = layout == KERNEL_NN, is_weight = layout == KERNEL_NT;
    side[KERNEL_M] = is_weight ? of->columns : of->rows;
    side[KERNEL_N] = is_input || is_weight ? of->inner : of->columns;
    side[KERNEL_K] = is_weight ? of->rows : is_input ? of->columns : of->inner;
}

static struct work_matmul chunk_of(const struct work *work, const struct work_matmul *of)
{
    struct work_matmul chunk = *of;
    uint64_t *side = work->chunked == WORK_SIDE_ROWS      ? &chunk.rows
                     : work->chunked == WORK_SIDE_INNER   ? &chunk.inner
                     : work->chunked == WORK_SIDE_COLUMNS ? &chunk.columns
                                                          : NULL;
    if (side != NULL) *side = units_ceil_divide(*side, work->chunk_count);
    return chunk;
}

/* Whether a table of products in batches has their matrices. The number of products and of rows
 * may lie outside, where time grows with tiles. */
static bool has_batch(const struct kernel_stack *stack, enum format format,
                      const struct work_call *call)
{
    const struct kernel_table *table =
        stack == NULL ? NULL : kernel_other_of(stack, KERNEL_BATCHED, format, format);
    if (table == NULL || call->layout != table->layout) return false;
    bool has = true;
    for (uint32_t s = KERNEL_EACH + KERNEL_N; s <= KERNEL_EACH + KERNEL_K; s++)
        has = has && table->edge[s][0] <= call->whole[s] &&
              call->whole[s] <= table->edge[s][table->edge_count[s] - 1];
    return has;
}

/* The longer side of the result is that of all products: as many tiles, and the more of bytes. */
static void batch_joined(uint64_t count, uint64_t side[KERNEL_SIDES_MAX])
{
    uint32_t const longer = side[KERNEL_M] < side[KERNEL_N] ? KERNEL_N : KERNEL_M;
    side[longer] = units_times(side[longer], count);
}

/* Products of a batch without a table are looked up as one product. */
static void batch_set(const struct kernel_stack *stack, const struct work *work,
                      struct work_call *call)
{
    call->whole[KERNEL_BATCH] = call->count;
    memcpy(call->whole + KERNEL_EACH, call->side, 3 * sizeof *call->side);
    call->is_batched = true;
    if (stack == NULL || has_batch(stack, work->math_format, call)) {
        call->family = KERNEL_BATCHED;
        memcpy(call->side, call->whole, sizeof call->side);
    } else {
        batch_joined(call->count, call->side);
    }
    call->count = 1;
}

static struct work_call product_call(const struct kernel_stack *stack, const struct work *work,
                                     uint32_t index)
{
    const struct work_matmul *of = &work->matmul[index];
    bool const is_chunked = work->chunked != WORK_SIDE_NONE && work->chunk_count > 1;
    struct work_matmul const kernel = is_chunked ? chunk_of(work, of) : *of;
    bool const is_first_half = index < work->matmul_count / 2;
    bool const gradients = work->kernel == WORK_KERNEL_GRADIENTS;
    struct work_call call = {.family = KERNEL_MATMUL,
                             .layout = KERNEL_TN,
                             .result = FORMAT_BF16,
                             .cast = (enum work_cast)work->cast,
                             .count = of->count,
                             .is_of_experts = work->of_experts != 0,
                             .chunk_count = is_chunked ? work->chunk_count : 1};
    if (work->kernel == WORK_KERNEL_INPUT || (gradients && is_first_half)) {
        call.layout = KERNEL_NN;
    } else if (work->kernel == WORK_KERNEL_WEIGHT || gradients) {
        call.layout = KERNEL_NT;
        call.result = (enum format)work->result;
    }
    sides_set(call.layout, &kernel, call.side);
    sides_set(call.layout, of, call.whole);
    if (work->batched != 0) batch_set(stack, work, &call);
    return call;
}

/* A part of a layer's experts. The table has the share of both parts together. */
static struct work_call experts_call(const struct work *work, const struct work_matmul *of)
{
    bool const is_in = work->kernel == WORK_KERNEL_EXPERTS_IN;
    struct work_call call = {
        .family = KERNEL_EXPERTS,
        .stored = work->math_format,
        .side = {of->rows, of->count, is_in ? of->columns / 2 : of->inner,
                 is_in ? of->inner : of->columns},
        .count = 1,
        .chunk_count = 1,
    };
    memcpy(call.whole, call.side, sizeof call.whole);
    return call;
}

/* Whether a stack has a table of a family whose kernels are as wide. */
static bool has_width(const struct kernel_stack *stack, enum kernel_family family,
                      enum format format, uint64_t width)
{
    const struct kernel_table *table =
        stack == NULL ? NULL : kernel_other_of(stack, family, format, format);
    if (table == NULL) return false;
    const uint32_t *edge = table->edge[KERNEL_WIDTH];
    return edge[0] <= width && width <= edge[table->edge_count[KERNEL_WIDTH] - 1];
}

static struct work_call attention_call(const struct kernel_stack *stack, const struct work *work,
                                       const struct work_attended *of)
{
    uint64_t const width = (of->key_width + of->value_width) / 2;
    struct work_call call = {
        .family = work->kernel == WORK_KERNEL_ATTENTION_BACKWARD ? KERNEL_ATTENTION_BACKWARD
                  : of->decodes != 0 && of->is_latent != 0       ? KERNEL_LATENT_DECODE
                  : of->decodes != 0                             ? KERNEL_DECODE
                                                                 : KERNEL_ATTENTION,
        .stored = (enum format)of->stored,
        .side = {of->tokens, of->heads, of->group, width},
        .count = 1,
        .chunk_count = 1,
        .is_of_other_mask = of->is_other != 0,
    };
    bool const is_whole = call.family == KERNEL_ATTENTION;
    if (is_whole && of->key_width != of->value_width &&
        has_width(stack, KERNEL_LATENT_ATTENTION, work->math_format, width)) {
        call.family = KERNEL_LATENT_ATTENTION;
        call.side[KERNEL_HEADS] = units_times(call.side[KERNEL_HEADS], of->group);
        call.side[KERNEL_GROUP] = 1;
    } else if (is_whole && of->full_tokens != 0 &&
               has_width(stack, KERNEL_FULL_ATTENTION, work->math_format, width)) {
        call.family = KERNEL_FULL_ATTENTION;
        call.side[KERNEL_TOKENS] = of->full_tokens;
        call.side[KERNEL_HEADS] = of->full_heads;
        call.side[KERNEL_GROUP] = 1;
        call.is_of_other_mask = of->full_is_other != 0;
    }
    memcpy(call.whole, call.side, sizeof call.whole);
    return call;
}

uint32_t work_calls(const struct kernel_stack *stack, const struct work *work,
                    struct work_call ret_calls[WORK_MATMULS_MAX])
{
    uint32_t count = 0;
    if (!attends(work)) {
        for (; count < work->matmul_count; count++)
            ret_calls[count] = is_of_experts(work) ? experts_call(work, &work->matmul[count])
                                                   : product_call(stack, work, count);
        return count;
    }
    for (uint32_t i = 0; i < WORK_ATTENDED_MAX; i++)
        if (work->attended[i].heads != 0)
            ret_calls[count++] = attention_call(stack, work, &work->attended[i]);
    return count;
}

/* Only decodes have tables by the format of the cache: whole sequences come with keys and values of
 * their own. */
const struct kernel_table *kernel_table_of_call(const struct kernel_stack *stack,
                                                enum format format, const struct work_call *call)
{
    const struct kernel_table *grouped =
        call->family == KERNEL_MATMUL && call->is_of_experts
            ? kernel_grouped_of(stack, format, call->layout, call->result, call->cast)
            : NULL;
    if (grouped != NULL) return grouped;
    if (call->family == KERNEL_MATMUL)
        return kernel_table_of(stack, format, call->layout, call->result, call->cast);
    bool const reads_cache = kernel_reads_cache(call->family);
    return kernel_other_of(stack, call->family, format, reads_cache ? call->stored : format);
}

/* One product in place of a batch is as much faster as the batch of the nearest sides that were
 * measured is than one product in place of it. */
static uint32_t of_batch_ppm(const struct kernel_stack *stack, enum format format,
                             const struct work_call *call, uint32_t core_count, uint32_t ppm)
{
    const struct kernel_table *batch = kernel_other_of(stack, KERNEL_BATCHED, format, format),
                              *single = kernel_table_of(stack, format, KERNEL_TN, FORMAT_BF16,
                                                        call->cast);
    if (batch == NULL || single == NULL) return ppm;
    uint64_t nearest[KERNEL_SIDES_MAX];
    for (uint32_t s = 0; s < kernel_side_count(KERNEL_BATCHED); s++) {
        uint64_t const least = batch->edge[s][0], most = batch->edge[s][batch->edge_count[s] - 1];
        nearest[s] = call->whole[s] < least ? least : call->whole[s] > most ? most : call->whole[s];
    }
    uint64_t side[KERNEL_SIDES_MAX];
    memcpy(side, nearest + KERNEL_EACH, 3 * sizeof *side);
    batch_joined(nearest[KERNEL_BATCH], side);
    uint32_t const joined_ppm = kernel_table_share(single, side, core_count).ppm;
    units_wide const found = (units_wide)ppm * kernel_table_inside_ppm(batch, nearest) / joined_ppm;
    return found == 0 ? 1 : found > PPM_ONE ? PPM_ONE : (uint32_t)found;
}

static struct kernel_share share_of(const struct kernel_stack *stack, const struct work *work,
                                    const struct kernel_table *table, const struct work_call *call,
                                    uint32_t core_count)
{
    struct kernel_share share = kernel_table_share(table, call->side, core_count);
    if (call->is_batched && call->family != KERNEL_BATCHED)
        share.ppm = of_batch_ppm(stack, work->math_format, call, core_count, share.ppm);
    return share;
}

static bool has_a_side_of_nothing(const struct work_call *call)
{
    bool has = false;
    for (uint32_t s = 0; s < kernel_side_count(call->family); s++) has = has || call->side[s] == 0;
    return has;
}

static bool has_calls(const struct kernel_stack *stack, const struct work *work)
{
    return stack != NULL && work->kernel != WORK_KERNEL_NONE &&
           work->kernel < WORK_KERNEL_FUNCTIONS;
}

/* What a call demands, of sides that are its kernels' or those of a whole. */
static struct kernel_demand call_demand(const struct kernel_table *table,
                                        const struct work_call *call, const uint64_t *side)
{
    return call->is_batched ? kernel_batched_demand(table, call->whole)
                            : kernel_demand(table, side);
}

/* The time of all kernels of a call. */
static units_wide kernels_ps(const struct kernel_lookup *lookup, uint32_t index)
{
    const struct work_call *call = &lookup->call[index];
    if (lookup->share[index].ppm == 0) return 0;
    struct kernel_demand const of = call_demand(lookup->table[index], call, call->side);
    return (units_wide)(uint64_t)(of.math_ps > of.move_ps ? of.math_ps : of.move_ps) * call->count *
           call->chunk_count * PPM_ONE / lookup->share[index].ppm;
}

void kernel_lookup_tables(const struct kernel_stack *stack, const struct work *work,
                          struct kernel_lookup *ret_lookup)
{
    bool has = false;
    *ret_lookup = (struct kernel_lookup){.kernels = {.share_ppm = PPM_ONE}};
    ret_lookup->call_count = work_calls(stack, work, ret_lookup->call);
    for (uint32_t i = 0; i < ret_lookup->call_count; i++) {
        const struct work_call *call = &ret_lookup->call[i];
        ret_lookup->table[i] = kernel_table_of_call(stack, work->math_format, call);
        if (ret_lookup->table[i] == NULL) return;
        has = has || !has_a_side_of_nothing(call);
    }
    ret_lookup->has_tables = has;
}

/* All calls together. */
static void kernels_sum(struct kernel_lookup *lookup)
{
    struct work_kernels *kernels = &lookup->kernels;
    units_wide math_ps = 0, move_ps = 0, all_ps = 0;
    for (uint32_t i = 0; i < lookup->call_count; i++) {
        const struct work_call *call = &lookup->call[i];
        const struct kernel_table *table = lookup->table[i];
        if (lookup->share[i].ppm == 0) continue;
        struct kernel_demand const of = call_demand(table, call, call->whole);
        math_ps += (units_wide)(uint64_t)of.math_ps * call->count;
        move_ps += (units_wide)(uint64_t)of.move_ps * call->count;
        all_ps += kernels_ps(lookup, i);
        kernels->table = kernels->table == NULL ? table : kernels->table;
        kernels->is_outside = kernels->is_outside || lookup->share[i].is_outside;
        kernels->is_of_other_layout = kernels->is_of_other_layout || table->layout != call->layout;
        kernels->is_derived = kernels->is_derived || table->derived != NULL;
        kernels->is_of_single =
            kernels->is_of_single || (call->is_batched && call->family != KERNEL_BATCHED);
        kernels->is_of_other_mask = kernels->is_of_other_mask || call->is_of_other_mask;
        kernels->is_of_other_scales = kernels->is_of_other_scales || table->cast != call->cast;
    }
    units_wide const roofline_ps = math_ps > move_ps ? math_ps : move_ps;
    if (all_ps != 0) kernels->share_ppm = (uint32_t)(roofline_ps * PPM_ONE / all_ps);
    if (kernels->share_ppm == 0) kernels->share_ppm = 1;
}

void kernel_lookup_shares(const struct kernel_stack *stack, uint32_t core_count,
                          const struct work *work, struct kernel_lookup *lookup)
{
    for (uint32_t i = 0; i < lookup->call_count && lookup->has_tables; i++)
        if (!has_a_side_of_nothing(&lookup->call[i]))
            lookup->share[i] =
                share_of(stack, work, lookup->table[i], &lookup->call[i], core_count);
    if (lookup->has_tables) kernels_sum(lookup);
}

bool kernel_waves_ppm(const struct kernel_stack *stack, uint32_t core_count,
                      const struct work *work, uint32_t held_most, uint32_t *ret_ppm)
{
    struct kernel_lookup lookup;
    units_wide all_ps = 0, own_ps[WORK_MATMULS_MAX] = {0};
    uint64_t steps[WORK_MATMULS_MAX] = {0};
    if (!has_calls(stack, work)) return false;
    kernel_lookups_find(stack, core_count, work, true, &lookup);
    if (!lookup.has_tables) return false;
    for (uint32_t i = 0; i < lookup.call_count; i++) {
        own_ps[i] = kernels_ps(&lookup, i);
        if (own_ps[i] != 0)
            steps[i] = kernel_tile_steps(lookup.call[i].family, lookup.call[i].side, core_count);
        all_ps += own_ps[i];
    }
    if (all_ps == 0) return false;
    for (uint32_t held = 0; held <= held_most; held++) {
        units_wide slower_ps = 0;
        for (uint32_t i = 0; i < lookup.call_count; i++)
            if (own_ps[i] != 0)
                slower_ps += own_ps[i] *
                             kernel_tile_steps(lookup.call[i].family, lookup.call[i].side,
                                               core_count - held) /
                             steps[i];
        ret_ppm[held] = (uint32_t)(all_ps * PPM_ONE / slower_ps);
    }
    return true;
}

struct work_kernels kernel_of_work(const struct kernel_stack *stack, uint32_t core_count,
                                   const struct work *work)
{
    struct kernel_lookup lookup;
    if (!has_calls(stack, work)) return (struct work_kernels){.share_ppm = PPM_ONE};
    kernel_lookups_find(stack, core_count, work, true, &lookup);
    return lookup.kernels;
}

bool kernel_is_between(const struct kernel_stack *stack, const struct work *work)
{
    return stack != NULL && stack->between.fusion != NULL && work->kernel >= WORK_KERNEL_FUNCTIONS;
}

uint32_t kernel_between_ppm(const struct kernel_stack *stack, const struct work *work)
{
    SIM_ASSERT(kernel_is_between(stack, work));
    const uint32_t *shares = stack->between.share_ppm;
    uint32_t const own_ppm = shares[work->kernel - WORK_KERNEL_FUNCTIONS];
    units_wide const all = (units_wide)work->hbm_read_bytes + work->hbm_write_bytes;
    units_wide const sums = work->sum_bytes < all ? work->sum_bytes : all;
    if (sums == 0) return own_ppm;
    units_wide const times =
        (all - sums) * PPM_ONE / own_ppm + sums * PPM_ONE / shares[WORK_FUNCTION_SUM];
    return (uint32_t)(all * PPM_ONE / times);
}

bool kernel_is_within(const struct kernel_stack *stack, const struct work *work)
{
    return stack != NULL &&
           (work->kernel == WORK_KERNEL_WITHIN || work->kernel == WORK_KERNEL_WITHIN_ATTENTION);
}

/* Whether kernel_of_work() finds a table. */
static bool has_tables(const struct kernel_stack *stack, const struct work *work)
{
    struct kernel_lookup lookup;
    if (!has_calls(stack, work)) return false;
    kernel_lookups_find(stack, 0, work, false, &lookup);
    return lookup.has_tables;
}

bool kernel_is_measured(const struct kernel_stack *stack, const struct work *work)
{
    return kernel_is_within(stack, work) || kernel_is_between(stack, work) ||
           has_tables(stack, work);
}
