/* Options that several verbs share. */
#include "tools/podsim/common/collective_args.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/path.h"
#include "sim/choose/contention.h"
#include "sim/collective/msccl.h"
#include "sim/scenario/scenario.h"
#include "tools/podsim/common/input.h"

enum { TUNER_BYTES_MAX = 1 << 20, MSCCL_BYTES_MAX = 1 << 26 };

static enum status need(const struct options *options, const char *name, const char *example,
                        const char **ret_value, struct error *reterr)
{
    *ret_value = options_value(options, name);
    if (*ret_value != NULL) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, name, "is missing; for example %s %s", name, example);
}

static enum status machine_read(const struct options *options, struct collective_args *args,
                                struct error *reterr)
{
    struct machine_plan plan;
    const char *const profile = options_value(options, "--profile");
    STATUS_TRY(need(options, "--machine", "tpu-v5e:8x16", &args->machine_text, reterr));
    STATUS_TRY(scenario_machine_parse(args->arena, args->machine_text, "--machine", &plan, reterr));
    if (profile != NULL) plan.profile = profile;
    return machine_build(args->arena, &plan, &args->machine, reterr);
}

static enum status root_read(const struct options *options, struct collective_args *args,
                             struct error *reterr)
{
    const char *text = options_value(options, "--root");
    uint64_t const ranks = group_rank_count(&args->row.group);
    if (text == NULL) return STATUS_OK;
    if (!measure_op_is_rooted(args->row.operation))
        return error_set(reterr, STATUS_INVALID, "--root", "%s has no root",
                         measure_op_name(args->row.operation));
    uint64_t root = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && root < ranks; at++) root = 10 * root + (uint64_t)(*at - '0');
    if (at == text || *at != '\0' || root >= ranks)
        return error_set(reterr, STATUS_INVALID, "--root",
                         "\"%.40s\" is no rank of the group; they go from 0 to %llu", text,
                         (unsigned long long)(ranks - 1));
    args->row.root = (uint32_t)root;
    return STATUS_OK;
}

static enum status format_read(const struct options *options, enum format *ret_format,
                               struct error *reterr)
{
    const char *text = options_value(options, "--dtype");
    const char *names[FORMAT_COUNT + 1] = {NULL};
    *ret_format = FORMAT_BF16;
    if (text == NULL) return STATUS_OK;
    for (uint32_t i = 0; i < FORMAT_COUNT; i++) names[i] = format_name((enum format)i);
    *ret_format = format_find(text);
    for (uint32_t i = 0; *ret_format == FORMAT_COUNT && i < FORMAT_COUNT; i++)
        if (strcmp(text, format_nccl_name((enum format)i)) == 0) *ret_format = (enum format)i;
    if (*ret_format != FORMAT_COUNT) return STATUS_OK;
    return error_set(reterr, STATUS_NOT_FOUND, "--dtype", "no number format \"%.40s\"%s", text,
                     name_offer(text, names, "; the nearest is ", "", NULL).text);
}

static enum status algorithms_read(const struct options *options, struct collective_args *args,
                                   struct error *reterr)
{
    const char *list = options_value(options, "--algorithm");
    for (const char *at = list; at != NULL;) {
        size_t const length = strcspn(at, ",");
        if (length == 0)
            return error_set(reterr, STATUS_INVALID, "--algorithm",
                             "\"%.80s\" has an empty name; write names with one comma between",
                             list);
        if (args->algorithm_count == COLLECTIVE_ALGORITHMS_MAX)
            return error_set(reterr, STATUS_LIMIT, "--algorithm", "more than %d names",
                             COLLECTIVE_ALGORITHMS_MAX);
        char *name = arena_format(args->arena, "%.*s", (int)length, at);
        if (name == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a name");
        struct algorithm const algorithm = algorithm_read(name);
        for (uint32_t i = 0; i < args->algorithm_count; i++)
            if (algorithm_equal(&args->algorithm[i], &algorithm))
                return error_set(reterr, STATUS_INVALID, "--algorithm", "%.80s is named twice",
                                 name);
        args->algorithm[args->algorithm_count++] = algorithm;
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    return STATUS_OK;
}

static enum status engine_read(const struct options *options, struct collective_args *args,
                               struct error *reterr)
{
    static const char *const names[] = {"fast", "reference", NULL};
    const char *text = options_value(options, "--engine");
    args->run.full = options_has(options, "--full");
    args->run.engine = text == NULL ? names[0] : text;
    for (uint32_t i = 0; names[i] != NULL; i++)
        if (strcmp(args->run.engine, names[i]) == 0) return STATUS_OK;
    return error_set(reterr, STATUS_NOT_FOUND, "--engine", "no engine \"%.40s\"%s", text,
                     name_offer(text, names, "; the nearest is ", "", NULL).text);
}

/* Protocols compete where the profile says so, or one is named; "auto" names none. */
static enum status protocol_read(const struct options *options, struct collective_args *args,
                                 struct error *reterr)
{
    static const char *const names[PROTOCOL_COUNT + 2] = {
#define X(name, text) text,
        PROTOCOL_TABLE(X)
#undef X
            [PROTOCOL_COUNT] = "auto"};
    const char *text = options_value(options, "--protocol");
    args->row.protocols = choose_by_protocols(&args->machine);
    args->row.registered = options_has(options, "--registered");
    if (text == NULL || name_find_any_case(text, names) == PROTOCOL_COUNT) return STATUS_OK;
    STATUS_TRY(protocol_find(text, "--protocol", &args->row.protocol, reterr));
    struct protocol_use const use = {.machine = &args->machine, .group = &args->row.group};
    const char *refusal = protocol_refusal(&use, args->row.protocol);
    if (refusal != NULL)
        return error_set(reterr, STATUS_UNSUPPORTED, "--protocol", "%s %s",
                         protocol_name(args->row.protocol), refusal);
    args->row.protocols = args->row.protocol != PROTOCOL_NONE;
    return STATUS_OK;
}

/* Registered arrays change the copies of Simple within a node, of some operations alone. */
static enum status registered_check(const struct collective_args *args, struct error *reterr)
{
    static const char where[] = "--registered";
    const struct measure_row_args *row = &args->row;
    enum measure_op const operation = row->operation;
    uint64_t nodes, ranks;
    if (!row->registered) return STATUS_OK;
    if (operation != MEASURE_ALL_GATHER && operation != MEASURE_ALL_REDUCE &&
        operation != MEASURE_ALL_TO_ALL && operation != MEASURE_SENDRECV)
        return error_set(reterr, STATUS_INVALID, where,
                         "%s copies as much; all_gather, all_reduce, all_to_all and sendrecv copy "
                         "less",
                         measure_op_name(operation));
    if (args->machine.chip.kind != CHIP_GPU)
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "is NCCL's, and these chips are no GPUs");
    if (!row->protocols)
        return error_set(reterr, STATUS_INVALID, where,
                         "is of NCCL's protocols, and none is simulated; --profile measured has "
                         "all, --protocol Simple one");
    if (row->protocol != PROTOCOL_NONE && row->protocol != PROTOCOL_SIMPLE)
        return error_set(reterr, STATUS_INVALID, where, "%s copies as much; Simple copies less",
                         protocol_name(row->protocol));
    protocol_extent(&args->machine, &row->group, &nodes, &ranks);
    if (nodes == 1) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, where,
                     "is of copies within a node, and the group has members in %llu",
                     (unsigned long long)nodes);
}

/* What estimates keep from size to size. */
static enum status known_take(struct collective_args *args, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(args->arena, 1, sizeof *args->row.known, &memory, reterr));
    args->row.known = memory;
    return STATUS_OK;
}

static enum status tuner_load(const struct options *options, struct collective_args *args,
                              struct error *reterr)
{
    const char *path = options_value(options, "--tuner");
    char *text = NULL;
    uint64_t size = 0;
    if (path == NULL) return STATUS_OK;
    STATUS_TRY(input_load(args->arena, path, TUNER_BYTES_MAX, &text, &size, reterr));
    STATUS_TRY(tuner_read(args->arena, path, text, size, &args->tuner, reterr));
    args->row.tuner = &args->tuner;
    return STATUS_OK;
}

/* An algorithm out of a file, which says what operation it is. */
static enum status msccl_load(const struct options *options, struct collective_args *args,
                              struct error *reterr)
{
    const char *path = options_value(options, "--xml");
    char *text = NULL;
    uint64_t size = 0;
    STATUS_TRY(input_load(args->arena, path, MSCCL_BYTES_MAX, &text, &size, reterr));
    STATUS_TRY(msccl_read(args->arena, path, text, size, &args->row.script, reterr));
    for (uint32_t i = 0; i < MEASURE_COUNT; i++)
        if (measure_op_kind((enum measure_op)i) == args->row.script->kind)
            args->row.operation = (enum measure_op)i;
    return STATUS_OK;
}

/* Which collective: --op, or what the file of --xml is. */
static enum status operation_read(const struct options *options, struct collective_args *args,
                                  struct error *reterr)
{
    const char *name = options_value(options, "--op");
    enum measure_op asked = MEASURE_COUNT;
    if (name != NULL) STATUS_TRY(measure_op_find(name, "--op", &asked, reterr));
    if (options_value(options, "--xml") == NULL) {
        STATUS_TRY(need(options, "--op", "all_reduce", &name, reterr));
        args->row.operation = asked;
        return STATUS_OK;
    }
    STATUS_TRY(msccl_load(options, args, reterr));
    if (name == NULL || asked == args->row.operation) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, "--op", "%s, but the algorithm of --xml is an %s",
                     name, measure_op_name(args->row.operation));
}

/* The ranks of a collective; or all chips, of which each copies by itself. */
static enum status group_read(const struct options *options, struct collective_args *args,
                              struct error *reterr)
{
    const char *axes = options_value(options, "--axes");
    struct measure_row_args *row = &args->row;
    if (measure_op_is_copy(row->operation)) {
        if (axes != NULL)
            return error_set(reterr, STATUS_INVALID, "--axes",
                             "%s has no groups: every chip copies by itself; leave --axes out",
                             measure_op_name(row->operation));
        if (args->machine.host.bytes_per_s == 0)
            return error_set(reterr, STATUS_UNSUPPORTED, "--op", "%s has no link to a host",
                             args->machine.chip.title);
        if (args->machine.chip_count == 1) return STATUS_OK; /* The empty group is one rank. */
    }
    STATUS_TRY(measure_group(&args->machine, axes, "--axes", &row->group, reterr));
    (void)measure_group_text(&args->machine, &row->group, row->axes);
    return STATUS_OK;
}

/* There is one way to copy. */
static enum status copy_check(const struct options *options, const struct collective_args *args,
                              struct error *reterr)
{
    static const char *const choosing[] = {"--algorithm", "--protocol", "--tuner", "--root"};
    if (!measure_op_is_copy(args->row.operation)) return STATUS_OK;
    for (uint32_t i = 0; i < sizeof choosing / sizeof *choosing; i++)
        if (options_value(options, choosing[i]) != NULL)
            return error_set(reterr, STATUS_INVALID, choosing[i],
                             "%s has nothing to choose: each chip copies over its link to the host",
                             measure_op_name(args->row.operation));
    return STATUS_OK;
}

enum status collective_args_read(const struct options *options, struct arena *arena,
                                 struct collective_args *ret_args, struct error *reterr)
{
    struct collective_args *args = ret_args;
    *args = (struct collective_args){.arena = arena};
    STATUS_TRY(operation_read(options, args, reterr));
    STATUS_TRY(machine_read(options, args, reterr));
    args->row.machine = &args->machine;
    STATUS_TRY(group_read(options, args, reterr));
    STATUS_TRY(copy_check(options, args, reterr));
    STATUS_TRY(algorithms_read(options, args, reterr));
    STATUS_TRY(format_read(options, &args->row.format, reterr));
    STATUS_TRY(root_read(options, args, reterr));
    STATUS_TRY(protocol_read(options, args, reterr));
    STATUS_TRY(registered_check(args, reterr));
    STATUS_TRY(known_take(args, reterr));
    STATUS_TRY(tuner_load(options, args, reterr));
    return engine_read(options, args, reterr);
}

const char *collective_args_input(const struct collective_args *args, const struct error *error)
{
    const char *text = args->machine_text, *where = error->where;
    bool const is_file = text != NULL && path_is_json(text);
    bool const inside = where[0] == '\0' ? error->status == STATUS_INVALID
                                         : where[0] == '/' && strncmp(where, "/run", 4) != 0;
    return strncmp(where, "/machine", 8) == 0 || (is_file && inside) ? text : NULL;
}
