/* The options of `podsim collective`. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/scenario/scenario.h"
#include "tools/podsim/collective.h"

const struct option collective_options[] = {
    {"--machine", "SPEC", "CHIP:SHAPE or a product: tpu-v5e:8x16, v5p-8192", false},
    {"--profile", "NAME", "of the chip: ideal (if left out) or measured", false},
    {"--op", "NAME", "all_gather, all_reduce, ...", false},
    {"--axes", "LIST", "of the machine: x,y or y:4 (all if left out)", false},
    {"-b", "SIZE", "least size in bytes; K, M, G are powers of 1024", false},
    {"-e", "SIZE", "greatest size", false},
    {"-f", "FACTOR", "from one size to the next (2)", false},
    {"-i", "SIZE", "from one size to the next, added", false},
    {"--algorithm", "NAMES", "auto (if left out), or names with commas between", false},
    {"--dtype", "NAME", "of the elements: bf16 (if left out), fp32, fp8, int8, ...", false},
    {"--root", "RANK", "of broadcast, reduce, gather, scatter (0)", false},
    {"--concurrent", "N|LIST", "so many at once, or beside it OP@AXES[:SIZE] ...", true},
    {"--full", NULL, "every chip and every hop: no folding", false},
    {"--engine", "NAME", "fast or reference: the queue behind the clock", false},
    {"--json", "FILE", "write the rows as JSON; - is standard output", false},
    {"--csv", "FILE", "write the rows as CSV; - is standard output", false},
    {0},
};

static enum status need(const struct options *options, const char *name, const char *example,
                        const char **ret_value, struct error *reterr)
{
    *ret_value = options_value(options, name);
    if (*ret_value != NULL) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, name, "is missing; for example %s %s", name, example);
}

static enum status machine_read(const struct options *options, struct collective_study *study,
                                struct error *reterr)
{
    struct machine_plan plan;
    const char *const profile = options_value(options, "--profile");
    STATUS_TRY(need(options, "--machine", "tpu-v5e:8x16", &study->machine_text, reterr));
    STATUS_TRY(
        scenario_machine_parse(study->arena, study->machine_text, "--machine", &plan, reterr));
    if (profile != NULL) plan.profile = profile;
    return machine_build(study->arena, &plan, &study->machine, reterr);
}

static enum status root_read(const struct options *options, struct collective_study *study,
                             struct error *reterr)
{
    const char *text = options_value(options, "--root");
    uint64_t const ranks = group_rank_count(&study->member[0].question.group);
    if (text == NULL) return STATUS_OK;
    if (!operation_is_rooted(study->member[0].question.operation))
        return error_set(reterr, STATUS_INVALID, "--root", "%s has no root",
                         operation_name(study->member[0].question.operation));
    uint64_t root = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && root < ranks; at++) root = 10 * root + (uint64_t)(*at - '0');
    if (at == text || *at != '\0' || root >= ranks)
        return error_set(reterr, STATUS_INVALID, "--root",
                         "\"%.40s\" is no rank of the group; they go from 0 to %llu", text,
                         (unsigned long long)(ranks - 1));
    study->member[0].question.root = (uint32_t)root;
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
    if (*ret_format != FORMAT_COUNT) return STATUS_OK;
    return error_set(reterr, STATUS_NOT_FOUND, "--dtype",
                     "no number format \"%.40s\"; the nearest is %s", text,
                     name_nearest(text, names));
}

static enum status algorithms_read(const struct options *options, struct collective_study *study,
                                   struct error *reterr)
{
    const char *list = options_value(options, "--algorithm");
    for (const char *at = list == NULL ? "auto" : list; at != NULL;) {
        size_t const length = strcspn(at, ",");
        if (length == 0)
            return error_set(reterr, STATUS_INVALID, "--algorithm",
                             "\"%.80s\" has an empty name; write names with one comma between",
                             list);
        if (study->algorithm_count == COLLECTIVE_ALGORITHMS_MAX)
            return error_set(reterr, STATUS_LIMIT, "--algorithm", "more than %d names",
                             COLLECTIVE_ALGORITHMS_MAX);
        char *name = arena_format(study->arena, "%.*s", (int)length, at);
        if (name == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for a name");
        study->algorithm[study->algorithm_count++] = name;
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    return STATUS_OK;
}

static enum status engine_read(const struct options *options, struct collective_study *study,
                               struct error *reterr)
{
    static const char *const names[] = {"fast", "reference", NULL};
    const char *text = options_value(options, "--engine");
    study->run.full = options_has(options, "--full");
    study->run.engine = text == NULL ? names[0] : text;
    for (uint32_t i = 0; names[i] != NULL; i++)
        if (strcmp(study->run.engine, names[i]) == 0) return STATUS_OK;
    return error_set(reterr, STATUS_NOT_FOUND, "--engine", "no engine \"%.40s\"; the nearest is %s",
                     text, name_nearest(text, names));
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

/* "reduce_scatter@x,y:256M": the size is what follows the last colon, if that does not belong to a
 * part of an axis ("z:4"). */
static enum status member_read(struct collective_study *study, char *text, struct error *reterr)
{
    struct collective_member member = {.question = study->member[0].question};
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
    STATUS_TRY(operation_find(text, "--concurrent", &member.question.operation, reterr));
    STATUS_TRY(
        measure_group(&study->machine, axes, "--concurrent", &member.question.group, reterr));
    (void)measure_group_text(&study->machine, &member.question.group, member.question.axes);
    member.question.root = 0;
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
        char *next = NULL;
        for (char *at = copy + strspn(copy, " "); *at != '\0'; at = next + strspn(next, " ")) {
            next = at + strcspn(at, " ");
            if (*next != '\0') *next++ = '\0';
            STATUS_TRY(member_read(study, at, reterr));
        }
    }
    return STATUS_OK;
}

enum status collective_read(const struct options *options, struct collective_study *study,
                            struct error *reterr)
{
    struct row_question *question = &study->member[0].question;
    const char *operation = NULL;
    study->member_count = 1;
    STATUS_TRY(need(options, "--op", "all_reduce", &operation, reterr));
    STATUS_TRY(operation_find(operation, "--op", &question->operation, reterr));
    STATUS_TRY(machine_read(options, study, reterr));
    question->machine = &study->machine;
    STATUS_TRY(measure_group(&study->machine, options_value(options, "--axes"), "--axes",
                             &question->group, reterr));
    (void)measure_group_text(&study->machine, &question->group, question->axes);
    STATUS_TRY(sizes_read(options_value(options, "-b"), options_value(options, "-e"),
                          options_value(options, "-f"), options_value(options, "-i"), &study->sizes,
                          reterr));
    STATUS_TRY(algorithms_read(options, study, reterr));
    STATUS_TRY(format_read(options, &question->format, reterr));
    STATUS_TRY(root_read(options, study, reterr));
    STATUS_TRY(engine_read(options, study, reterr));
    STATUS_TRY(concurrent_read(options, study, reterr));
    void *memory = NULL;
    study->run_count_max = sizes_count(&study->sizes) * study->algorithm_count;
    STATUS_TRY(arena_try(study->arena, study->run_count_max, sizeof *study->runs, &memory, reterr));
    study->runs = memory;
    STATUS_TRY(arena_try(study->arena, (uint64_t)study->run_count_max * study->member_count,
                         sizeof *study->rows, &memory, reterr));
    study->rows = memory;
    return STATUS_OK;
}
