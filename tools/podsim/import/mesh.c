/* mesh.c: ranks, batch, stack and offload, which frameworks have in common. */
#include <inttypes.h>
#include <stdlib.h>

#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/kernels/kernels.h"
#include "sim/step/workload.h"
#include "tools/podsim/common/placing.h"
#include "tools/podsim/import/import.h"

enum { PASS_MAX = 1 << 20 }; /* Sequences of a pass, and passes of a step. */

/* The last axis, where it joins slices or nodes. */
static uint32_t outer_axis(const struct machine *machine)
{
    static const char *const names[] = {"slice", "node", NULL};
    uint32_t const last = machine->axis_count - 1;
    return names[name_find(machine_axis_name(machine, last), names)] == NULL ? machine->axis_count
                                                                             : last;
}

uint32_t import_slices(const struct import *import)
{
    uint32_t const axis = outer_axis(&import->machine);
    return axis < import->machine.axis_count ? import->machine.shape[axis] : 1;
}

static enum status placing_begin(struct import *import, const uint64_t ranks[MESH_ROLE_COUNT],
                                 const uint64_t *across, struct placing *ret_placing,
                                 struct error *reterr)
{
    const struct machine *machine = &import->machine;
    *ret_placing =
        (struct placing){.where = import->file->path, .is_grid = machine->grid_axis_count > 0};
    bool const is_split = ret_placing->is_grid || across != NULL;
    ret_placing->ep_over = (uint32_t)import->facts.ranks.ep_over;
    for (uint32_t role = 0; role < MESH_ROLE_COUNT; role++) {
        if (ranks[role] > UINT32_MAX)
            return settings_fail(import->file, 0, STATUS_LIMIT, reterr, "%" PRIu64 " ranks of %s",
                                 ranks[role], mesh_role_name((enum mesh_role)role));
        ret_placing->rank[role] = ranks[role] == 0 ? 1 : (uint32_t)ranks[role];
        ret_placing->across[role] = across == NULL ? 0 : (uint32_t)across[role];
    }
    for (uint32_t a = 0; a < machine->axis_count; a++) {
        const char *const name = machine_axis_name(machine, a);
        if (is_split && a == outer_axis(machine))
            ret_placing->slice = (struct placing_side){name, machine->shape[a], machine->shape[a]};
        else
            placing_side_add(ret_placing, name, machine->shape[a]);
    }
    return STATUS_OK;
}

/* At the setting that states how many ranks the axis has, where one does. */
static enum status placing_refuse(const struct import *import, enum mesh_role role,
                                  enum status status, struct error *reterr)
{
    const struct import_ranks *ranks = &import->facts.ranks;
    const void *const facts[MESH_ROLE_COUNT] = {
        [MESH_TP] = &ranks->tp, [MESH_CP] = &ranks->cp,     [MESH_PP] = &ranks->pp,
        [MESH_EP] = &ranks->ep, [MESH_FSDP] = &ranks->fsdp, [MESH_DP] = &ranks->dp};
    struct error const inner = *reterr;
    if (facts[role] == NULL || import_said(import, facts[role]) == NULL) return status;
    return import_refuse(import, facts[role], reterr, "%s", inner.message);
}

enum status import_mesh_across(struct import *import, const uint64_t ranks[MESH_ROLE_COUNT],
                               const uint64_t across[MESH_ROLE_COUNT], struct error *reterr)
{
    struct placing placing;
    STATUS_TRY(placing_begin(import, ranks, across, &placing, reterr));
    enum status const status = placing_find(&placing, reterr);
    if (status != STATUS_OK) return placing_refuse(import, placing.role, status, reterr);
    STATUS_TRY(import_set(import, reterr, "/mesh={}"));
    for (uint32_t i = 0; i < MESH_ROLE_COUNT; i++) {
        enum mesh_role const role = mesh_order_standard[i];
        for (uint32_t p = 0; p < placing.part_count[role]; p++)
            STATUS_TRY(import_set(import, reterr, "/mesh/%s/%u=%s", mesh_role_name(role), p,
                                  placing_part(&placing, role, p)));
    }
    return STATUS_OK;
}

enum status import_mesh(struct import *import, const uint64_t ranks[MESH_ROLE_COUNT],
                        struct error *reterr)
{
    return import_mesh_across(import, ranks, NULL, reterr);
}

enum status import_rest(struct import *import, uint64_t *const *axes, uint32_t count,
                        uint64_t *ret_ranks, struct error *reterr)
{
    uint64_t const chips = import->machine.chip_count;
    uint64_t left = chips;
    for (uint32_t i = 0; i < count; i++) {
        if (*axes[i] == 0) *axes[i] = 1;
        if (left % *axes[i] != 0)
            return import_refuse(import, axes[i], reterr,
                                 "%" PRIu64 " ranks do not divide the %" PRIu64 " chips of %s",
                                 *axes[i], chips, import->machine_text);
        left /= *axes[i];
    }
    *ret_ranks = left;
    return STATUS_OK;
}

enum status import_stack(struct import *import, const char *stack, struct error *reterr)
{
    const void *const compiles = &import->facts.policy.compiles;
    if (import->is_ideal) import_plain(import, compiles, "the profile ideal has no kernels");
    if (import->is_ideal) return STATUS_OK;
    if (kernel_stack_is_shipped(import->machine.chip.name, stack))
        return import_set(import, reterr, "/machine/stack=%s", stack);
    import_lacks(import, compiles, "podsim has no kernels of PyTorch on this chip");
    return STATUS_OK;
}

bool import_has_torch(const struct import *import)
{
    return !import->is_ideal && kernel_stack_is_shipped(import->machine.chip.name, "torch-eager");
}

enum status import_autocast(struct import *import, struct error *reterr)
{
    if (!import_has_torch(import)) return STATUS_OK;
    return import_set(import, reterr, "/workload/autocast=true");
}

enum status import_offload(struct import *import, struct error *reterr)
{
    const struct import_policy *policy = &import->facts.policy;
    if (policy->offload == NULL || name_same(policy->offload, "none")) return STATUS_OK;
    if (!name_same(policy->offload, "cpu"))
        import_lacks(import, &policy->offload, "podsim has the host's memory, and no disks");
    return import_set(import, reterr, "/workload/offload=optimizer");
}

enum status import_clips(struct import *import, struct error *reterr)
{
    const struct import_policy *policy = &import->facts.policy;
    char *end = NULL;
    if (policy->clips == NULL || name_same(policy->clips, "auto")) return STATUS_OK;
    double const norm = strtod(policy->clips, &end);
    if (end == policy->clips || *end != '\0')
        return import_refuse(import, &policy->clips, reterr, "\"%.40s\" is no number",
                             policy->clips);
    return norm > 0 ? STATUS_OK : import_set(import, reterr, "/workload/clip_gradients=false");
}

/* Products of what is let through fit in 64 bits. */
static enum status batch_check(const struct import *import, struct error *reterr)
{
    const struct import_step *batch = &import->facts.batch;
    const struct {
        const uint64_t *fact;
        uint64_t most;
    } counts[] = {{&batch->sequences, UINT32_MAX},
                  {&batch->length, UINT32_MAX},
                  {&batch->microbatch, PASS_MAX},
                  {&batch->accumulate, PASS_MAX}};
    for (uint32_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (*counts[i].fact > counts[i].most)
            return import_refuse(import, counts[i].fact, reterr,
                                 "%" PRIu64 " is above the maximum %" PRIu64, *counts[i].fact,
                                 counts[i].most);
    return STATUS_OK;
}

enum status import_batch(struct import *import, uint64_t copies, struct error *reterr)
{
    struct import_facts *facts = &import->facts;
    STATUS_TRY(batch_check(import, reterr));
    if (facts->batch.microbatch == 0 && facts->batch.sequences > 0 && facts->batch.accumulate > 0) {
        const void *const fact = facts->batch.each != NULL ? (const void *)&facts->batch.each
                                                           : (const void *)&facts->batch.sequences;
        uint64_t const passes = copies * facts->batch.accumulate;
        if (facts->batch.sequences % passes != 0)
            return import_refuse(import, fact, reterr,
                                 "%" PRIu64 " sequences of a step are no whole number for each of "
                                 "%" PRIu64 " ranks with a batch of their own, in %" PRIu64
                                 " passes",
                                 facts->batch.sequences, copies, facts->batch.accumulate);
        facts->batch.microbatch = facts->batch.sequences / passes;
    }
    if (facts->batch.microbatch == 0)
        return import_refuse(import, &facts->batch.microbatch, reterr,
                             "the file does not say how many sequences a rank takes at once; the "
                             "key is %s",
                             import_key(import, &facts->batch.microbatch));
    if (facts->batch.accumulate == 0 && facts->batch.sequences == 0) facts->batch.accumulate = 1;
    if (facts->batch.sequences == 0)
        facts->batch.sequences = facts->batch.microbatch * facts->batch.accumulate * copies;
    uint64_t const at_once = facts->batch.microbatch * copies;
    if (at_once == 0 || facts->batch.sequences % at_once != 0 || facts->batch.sequences == 0)
        return import_refuse(import, &facts->batch.sequences, reterr,
                             "%" PRIu64 " sequences are no whole number of microbatches: %" PRIu64
                             " ranks with a batch of their own take %" PRIu64 " each",
                             facts->batch.sequences, copies, facts->batch.microbatch);
    if (facts->batch.accumulate > 0 && facts->batch.accumulate != facts->batch.sequences / at_once)
        return import_refuse(import, &facts->batch.accumulate, reterr,
                             "%" PRIu64 " microbatches of %" PRIu64 " sequences on %" PRIu64
                             " ranks are not the %" PRIu64 " sequences of a step",
                             facts->batch.accumulate, facts->batch.microbatch, copies,
                             facts->batch.sequences);
    facts->batch.accumulate = facts->batch.sequences / at_once;
    if (facts->batch.length == 0)
        return import_refuse(import, &facts->batch.length, reterr,
                             "the file does not say how many tokens a sequence has");
    if (facts->batch.sequences > UINT32_MAX || facts->batch.length > UINT32_MAX)
        return import_refuse(import, &facts->batch.sequences, reterr, "a step of too many tokens");
    uint64_t const tokens = facts->batch.sequences * facts->batch.length;
    if (tokens > WORKLOAD_TOKENS_MAX) {
        const uint64_t *const fact = import_said(import, &facts->batch.length) != NULL
                                         ? &facts->batch.length
                                         : &facts->batch.sequences;
        return import_refuse(import, fact, reterr,
                             "%" PRIu64 " sequences of %" PRIu64 " tokens are above the maximum of "
                             "%" PRIu64 " tokens a step",
                             facts->batch.sequences, facts->batch.length, WORKLOAD_TOKENS_MAX);
    }
    STATUS_TRY(import_set(import, reterr, "/workload/batch_tokens=%" PRIu64, tokens));
    STATUS_TRY(
        import_set(import, reterr, "/workload/sequence_length=%" PRIu64, facts->batch.length));
    return import_set(import, reterr, "/workload/accumulate=%" PRIu64, facts->batch.accumulate);
}
