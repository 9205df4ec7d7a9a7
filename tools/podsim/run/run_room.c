#include "tools/podsim/run/run_room.h"

#include "sim/report/inference_fit.h"
#include "sim/report/table.h"
#include "tools/podsim/common/room.h"

enum status run_room_find(const struct session *session, const struct report_input *input,
                          const struct least_memory *least, bool of_gib, struct worker *worker,
                          struct report_largest *ret_largest, struct error *reterr)
{
    uint64_t const hbm_bytes = session->machine.chip.hbm_capacity_bytes;
    uint64_t const gib_bytes = chip_gib_bytes(hbm_bytes);
    uint64_t const batch = session_batch(session);
    struct room_known const known = {
        .held = {{batch, (double)least->total_bytes, least->is_peak},
                 {batch, (double)session->trace.memory.peak_bytes, true}},
        .count = 2,
        .expected = {.is = of_gib,
                     .batch = inference_batch_expected(input, hbm_bytes),
                     .batch_of_gib = inference_batch_expected(input, gib_bytes)}};
    return room_find_largest(session, &known, worker, ret_largest, reterr);
}

/* An estimate by other steps, such as those with an even load of experts, says nothing where they
 * hold less than this step, which is known to hold too much. */
enum status run_room_find_unfit(const struct session *session, const struct report_input *input,
                                const struct least_memory *least, bool of_gib,
                                struct worker *worker, struct report_largest *ret_largest,
                                struct error *reterr)
{
    uint64_t const batch = session_batch(session);
    STATUS_TRY(run_room_find(session, input, least, of_gib, worker, ret_largest, reterr));
    if (ret_largest->batch >= batch) *ret_largest = (struct report_largest){.is = false};
    return STATUS_OK;
}

/* Where batches were not looked at, it is not known which buffers fewer sequences need. */
static void room_write(const struct inference_room *room, bool is_estimate, bool with_prompts,
                       struct strbuf *text)
{
    struct table_figure const least = table_count(room->least), most = table_count(room->most);
    strbuf_add(text, "%s%s ", is_estimate ? "about " : "", least.text);
    if (room->least + 1 == room->most) strbuf_add(text, "or %s ", most.text);
    bool const one = room->least == 1 && room->most != 2;
    strbuf_add(text, "%s of this length would fit", one ? "sequence" : "sequences");
    if (room->least == room->most && with_prompts) strbuf_add(text, " with the prompts");
    if (room->least + 1 < room->most)
        strbuf_add(text, ", and up to %s if their buffers shrink as they do", most.text);
}

bool run_room_write(const struct session *session, const struct report_largest *largest,
                    double peak_bytes, struct strbuf *text)
{
    bool const with_prompts = session->scenario.workload.kind == WORKLOAD_MIXED;
    struct inference_room const room =
        largest->is ? (struct inference_room){.least = largest->batch, .most = largest->batch}
                    : inference_room(&session->machine, &session->roofline, peak_bytes);
    room_write(&room, largest->is_estimate, with_prompts, text);
    return room.most > 0;
}
