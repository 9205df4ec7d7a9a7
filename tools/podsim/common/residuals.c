#include "tools/podsim/common/residuals.h"

#include "sim/base/arena.h"
#include "sim/base/embed.h"
#include "sim/base/json.h"
#include "sim/base/units.h"
#include "sim/kernels/kernels.h"
#include "sim/scenario/preset.h"
#include "tools/podsim/common/session.h"

/* Written at build time from workloads/residuals.json. */
extern const struct embed_file residual_files[];

enum { ROWS_MAX = 4096, REACH_LEAST_PPM = 1000 * 1000 };

const char *const residual_work_names[RESIDUAL_WORKS + 1] = {
    [RESIDUAL_DENSE] = "dense", [RESIDUAL_OTHER] = "other", [RESIDUAL_SERVING] = "serving"};
const char *const residual_work_words[RESIDUAL_WORKS] = {
    [RESIDUAL_DENSE] = "training without experts at 25% MFU or more",
    [RESIDUAL_OTHER] =
        "training with experts, below 25% MFU, or with a framework of 2022 or before",
    [RESIDUAL_SERVING] = "inference"};

static enum status text_read(struct json *row, const char *key, const char **ret,
                             struct error *reterr)
{
    struct json *value = NULL;
    STATUS_TRY(json_need(row, key, &value, reterr));
    return json_as_string(value, ret, reterr);
}

static enum status row_read(struct json *json, struct residual *row, struct error *reterr)
{
    static const char *const keys[] = {"id",    "publication", "work", "chip",
                                       "stack", "ratio_ppm",   NULL};
    struct json *value = NULL;
    uint32_t work = 0;
    int64_t ratio_ppm = 0;
    STATUS_TRY(json_as_object(json, reterr));
    STATUS_TRY(text_read(json, "id", &row->id, reterr));
    STATUS_TRY(text_read(json, "publication", &row->publication, reterr));
    STATUS_TRY(text_read(json, "chip", &row->kind.chip, reterr));
    STATUS_TRY(text_read(json, "stack", &row->kind.stack, reterr));
    STATUS_TRY(json_need(json, "work", &value, reterr));
    STATUS_TRY(json_choice(value, residual_work_names, &work, reterr));
    row->kind.work = (enum residual_work)work;
    STATUS_TRY(json_need(json, "ratio_ppm", &value, reterr));
    STATUS_TRY(json_as_integer(value, 1, RESIDUAL_RATIO_MOST_PPM, &ratio_ppm, reterr));
    row->ratio_ppm = (uint32_t)ratio_ppm;
    return json_end(json, keys, reterr);
}

static enum status reaches_read(struct json *json, struct residuals *residuals,
                                struct error *reterr)
{
    STATUS_TRY(json_as_object(json, reterr));
    for (int work = 0; work < RESIDUAL_WORKS; work++) {
        struct json *value = NULL;
        int64_t reach_ppm = 0;
        STATUS_TRY(json_need(json, residual_work_names[work], &value, reterr));
        STATUS_TRY(
            json_as_integer(value, REACH_LEAST_PPM, RESIDUAL_RATIO_MOST_PPM, &reach_ppm, reterr));
        residuals->reach_ppm[work] = (uint32_t)reach_ppm;
    }
    return json_end(json, residual_work_names, reterr);
}

static enum status document_read(struct arena *arena, struct json *document,
                                 struct residuals *residuals, struct error *reterr)
{
    static const char *const keys[] = {"podsim_residuals", "reach_ppm", "rows", NULL};
    struct json *value = NULL, *rows = NULL;
    int64_t number = 0;
    void *memory = NULL;
    STATUS_TRY(json_need(document, "podsim_residuals", &value, reterr));
    STATUS_TRY(
        json_as_integer(value, RESIDUAL_FILE_VERSION, RESIDUAL_FILE_VERSION, &number, reterr));
    STATUS_TRY(json_need(document, "reach_ppm", &value, reterr));
    STATUS_TRY(reaches_read(value, residuals, reterr));
    STATUS_TRY(json_need(document, "rows", &rows, reterr));
    if (json_count(rows) > ROWS_MAX)
        return error_set(reterr, STATUS_LIMIT, json_where(rows), "has too many rows");
    STATUS_TRY(arena_try(arena, json_count(rows), sizeof *residuals->row, &memory, reterr));
    residuals->row = memory;
    for (uint32_t i = 0; i < json_count(rows); i++)
        STATUS_TRY(row_read(json_at(rows, i), &residuals->row[residuals->row_count++], reterr));
    return json_end(document, keys, reterr);
}

enum status residuals_read(struct arena *arena, struct residuals *ret_residuals,
                           struct error *reterr)
{
    const struct embed_file *file = &residual_files[0];
    struct json *document = NULL;
    *ret_residuals = (struct residuals){.row_count = 0};
    STATUS_TRY(json_read_text(arena, file->name, file->bytes, file->size_bytes, &document, reterr));
    enum status const status = document_read(arena, document, ret_residuals, reterr);
    if (status != STATUS_OK) error_in_file(reterr, file->name);
    json_free(document);
    return status;
}

/* Whether the step's preset is of a framework whose successors do much of a step another way. */
static enum status is_of_past(const struct session *session, bool *ret_is, struct error *reterr)
{
    struct preset preset;
    *ret_is = false;
    if (session->scenario.preset == NULL) return STATUS_OK;
    STATUS_TRY(preset_find(session->arena, session->scenario.preset, "/preset", &preset, reterr));
    *ret_is = preset.year > 0 && preset.year <= RESIDUAL_PAST_YEAR;
    return STATUS_OK;
}

static enum status work_find(const struct session *session, enum residual_work *ret_work,
                             struct error *reterr)
{
    const struct workload_plan *plan = &session->scenario.workload;
    const struct roofline *roofline = &session->roofline;
    bool is_past = false;
    *ret_work = RESIDUAL_SERVING;
    if (plan->kind != WORKLOAD_TRAIN_STEP) return STATUS_OK;
    STATUS_TRY(is_of_past(session, &is_past, reterr));
    double const useful_flop = roofline->flop.useful + roofline->flop.useful_attention;
    double const peak_flop = session->machine.chip_count * roofline->rates.peak_flop_per_s *
                             units_seconds(session->trace.step_ps);
    bool const is_steady = 100 * useful_flop >= RESIDUAL_STEADY_MFU_PERCENT * peak_flop;
    bool const is_other = is_past || !is_steady || model_has_experts(&plan->model);
    *ret_work = is_other ? RESIDUAL_OTHER : RESIDUAL_DENSE;
    return STATUS_OK;
}

enum status residual_kind_check(const struct session *session, struct error *reterr)
{
    const struct chip *chip = &session->machine.chip;
    if (session->is_program)
        return error_set(reterr, STATUS_UNSUPPORTED, "",
                         "a program's text does not say which measured steps are of its kind; run "
                         "the scenario it comes from");
    if (chip->is_ideal)
        return error_set(reterr, STATUS_UNSUPPORTED, "/machine/profile",
                         "the profile \"ideal\" is a bound, and no measured step is compared with "
                         "it; \"measured\" and a stack of `podsim list kernels` are");
    if (session->scenario.lacking_stack != NULL && chip->kernels.stack == NULL)
        return error_set(reterr, STATUS_UNSUPPORTED, "/machine/stack",
                         "measured steps are compared with simulated ones that have measured "
                         "kernels, and \"%.40s\", the stack of the preset \"%.40s\", has no "
                         "tables for %.60s",
                         session->scenario.lacking_stack, session->scenario.preset, chip->name);
    if (chip->kernels.stack == NULL)
        return error_set(reterr, STATUS_UNSUPPORTED, "/machine/stack",
                         "measured steps are compared with simulated ones that have measured "
                         "kernels, and the machine names no stack of `podsim list kernels`");
    return STATUS_OK;
}

enum status residual_kind_find(const struct session *session, struct residual_kind *ret_kind,
                               struct error *reterr)
{
    const struct chip *chip = &session->machine.chip;
    enum residual_work work = RESIDUAL_SERVING;
    STATUS_TRY(residual_kind_check(session, reterr));
    STATUS_TRY(work_find(session, &work, reterr));
    *ret_kind = (struct residual_kind){.work = work,
                                       .chip = chip->name,
                                       .stack = chip->kernels.stack->is_own_file
                                                    ? session->scenario.machine.stack
                                                    : chip->kernels.stack->name,
                                       .is_own_stack = chip->kernels.stack->is_own_file};
    return STATUS_OK;
}
