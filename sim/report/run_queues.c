#include "sim/report/run_queues.h"

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/report/column_table.h"
#include "sim/report/words.h"

static const char *const queue_names[] = {
#define X(name, text) text,
    TRACE_QUEUE_TABLE(X)
#undef X
};

#define OF_STEP(busy_ps) REAL(trace->step_ps > 0 ? (double)(busy_ps) / (double)trace->step_ps : 0)

/* The links of a port of the grid have a direction, cables to switches and hosts a name. */
#define LINKS(X)                                                                                   \
    X(NAME, NULL, WORDS(machine_port_name(machine, row)), IN_WORDS(column_words))                  \
    X(AXIS, "axis", WHERE(is_grid, WORDS(machine_axis_name(machine, row / 2))), HIDDEN)            \
    X(DIRECTION, "direction", WHERE(is_grid, WORDS(row % 2 == 0 ? "+" : "-")), HIDDEN)             \
    X(CABLE, "cable", WHERE(!is_grid, WORDS(machine_port_name(machine, row))), HIDDEN)             \
    X(SENT, "bytes", WHOLE(link->bytes), HIDDEN)                                                   \
    X(BUSY, "busy_fraction", OF_STEP(link->busy_ps), IN_WORDS(column_share))                       \
    X(MEAN, "mean_bytes", REAL((double)link->sum_bytes / (double)link->link_count), HIDDEN)        \
    X(QUEUED, "queued_s", SECONDS(link->queued_ps), HIDDEN)

#define QUEUES(X)                                                                                  \
    X(QUEUE, "name", SAID(queue_names[row], words_resource(machine, queue_names[row])),            \
      IN_WORDS(column_words))                                                                      \
    X(QUEUE_BUSY, "busy_fraction", OF_STEP(trace->queue_busy_ps[row]), IN_WORDS(column_share))     \
    X(COLLECTIVES, "collectives_fraction", WHERE(row == TRACE_QUEUE_HBM, OF_STEP(trace->dma_ps)),  \
      HIDDEN)

enum { LINKS(COLUMN_NAME) LINKS_TOTAL };
enum { QUEUES(COLUMN_NAME) QUEUES_TOTAL };

static const struct column links[] = {LINKS(COLUMN_ENTRY)};
static const struct column queues[] = {QUEUES(COLUMN_ENTRY)};

static void find_link(const struct report_input *input, uint32_t row,
                      struct column_value *ret_values)
{
    const struct machine *machine = input->machine;
    const struct trace *trace = input->trace;
    const struct trace_link *link = &trace->link[row];
    bool const is_grid = row < MACHINE_GRID_PORTS;
    LINKS(COLUMN_FIND)
}

static void find_queue(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct report_input *input = owner;
    const struct machine *machine = input->machine;
    const struct trace *trace = input->trace;
    QUEUES(COLUMN_FIND)
}

static const struct column_table queues_table = {queues, QUEUES_TOTAL, {0}, find_queue};

static bool was_used(const struct report_input *input, uint32_t port)
{
    return input->trace->link[port].link_count > 0;
}

/* As many in a line as a sentence has room for. */
static void write_links(const struct report_input *input, struct strbuf *text)
{
    static const char between[] = "   ";
    uint32_t const room = table_wrap_columns(text);
    struct column_value values[LINKS_TOTAL];
    bool first = true;
    for (uint32_t port = 0; port < MACHINE_PORTS_MAX; port++) {
        if (!was_used(input, port)) continue;
        find_link(input, port, values);
        const char *const name = CELL(links, values, NAME);
        const char *const share = CELL(links, values, BUSY);
        uint32_t const width = table_columns(name) + 1 + table_columns(share);
        if (!first && strbuf_column(text) + table_columns(between) + width > room) {
            strbuf_add(text, "\n");
            table_line(text, "");
            first = true;
        }
        strbuf_add(text, "%s%s %s", first ? "" : between, name, share);
        first = false;
    }
    strbuf_add(text, "%s\n", first ? "none" : "");
}

void run_queues_write(const struct report_input *input, struct strbuf *text)
{
    struct column_value values[QUEUES_TOTAL];
    strbuf_add(text, "\n");
    table_line(text, "busy");
    for (uint32_t i = 0; i < TRACE_QUEUE_COUNT; i++) {
        find_queue(input, i, values);
        strbuf_add(text, "%s%s %s", i > 0 ? "   " : "", CELL(queues, values, QUEUE),
                   CELL(queues, values, QUEUE_BUSY));
    }
    strbuf_add(text, "\n");
    table_line(text, "links busy");
    write_links(input, text);
}

void run_queues_put(const struct report_input *input, struct json_writer *json)
{
    struct column_value values[LINKS_TOTAL];
    json_put_array(json, "links");
    for (uint32_t port = 0; port < MACHINE_PORTS_MAX; port++) {
        if (!was_used(input, port)) continue;
        find_link(input, port, values);
        json_write_object(json);
        column_put(links, values, 0, LINKS_TOTAL - 1, json);
        json_write_object_end(json);
    }
    json_write_array_end(json);
    json_write_key(json, "queues");
    column_put_rows(&queues_table, input, TRACE_QUEUE_COUNT, json);
}
