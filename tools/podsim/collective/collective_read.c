/* The options of `podsim collective`. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/collective/algorithm.h"
#include "sim/collective/msccl.h"
#include "tools/podsim/collective/collective.h"
#include "tools/podsim/common/timeline_file.h"

const struct option collective_options[] = {
    COLLECTIVE_ARGS_OPTIONS,
    {"-b", "SIZE", "least size in bytes; K, M, G are powers of 1024", false},
    {"-e", "SIZE", "greatest size", false},
    {"-f", "FACTOR", "from one size to the next (2)", false},
    {"-i", "SIZE", "from one size to the next, added", false},
    {"--algorithm", "NAMES", "auto (if left out), or names with commas between", false},
    {"--xml", "FILE", "an algorithm in MSCCL's XML, proved first; --op follows", false},
    {"--runners-up", NULL, "simulate the alternatives of auto, too", false},
    {"--shift", "N", "sendrecv: to the rank N further, digit by digit (1)", false},
    {"--concurrent", "N|LIST", "N at once, or with others: OP@AXES[:SIZE] ...", true},
    {"--check", NULL, "prove on sets what each row moves, up to 64 ranks: #wrong", false},
    {"--experts", "E", "all_to_all of tokens to experts, evenly on the ranks", false},
    {"--top-k", "K", "of them for each token", false},
    {"--token-bytes", "SIZE", "of a token (8K); a size is one rank's tokens", false},
    {"--seed", "N", "of the draw (0)", false},
    {"--skew", "X", "0: experts all alike (if left out), to 1: Zipf's law", false},
    {"--json", "FILE", "write the rows as JSON; - is standard output", false},
    {"--csv", "FILE", "write the rows as CSV; - is standard output", false},
    TIMELINE_OPTIONS,
    POOL_OPTION,
    {0},
};

enum status collective_read_count(const struct options *options, const char *name, uint64_t most,
                                  uint64_t *ret_count, struct error *reterr)
{
    const char *text = options_value(options, name);
    uint64_t count = 0;
    if (text == NULL) return STATUS_OK;
    for (const char *at = text; *at != '\0'; at++) {
        uint64_t const digit = (uint64_t)(*at - '0');
        if (*at < '0' || *at > '9' || count > (most - digit) / 10)
            return error_set(reterr, STATUS_INVALID, name,
                             "\"%.40s\" is no whole number from 0 to %llu", text,
                             (unsigned long long)most);
        count = 10 * count + digit;
    }
    if (*text == '\0') return error_set(reterr, STATUS_INVALID, name, "has no value");
    *ret_count = count;
    return STATUS_OK;
}

/* An algorithm out of a file is the only one, and is for as many ranks as it says. */
static enum status msccl_check_alone(const struct options *options,
                                     const struct collective_args *args, struct error *reterr)
{
    static const char *const others[] = {"--algorithm", "--tuner"};
    const struct msccl_script *script = args->row.script;
    uint64_t const ranks = group_rank_count(&args->row.group);
    if (script == NULL) return STATUS_OK;
    for (uint32_t i = 0; i < sizeof others / sizeof *others; i++)
        if (options_has(options, others[i]))
            return error_set(reterr, STATUS_INVALID, others[i],
                             "chooses an algorithm, and --xml gives one; leave one of them out");
    if (ranks == script->rank_count) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, "--xml",
                     "\"%.60s\" is for %u GPUs, and the group has %llu ranks; --axes names other "
                     "groups of a machine",
                     script->name, script->rank_count, (unsigned long long)ranks);
}

static enum status shift_read(const struct options *options, struct measure_row_args *row,
                              struct error *reterr)
{
    const char *text = options_value(options, "--shift");
    uint64_t const ranks = group_rank_count(&row->group);
    uint64_t shift = 1;
    if (text == NULL) return STATUS_OK;
    if (row->operation != MEASURE_SENDRECV)
        return error_set(reterr, STATUS_INVALID, "--shift", "%s has no shift; sendrecv has one",
                         measure_op_name(row->operation));
    STATUS_TRY(collective_read_count(options, "--shift", UINT32_MAX, &shift, reterr));
    if (shift % ranks == 0)
        return error_set(reterr, STATUS_INVALID, "--shift",
                         "by %llu each of the %llu ranks sends to itself; the least is 1",
                         (unsigned long long)shift, (unsigned long long)ranks);
    row->shift = (uint32_t)(shift % ranks);
    return STATUS_OK;
}

static enum status member_add(struct collective_study *study,
                              const struct collective_member *member, struct error *reterr)
{
    if (study->member_count == MEASURE_REQUESTS_MAX)
        return error_set(reterr, STATUS_LIMIT, "--concurrent",
                         "more than %d collectives at once are not modelled", MEASURE_REQUESTS_MAX);
    study->member[study->member_count++] = *member;
    return STATUS_OK;
}

/* "host_store" or "host_store:256M": a copy, which has no axes. False: it is something else. */
static enum status copy_read(struct collective_study *study, const char *text, bool *ret_is_copy,
                             struct error *reterr)
{
    struct collective_member member = {.args = study->member[0].args};
    size_t const length = strcspn(text, "@:");
    *ret_is_copy = false;
    for (uint32_t i = 0; i < MEASURE_COUNT; i++) {
        const char *name = measure_op_name((enum measure_op)i);
        if (!measure_op_is_copy((enum measure_op)i) || strlen(name) != length ||
            strncmp(name, text, length) != 0)
            continue;
        *ret_is_copy = true;
        member.args.operation = (enum measure_op)i;
    }
    if (!*ret_is_copy) return STATUS_OK;
    if (text[length] == '@')
        return error_set(reterr, STATUS_INVALID, "--concurrent",
                         "\"%.60s\": every chip copies by itself, so there are no axes to name",
                         text);
    if (text[length] == ':')
        STATUS_TRY(sizes_parse(text + length + 1, "--concurrent", &member.size_bytes, reterr));
    member.args.group = (struct group){.dimension_count = 0}; /* One chip is one rank. */
    if (study->asked.machine.chip_count > 1)
        STATUS_TRY(
            measure_group(&study->asked.machine, NULL, "--concurrent", &member.args.group, reterr));
    (void)measure_group_text(&study->asked.machine, &member.args.group, member.args.axes);
    member.args.root = 0;
    member.args.script = NULL;
    member.args.ragged = (struct plan_ragged){0};
    return member_add(study, &member, reterr);
}

/* "reduce_scatter@x,y:256M": the size is what follows the last colon, if that does not belong to a
 * part of an axis ("z:4"). */
static enum status member_read(struct collective_study *study, char *text, struct error *reterr)
{
    struct collective_member member = {.args = study->member[0].args};
    bool is_copy = false;
    STATUS_TRY(copy_read(study, text, &is_copy, reterr));
    if (is_copy) return STATUS_OK;
    char *axes = strchr(text, '@');
    if (axes == NULL || axes == text)
        return error_set(reterr, STATUS_INVALID, "--concurrent",
                         "\"%.60s\" is neither a number nor OP@AXES[:SIZE], such as "
                         "reduce_scatter@x:256M",
                         text);
    *axes++ = '\0';
    char *last = strrchr(axes, ',');
    char *colon = strrchr(last == NULL ? axes : last, ':');
    bool const is_size = colon != NULL && strspn(colon + 1, "0123456789") != strlen(colon + 1);
    bool const is_second =
        colon != NULL && memchr(last == NULL ? axes : last, ':', (size_t)(colon - axes)) != NULL;
    if (is_size || is_second) {
        *colon = '\0';
        STATUS_TRY(sizes_parse(colon + 1, "--concurrent", &member.size_bytes, reterr));
    }
    STATUS_TRY(measure_op_find(text, "--concurrent", &member.args.operation, reterr));
    STATUS_TRY(
        measure_group(&study->asked.machine, axes, "--concurrent", &member.args.group, reterr));
    (void)measure_group_text(&study->asked.machine, &member.args.group, member.args.axes);
    member.args.root = 0;
    member.args.shift = 0;
    member.args.script = NULL;
    member.args.ragged = (struct plan_ragged){0};
    return member_add(study, &member, reterr);
}

static enum status concurrent_read(const struct options *options, struct collective_study *study,
                                   struct error *reterr)
{
    const char *text = NULL;
    for (uint32_t i = 0; (text = options_value_at(options, "--concurrent", i)) != NULL; i++) {
        char *copy = arena_text(study->arena, text);
        if (copy == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a name");
        if (copy[0] != '\0' && strspn(copy, "0123456789") == strlen(copy)) {
            uint32_t wanted = 0;
            for (const char *at = copy; *at != '\0' && wanted <= MEASURE_REQUESTS_MAX; at++)
                wanted = 10 * wanted + (uint32_t)(*at - '0');
            if (wanted == 0)
                return error_set(reterr, STATUS_INVALID, "--concurrent", "the least number is 1");
            for (uint32_t more = 1; more < wanted; more++)
                STATUS_TRY(member_add(study, &study->member[0], reterr));
            continue;
        }
        if (copy[strspn(copy, " ")] == '\0')
            return error_set(reterr, STATUS_INVALID, "--concurrent",
                             "names nothing; a number, or OP@AXES[:SIZE] with blanks between");
        char *next = NULL;
        for (char *at = copy + strspn(copy, " "); *at != '\0'; at = next + strspn(next, " ")) {
            next = at + strcspn(at, " ");
            if (*next != '\0') *next++ = '\0';
            STATUS_TRY(member_read(study, at, reterr));
        }
    }
    return STATUS_OK;
}

/* Only what is chosen has runners-up. */
static enum status runners_check(const struct collective_study *study, struct error *reterr)
{
    const struct collective_args *asked = &study->asked;
    bool chooses = false;
    for (uint32_t i = 0; i < asked->algorithm_count; i++)
        chooses = chooses || algorithm_is_chosen(&asked->algorithm[i]);
    if (!study->plays_runners || (chooses && asked->row.script == NULL)) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, "--runners-up",
                     "simulates what auto does not take, and %s; leave one of them out",
                     asked->row.script != NULL ? "--xml gives the algorithm"
                                               : "--algorithm names what to take");
}

enum status collective_read(const struct options *options, struct collective_study *study,
                            struct error *reterr)
{
    struct algorithm const unasked = {.means = ALGORITHM_AUTO};
    struct collective_args *asked = &study->asked;
    STATUS_TRY(pool_read(options, &study->thread_count, reterr));
    STATUS_TRY(collective_args_read(options, study->arena, asked, reterr));
    STATUS_TRY(msccl_check_alone(options, asked, reterr));
    STATUS_TRY(sizes_read(options_value(options, "-b"), options_value(options, "-e"),
                          options_value(options, "-f"), options_value(options, "-i"), &study->sizes,
                          reterr));
    uint64_t unused = 0;
    STATUS_TRY(measure_op_array_bytes(asked->row.operation, group_rank_count(&asked->row.group),
                                      study->sizes.end_bytes, "-e", &unused, reterr));
    STATUS_TRY(collective_read_ragged(options, study, reterr));
    STATUS_TRY(shift_read(options, &asked->row, reterr));
    if (asked->algorithm_count == 0) asked->algorithm[asked->algorithm_count++] = unasked;
    study->plays_runners = options_has(options, "--runners-up");
    STATUS_TRY(runners_check(study, reterr));
    study->checks = options_has(options, "--check");
    study->member[0].args = asked->row;
    study->member_count = 1;
    STATUS_TRY(concurrent_read(options, study, reterr));
    void *memory = NULL;
    study->run_count_max = sizes_count(&study->sizes) * asked->algorithm_count;
    STATUS_TRY(arena_try(study->arena, study->run_count_max, sizeof *study->runs, &memory, reterr));
    study->runs = memory;
    STATUS_TRY(arena_try(study->arena, (uint64_t)study->run_count_max * study->member_count,
                         sizeof *study->rows, &memory, reterr));
    study->rows = memory;
    study->options = options;
    return collective_read_trace(options, study, reterr);
}
