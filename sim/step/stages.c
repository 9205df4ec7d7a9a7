#include "sim/step/stages.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/schedule/schedule.h"

enum { LAYOUT_CHARACTERS_MAX = 1 << 16, LAYOUT_REPEAT_MAX = 1 << 15 };

static const char place_of_layout[] = "/workload/layout";

/* A layout written out: every letter and border once. */
struct layout_text {
    const char *text; /* As given. */
    uint32_t at;
    char *plain;
    uint32_t count;
};

static enum status layout_bad(const struct layout_text *layout, const char *what,
                              struct error *reterr)
{
    return error_set(reterr, STATUS_INVALID, place_of_layout, "character %u: %s", layout->at + 1,
                     what);
}

/* "*3" behind what begins at `from` in the plain text. */
static enum status repeat_read(struct layout_text *layout, uint32_t from, struct error *reterr)
{
    if (layout->text[layout->at] != '*') return STATUS_OK;
    uint32_t times = 0;
    layout->at++;
    if (layout->text[layout->at] < '1' || layout->text[layout->at] > '9')
        return layout_bad(layout, "a number of times must follow \"*\", such as \"t*3\"", reterr);
    for (char c; c = layout->text[layout->at], c >= '0' && c <= '9'; layout->at++) {
        times = times * 10 + (uint32_t)(c - '0');
        if (times > LAYOUT_REPEAT_MAX) return layout_bad(layout, "too many times", reterr);
    }
    uint32_t const length = layout->count - from;
    if ((uint64_t)length * times + from > LAYOUT_CHARACTERS_MAX)
        return layout_bad(layout, "more than 65536 letters and borders", reterr);
    for (uint32_t i = 1; i < times; i++) {
        memcpy(layout->plain + layout->count, layout->plain + from, length);
        layout->count += length;
    }
    return STATUS_OK;
}

static enum status letter_add(struct layout_text *layout, char letter, struct error *reterr)
{
    if (strchr("EtmL|", letter) == NULL)
        return layout_bad(layout,
                          "none of \"E\" (embedding), \"t\" (layer), \"m\" (multi-token "
                          "prediction), \"L\" (head), \"|\" (next stage), \"( )\" and \"*\"",
                          reterr);
    if (layout->count == LAYOUT_CHARACTERS_MAX)
        return layout_bad(layout, "more than 65536 letters and borders", reterr);
    layout->plain[layout->count++] = letter;
    return STATUS_OK;
}

static enum status layout_expand(struct layout_text *layout, struct error *reterr)
{
    uint32_t group = 0;
    bool in_group = false;
    while (layout->text[layout->at] != '\0') {
        char const c = layout->text[layout->at];
        uint32_t from = layout->count;
        if (c == '(') {
            if (in_group) return layout_bad(layout, "a \"(\" in another", reterr);
            in_group = true;
            group = layout->count;
        } else if (c == ')') {
            if (!in_group) return layout_bad(layout, "no \"(\" before it", reterr);
            in_group = false;
            from = group;
        } else if (c != ',' && c != ' ') {
            STATUS_TRY(letter_add(layout, c, reterr));
        }
        layout->at++;
        if (c != '(' && c != ',' && c != ' ') STATUS_TRY(repeat_read(layout, from, reterr));
    }
    return in_group ? layout_bad(layout, "\"(\" is not closed", reterr) : STATUS_OK;
}

/* Modules come behind all layers, on one stage. */
static enum status mtp_check(const struct layout_text *layout, const struct workload_plan *plan,
                             struct error *reterr)
{
    uint64_t const wanted = workload_mtp(plan);
    uint64_t count = 0;
    bool border = false, split = false;
    for (uint32_t i = 0; i < layout->count; i++) {
        char const c = layout->plain[i];
        border = border || (count > 0 && c == '|');
        split = split || (count > 0 && c == 't') || (border && c == 'm');
        count += c == 'm';
    }
    if (count != wanted)
        return error_set(
            reterr, STATUS_INVALID, place_of_layout,
            "%llu modules for multi-token prediction (\"m\"), where the step trains %llu%s",
            (unsigned long long)count, (unsigned long long)wanted,
            count > wanted ? "" : "; they stand before \"L\", and \"mtp\": false leaves them out");
    if (!split) return STATUS_OK;
    return error_set(reterr, STATUS_UNSUPPORTED, place_of_layout,
                     "modules for multi-token prediction (\"m\") are modelled on one "
                     "stage, after all layers (\"t\")");
}

static enum status plain_check(const struct layout_text *layout, const struct workload_plan *plan,
                               uint32_t count, struct error *reterr)
{
    const struct model *model = &plan->model;
    uint64_t borders = 0, layers = 0, embeddings = 0, heads = 0;
    bool const has_ends = model->kind != MODEL_MLP;
    for (uint32_t i = 0; i < layout->count; i++) {
        char const c = layout->plain[i];
        borders += c == '|';
        layers += c == 't';
        embeddings += c == 'E';
        heads += c == 'L';
    }
    if (borders + 1 != count)
        return error_set(reterr, STATUS_INVALID, place_of_layout,
                         "%llu stages, where the schedule has %u; without a layout (--set "
                         "/workload/layout=null) layers lie evenly",
                         (unsigned long long)borders + 1, count);
    if (layers != model->layers)
        return error_set(reterr, STATUS_INVALID, place_of_layout,
                         "%llu layers, where the model has %llu", (unsigned long long)layers,
                         (unsigned long long)model->layers);
    if (embeddings != has_ends || heads != has_ends)
        return error_set(reterr, STATUS_INVALID, place_of_layout,
                         has_ends ? "\"E\" and \"L\" must stand there once each"
                                  : "the bare MLP has neither embedding nor head");
    if (has_ends && (layout->plain[0] != 'E' || layout->plain[layout->count - 1] != 'L'))
        return error_set(reterr, STATUS_INVALID, place_of_layout,
                         "\"E\" must be the first and \"L\" the last letter");
    return mtp_check(layout, plan, reterr);
}

static enum status layout_read(struct arena *arena, const struct workload_plan *plan,
                               struct stages *stages, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, LAYOUT_CHARACTERS_MAX, 1, &memory, reterr));
    struct layout_text layout = {.text = plan->stages.layout, .plain = memory};
    STATUS_TRY(layout_expand(&layout, reterr));
    STATUS_TRY(plain_check(&layout, plan, stages->count, reterr));
    bool const apart = stages_mtp_apart(plan->stages.layout);
    uint32_t layer = 0, s = 0;
    for (uint32_t i = 0; i < layout.count; i++) {
        struct stage *stage = &stages->stage[s];
        char const c = layout.plain[i];
        if (c == '|') stages->stage[++s].layer_first = layer;
        if (c == 'E') stage->embedding = true;
        if (c == 'L') stage->head = true;
        stage->mtp_modules += c == 'm';
        if (c == 'L' && apart) stage->mtp_heads = (uint32_t)workload_mtp(plan);
        if (c != 't') continue;
        stage->layer_count++;
        layer++;
    }
    return STATUS_OK;
}

/* Whether layers lie evenly on `count` stages, or with one less on the first and on the last. */
static bool stages_fit(const struct workload_plan *plan, uint32_t count, bool *ret_ends_less)
{
    uint64_t const layers = plan->model.layers;
    *ret_ends_less = layers % count != 0;
    if (layers < count) return false;
    if (!*ret_ends_less) return true;
    return plan->model.kind != MODEL_MLP && count >= 3 && (layers + 2) % count == 0;
}

/* The same of ranks that divide the room; 0: any do. */
static bool ranks_fit(const struct workload_plan *plan, uint32_t count, uint32_t unit,
                      uint64_t room)
{
    bool unused = false;
    return room % (count / unit) == 0 && stages_fit(plan, count, &unused);
}

/* The nearest counts of stages that fit below and above, at least two steps, each in units. Returns
 * how many there are. */
static uint32_t nearest_write(const struct workload_plan *plan, uint32_t count, uint32_t step,
                              uint32_t unit, uint64_t room, char *text, size_t text_bytes)
{
    uint32_t const least = 2 * step, layers = (uint32_t)plan->model.layers;
    uint32_t below = count - step, above = count + step;
    while (below >= least && !ranks_fit(plan, below, unit, room)) below -= step;
    while (above <= layers && !ranks_fit(plan, above, unit, room)) above += step;
    bool const has_below = below >= least, has_above = above <= layers;
    if (has_below && has_above)
        (void)snprintf(text, text_bytes, "%u and %u", below / unit, above / unit);
    else if (has_below || has_above)
        (void)snprintf(text, text_bytes, "%u", (has_below ? below : above) / unit);
    return (uint32_t)has_below + has_above;
}

/* A schedule that takes any number of stages a rank may have another; else there may be other
 * ranks. Nothing fits a file's but a layout. */
static enum status uneven(const struct workload_plan *plan, uint32_t count, uint64_t room,
                          struct error *reterr)
{
    const char *const name = workload_schedule_name(plan);
    const struct schedule_form *form = NULL;
    uint32_t chunks = 1;
    char nearest[64] = "", hint[128] = "";
    if (plan->stages.given == NULL) {
        STATUS_TRY(schedule_form_parse(name, "/workload/schedule", &form, &chunks, reterr));
        uint32_t const ranks = count / chunks;
        bool const any = form->chunks == 0;
        uint32_t found = any ? nearest_write(plan, count, ranks, 1, 0, nearest, sizeof nearest) : 0;
        if (found != 0)
            (void)snprintf(hint, sizeof hint, "the nearest %s of stages on %u ranks: %s; or ",
                           found == 1 ? "number" : "numbers", ranks, nearest);
        else
            found = nearest_write(plan, count, chunks, chunks, room, nearest, sizeof nearest);
        if (hint[0] == '\0' && found != 0)
            (void)snprintf(hint, sizeof hint, "the nearest %s of ranks of pp: %s; or ",
                           found == 1 ? "number" : "numbers", nearest);
    }
    if (plan->model.layers < count)
        return error_set(reterr, STATUS_INVALID, "/workload/schedule",
                         "%u stages are more than the model's %llu layers; %ssay in \"layout\" "
                         "which stage has what",
                         count, (unsigned long long)plan->model.layers, hint);
    return error_set(reterr, STATUS_INVALID, "/workload/schedule",
                     "%llu layers cannot be split evenly over %u stages, nor with one less on the "
                     "first and on the last; %ssay in \"layout\" which stage has what",
                     (unsigned long long)plan->model.layers, count, hint);
}

static enum status too_many(const struct workload_plan *plan, uint32_t count, uint64_t room,
                            struct error *reterr)
{
    uint64_t most = plan->model.layers;
    while (most > 1 && room % most != 0) most--;
    return error_set(reterr, STATUS_INVALID, "/mesh/pp",
                     "%u stages are more than the model's %llu layers: some would have none; the "
                     "nearest number of ranks that fits: %llu",
                     count, (unsigned long long)plan->model.layers, (unsigned long long)most);
}

enum status stages_build(struct arena *arena, const struct workload_plan *plan, uint32_t count,
                         uint64_t room, struct stages *ret_stages, struct error *reterr)
{
    void *memory = NULL;
    bool const has_ends = plan->model.kind != MODEL_MLP;
    uint32_t const layers = (uint32_t)plan->model.layers;
    STATUS_TRY(arena_try(arena, count, sizeof *ret_stages->stage, &memory, reterr));
    *ret_stages = (struct stages){memory, count};
    if (plan->stages.layout != NULL) return layout_read(arena, plan, ret_stages, reterr);
    bool ends_less = false;
    bool const fit = stages_fit(plan, count, &ends_less);
    if (workload_serves(plan) && layers < count) return too_many(plan, count, room, reterr);
    if (!workload_serves(plan) && !fit) return uneven(plan, count, room, reterr);
    /* In inference the last but one and those before it have a layer more; with two layers too few
     * for all, as in training. */
    uint32_t const rest = ends_less ? layers % count : 0, each = layers / count;
    uint32_t layer = 0;
    for (uint32_t s = 0; s < count; s++) {
        bool const more = s + 1 < count && s + 1 + rest >= count;
        ret_stages->stage[s] = (struct stage){
            .layer_first = layer,
            .layer_count = each + more,
            .embedding = has_ends && s == 0,
            .head = has_ends && s + 1 == count,
            .mtp_modules = s + 1 == count ? (uint32_t)workload_mtp(plan) : 0,
        };
        layer += ret_stages->stage[s].layer_count;
    }
    return STATUS_OK;
}

bool stages_mtp_apart(const char *layout)
{
    const char *last = layout == NULL ? NULL : strrchr(layout, 'm');
    return last != NULL && strchr(last, '|') != NULL;
}
