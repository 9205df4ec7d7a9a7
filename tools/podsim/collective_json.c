/* The rows of `podsim collective` as JSON. */
#include <stdio.h>

#include "sim/base/text.h"
#include "tools/podsim/collective.h"
#include "tools/podsim/json_put.h"

static void put_runners(struct json_writer *json, const struct row *row)
{
    if (row->runner_count == 0) return;
    json_write_key(json, "runners_up");
    json_write_array(json);
    for (uint32_t i = 0; i < row->runner_count; i++) {
        const struct row_runner *runner = &row->runner[i];
        json_write_object(json);
        put_text(json, "algorithm", runner->algorithm);
        put_text(json, "protocol", protocol_name(runner->protocol));
        put_real(json, "estimate_s", runner->estimate_s);
        if (runner->time_ps > 0) put_count(json, "time_ps", (uint64_t)runner->time_ps);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static void put_row(struct json_writer *json, const struct collective_study *study,
                    const struct row *row)
{
    const struct row_question *question = row->question;
    json_write_object(json);
    put_text(json, "op", operation_name(question->operation));
    put_text(json, "machine", study->asked.machine_text);
    put_text(json, "profile", study->asked.machine.chip.profile);
    put_text(json, "axes", question->axes);
    put_text(json, "algorithm", row->algorithm);
    put_text(json, "protocol", protocol_name(row->protocol));
    put_count(json, "ranks", group_rank_count(&question->group));
    put_count(json, "size_bytes", row->size_bytes);
    put_count(json, "array_bytes", row->array_bytes);
    put_count(json, "count", row->count);
    put_text(json, "dtype", format_name(question->format));
    if (study->checks) {
        json_write_key(json, "proved");
        json_write_boolean(json, row->proved);
    }
    collective_put_ragged(row, json);
    if (operation_is_rooted(question->operation)) put_count(json, "root", question->root);
    if (question->operation == OPERATION_SENDRECV)
        put_count(json, "shift", question->shift == 0 ? 1 : question->shift);
    put_count(json, "time_ps", (uint64_t)row->time_ps);
    put_real(json, "algbw_bytes_per_s", row->algbw_bytes_per_s);
    put_real(json, "busbw_bytes_per_s", row->busbw_bytes_per_s);
    put_real(json, "roofline_s", row->roofline_s);
    put_real(json, "latency_s", row->latency_s);
    put_real(json, "strict_s", row->strict_s);
    put_text(json, "bound_by", row->bound_by);
    put_text(json, "bound_where", row->bound_where);
    if (row->estimate_s > 0) put_real(json, "estimate_s", row->estimate_s);
    if (row->tuner_line > 0) put_count(json, "tuner_line", row->tuner_line);
    put_runners(json, row);
    if (study->member_count > 1) {
        put_count(json, "alone_ps", (uint64_t)row->alone_ps);
        put_real(json, "slowdown", row_slowdown(row));
    }
    json_write_object_end(json);
}

static void put_link(struct json_writer *json, const struct collective_study *study,
                     const struct row_run *run, uint32_t index)
{
    const struct trace_link *link = &run->link[index];
    struct row_port const port = row_port(run, index);
    uint32_t at[MACHINE_AXES_MAX];
    machine_coordinates(&study->asked.machine, link->busiest_chip, at);
    json_write_object(json);
    put_text(json, "name", machine_port_name(&study->asked.machine, index));
    put_count(json, "bytes", link->bytes);
    put_real(json, "busy_fraction", port.busy_fraction);
    json_write_key(json, "busiest_at");
    json_write_array(json);
    for (uint32_t axis = 0; axis < study->asked.machine.axis_count; axis++)
        json_write_unsigned(json, at[axis]);
    json_write_array_end(json);
    put_real(json, "mean_queue_depth", port.mean_depth);
    put_real(json, "mean_wait_s", port.mean_wait_s);
    put_real(json, "longest_wait_s", port.longest_wait_s);
    json_write_object_end(json);
}

static void put_run(struct json_writer *json, const struct collective_study *study,
                    const struct row_run *run)
{
    char digest[17];
    (void)snprintf(digest, sizeof digest, "%016llx", (unsigned long long)run->digest);
    json_write_object(json);
    put_count(json, "size_bytes", run->size_bytes);
    put_text(json, "algorithm", study->rows[run->row_first].algorithm);
    put_count(json, "collectives", run->row_count);
    put_count(json, "time_ps", (uint64_t)run->time_ps);
    put_text(json, "digest", digest);
    put_count(json, "events", run->events);
    put_count(json, "transfers", run->transfers);
    if (run->row_count > 1) put_real(json, "fairness", run->fairness);
    json_write_key(json, "links");
    json_write_array(json);
    for (uint32_t port = 0; port < TRACE_PORTS_MAX; port++)
        if (row_port_was_used(run, port)) put_link(json, study, run, port);
    json_write_array_end(json);
    json_write_object_end(json);
}

static void put_head(struct json_writer *json, const struct collective_study *study)
{
    const struct row_question *question = &study->member[0].question;
    uint64_t const ranks = group_rank_count(&question->group);
    put_count(json, "podsim", 1);
    put_text(json, "machine", study->asked.machine_text);
    put_text(json, "profile", study->asked.machine.chip.profile);
    put_text(json, "op", operation_name(question->operation));
    put_text(json, "axes", question->axes);
    put_count(json, "ranks", ranks);
    put_count(json, "groups", study->asked.machine.chip_count / ranks);
    put_count(json, "chips", study->asked.machine.chip_count);
    put_count(json, "chips_replayed", study->fold.chip_count);
    json_write_key(json, "complete");
    json_write_boolean(json, study->run_count == study->run_count_max);
}

void collective_write_json(const struct collective_study *study, struct text *text)
{
    struct json_writer json;
    json_write_start(&json, text);
    json_write_object(&json);
    put_head(&json, study);
    json_write_key(&json, "rows");
    json_write_array(&json);
    for (uint32_t i = 0; i < study->row_count; i++) put_row(&json, study, &study->rows[i]);
    json_write_array_end(&json);
    json_write_key(&json, "runs");
    json_write_array(&json);
    for (uint32_t i = 0; i < study->run_count; i++) put_run(&json, study, &study->runs[i]);
    json_write_array_end(&json);
    json_write_object_end(&json);
    text_add(text, "\n");
}
