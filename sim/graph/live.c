#include "sim/graph/live.h"

struct finder {
    const struct graph_sharded *sharded;
    const struct graph_kept *kept;
    const struct graph_steps *steps, *later;
    struct graph_live *live;
};

/* Full: gathered by its readers, or as its maker leaves it to be reduced. */
static uint64_t bytes_of(const struct graph_sharded *sharded, struct graph_value value)
{
    const struct graph *graph = sharded->graph;
    const struct graph_tensor *of = &graph->tensor[value.of];
    const struct graph_op *maker = graph_maker(graph, value.of);
    const struct sharding *at = value.gradient ? &of->gradient_at : &of->at;
    uint32_t const scatter = maker == NULL ? 0 : graph_scattered(sharded, maker, value.of);
    uint32_t const axes = value.full ? scatter | sharded->gathered[value.of] : 0;
    uint64_t elements = graph_elements(graph, at, axes);
    if (value.full && sharded->whole[value.of] != 0) elements *= sharded->whole[value.of];
    return format_bytes(value.gradient ? of->gradient : of->format, elements);
}

/* What the forward pass keeps of a tensor. */
static bool is_kept(const struct finder *finder, struct graph_value value)
{
    enum graph_part const part = finder->kept->kept[value.of];
    return !value.gradient && part == (value.full ? GRAPH_GATHERED : GRAPH_OWN);
}

/* A result that is a gradient takes the place of what it is the gradient of. */
static struct graph_value in_place(const struct finder *finder, struct graph_value value)
{
    const struct graph *graph = finder->sharded->graph;
    for (uint8_t i = 0; !value.gradient && i < graph->op_count; i++)
        if (graph->op[i].kind->gives_gradient && graph->op[i].in[0] == value.of)
            value.of = graph->op[i].out[0];
    return value;
}

/* A chip's own part of what was kept in full lies in that. A sum's inputs have one gradient. */
static struct graph_value lies_in(const struct finder *finder, struct graph_value value)
{
    const struct graph *graph = finder->sharded->graph;
    value = in_place(finder, value);
    for (uint8_t i = 0; value.gradient && !value.full && i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        for (uint8_t in = 0; op->fused && op->kind->passes_on && in < op->in_count; in++)
            if (op->in[in] == value.of) value.of = op->in[0];
    }
    value.full = value.full || (!value.gradient && finder->steps->request.backward &&
                                finder->kept->kept[value.of] == GRAPH_GATHERED);
    return value;
}

static bool is_read_later(const struct finder *finder, struct graph_value value)
{
    const struct graph_steps *later = finder->later;
    for (uint32_t s = 0; later != NULL && s < later->count; s++)
        for (uint8_t i = 0; i < later->step[s].read_count; i++)
            if (graph_value_same(lies_in(finder, later->step[s].read[i]), value)) return true;
    return false;
}

/* Of a backward pass in halves, the second reads gradients that come from above, too: the first
 * takes them for it. Of an op without inputs there is no first. */
static bool is_handed_on(const struct finder *finder, struct graph_value value)
{
    const struct graph_op *maker = graph_maker(finder->sharded->graph, value.of);
    bool const second = finder->steps->request.half == GRAPH_WEIGHT_HALF;
    bool const has_first = maker == NULL || maker->in_count > 0;
    return value.gradient && (second ? has_first : is_read_later(finder, value));
}

/* What another layer takes, or a bucket of weights. */
static bool is_others(const struct finder *finder, struct graph_value value)
{
    const struct graph *graph = finder->sharded->graph;
    const struct graph_tensor *of = &graph->tensor[value.of];
    bool const stream = value.of == graph->stream || value.of == graph->added;
    bool const outer = !value.full && (of->made_by == GRAPH_NONE || (value.gradient && stream));
    bool const stays = of->role == GRAPH_CACHE && !value.full;
    return of->role == GRAPH_WEIGHT || stays ||
           (outer && !is_kept(finder, value) && !is_handed_on(finder, value));
}

/* The index of its last life, or the count of lives: it has none. */
static uint32_t life_index(const struct graph_live *live, struct graph_value value)
{
    for (uint32_t i = live->count; i-- > 0;)
        if (graph_value_same(live->life[i].value, value)) return i;
    return live->count;
}

const struct graph_life *graph_life_of(const struct graph_live *live, struct graph_value value)
{
    uint32_t const i = life_index(live, value);
    return i == live->count ? NULL : &live->life[i];
}

static struct graph_life *life_begin(const struct finder *finder, struct graph_value value,
                                     uint32_t step)
{
    struct graph_live *live = finder->live;
    SIM_ASSERT(live->count < GRAPH_LIVES_MAX);
    struct graph_life *life = &live->life[live->count++];
    *life = (struct graph_life){
        .value = value, .bytes = bytes_of(finder->sharded, value), .first = step, .last = step};
    return life;
}

/* The life of a value, which begins with the step if it has none. */
static struct graph_life *life_at(const struct finder *finder, struct graph_value value,
                                  uint32_t step)
{
    uint32_t const i = life_index(finder->live, value);
    return i < finder->live->count ? &finder->live->life[i] : life_begin(finder, value, step);
}

/* A repeated op writes a result that was kept, together with a result that was not. */
static void rewrite(struct graph_life *life)
{
    life->first = 0;
    life->before = true;
}

static void step_live(const struct finder *finder, uint32_t at)
{
    const struct graph_step *step = &finder->steps->step[at];
    for (uint8_t i = 0; i < step->read_count; i++) {
        struct graph_value const value = lies_in(finder, step->read[i]);
        bool const found = graph_life_of(finder->live, value) != NULL;
        if (is_others(finder, value)) continue;
        bool const taken = value.gradient && finder->steps->request.half == GRAPH_INPUT_HALF;
        struct graph_life *life = life_at(finder, value, taken ? at : 0);
        if (!found) life->before = finder->steps->request.backward && !taken;
        life->last = at;
    }
    for (uint8_t i = 0; i < step->written_count; i++) {
        struct graph_value value = in_place(finder, step->written[i]);
        if (value.gradient) value = lies_in(finder, value);
        if (is_others(finder, value)) continue;
        /* What is moved for an op alone comes again for its gradient, and was gone in between. */
        bool const anew = !step->is_compute && step->move.before;
        bool const found = graph_life_of(finder->live, value) != NULL;
        struct graph_life *life = (anew ? life_begin : life_at)(finder, value, at);
        life->last = at;
        if (!found && finder->steps->request.backward && is_kept(finder, value)) rewrite(life);
    }
}

/* The last step that touches what the same op made. */
static uint32_t siblings_last(const struct finder *finder, tensor of)
{
    const struct graph *graph = finder->sharded->graph;
    uint32_t last = 0;
    for (uint32_t i = 0; i < finder->live->count; i++) {
        const struct graph_life *life = &finder->live->life[i];
        bool const same = graph->tensor[life->value.of].made_by == graph->tensor[of].made_by;
        if (same && !life->value.gradient && life->last > last) last = life->last;
    }
    return last;
}

/* What was kept and no step of this pass reads: a later half does, or it lies in one array with
 * what is read. */
static void unread_add(const struct finder *finder)
{
    const struct graph *graph = finder->sharded->graph;
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        bool const full = finder->kept->kept[t] == GRAPH_GATHERED;
        struct graph_value const value = {t, false, full};
        if (!is_kept(finder, value) || graph_life_of(finder->live, value) != NULL) continue;
        uint32_t const last = siblings_last(finder, t);
        struct graph_life *life = life_at(finder, value, 0);
        life->before = true;
        life->last = last;
    }
}

void graph_live(const struct graph_sharded *sharded, const struct graph_kept *kept,
                const struct graph_steps *steps, const struct graph_steps *later,
                struct graph_live *ret_live)
{
    struct finder const finder = {sharded, kept, steps, later, ret_live};
    bool const backward = steps->request.backward;
    ret_live->count = 0;
    for (uint32_t i = 0; i < steps->count; i++) step_live(&finder, i);
    if (backward && steps->request.half != GRAPH_WEIGHT_HALF) unread_add(&finder);
    for (uint32_t i = 0; i < ret_live->count; i++) {
        struct graph_life *life = &ret_live->life[i];
        life->after =
            backward ? is_read_later(&finder, life->value) : is_kept(&finder, life->value);
        if (life->after) life->last = steps->count - 1;
    }
}

uint64_t graph_live_bytes(const struct graph_live *live, uint32_t step)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < live->count; i++)
        if (live->life[i].first <= step && step <= live->life[i].last) bytes += live->life[i].bytes;
    return bytes;
}
