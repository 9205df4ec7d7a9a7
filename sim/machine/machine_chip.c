/*
 * machine_chip.c: the chip of a machine: of the catalogue or the user's own, with the clock and the
 * NICs that the plan gives it.
 */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/kernels/kernel_lookups.h"
#include "sim/kernels/kernels.h"
#include "sim/machine/chip_read.h"
#include "sim/machine/machine.h"

static const char where_chip[] = "/machine/chip";
static const char where_profile[] = "/machine/profile";
static const char where_stack[] = "/machine/stack";
static const char where_gib[] = "/machine/hbm_gib";
static const char where_power[] = "/machine/power";
static const char where_fp8[] = "/machine/clock_fp8";
static const char where_rate[] = "/machine/network/nic_rate";
static const char where_launch[] = "/run/launch";
static const char where_nics[] = "/machine/network/node_nics";

/* What follows the last dash, if that is a number: "v5p-8192", never "tpu-v5p". */
static const char *product_units(const char *name)
{
    const char *dash = strrchr(name, '-');
    if (dash == NULL || dash[1] == '\0') return NULL;
    return strspn(dash + 1, "0123456789") == strlen(dash + 1) ? dash + 1 : NULL;
}

static enum status named_chip(struct arena *arena, const struct machine_plan *plan,
                              struct chip *ret_chip, const char **ret_units, struct error *reterr)
{
    const char *units = product_units(plan->chip);
    const char *name = plan->chip;
    if (units != NULL)
        name = arena_format(arena, "%.*s", (int)(units - 1 - plan->chip), plan->chip);
    if (name == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a name");
    STATUS_TRY(chip_find(arena, name, plan->profile, where_chip, where_profile, ret_chip, reterr));
    *ret_units = units;
    if (units == NULL || ret_chip->kind == CHIP_TPU) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, where_chip,
                     "GPUs have no product names with a number; write %s and \"nodes\", of %u "
                     "GPUs each",
                     ret_chip->name, ret_chip->network.node_chips);
}

/* A chip with measured kernels has the rates of its data sheet, of which these have shares. */
static enum status apply_stack(struct arena *arena, const struct machine_plan *plan,
                               struct chip *chip, struct error *reterr)
{
    void *memory = NULL;
    if (plan->stack == NULL) return STATUS_OK;
    if (chip->is_ideal)
        return error_set(reterr, STATUS_INVALID, where_stack,
                         "the profile \"%s\" has no measured kernels; \"profile\": \"measured\" "
                         "takes them",
                         chip->profile);
    STATUS_TRY(arena_try(arena, 1, sizeof(struct kernel_stack), &memory, reterr));
    struct kernel_stack *stack = memory;
    if (plan->stack_document == NULL) {
        STATUS_TRY(kernel_stack_find(plan->stack, chip->name, where_stack, stack, reterr));
    } else {
        enum status const status = kernel_stack_read(arena, plan->stack_document, stack, reterr);
        if (status != STATUS_OK) error_in_file(reterr, plan->stack);
        STATUS_TRY(status);
    }
    if (!name_same(stack->chip, chip->name))
        return error_set(reterr, STATUS_INVALID, where_stack,
                         "the kernels of \"%.80s\" were measured on %.40s, not on %.40s",
                         plan->stack, stack->chip, chip->name);
    if (stack->collectives.source != NULL && chip->network.node_chips == 0)
        return error_set(reterr, STATUS_INVALID, where_stack,
                         "the kernels of \"%.80s\" have \"collectives\", factors of NCCL, which "
                         "%.40s does not have",
                         plan->stack, chip->name);
    memcpy(chip->math_flop_per_s, chip->math_peak_flop_per_s, sizeof chip->math_flop_per_s);
    chip->hbm_bytes_per_s = chip->kernels.sheet_hbm_bytes_per_s;
    STATUS_TRY(kernel_lookups_create(arena, stack, reterr));
    chip->kernels.stack = stack;
    chip->kernels.nccl = (struct chip_nccl){.latency_ppm = stack->collectives.latency_ppm,
                                            .byte_ppm = stack->collectives.byte_ppm,
                                            .nvls_ppm = stack->collectives.nvls_ppm};
    return STATUS_OK;
}

uint32_t machine_clock_ppm(const struct machine_plan *plan, const struct chip *chip)
{
    const struct kernel_stack *stack = chip->kernels.stack;
    if (plan->clock_ppm != 0) return plan->clock_ppm;
    return stack != NULL && stack->clock_ppm != 0 ? stack->clock_ppm : PPM_ONE;
}

uint32_t machine_clock_fp8_ppm(const struct machine_plan *plan, const struct chip *chip)
{
    const struct kernel_stack *stack = chip->kernels.stack;
    if (plan->clock_fp8_ppm != 0) return plan->clock_fp8_ppm;
    if (plan->clock_ppm == 0 && stack != NULL && stack->clock_fp8_ppm != 0)
        return stack->clock_fp8_ppm;
    return machine_clock_ppm(plan, chip);
}

/* Switching takes power by f V^2, and the voltage follows the clock: what is left above the idle
 * power goes by the clock's cube. The activity of the op cancels out, so formats share the result.
 */
uint32_t machine_power_ppm(const struct machine_plan *plan, const struct chip *chip)
{
    const struct chip_power *power = &chip->core.power;
    if (plan->power_w == 0 || plan->power_w >= power->most_w) return PPM_ONE;
    units_wide const left_w = plan->power_w - power->idle_w, most_w = power->most_w - power->idle_w;
    units_wide const whole = (units_wide)PPM_ONE * PPM_ONE * PPM_ONE;
    uint32_t low = 0, high = PPM_ONE; /* low^3 <= left / most < high^3, in millionths. */
    while (high - low > 1) {
        uint32_t const middle = low + (high - low) / 2;
        bool const fits = (units_wide)middle * middle * middle * most_w <= left_w * whole;
        low = fits ? middle : low;
        high = fits ? high : middle;
    }
    return low;
}

static enum status power_check(const struct machine_plan *plan, const struct chip *chip,
                               struct error *reterr)
{
    const struct chip_power *power = &chip->core.power;
    if (plan->power_w == 0) return STATUS_OK;
    if (power->most_w == 0)
        return error_set(reterr, STATUS_UNSUPPORTED, where_power,
                         "how the clock of %s follows its power is not known; \"clock\" sets the "
                         "clock itself",
                         chip->title);
    if (plan->power_w > power->idle_w && plan->power_w <= power->most_w) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, where_power,
                     "%s takes %llu W without work, and %llu W at most", chip->title,
                     (unsigned long long)power->idle_w, (unsigned long long)power->most_w);
}

int64_t machine_launch_host_ps(const struct machine_plan *plan, const struct chip *chip)
{
    const struct kernel_stack *stack = chip->kernels.stack;
    const struct fusion *fusion = stack == NULL ? NULL : stack->between.fusion;
    if (plan->launch_host_ps != 0) return plan->launch_host_ps;
    return fusion != NULL && fusion->host_ps != 0 ? fusion->host_ps : machine_call_ps;
}

/* What `show scenario` prints, the clock of all formats, is no other one. */
static enum status clocks_check(const struct machine_plan *plan, const struct chip *chip,
                                struct error *reterr)
{
    bool const is_other =
        plan->clock_fp8_ppm != 0 && plan->clock_fp8_ppm != machine_clock_ppm(plan, chip);
    if (!is_other || chip->math_flop_per_s[FORMAT_FP8] != 0) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, where_fp8,
                     "%s has no products in fp8 that could have a clock of their own; leave it out",
                     chip->title);
}

/* Only what computes follows the clock that a power limit sets: HBM and links have their own. */
static void apply_clock(const struct machine_plan *plan, struct chip *chip)
{
    uint32_t const power_ppm = machine_power_ppm(plan, chip);
    uint64_t const clock_ppm = units_scale_ppm(machine_clock_ppm(plan, chip), power_ppm);
    uint64_t const fp8_ppm = units_scale_ppm(machine_clock_fp8_ppm(plan, chip), power_ppm);
    for (uint32_t i = 0; i < FORMAT_COUNT; i++)
        chip->math_flop_per_s[i] = units_scale_ppm(
            chip->math_flop_per_s[i], (uint32_t)(i == FORMAT_FP8 ? fp8_ppm : clock_ppm));
    chip->vector_flop_per_s = units_scale_ppm(chip->vector_flop_per_s, (uint32_t)clock_ppm);
}

static enum status apply_gib(const struct machine_plan *plan, struct chip *chip,
                             struct error *reterr)
{
    uint64_t const bytes = chip->hbm_capacity_bytes;
    if (!plan->hbm_gib) return STATUS_OK;
    chip->hbm_capacity_bytes = chip_gib_bytes(bytes);
    if (chip->hbm_capacity_bytes != bytes) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, where_gib,
                     "%s has %llu bytes of HBM with the profile \"%s\", which are no whole GB that "
                     "could be GiB; leave it out",
                     chip->title, (unsigned long long)bytes, chip->profile);
}

/* A profile's overhead is that of kernels in a graph, and may have more in it than the launch. */
static enum status apply_launches(const struct machine_plan *plan, struct chip *chip,
                                  struct error *reterr)
{
    struct chip_launch *launch = &chip->launch;
    bool const eager = plan->launches == CHIP_LAUNCHES_EAGER;
    launch->by = plan->launches;
    if (plan->launches == CHIP_LAUNCHES_PROFILE) return STATUS_OK;
    if (eager && chip->kind == CHIP_TPU)
        return error_set(reterr, STATUS_UNSUPPORTED, where_launch,
                         "a step on %s is one compiled program, of which no host launches ops; "
                         "\"graph\" is what it does",
                         chip->title);
    if (launch->graph_ps == 0)
        return error_set(reterr, STATUS_INVALID, where_launch,
                         "the file of %s has no \"graph_launch\", the time of a kernel in a graph; "
                         "\"profile\" needs none",
                         chip->title);
    if (launch->op_ps < launch->graph_ps) launch->op_ps = launch->graph_ps;
    if (eager) launch->host_ps = machine_launch_host_ps(plan, chip);
    return STATUS_OK;
}

/* The profile's share of a NIC's rate stays. */
static void apply_nic_rate(uint64_t bytes_per_s, struct chip_network *network)
{
    if (bytes_per_s == 0) return;
    units_wide const effective = (units_wide)bytes_per_s * network->nic_bytes_per_s;
    network->nic_bytes_per_s = (uint64_t)(effective / network->nic_peak_bytes_per_s);
    network->nic_peak_bytes_per_s = bytes_per_s;
}

/* The NICs of a node go to its GPUs in equal numbers, or each to equally many GPUs. */
static enum status apply_node_nics(const struct machine_plan *plan, struct chip *chip,
                                   struct error *reterr)
{
    struct chip_network *network = &chip->network;
    uint32_t const gpus = plan->gpus != 0 ? plan->gpus : network->node_chips;
    uint32_t const nics = plan->network.node_nics;
    if (nics == 0) return STATUS_OK;
    if (chip->kind == CHIP_TPU)
        return error_set(reterr, STATUS_INVALID, where_nics,
                         "a host of %s has one NIC of all its rate; \"nic_rate\" sets it",
                         chip->title);
    if (nics % gpus != 0 && gpus % nics != 0) {
        uint32_t fewer = nics, more = nics;
        while (fewer % gpus != 0 && gpus % fewer != 0) fewer--;
        while (more % gpus != 0 && gpus % more != 0) more++;
        return error_set(reterr, STATUS_INVALID, where_nics,
                         "%u NICs cannot be dealt evenly to %u GPUs; %u and %u can", nics, gpus,
                         fewer, more);
    }
    network->nic_count = nics >= gpus ? nics / gpus : 1;
    network->nic_chips = nics >= gpus ? 1 : gpus / nics;
    return STATUS_OK;
}

static enum status apply_nics(const struct machine_plan *plan, struct chip *chip,
                              struct error *reterr)
{
    struct chip_network *network = &chip->network;
    uint64_t const rate = plan->network.nic_bytes_per_s;
    bool const of_tpu = chip->kind == CHIP_TPU;
    if (rate == 0 && plan->network.node_nics == 0) return STATUS_OK;
    if (network->nic_count == 0)
        return error_set(reterr, STATUS_INVALID, rate != 0 ? where_rate : where_nics,
                         "%s is modelled without a NIC that could be another", chip->title);
    STATUS_TRY(apply_node_nics(plan, chip, reterr));
    apply_nic_rate(rate, network);
    chip->dcn_bytes_per_s = network->nic_count * network->nic_peak_bytes_per_s /
                            (of_tpu ? network->host_chips : network->nic_chips);
    return STATUS_OK;
}

/* What hosts add to collectives between slices. */
static void apply_hosts(const struct machine_network_plan *plan, struct chip_dcn *dcn)
{
    if (machine_dcn_says(plan, plan->dcn_begin_ps, MACHINE_DCN_BEGIN))
        dcn->begin_ps = plan->dcn_begin_ps;
    if (machine_dcn_says(plan, plan->dcn_message_ps, MACHINE_DCN_MESSAGE))
        dcn->message_ps = plan->dcn_message_ps;
    if (machine_dcn_says(plan, plan->dcn_spread_ps, MACHINE_DCN_SPREAD))
        dcn->spread_ps = plan->dcn_spread_ps;
}

enum status machine_chip(struct arena *arena, const struct machine_plan *plan,
                         struct chip *ret_chip, const char **ret_units, struct error *reterr)
{
    *ret_units = NULL;
    if (plan->chip_document != NULL)
        STATUS_TRY(chip_read(arena, plan->chip_document, plan->chip_path, plan->profile,
                             where_profile, ret_chip, reterr));
    else
        STATUS_TRY(named_chip(arena, plan, ret_chip, ret_units, reterr));
    STATUS_TRY(apply_stack(arena, plan, ret_chip, reterr));
    STATUS_TRY(clocks_check(plan, ret_chip, reterr));
    STATUS_TRY(power_check(plan, ret_chip, reterr));
    apply_clock(plan, ret_chip);
    STATUS_TRY(apply_gib(plan, ret_chip, reterr));
    STATUS_TRY(apply_launches(plan, ret_chip, reterr));
    apply_hosts(&plan->network, &ret_chip->pod.dcn);
    return apply_nics(plan, ret_chip, reterr);
}
