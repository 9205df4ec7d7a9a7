/* Whether the rows of `podsim pipeline` can be drawn: asked before they are simulated. */
#include "sim/base/arena.h"
#include "tools/podsim/pipeline/comparison.h"
#include "tools/podsim/pipeline/lanes_svg.h"

static struct schedule_request request_of(const struct comparison_row *row)
{
    /* Of any times: where they do not order the passes, they do not choose them. */
    return (struct schedule_request){.rank_count = row->rank_count,
                                     .microbatch_count = row->microbatch_count,
                                     .chunk_count = row->chunk_count,
                                     .times = {.forward = 1, .input = 1, .weight = 1}};
}

static uint64_t count_lists(const struct schedule *schedule)
{
    uint64_t passes = 0;
    for (uint32_t r = 0; r < schedule->rank_count; r++) passes += schedule->rank[r].count;
    return passes;
}

/* Each stage has a forward pass of each microbatch and at least one that goes back. */
static uint64_t passes_at_least(const struct comparison_row *row)
{
    struct schedule_request const request = request_of(row);
    struct error unused;
    if (row->form == NULL) return count_lists(row->given);
    if (schedule_request_check(row->form, &request, "--svg", &unused) != STATUS_OK) return 0;
    return (uint64_t)2 * row->rank_count * row->chunk_count * row->microbatch_count;
}

/* Of a form that heeds times only the least is known, which is two thirds or more. */
static enum status passes_count(const struct comparison_row *row, uint64_t *ret_passes,
                                struct error *reterr)
{
    struct schedule_request const request = request_of(row);
    struct schedule schedule;
    struct error unused;
    *ret_passes = passes_at_least(row);
    if (row->form == NULL || row->form->heeds_times || *ret_passes == 0) return STATUS_OK;
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_no_memory(reterr, "--svg");
    /* One that cannot be built is not drawn; playing it says why. */
    bool const is_built =
        schedule_build(arena, row->form, &request, "--svg", &schedule, &unused) == STATUS_OK;
    *ret_passes = is_built ? count_lists(&schedule) : 0;
    arena_destroy(arena);
    return STATUS_OK;
}

static enum status refuse(uint64_t passes, const char *before, struct error *reterr)
{
    return error_set(reterr, STATUS_LIMIT, "--svg",
                     "%s%llu passes are too many for a picture (%d); name fewer schedules or "
                     "microbatches",
                     before, (unsigned long long)passes, LANES_SVG_PASSES_MAX);
}

enum status comparison_check_picture(const struct comparison *comparison, struct error *reterr)
{
    uint64_t least = 0, exact = 0;
    if (!options_has(comparison->options, "--svg")) return STATUS_OK;
    /* First what costs nothing: lists of any length are not made to be counted. */
    for (uint32_t i = 0; i < comparison->row_count; i++)
        least += passes_at_least(&comparison->row[i]);
    if (least > LANES_SVG_PASSES_MAX) return refuse(least, "at least ", reterr);
    for (uint32_t i = 0; i < comparison->row_count; i++) {
        uint64_t passes = 0;
        STATUS_TRY(passes_count(&comparison->row[i], &passes, reterr));
        exact += passes;
    }
    return exact > LANES_SVG_PASSES_MAX ? refuse(exact, "", reterr) : STATUS_OK;
}
