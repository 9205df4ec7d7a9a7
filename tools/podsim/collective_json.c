/* The rows of `podsim collective` as JSON. */
#include "sim/base/json.h"
#include "sim/base/text.h"
#include "tools/podsim/collective.h"

static void put_text(struct json_writer *json, const char *key, const char *value)
{
    json_write_key(json, key);
    json_write_string(json, value);
}

static void put_count(struct json_writer *json, const char *key, uint64_t value)
{
    json_write_key(json, key);
    json_write_unsigned(json, value);
}

static void put_real(struct json_writer *json, const char *key, double value)
{
    json_write_key(json, key);
    json_write_real(json, value);
}

static void put_row(struct json_writer *json, const struct collective_study *study,
                    const struct row *row)
{
    const struct row_question *question = &study->question;
    json_write_object(json);
    put_text(json, "op", operation_name(question->operation));
    put_text(json, "machine", study->machine_text);
    put_text(json, "profile", study->machine.chip.profile);
    put_text(json, "axes", study->axes);
    put_text(json, "algorithm", row->algorithm);
    put_count(json, "ranks", group_rank_count(&question->group));
    put_count(json, "size_bytes", row->size_bytes);
    put_count(json, "array_bytes", row->array_bytes);
    put_count(json, "count", row->count);
    put_text(json, "dtype", format_name(question->format));
    put_count(json, "time_ps", (uint64_t)row->time_ps);
    put_real(json, "algbw_bytes_per_s", row->algbw_bytes_per_s);
    put_real(json, "busbw_bytes_per_s", row->busbw_bytes_per_s);
    put_real(json, "roofline_s", row->roofline_s);
    put_text(json, "bound_by", row->bound_by);
    json_write_object_end(json);
}

void collective_write_json(const struct collective_study *study, struct text *text)
{
    struct json_writer json;
    uint64_t const ranks = group_rank_count(&study->question.group);
    json_write_start(&json, text);
    json_write_object(&json);
    put_count(&json, "podsim", 1);
    put_text(&json, "machine", study->machine_text);
    put_text(&json, "profile", study->machine.chip.profile);
    put_text(&json, "op", operation_name(study->question.operation));
    put_text(&json, "axes", study->axes);
    put_count(&json, "ranks", ranks);
    put_count(&json, "groups", study->machine.chip_count / ranks);
    put_count(&json, "chips", study->machine.chip_count);
    put_count(&json, "chips_replayed", study->fold.chip_count);
    json_write_key(&json, "complete");
    json_write_boolean(&json, study->row_count == study->row_count_max);
    json_write_key(&json, "rows");
    json_write_array(&json);
    for (uint32_t i = 0; i < study->row_count; i++) put_row(&json, study, &study->rows[i]);
    json_write_array_end(&json);
    json_write_object_end(&json);
    text_add(text, "\n");
}
