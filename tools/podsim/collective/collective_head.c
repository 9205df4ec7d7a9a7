/* What `podsim collective` was asked: the first lines of its table, the first members of its JSON.
 */
#include <stdio.h>

#include "sim/base/counted.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/collective/hosts.h"
#include "sim/report/column_table.h"
#include "sim/report/table.h"
#include "tools/podsim/collective/collective.h"

#define TABLE(X)                                                                                   \
    X(PODSIM, "podsim", WHOLE(1), HIDDEN)                                                          \
    X(MACHINE, "machine", WORDS(study->asked.machine_text), IN_WORDS(column_words))                \
    X(PROFILE, "profile", WORDS(machine->chip.profile), IN_WORDS(column_words))                    \
    X(OP, "op", WORDS(measure_op_name(args->operation)), IN_WORDS(column_words))                   \
    X(AXES, "axes", WORDS(args->axes), IN_WORDS(column_words))                                     \
    X(RANKS, "ranks", WHOLE(ranks), IN_WORDS(column_plain))                                        \
    X(GROUPS, "groups", WHOLE(machine->chip_count / ranks), IN_WORDS(column_plain))                \
    X(CHIPS, "chips", WHOLE(machine->chip_count), IN_WORDS(column_plain))                          \
    X(REPLAYED, "chips_replayed", WHOLE(study->fold.chip_count), IN_WORDS(column_plain))           \
    X(COMPLETE, "complete", FLAG(study->run_count == study->run_count_max), HIDDEN)

enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };

static const struct column columns[] = {TABLE(COLUMN_ENTRY)};

static void find(const struct collective_study *study, struct column_value *ret_values)
{
    const struct measure_row_args *args = &study->member[0].args;
    const struct machine *machine = &study->asked.machine;
    uint64_t const ranks = group_rank_count(&args->group);
    TABLE(COLUMN_FIND)
}

#define FIGURE(name) CELL(columns, values, name)

/* Who sends to whom: "node +1, gpu +1". */
static void write_shift(const struct measure_row_args *args, struct strbuf *text)
{
    struct plan_request request;
    struct error ignored;
    const char *before = ": ";
    if (args->operation != MEASURE_SENDRECV ||
        measure_row_request(args, 1, "", &request, &ignored) != STATUS_OK)
        return;
    strbuf_add(text, "# each rank sends to the one %u further", args->shift == 0 ? 1 : args->shift);
    for (uint32_t d = 0; d < args->group.dimension_count; d++) {
        if (request.offset[d] == 0) continue;
        strbuf_add(text, "%s%s +%d", before, args->group.dimension[d].name, request.offset[d]);
        before = ", ";
    }
    struct measure_row_senders const senders = measure_row_senders(args);
    if (senders.line != NULL) {
        char last[24] = "";
        if (senders.silent > 1) (void)snprintf(last, sizeof last, " %u", senders.silent);
        strbuf_add(text, "\n# %s has no wraparound: the last%s of its %u ranks send%s nothing; %s",
                   senders.line->name, last, senders.line->size, senders.silent == 1 ? "s" : "",
                   counted(senders.count, "sender").text);
    }
    strbuf_add(text, "\n");
}

int64_t collective_hosts_ps(const struct measure_row_args *args)
{
    struct plan_request request;
    struct error ignored;
    if (measure_op_is_copy(args->operation) ||
        measure_row_request(args, 1, "", &request, &ignored) != STATUS_OK)
        return 0;
    return hosts_begin_ps(args->machine, &request);
}

static void write_hosts(const struct collective_study *study, struct strbuf *text)
{
    for (uint32_t i = 0; i < study->member_count; i++) {
        const struct measure_row_args *args = &study->member[i].args;
        int64_t const begin_ps = collective_hosts_ps(args);
        if (begin_ps == 0) continue;
        strbuf_add(text, "# hosts: %s before the first message of %s between slices\n",
                   table_duration(begin_ps).text, measure_op_name(args->operation));
    }
}

/* What its messages go over: the axes of its groups, or the link to the host. */
const char *collective_ways(const struct measure_row_args *args)
{
    return measure_op_is_copy(args->operation) ? args->machine->host.cable_name : args->axes;
}

void collective_write_head(const struct collective_study *study, struct strbuf *text)
{
    const struct measure_row_args *args = &study->member[0].args;
    const struct plan_ragged *ragged = &args->ragged;
    struct column_value values[COLUMN_TOTAL];
    find(study, values);
    uint64_t const ranks = values[RANKS].whole, groups = values[GROUPS].whole;
    strbuf_add(text, "# podsim collective: %s on %s, profile %s\n", FIGURE(OP), FIGURE(MACHINE),
               FIGURE(PROFILE));
    uint32_t const sharers = host_sharers(&study->asked.machine);
    if (measure_op_is_copy(args->operation))
        strbuf_add(text, "# every chip copies over %s, %s a link each way: %s\n",
                   study->asked.machine.host.cable_name, counted(sharers, "chip").text,
                   counted(ranks, "rank").text);
    else
        strbuf_add(text, "# axes %s: %s%s", FIGURE(AXES), counted(ranks, "rank").text,
                   groups > 1 ? "" : "\n");
    if (groups > 1) strbuf_add(text, ", in each of %s groups, all at once\n", FIGURE(GROUPS));
    for (uint32_t i = 1; i < study->member_count; i++)
        strbuf_add(text, "# at once: %s over %s\n",
                   measure_op_name(study->member[i].args.operation),
                   collective_ways(&study->member[i].args));
    strbuf_add(text, "# size: %s; array: V of all ranks together\n",
               ragged->expert_count > 0 ? "one rank's tokens, each once"
                                        : measure_op_size_text(args->operation));
    write_shift(args, text);
    write_hosts(study, text);
    if (ragged->expert_count > 0)
        strbuf_add(text,
                   "# ragged: %s, %llu a rank; each token of %s goes to %u; seed "
                   "%llu, skew %g\n",
                   counted(ragged->expert_count, "expert").text,
                   (unsigned long long)(ragged->expert_count / ranks),
                   counted(ragged->token_bytes, "byte").text, ragged->top_k,
                   (unsigned long long)ragged->seed, (double)ragged->skew_ppm / PPM_ONE);
    if (study->run_count == 0) return;
    strbuf_add(text, "# %s of %s chips simulated:", FIGURE(REPLAYED), FIGURE(CHIPS));
    for (uint32_t axis = 0; axis < study->asked.machine.axis_count; axis++)
        strbuf_add(text, " %s %u of %u%s", machine_axis_name(&study->asked.machine, axis),
                   study->fold.period[axis], study->asked.machine.shape[axis],
                   axis + 1 < study->asked.machine.axis_count ? "," : "\n");
}

void collective_put_head(const struct collective_study *study, struct json_writer *json)
{
    struct column_value values[COLUMN_TOTAL];
    find(study, values);
    column_put(columns, values, 0, COLUMN_TOTAL - 1, json);
}
