#include "sim/base/lengths.h"

#include <stddef.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/random.h"

const char *const lengths_shape_names[] = {"uniform", "lognormal", "exponential", NULL};

static uint64_t drawn(const struct lengths_distribution *of, uint64_t *state)
{
    uint64_t const spread = units_scale_ppm(of->mean, of->spread_ppm);
    switch ((enum lengths_shape)of->shape) {
    case LENGTHS_LOGNORMAL:
        return random_lognormal(state, of->mean, of->sigma_ppm);
    case LENGTHS_EXPONENTIAL:
        return random_exponential(state, of->mean);
    case LENGTHS_UNIFORM:
        break;
    }
    return of->mean - spread + random_below(state, 2 * spread + 1);
}

static uint64_t length_drawn(const struct lengths_distribution *of, uint64_t *state)
{
    uint64_t const length = drawn(of, state);
    return length < of->least ? of->least : length > of->most ? of->most : length;
}

/* Room for `count` lengths; where some are kept, for as many again. */
static enum status room_make(struct lengths_drawn *kept, uint64_t count, struct error *reterr)
{
    uint64_t const room = kept->count > 0 ? 2 * count : count;
    void *memory = NULL;
    if (count <= kept->room) return STATUS_OK;
    STATUS_TRY(arena_try(kept->arena, room, sizeof(uint64_t), &memory, reterr));
    if (kept->count > 0) memcpy(memory, kept->tokens, kept->count * sizeof(uint64_t));
    kept->tokens = memory;
    kept->room = room;
    return STATUS_OK;
}

enum status lengths_draw(struct arena *arena, uint64_t count, uint64_t seed,
                         struct lengths *lengths, struct error *reterr)
{
    struct lengths_drawn own = {.arena = arena, .state = seed};
    struct lengths_drawn *kept = lengths->drawn == NULL ? &own : lengths->drawn;
    if (lengths->of.mean == 0) return STATUS_OK;
    if (kept->count == 0) kept->state = seed;
    STATUS_TRY(room_make(kept, count, reterr));
    for (; kept->count < count; kept->count++)
        kept->tokens[kept->count] = length_drawn(&lengths->of, &kept->state);
    lengths->tokens = kept->tokens;
    lengths->count = (uint32_t)count;
    return STATUS_OK;
}
