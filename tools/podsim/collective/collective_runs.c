/* The runs of `podsim collective`: as JSON, and what collectives that went at once did to each
 * other. */
#include <stdio.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/report/column_table.h"
#include "sim/report/table_fit.h"
#include "tools/podsim/collective/collective.h"

enum { DIGEST_BYTES = 17 };

static struct table_figure three_digits(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "%.3f", value.real);
    return figure;
}

#define RUNS(X)                                                                                    \
    X(SIZE, "size_bytes", WHOLE(run->size_bytes), HIDDEN)                                          \
    X(ALGORITHM, "algorithm", WORDS(study->rows[run->row_first].algorithm), HIDDEN)                \
    X(COLLECTIVES, "collectives", WHOLE(run->row_count), IN_WORDS(column_plain))                   \
    X(TIME, "time_ps", WHOLE(run->time_ps), HIDDEN)                                                \
    X(DIGEST, "digest", WORDS(digest), HIDDEN)                                                     \
    X(EVENTS, "events", WHOLE(run->events), HIDDEN)                                                \
    X(TRANSFERS, "transfers", WHOLE(run->transfers), HIDDEN)                                       \
    X(FAIRNESS, "fairness", WHERE(run->row_count > 1, REAL(run->fairness)), IN_WORDS(three_digits))

/* A port of the grid, or one end of the cables of a tier: its busiest link. */
#define LINKS(X)                                                                                   \
    X(NAME, "name", WORDS(machine_port_name(machine, index)), IN_WORDS(column_words))              \
    X(SENT, "bytes", WHOLE(run->link[index].bytes), HIDDEN)                                        \
    X(BUSY, "busy_fraction", REAL(port.busy_fraction), IN_WORDS(column_share))                     \
    X(DEPTH, "mean_queue_depth", REAL(port.mean_depth), IN_WORDS(column_two_digits))               \
    X(WAIT, "mean_wait_s", REAL(port.mean_wait_s), IN_WORDS(column_seconds))                       \
    X(LONGEST, "longest_wait_s", REAL(port.longest_wait_s), IN_WORDS(column_seconds))

enum { RUNS(COLUMN_NAME) RUNS_TOTAL };
enum { LINKS(COLUMN_NAME) LINKS_TOTAL };

static const struct column runs[] = {RUNS(COLUMN_ENTRY)};
static const struct column links[] = {LINKS(COLUMN_ENTRY)};

static void find_run(const struct collective_study *study, const struct measure_row_run *run,
                     char digest[DIGEST_BYTES], struct column_value *ret_values)
{
    (void)snprintf(digest, DIGEST_BYTES, "%016llx", (unsigned long long)run->digest);
    RUNS(COLUMN_FIND)
}

static void find_link(const struct machine *machine, const struct measure_row_run *run,
                      uint32_t index, struct column_value *ret_values)
{
    struct measure_row_port const port = measure_row_port(run, index);
    LINKS(COLUMN_FIND)
}

void collective_write_run(const struct collective_study *study, const struct measure_row_run *run,
                          struct strbuf *text)
{
    struct column_value values[RUNS_TOTAL], link[LINKS_TOTAL];
    char digest[DIGEST_BYTES];
    double least = 0, most = 0;
    for (uint32_t i = 0; i < run->row_count; i++) {
        double const slowdown = measure_row_slowdown(&study->rows[run->row_first + i]);
        least = i == 0 || slowdown < least ? slowdown : least;
        most = slowdown > most ? slowdown : most;
    }
    find_run(study, run, digest, values);
    table_sentence(text);
    strbuf_add(text, "# %s at once: slower by %.2f to %.2f, fairness %s",
               CELL(runs, values, COLLECTIVES), least, most, CELL(runs, values, FAIRNESS));
    uint32_t const busiest = measure_row_busiest_port(run);
    if (busiest < TRACE_PORTS_MAX) {
        find_link(&study->asked.machine, run, busiest, link);
        strbuf_add(text, "; busiest link %s: %s busy, %s messages wait, for %s, at most %s",
                   CELL(links, link, NAME), CELL(links, link, BUSY), CELL(links, link, DEPTH),
                   CELL(links, link, WAIT), CELL(links, link, LONGEST));
    }
    strbuf_add(text, "\n");
}

static void put_link(const struct machine *machine, const struct measure_row_run *run,
                     uint32_t index, struct json_writer *json)
{
    struct column_value values[LINKS_TOTAL];
    uint32_t at[MACHINE_AXES_MAX];
    machine_coordinates(machine, run->link[index].busiest_chip, at);
    find_link(machine, run, index, values);
    json_write_object(json);
    column_put(links, values, NAME, BUSY, json);
    json_put_array(json, "busiest_at");
    for (uint32_t axis = 0; axis < machine->axis_count; axis++) json_write_unsigned(json, at[axis]);
    json_write_array_end(json);
    column_put(links, values, DEPTH, LONGEST, json);
    json_write_object_end(json);
}

void collective_put_run(const struct collective_study *study, const struct measure_row_run *run,
                        struct json_writer *json)
{
    struct column_value values[RUNS_TOTAL];
    char digest[DIGEST_BYTES];
    find_run(study, run, digest, values);
    json_write_object(json);
    column_put(runs, values, 0, RUNS_TOTAL - 1, json);
    json_put_array(json, "links");
    for (uint32_t port = 0; port < TRACE_PORTS_MAX; port++)
        if (measure_row_port_was_used(run, port)) put_link(&study->asked.machine, run, port, json);
    json_write_array_end(json);
    json_write_object_end(json);
}
