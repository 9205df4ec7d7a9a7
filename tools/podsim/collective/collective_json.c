/* The rows of `podsim collective` as JSON. */
#include <stdio.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/collective/collective.h"

static void put_link(struct json_writer *json, const struct collective_study *study,
                     const struct measure_row_run *run, uint32_t index)
{
    const struct trace_link *link = &run->link[index];
    struct measure_row_port const port = measure_row_port(run, index);
    uint32_t at[MACHINE_AXES_MAX];
    machine_coordinates(&study->asked.machine, link->busiest_chip, at);
    json_write_object(json);
    json_put_string(json, "name", machine_port_name(&study->asked.machine, index));
    json_put_unsigned(json, "bytes", link->bytes);
    json_put_real(json, "busy_fraction", port.busy_fraction);
    json_put_array(json, "busiest_at");
    for (uint32_t axis = 0; axis < study->asked.machine.axis_count; axis++)
        json_write_unsigned(json, at[axis]);
    json_write_array_end(json);
    json_put_real(json, "mean_queue_depth", port.mean_depth);
    json_put_real(json, "mean_wait_s", port.mean_wait_s);
    json_put_real(json, "longest_wait_s", port.longest_wait_s);
    json_write_object_end(json);
}

static void put_run(struct json_writer *json, const struct collective_study *study,
                    const struct measure_row_run *run)
{
    char digest[17];
    (void)snprintf(digest, sizeof digest, "%016llx", (unsigned long long)run->digest);
    json_write_object(json);
    json_put_unsigned(json, "size_bytes", run->size_bytes);
    json_put_string(json, "algorithm", study->rows[run->row_first].algorithm);
    json_put_unsigned(json, "collectives", run->row_count);
    json_put_unsigned(json, "time_ps", (uint64_t)run->time_ps);
    json_put_string(json, "digest", digest);
    json_put_unsigned(json, "events", run->events);
    json_put_unsigned(json, "transfers", run->transfers);
    if (run->row_count > 1) json_put_real(json, "fairness", run->fairness);
    json_put_array(json, "links");
    for (uint32_t port = 0; port < TRACE_PORTS_MAX; port++)
        if (measure_row_port_was_used(run, port)) put_link(json, study, run, port);
    json_write_array_end(json);
    json_write_object_end(json);
}

static void put_head(struct json_writer *json, const struct collective_study *study)
{
    const struct measure_row_question *question = &study->member[0].question;
    uint64_t const ranks = group_rank_count(&question->group);
    json_put_unsigned(json, "podsim", 1);
    json_put_string(json, "machine", study->asked.machine_text);
    json_put_string(json, "profile", study->asked.machine.chip.profile);
    json_put_string(json, "op", measure_op_name(question->operation));
    json_put_string(json, "axes", question->axes);
    json_put_unsigned(json, "ranks", ranks);
    json_put_unsigned(json, "groups", study->asked.machine.chip_count / ranks);
    json_put_unsigned(json, "chips", study->asked.machine.chip_count);
    json_put_unsigned(json, "chips_replayed", study->fold.chip_count);
    json_put_boolean(json, "complete", study->run_count == study->run_count_max);
}

void collective_write_json(const struct collective_study *study, struct strbuf *text)
{
    struct json_writer json;
    json_write_start(&json, text);
    json_write_object(&json);
    put_head(&json, study);
    json_put_array(&json, "rows");
    for (uint32_t i = 0; i < study->row_count; i++)
        collective_put_row(study, &study->rows[i], &json);
    json_write_array_end(&json);
    json_put_array(&json, "runs");
    for (uint32_t i = 0; i < study->run_count; i++) put_run(&json, study, &study->runs[i]);
    json_write_array_end(&json);
    json_write_object_end(&json);
    strbuf_add(text, "\n");
}
