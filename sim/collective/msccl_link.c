/* Joins what belongs together in a script: senders and receivers, steps and what they wait for,
 * connections and lanes, messages and what must have come before. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/collective/msccl_steps.h"

/* Lists the steps that send and those that receive. */
static enum status messages_list(struct arena *arena, struct msccl_script *script,
                                 struct error *reterr)
{
    void *memory = NULL;
    uint32_t sends = 0, receives = 0;
    STATUS_TRY(
        arena_try(arena, (uint64_t)script->step_count + 1, sizeof(uint32_t), &memory, reterr));
    script->send = memory;
    STATUS_TRY(
        arena_try(arena, (uint64_t)script->step_count + 1, sizeof(uint32_t), &memory, reterr));
    script->receive = memory;
    for (uint32_t b = 0; b < script->block_count; b++) {
        struct msccl_block *block = &script->block[b];
        block->send_first = sends;
        block->receive_first = receives;
        for (uint32_t s = block->step_first; s < block->step_first + block->step_count; s++) {
            struct msccl_step *step = &script->step[s];
            if (msccl_type_sends(step->type)) script->send[sends++] = s;
            if (msccl_type_receives(step->type)) script->receive[receives++] = s;
            step->sends = block->send_count = sends - block->send_first;
            step->receives = block->receive_count = receives - block->receive_first;
        }
    }
    script->message_count = sends;
    return STATUS_OK;
}

/* The other end of a connection: the threadblock of `peer` that has this GPU as its own peer. */
static uint32_t other_end(const struct msccl_script *script, const struct msccl_block *block,
                          bool receives)
{
    const struct msccl_gpu *peer = &script->gpu[receives ? block->to : block->from];
    for (uint32_t b = peer->block_first; b < peer->block_first + peer->block_count; b++) {
        const struct msccl_block *other = &script->block[b];
        if (other->channel == block->channel &&
            (receives ? other->from == block->gpu && other->receive_count > 0
                      : other->to == block->gpu && other->send_count > 0))
            return b;
    }
    return msccl_none;
}

/* Two threadblocks of a GPU that would take the same connection. */
static enum status tied_check(const char *path, const struct msccl_script *script, uint32_t index,
                              struct error *reterr)
{
    const struct msccl_block *block = &script->block[index];
    for (uint32_t b = script->gpu[block->gpu].block_first; b < index; b++) {
        const struct msccl_block *other = &script->block[b];
        bool const sends = block->send_count > 0 && other->send_count > 0 && other->to == block->to;
        bool const receives =
            block->receive_count > 0 && other->receive_count > 0 && other->from == block->from;
        if (other->channel != block->channel || (!sends && !receives)) continue;
        return msccl_refuse(path, block->place, STATUS_INVALID, reterr,
                            "threadblocks %u and %u of GPU %u both %s GPU %u over channel %u",
                            other->id, block->id, block->gpu, sends ? "send to" : "receive from",
                            sends ? block->to : block->from, block->channel);
    }
    return STATUS_OK;
}

/* Whether each message has its receiver, of the same number of chunks. */
static enum status connection_check(const char *path, const struct msccl_script *script,
                                    const struct msccl_block *sender, struct error *reterr)
{
    const struct msccl_block *receiver = &script->block[sender->receiver];
    for (uint32_t i = 0; i < sender->send_count || i < receiver->receive_count; i++) {
        const struct msccl_step *send = &script->step[script->send[sender->send_first + i]];
        const struct msccl_step *receive =
            &script->step[script->receive[receiver->receive_first + i]];
        if (i >= receiver->receive_count)
            return msccl_refuse(path, send->place, STATUS_INVALID, reterr,
                                "message %u from GPU %u to GPU %u over channel %u has no step that "
                                "receives it: threadblock %u there has %u",
                                i, sender->gpu, receiver->gpu, sender->channel, receiver->id,
                                receiver->receive_count);
        if (i >= sender->send_count)
            return msccl_refuse(path, receive->place, STATUS_INVALID, reterr,
                                "receives message %u from GPU %u over channel %u, and "
                                "threadblock %u there sends %u",
                                i, sender->gpu, sender->channel, sender->id, sender->send_count);
        if (send->count != receive->count)
            return msccl_refuse(path, receive->place, STATUS_INVALID, reterr,
                                "receives %u chunks where GPU %u sends %u (line %u)",
                                receive->count, sender->gpu, send->count, send->place.line);
    }
    return STATUS_OK;
}

static enum status connect(const char *path, struct msccl_script *script, struct error *reterr)
{
    for (uint32_t b = 0; b < script->block_count; b++) {
        struct msccl_block *block = &script->block[b];
        STATUS_TRY(tied_check(path, script, b, reterr));
        if (block->send_count > 0) block->receiver = other_end(script, block, true);
        if (block->receive_count > 0) block->sender = other_end(script, block, false);
        if (block->send_count > 0 && block->receiver == msccl_none)
            return msccl_refuse(path, script->step[script->send[block->send_first]].place,
                                STATUS_INVALID, reterr,
                                "GPU %u sends to GPU %u over channel %u, and no threadblock there "
                                "receives from it over that channel",
                                block->gpu, block->to, block->channel);
        if (block->receive_count > 0 && block->sender == msccl_none)
            return msccl_refuse(path, script->step[script->receive[block->receive_first]].place,
                                STATUS_INVALID, reterr,
                                "GPU %u receives from GPU %u over channel %u, and no threadblock "
                                "there sends to it over that channel",
                                block->gpu, block->from, block->channel);
    }
    for (uint32_t b = 0; b < script->block_count; b++)
        if (script->block[b].send_count > 0)
            STATUS_TRY(connection_check(path, script, &script->block[b], reterr));
    return STATUS_OK;
}

static enum status dependencies_find(const char *path, struct msccl_script *script,
                                     struct error *reterr)
{
    for (uint32_t s = 0; s < script->step_count; s++) {
        struct msccl_step *step = &script->step[s];
        const struct msccl_gpu *gpu = &script->gpu[script->block[step->block].gpu];
        if (step->after_block < 0) continue;
        if ((uint32_t)step->after_block >= gpu->block_count)
            return msccl_refuse(path, step->place, STATUS_INVALID, reterr,
                                "depid=\"%d\", but the GPU has %u threadblocks", step->after_block,
                                gpu->block_count);
        const struct msccl_block *block =
            &script->block[gpu->block_first + (uint32_t)step->after_block];
        if (step->after_step < 0 || (uint32_t)step->after_step >= block->step_count)
            return msccl_refuse(path, step->place, STATUS_INVALID, reterr,
                                "deps=\"%d\", but threadblock %d has %u steps", step->after_step,
                                step->after_block, block->step_count);
        step->after = block->step_first + (uint32_t)step->after_step;
        if (!script->step[step->after].tells)
            return msccl_refuse(path, step->place, STATUS_INVALID, reterr,
                                "waits for step %d of threadblock %d, whose hasdep is 0",
                                step->after_step, step->after_block);
    }
    return STATUS_OK;
}

/* What a message waits for: of each threadblock of its GPU the steps that are done before it. What
 * the one before it in its threadblock has waited for already is left out. */
static uint32_t waits_of(const struct msccl_script *script, const uint16_t *clocks, uint32_t index,
                         const struct msccl_step *before, struct msccl_wait *ret_wait)
{
    const struct msccl_step *step = &script->step[index];
    const struct msccl_gpu *gpu = &script->gpu[script->block[step->block].gpu];
    const uint16_t *clock = &clocks[(uint64_t)index * script->block_count];
    const uint16_t *earlier =
        before == NULL ? NULL : &clocks[(uint64_t)(before - script->step) * script->block_count];
    uint32_t count = 0;
    for (uint32_t b = gpu->block_first; b < gpu->block_first + gpu->block_count; b++) {
        const struct msccl_block *block = &script->block[b];
        uint32_t const known = earlier == NULL ? 0 : earlier[b];
        if (clock[b] == known) continue;
        const struct msccl_step *now = &script->step[block->step_first + clock[b] - 1u];
        const struct msccl_step *then =
            known == 0 ? NULL : &script->step[block->step_first + known - 1u];
        if (now->receives > (then == NULL ? 0 : then->receives))
            ret_wait[count++] =
                (struct msccl_wait){(uint8_t)block->receive_lane, false, (uint16_t)now->receives};
        if (b != step->block && now->sends > (then == NULL ? 0 : then->sends))
            ret_wait[count++] =
                (struct msccl_wait){(uint8_t)block->send_lane, true, (uint16_t)now->sends};
    }
    return count;
}

static enum status waits_build(struct arena *arena, struct msccl_script *script,
                               const uint16_t *clocks, struct error *reterr)
{
    struct msccl_wait some[2 * MSCCL_BLOCKS_MAX];
    for (uint32_t writes = 0; writes < 2; writes++) {
        uint32_t total = 0;
        for (uint32_t m = 0; m < script->message_count; m++) {
            struct msccl_step *step = &script->step[script->send[m]];
            const struct msccl_step *before = m > script->block[step->block].send_first
                                                  ? &script->step[script->send[m - 1]]
                                                  : NULL;
            uint32_t const count = waits_of(script, clocks, script->send[m], before, some);
            if (writes == 1) memcpy(&script->wait[total], some, count * sizeof *some);
            step->wait_first = total;
            step->wait_count = count;
            total += count;
        }
        if (writes == 1) break;
        void *memory = NULL;
        STATUS_TRY(arena_try(arena, (uint64_t)total + 1, sizeof *script->wait, &memory, reterr));
        script->wait = memory;
    }
    return STATUS_OK;
}

enum status msccl_link(struct arena *arena, const char *path, struct msccl_script *script,
                       struct error *reterr)
{
    for (uint32_t g = 0; g < script->rank_count; g++)
        if (script->gpu[g].block_count > MSCCL_BLOCKS_MAX)
            return msccl_refuse(path, script->gpu[g].place, STATUS_LIMIT, reterr,
                                "GPU %u has %u threadblocks, more than %d", g,
                                script->gpu[g].block_count, MSCCL_BLOCKS_MAX);
    STATUS_TRY(messages_list(arena, script, reterr));
    STATUS_TRY(connect(path, script, reterr));
    STATUS_TRY(dependencies_find(path, script, reterr));
    STATUS_TRY(msccl_lanes(arena, path, script, reterr));
    struct arena *scratch = arena_create(0);
    if (scratch == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, path, "no memory for the proof");
    uint16_t *clocks = NULL;
    enum status status = msccl_prove(scratch, path, script, &clocks, reterr);
    if (status == STATUS_OK) status = waits_build(arena, script, clocks, reterr);
    arena_destroy(scratch);
    return status;
}
