#include "tools/podsim/common/slice.h"

#include <math.h>

#include "sim/base/arena.h"
#include "sim/report/inference_whole.h"
#include "tools/podsim/common/room.h"
#include "tools/podsim/common/worker.h"

enum {
    SLICES_MAX = 64,             /* For a reading. */
    TRIES_MAX = 64,              /* Layouts that are lowered: refusals take no time. */
    PLAYED_EVENTS_MAX = 1000000, /* Of a layout whose peak is not known without a run. */
};

struct slice_search {
    const struct session *session;
    struct worker *worker;
    enum mesh_role role[MESH_ROLE_COUNT]; /* Of the scenario's mesh, innermost first. */
    uint32_t role_count;
    double hbm_bytes;
    uint32_t slices, tries;

    /* Of the slice that is tried. */
    struct session part; /* Up to its machine; it borrows the scenario. */
    double least_bytes;  /* That a chip holds with the best layout; INFINITY: none is legal. */
};

/* The axes of the scenario, innermost first. */
static void roles_find(struct slice_search *search)
{
    const struct mesh *mesh = &search->session->mesh;
    for (uint32_t i = 0; i < MESH_ROLE_COUNT; i++)
        if (mesh->present[mesh_order_standard[i]])
            search->role[search->role_count++] = mesh_order_standard[i];
    /* One chip needs no axis of the mesh. Several chips would split the model, as the formula does.
     */
    if (search->role_count == 0) search->role[search->role_count++] = MESH_TP;
}

static bool ends_all(enum status status)
{
    return status == STATUS_INTERRUPTED || status == STATUS_NO_MEMORY;
}

/* The scenario's machine with other chips: none of them has a rate of its own. */
static enum status machine_of(struct slice_search *search, const struct smallest_slice *slice,
                              struct error *reterr)
{
    struct session *part = &search->part;
    struct machine_plan *plan = &part->scenario.machine;
    const struct chip *chip = &search->session->machine.chip;
    uint32_t const node = chip->network.node_chips;
    *part = *search->session;
    part->arena = arena_create(0);
    if (part->arena == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory for a slice");
    plan->links = NULL;
    plan->chips = NULL;
    plan->link_count = plan->chip_count = 0;
    plan->slices = 0;
    if (plan->chip_document == NULL) plan->chip = chip->name; /* Of a product, which has a shape. */
    if (chip->kind == CHIP_GPU) {
        bool const nodes = slice->chip_count > node;
        plan->nodes = nodes ? (uint32_t)(slice->chip_count / node) : 0;
        plan->gpus = nodes ? node : (uint32_t)slice->chip_count;
    } else {
        plan->shape = arena_text(part->arena, slice->slice);
        plan->unrealisable = false;
        for (uint32_t a = 0; a < CHIP_AXES_MAX; a++) plan->wrap[a] = -1;
    }
    return machine_build(part->arena, plan, &part->machine, reterr);
}

/* Ranks on what is left of the machine's axes, the last of which is the nearest: a whole number of
 * axes, and a part of the next one. */
static bool ranks_place(struct session *part, uint64_t ranks, uint32_t left[MACHINE_AXES_MAX],
                        struct mesh_axis_plan *axis)
{
    const struct machine *machine = &part->machine;
    const char *parts[MACHINE_AXES_MAX];
    uint32_t count = 0;
    for (uint32_t a = machine->axis_count; a-- > 0 && ranks > 1;) {
        uint64_t const size = ranks < left[a] ? ranks : left[a];
        if (left[a] == 1) continue;
        if (left[a] % size != 0 || ranks % size != 0) return false;
        parts[count++] = size == machine->shape[a]
                             ? machine->axis_name[a]
                             : arena_format(part->arena, "%s:%llu", machine->axis_name[a],
                                            (unsigned long long)size);
        left[a] /= (uint32_t)size;
        ranks /= size;
    }
    for (uint32_t i = 0; i < count; i++) axis->part[i] = parts[count - 1 - i];
    axis->part_count = count;
    return ranks == 1;
}

static bool mesh_place(struct slice_search *search, const uint64_t *ranks)
{
    struct session *part = &search->part;
    struct mesh_plan *plan = &part->scenario.mesh;
    uint32_t left[MACHINE_AXES_MAX];
    for (uint32_t a = 0; a < part->machine.axis_count; a++) left[a] = part->machine.shape[a];
    *plan = (struct mesh_plan){.axis_count = 0};
    for (uint32_t i = 0; i < search->role_count; i++) {
        struct mesh_axis_plan *axis = &plan->axis[plan->axis_count];
        axis->role = search->role[i];
        if (!ranks_place(part, ranks[i], left, axis)) return false;
        plan->axis_count += axis->part_count > 0;
    }
    return true;
}

/* Whether the layout is that of the step itself, whose peak was seen. */
static bool is_own(const struct slice_search *search, const uint64_t *ranks)
{
    bool is = search->part.machine.chip_count == search->session->machine.chip_count;
    for (uint32_t i = 0; i < search->role_count; i++)
        is = is && search->session->mesh.axis[search->role[i]].size == ranks[i];
    return is;
}

static struct room_held own_held(const struct slice_search *search)
{
    double const bytes = (double)search->session->trace.memory.peak_bytes;
    return (struct room_held){.bytes = bytes, .fits = bytes <= search->hbm_bytes};
}

/* What the slice holds of another layout. A layout that a run would refuse holds none. */
static enum status layout_build(struct slice_search *search, struct room_held *ret_held,
                                struct error *reterr)
{
    struct session built = search->part;
    struct workload_plan *plan = &built.scenario.workload;
    built.arena = arena_create(0);
    if (built.arena == NULL)
        return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory for a slice");
    enum status status = mesh_build(&built.scenario.mesh, &built.machine, &built.mesh, reterr);
    if (!built.mesh.present[MESH_TP]) plan->activations = WORKLOAD_ACTIVATIONS_MODEL;
    plan->inference.chooser = (struct plan_chooser){.owner = NULL};
    inference_stages_set(plan, built.mesh.axis[MESH_PP].size);
    if (status == STATUS_OK)
        status =
            workload_lower(built.arena, plan, &built.machine, &built.mesh, &built.program, reterr);
    search->tries += status == STATUS_OK;
    if (status == STATUS_OK)
        status = room_holds(&built, search->hbm_bytes, PLAYED_EVENTS_MAX, search->worker, ret_held,
                            reterr);
    arena_destroy(built.arena);
    return ends_all(status) ? status : STATUS_OK;
}

static enum status layout_try(struct slice_search *search, const uint64_t *ranks,
                              struct room_held *ret_held, struct error *reterr)
{
    *ret_held = (struct room_held){.bytes = INFINITY};
    STATUS_TRY(worker_check(search->worker, reterr));
    if (is_own(search, ranks))
        *ret_held = own_held(search);
    else if (mesh_place(search, ranks))
        STATUS_TRY(layout_build(search, ret_held, reterr));
    search->least_bytes = fmin(search->least_bytes, ret_held->bytes);
    return STATUS_OK;
}

/* All numbers of ranks from one axis of the mesh out, which fill `chips`: the outermost, which
 * hold copies or have stages, have few first. */
static enum status layouts_try(struct slice_search *search, uint32_t axes, uint64_t chips,
                               uint64_t *ranks, struct room_held *ret_held, struct error *reterr)
{
    *ret_held = (struct room_held){.bytes = INFINITY};
    if (axes == 1) {
        ranks[0] = chips;
        return layout_try(search, ranks, ret_held, reterr);
    }
    for (uint64_t n = 1; n <= chips && search->tries < TRIES_MAX && !ret_held->fits; n++) {
        if (chips % n != 0) continue;
        ranks[axes - 1] = n;
        STATUS_TRY(layouts_try(search, axes - 1, chips / n, ranks, ret_held, reterr));
    }
    return STATUS_OK;
}

static enum status slice_try(struct slice_search *search, const struct smallest_slice *slice,
                             struct room_held *ret_held, struct error *reterr)
{
    uint64_t ranks[MESH_ROLE_COUNT];
    bool const as_many = slice->chip_count == search->session->machine.chip_count;
    *ret_held = own_held(search);
    if (as_many && ret_held->fits) return STATUS_OK; /* In the step's own layout. */
    search->least_bytes = INFINITY;
    enum status status = machine_of(search, slice, reterr);
    *ret_held = (struct room_held){.bytes = INFINITY};
    search->slices++;
    if (status == STATUS_OK)
        status =
            layouts_try(search, search->role_count, slice->chip_count, ranks, ret_held, reterr);
    session_close(&search->part);
    return ends_all(status) ? status : STATUS_OK;
}

/* More chips of one axis divide what a chip holds at best; of several axes other layouts may be
 * legal on them. */
static uint64_t next_of(const struct slice_search *search, uint64_t chips)
{
    double const least = (double)chips * search->least_bytes / search->hbm_bytes;
    bool const is_known = search->role_count == 1 && !isinf(search->least_bytes);
    if (!is_known || least <= (double)chips) return chips + 1;
    return (uint64_t)fmin(ceil(least), MACHINE_CHIPS_MAX + 1.0);
}

static enum status reading_find(struct slice_search *search, double whole_bytes,
                                struct report_slice *ret_slice, struct error *reterr)
{
    double const least = ceil(fmax(whole_bytes / search->hbm_bytes, 1));
    uint64_t chips = (uint64_t)fmin(least, MACHINE_CHIPS_MAX + 1.0);
    *ret_slice = (struct report_slice){.is = true};
    search->slices = search->tries = 0;
    for (;;) {
        if (chips > MACHINE_CHIPS_MAX) return STATUS_OK;
        ret_slice->smallest = smallest_slice_of(&search->session->machine.chip, chips);
        bool const ends = search->slices >= SLICES_MAX || search->tries >= TRIES_MAX;
        if (ret_slice->smallest.chip_count == 0 || ends) return STATUS_OK;
        struct room_held held;
        STATUS_TRY(slice_try(search, &ret_slice->smallest, &held, reterr));
        ret_slice->is_tried = held.fits;
        ret_slice->is_estimate = held.fits && held.is_estimate;
        if (held.fits) return STATUS_OK;
        chips = next_of(search, ret_slice->smallest.chip_count);
        ret_slice->smallest.chip_count = 0;
    }
}

enum status slice_find(const struct session *session, const struct report_input *input,
                       struct worker *worker, struct report_slices *ret_slices,
                       struct error *reterr)
{
    struct slice_search search = {.session = session, .worker = worker};
    uint64_t const hbm_bytes = session->machine.chip.hbm_capacity_bytes;
    double const whole_bytes = inference_whole_bytes(input, 1);
    roles_find(&search);
    search.hbm_bytes = (double)hbm_bytes;
    STATUS_TRY(reading_find(&search, whole_bytes, &ret_slices->of_gb, reterr));
    search.hbm_bytes = (double)chip_gib_bytes(hbm_bytes);
    return reading_find(&search, whole_bytes, &ret_slices->of_gib, reterr);
}
