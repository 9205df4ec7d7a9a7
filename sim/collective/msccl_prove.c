/*
 * The proof of a script: its steps are run on sets of contributions, and with clocks.
 *
 * A chunk of a buffer holds a part of the array and the GPUs whose contributions are in it. What is
 * added must be parts of the same place, from other GPUs. In the end every GPU must hold what the
 * collective promises.
 *
 * That one order of steps works is not enough. A clock says for each step which steps of every
 * threadblock are surely done when it is: those before it in its threadblock, the one that it waits
 * for, what sent the message that it receives, and what was done before those. Two steps of a GPU
 * that use the same chunk, one of them writing, must be ordered by it; else it depends on luck.
 */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/collective/msccl_steps.h"

static const uint64_t clocks_max = UINT64_C(1) << 27;
static const uint64_t values_max = UINT64_C(1) << 24;

struct value {
    uint64_t who;  /* Bits; none: nothing has been written. */
    uint32_t part; /* Of the array. */
};

/* Who has used a chunk: the step that wrote it last, and a list of those that have read it since.
 */
struct chunk {
    struct value value;
    uint32_t writer;
    uint32_t reader; /* In proof.use; 0: the end. */
};

struct use {
    uint32_t step;
    uint32_t next;
};

struct proof_of_script {
    const struct msccl_script *script;
    const char *path;
    struct error *reterr;
    struct chunk *chunk;
    uint64_t first[MSCCL_RANKS_MAX]; /* Chunks of a GPU. */
    struct use *use;
    uint32_t use_count;
    struct value *sent;   /* What messages carry, */
    uint32_t *sent_first; /* [send]: from where on. */
    uint16_t *clocks;     /* [step][threadblock] */
    uint32_t *done;       /* [threadblock]: steps run. */
};

static uint64_t all_of(const struct msccl_script *script)
{
    return script->rank_count == 64 ? UINT64_MAX : (UINT64_C(1) << script->rank_count) - 1;
}

/* Where chunk `index` of a buffer lies. In place, input and output share their memory: of an
 * AllGather the input is the rank's part of the output, of a ReduceScatter the other way round. */
static struct chunk *chunk_at(const struct proof_of_script *proof, uint32_t gpu, uint32_t buffer,
                              uint32_t index)
{
    const struct msccl_script *script = proof->script;
    uint32_t const inputs = msccl_input_chunks(script), outputs = msccl_output_chunks(script);
    uint32_t const shared = script->in_place ? script->chunk_count : inputs + outputs;
    uint32_t const part = script->chunk_count / script->rank_count * gpu;
    uint32_t at = index;
    if (buffer == MSCCL_SCRATCH) at += shared;
    if (buffer == MSCCL_OUTPUT && !script->in_place) at += inputs;
    if (buffer == MSCCL_OUTPUT && script->in_place && outputs < inputs) at += part;
    if (buffer == MSCCL_INPUT && script->in_place && inputs < outputs) at += part;
    return &proof->chunk[proof->first[gpu] + at];
}

/* What a GPU's input chunk is. */
static struct value input_value(const struct msccl_script *script, uint32_t gpu, uint32_t index)
{
    uint32_t part = index;
    if (script->kind == COLLECTIVE_ALL_GATHER) part += gpu * msccl_input_chunks(script);
    if (script->kind == COLLECTIVE_ALL_TO_ALL) part += gpu * script->chunk_count;
    return (struct value){UINT64_C(1) << gpu, part};
}

/* What its output chunk must be. */
static struct value output_value(const struct msccl_script *script, uint32_t gpu, uint32_t index)
{
    uint32_t const each = script->chunk_count / script->rank_count;
    switch ((uint32_t)script->kind) {
    case COLLECTIVE_ALL_GATHER:
        return (struct value){UINT64_C(1) << index / each, index};
    case COLLECTIVE_REDUCE_SCATTER:
        return (struct value){all_of(script), gpu * each + index};
    case COLLECTIVE_ALL_TO_ALL:
        return (struct value){UINT64_C(1) << index / each,
                              index / each * script->chunk_count + gpu * each + index % each};
    default:
        return (struct value){all_of(script), index};
    }
}

static enum status memory_take(struct arena *arena, struct proof_of_script *proof)
{
    const struct msccl_script *script = proof->script;
    uint64_t chunks = 0, carried = 0, read = 1;
    void *memory = NULL;
    for (uint32_t g = 0; g < script->rank_count; g++) {
        proof->first[g] = chunks;
        chunks += msccl_input_chunks(script) + msccl_output_chunks(script);
        chunks += script->gpu[g].chunks[MSCCL_SCRATCH];
    }
    for (uint32_t s = 0; s < script->step_count; s++) {
        const struct msccl_step *step = &script->step[s];
        if (msccl_type_sends(step->type)) carried += step->count;
        if (msccl_type_reads(step->type)) read += 2 * (uint64_t)step->count;
    }
    uint64_t const clocks = (uint64_t)script->step_count * script->block_count;
    if (clocks > clocks_max || chunks > values_max || carried > values_max || read > values_max)
        return error_set(
            proof->reterr, STATUS_LIMIT, proof->path,
            "%u steps of %u threadblocks that move %llu chunks are more than the proof "
            "keeps",
            script->step_count, script->block_count, (unsigned long long)carried);
    STATUS_TRY(arena_try(arena, chunks, sizeof *proof->chunk, &memory, proof->reterr));
    proof->chunk = memory;
    STATUS_TRY(arena_try(arena, read, sizeof *proof->use, &memory, proof->reterr));
    proof->use = memory;
    STATUS_TRY(arena_try(arena, carried + 1, sizeof *proof->sent, &memory, proof->reterr));
    proof->sent = memory;
    STATUS_TRY(arena_try(arena, (uint64_t)script->message_count + 1, sizeof(uint32_t), &memory,
                         proof->reterr));
    proof->sent_first = memory;
    STATUS_TRY(arena_try(arena, clocks + 1, sizeof *proof->clocks, &memory, proof->reterr));
    proof->clocks = memory;
    STATUS_TRY(arena_try(arena, (uint64_t)script->block_count + 1, sizeof(uint32_t), &memory,
                         proof->reterr));
    proof->done = memory;
    proof->use_count = 1;
    for (uint64_t i = 0; i < chunks; i++) proof->chunk[i].writer = msccl_none;
    uint32_t at = 0;
    for (uint32_t m = 0; m < script->message_count; m++) {
        proof->sent_first[m] = at;
        at += script->step[script->send[m]].count;
    }
    for (uint32_t g = 0; g < script->rank_count; g++)
        for (uint32_t i = 0; i < msccl_input_chunks(script); i++)
            chunk_at(proof, g, MSCCL_INPUT, i)->value = input_value(script, g, i);
    return STATUS_OK;
}

/* The message that a step receives, as an index into script.send. */
static uint32_t message_of(const struct msccl_script *script, const struct msccl_step *step)
{
    const struct msccl_block *block = &script->block[step->block];
    return script->block[block->sender].send_first + step->receives - 1;
}

static bool is_done(const struct proof_of_script *proof, uint32_t index)
{
    const struct msccl_step *step = &proof->script->step[index];
    return index - proof->script->block[step->block].step_first < proof->done[step->block];
}

static bool may_go(const struct proof_of_script *proof, const struct msccl_step *step)
{
    const struct msccl_script *script = proof->script;
    if (step->after != msccl_none && !is_done(proof, step->after)) return false;
    return !msccl_type_receives(step->type) ||
           is_done(proof, script->send[message_of(script, step)]);
}

static void clock_take(const struct proof_of_script *proof, uint16_t *clock, uint32_t step)
{
    const uint16_t *other = &proof->clocks[(uint64_t)step * proof->script->block_count];
    for (uint32_t b = 0; b < proof->script->block_count; b++)
        if (other[b] > clock[b]) clock[b] = other[b];
}

static void clock_set(const struct proof_of_script *proof, uint32_t index)
{
    const struct msccl_script *script = proof->script;
    const struct msccl_step *step = &script->step[index];
    uint32_t const first = script->block[step->block].step_first;
    uint16_t *clock = &proof->clocks[(uint64_t)index * script->block_count];
    if (index > first) clock_take(proof, clock, index - 1);
    if (step->after != msccl_none) clock_take(proof, clock, step->after);
    if (msccl_type_receives(step->type))
        clock_take(proof, clock, script->send[message_of(script, step)]);
    clock[step->block] = (uint16_t)(index - first + 1);
}

/* Whether `earlier` is surely done when `index` is at it. */
static bool is_before(const struct proof_of_script *proof, uint32_t earlier, uint32_t index)
{
    const struct msccl_script *script = proof->script;
    uint32_t const block = script->step[earlier].block;
    return proof->clocks[(uint64_t)index * script->block_count + block] >
           earlier - script->block[block].step_first;
}

static enum status race(const struct proof_of_script *proof, uint32_t index, uint32_t other,
                        const char *does, const char *did, uint32_t buffer, uint32_t chunk)
{
    const struct msccl_script *script = proof->script;
    const struct msccl_block *block = &script->block[script->step[other].block];
    return msccl_refuse(proof->path, script->step[index].place, STATUS_INVALID, proof->reterr,
                        "%s chunk %u of buffer %s, which step %u of threadblock %u (line %u) %s, "
                        "and nothing says which of them comes first",
                        does, chunk, msccl_buffer_names[buffer], other - block->step_first,
                        block->id, script->step[other].place.line, did);
}

static enum status chunk_read(struct proof_of_script *proof, uint32_t index, uint32_t buffer,
                              uint32_t at, struct value *ret_value)
{
    const struct msccl_step *step = &proof->script->step[index];
    uint32_t const gpu = proof->script->block[step->block].gpu;
    struct chunk *chunk = chunk_at(proof, gpu, buffer, at);
    if (chunk->writer != msccl_none && !is_before(proof, chunk->writer, index))
        return race(proof, index, chunk->writer, "reads", "writes", buffer, at);
    if (chunk->value.who == 0)
        return msccl_refuse(proof->path, step->place, STATUS_INVALID, proof->reterr,
                            "reads chunk %u of buffer %s of GPU %u, to which nothing has been "
                            "written",
                            at, msccl_buffer_names[buffer], gpu);
    proof->use[proof->use_count] = (struct use){index, chunk->reader};
    chunk->reader = proof->use_count++;
    *ret_value = chunk->value;
    return STATUS_OK;
}

static enum status chunk_write(struct proof_of_script *proof, uint32_t index, uint32_t at,
                               struct value value)
{
    const struct msccl_step *step = &proof->script->step[index];
    struct chunk *chunk = chunk_at(proof, proof->script->block[step->block].gpu, step->to, at);
    if (chunk->writer != msccl_none && !is_before(proof, chunk->writer, index))
        return race(proof, index, chunk->writer, "writes", "writes too", step->to, at);
    for (uint32_t u = chunk->reader; u != 0; u = proof->use[u].next)
        if (!is_before(proof, proof->use[u].step, index))
            return race(proof, index, proof->use[u].step, "writes", "reads", step->to, at);
    chunk->value = value;
    chunk->writer = index;
    chunk->reader = 0;
    return STATUS_OK;
}

static enum status value_add(const struct proof_of_script *proof, const struct msccl_step *step,
                             struct value own, struct value *value)
{
    const struct msccl_script *script = proof->script;
    uint64_t const twice = own.who & value->who;
    if (script->kind != COLLECTIVE_ALL_REDUCE && script->kind != COLLECTIVE_REDUCE_SCATTER)
        return msccl_refuse(proof->path, step->place, STATUS_INVALID, proof->reterr,
                            "an %s adds nothing, and this step does",
                            collective_kind_name(script->kind));
    if (own.part != value->part)
        return msccl_refuse(proof->path, step->place, STATUS_INVALID, proof->reterr,
                            "adds chunk %u of the array to chunk %u of it", value->part, own.part);
    if (twice != 0)
        return msccl_refuse(proof->path, step->place, STATUS_INVALID, proof->reterr,
                            "adds what GPU %d has in chunk %u of the array a second time",
                            __builtin_ctzll(twice), own.part);
    value->who |= own.who;
    return STATUS_OK;
}

static enum status step_play(struct proof_of_script *proof, uint32_t index)
{
    const struct msccl_script *script = proof->script;
    const struct msccl_step *step = &script->step[index];
    uint32_t const type = step->type;
    bool const receives = msccl_type_receives(type);
    uint32_t const to = script->block[step->block].send_first + step->sends - 1;
    clock_set(proof, index);
    for (uint32_t i = 0; i < step->count && type != MSCCL_NOP; i++) {
        struct value value = {0, 0}, own = {0, 0};
        if (receives) value = proof->sent[proof->sent_first[message_of(script, step)] + i];
        if (msccl_type_reads(type))
            STATUS_TRY(chunk_read(proof, index, step->from, step->source + i, &own));
        if (receives && msccl_type_reads(type))
            STATUS_TRY(value_add(proof, step, own, &value));
        else if (!receives)
            value = own;
        if (type == MSCCL_REDUCE) {
            STATUS_TRY(chunk_read(proof, index, step->to, step->destination + i, &own));
            STATUS_TRY(value_add(proof, step, own, &value));
        }
        if (msccl_type_writes(type))
            STATUS_TRY(chunk_write(proof, index, step->destination + i, value));
        if (msccl_type_sends(type)) proof->sent[proof->sent_first[to] + i] = value;
    }
    return STATUS_OK;
}

/* The first step that never goes, and what for. */
static enum status stuck(const struct proof_of_script *proof)
{
    const struct msccl_script *script = proof->script;
    for (uint32_t b = 0; b < script->block_count; b++) {
        const struct msccl_block *block = &script->block[b];
        if (proof->done[b] == block->step_count) continue;
        const struct msccl_step *step = &script->step[block->step_first + proof->done[b]];
        uint32_t other = step->after;
        if (other == msccl_none || is_done(proof, other))
            other = script->send[message_of(script, step)];
        const struct msccl_block *its = &script->block[script->step[other].block];
        return msccl_refuse(proof->path, step->place, STATUS_INVALID, proof->reterr,
                            "never runs: it waits for step %u of threadblock %u of GPU %u (line "
                            "%u), which in the end waits for it or for others that wait for one "
                            "another",
                            other - its->step_first, its->id, its->gpu,
                            script->step[other].place.line);
    }
    return STATUS_OK;
}

/* Whether every GPU holds what is promised. */
static enum status end_check(const struct proof_of_script *proof)
{
    const struct msccl_script *script = proof->script;
    bool const sums =
        script->kind == COLLECTIVE_ALL_REDUCE || script->kind == COLLECTIVE_REDUCE_SCATTER;
    for (uint32_t g = 0; g < script->rank_count; g++)
        for (uint32_t i = 0; i < msccl_output_chunks(script); i++) {
            const struct chunk *chunk = chunk_at(proof, g, MSCCL_OUTPUT, i);
            struct value const wanted = output_value(script, g, i);
            struct value const got = chunk->value;
            struct msccl_position place = script->gpu[g].place;
            if (got.who == wanted.who && got.part == wanted.part) continue;
            if (chunk->writer != msccl_none) place = script->step[chunk->writer].place;
            const char *const kind = collective_kind_name(script->kind);
            if (got.who == 0)
                return msccl_refuse(proof->path, place, STATUS_INVALID, proof->reterr,
                                    "%s: in the end GPU %u has nothing in chunk %u of its output",
                                    kind, g, i);
            if (sums && got.part == wanted.part)
                return msccl_refuse(proof->path, place, STATUS_INVALID, proof->reterr,
                                    "%s: in the end chunk %u of GPU %u's output lacks what GPU %d "
                                    "has in it",
                                    kind, i, g, __builtin_ctzll(wanted.who & ~got.who));
            return msccl_refuse(proof->path, place, STATUS_INVALID, proof->reterr,
                                "%s: in the end chunk %u of GPU %u's output is chunk %u of the "
                                "array%s, and not chunk %u of it",
                                kind, i, g, got.part,
                                script->kind == COLLECTIVE_ALL_TO_ALL ? " of all inputs" : "",
                                wanted.part);
        }
    return STATUS_OK;
}

enum status msccl_prove(struct arena *scratch, const char *path, const struct msccl_script *script,
                        uint16_t **ret_clocks, struct error *reterr)
{
    struct proof_of_script proof = {.script = script, .path = path, .reterr = reterr};
    STATUS_TRY(memory_take(scratch, &proof));
    for (bool moves = true; moves;) {
        moves = false;
        for (uint32_t b = 0; b < script->block_count; b++) {
            const struct msccl_block *block = &script->block[b];
            while (proof.done[b] < block->step_count &&
                   may_go(&proof, &script->step[block->step_first + proof.done[b]])) {
                STATUS_TRY(step_play(&proof, block->step_first + proof.done[b]));
                proof.done[b]++;
                moves = true;
            }
        }
    }
    STATUS_TRY(stuck(&proof));
    STATUS_TRY(end_check(&proof));
    if (ret_clocks != NULL) *ret_clocks = proof.clocks;
    return STATUS_OK;
}

enum status msccl_check(const struct msccl_script *script, const char *path, struct error *reterr)
{
    struct arena *scratch = arena_create(0);
    if (scratch == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, path, "no memory for the proof");
    enum status const status = msccl_prove(scratch, path, script, NULL, reterr);
    arena_destroy(scratch);
    return status;
}
