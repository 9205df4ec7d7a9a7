#include "tests/support/primitive_check.h"

#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/collective/plan.h"
#include "sim/collective/proof.h"
#include "sim/machine/machine.h"

enum status primitive_check(const struct primitive *primitive, uint32_t size, struct error *reterr)
{
    const char *const where = primitive->name;
    if (size < 2 || size > PROOF_RANKS_MAX || primitive->lane_count < 1 ||
        primitive->lane_count > PRIMITIVE_LANES_MAX)
        return error_set(reterr, STATUS_LIMIT, where, "size %u is not between 2 and %u, or no lane",
                         size, PROOF_RANKS_MAX);
    uint32_t counts[PRIMITIVE_LANES_MAX][2][PROOF_RANKS_MAX];
    struct plan plan = {
        .kind = primitive->kind,
        .group =
            {{{.size = size, .stride = 1, .ring = primitive->ring, .switched = primitive->routed}},
             1},
        .item = {{.primitive = primitive,
                  .size = size,
                  .after = PLAN_NO_ITEM,
                  .turn = PLAN_NO_ITEM,
                  .last = true,
                  .piece_count = 1}},
        .item_count = 1,
        .lane_count = primitive->lane_count,
        .permute.peer = 1,
        .order_count = 1,
    };
    for (uint32_t l = 0; l < primitive->lane_count; l++) {
        for (uint32_t at = 0; at < size; at++) {
            counts[l][0][at] = primitive->send_count(size, l, at);
            counts[l][1][at] = primitive->arrival_count(size, l, at);
        }
        plan.lane[l] = (struct plan_lane){
            .lane = (uint8_t)l,
            .leg_count = primitive->routed ? 0 : 1,
            .leg = {{(uint8_t)machine_port(0, l == 1), 1}},
            .send_count = counts[l][0],
            .arrival_count = counts[l][1],
        };
    }
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, where, "no memory for the proof");
    enum status const status = proof_play(arena, &plan, where, reterr);
    arena_destroy(arena);
    return status;
}
