#include "sim/base/lengths.h"

#include <stddef.h>

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

enum status lengths_draw(struct arena *arena, uint64_t count, uint64_t seed,
                         struct lengths *lengths, struct error *reterr)
{
    const struct lengths_distribution *of = &lengths->of;
    uint64_t state = seed;
    void *memory = NULL;
    if (of->mean == 0) return STATUS_OK;
    STATUS_TRY(arena_try(arena, count, sizeof(uint64_t), &memory, reterr));
    uint64_t *tokens = memory;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t const length = drawn(of, &state);
        tokens[i] = length < of->least ? of->least : length > of->most ? of->most : length;
    }
    lengths->tokens = tokens;
    lengths->count = (uint32_t)count;
    return STATUS_OK;
}
