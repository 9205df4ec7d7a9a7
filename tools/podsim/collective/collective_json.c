/* The rows of `podsim collective` as JSON. */
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/collective/collective.h"

void collective_write_json(const struct collective_study *study, struct strbuf *text)
{
    struct json_writer json;
    json_write_start(&json, text);
    json_write_object(&json);
    collective_put_head(study, &json);
    json_put_array(&json, "rows");
    for (uint32_t i = 0; i < study->row_count; i++)
        collective_put_row(study, &study->rows[i], &json);
    json_write_array_end(&json);
    json_put_array(&json, "runs");
    for (uint32_t i = 0; i < study->run_count; i++)
        collective_put_run(study, &study->runs[i], &json);
    json_write_array_end(&json);
    json_write_object_end(&json);
    strbuf_add(text, "\n");
}
