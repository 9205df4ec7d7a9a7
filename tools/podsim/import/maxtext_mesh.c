/*
 * maxtext_mesh.c: axes of MaxText's mesh, within slices and across them.
 *
 * Source: AI-Hypercomputer/maxtext, configs/base.yml: `ici_` and `dcn_` parallelisms, and
 * logical_axis_rules, which say which dimensions an axis splits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "tools/podsim/import/maxtext.h"

enum { AXIS_DP, AXIS_FSDP, AXIS_TP, AXIS_CP, AXIS_EP, AXES, SAID_MAX = 32 };

/* An axis of podsim with part of its ranks, as the file has it. */
struct said {
    const struct import_setting *setting; /* NULL: the file leaves it out. */
    const char *size;                     /* A number, or "-1" for what is left. */
    uint32_t axis;
};

/* Axes that podsim lacks, by the axis whose ranks have most of what they split. */
static const struct {
    const char *name;
    uint32_t axis;
    const char *what;
} lacking[] = {
    {"fsdp_transpose", AXIS_FSDP, "laid over fsdp; it shards weights along the other dimension"},
    {"tensor_transpose", AXIS_TP, "laid over tp; it splits columns of the model"},
    {"tensor_sequence", AXIS_TP, "laid over tp, whose ranks shard tokens as well"},
    {"sequence", AXIS_CP, "laid over cp"},
    {"context_usp_ulysses", AXIS_CP, "laid over cp; it exchanges heads"},
    {"context_autoregressive", AXIS_CP, "laid over cp"},
    {"autoregressive", AXIS_TP, "laid over tp"},
    {"diloco", AXIS_DP, "laid over dp, which reduces gradients in each step"},
    {NULL, AXIS_FSDP, "an axis that podsim does not know, laid over fsdp"},
};

/* "dcn_NAME_parallelism" as NAME, or NULL. */
static const char *lacking_name(const struct import *import, const struct import_setting *setting,
                                const char *prefix)
{
    static const char end[] = "_parallelism";
    const char *const rest = name_after(setting->key, prefix);
    size_t const length = rest == NULL ? 0 : strlen(rest);
    if (length < sizeof end || !name_same(rest + length - (sizeof end - 1), end)) return NULL;
    char *const name = arena_text(import->arena, rest);
    if (name != NULL) name[length - (sizeof end - 1)] = '\0';
    return name;
}

/* Sizes of axes that podsim lacks. A pipeline is refused, as podsim does not have MaxText's. */
static enum status lacking_add(struct import *import, const char *prefix, struct said *said,
                               uint32_t *count, struct error *reterr)
{
    for (uint32_t i = 0; i < import->file->count; i++) {
        struct import_setting *setting = &import->file->setting[i];
        const char *const name = lacking_name(import, setting, prefix);
        uint32_t row = 0;
        if (name == NULL || setting->outcome != IMPORT_NOT_EXPRESSED) continue;
        if (name_same(name, "pipeline"))
            return settings_fail(import->file, setting->line, STATUS_UNSUPPORTED, reterr, "%s: %s",
                                 setting->key, setting->because);
        if (*count == SAID_MAX)
            return settings_fail(import->file, setting->line, STATUS_LIMIT, reterr,
                                 "%s: too many axes", setting->key);
        while (lacking[row].name != NULL && !name_same(lacking[row].name, name)) row++;
        setting->because = lacking[row].what;
        said[(*count)++] = (struct said){setting, setting->value, lacking[row].axis};
    }
    return STATUS_OK;
}

static enum status said_refuse(const struct import *import, const struct said *said,
                               struct error *reterr, const char *what)
{
    uint32_t const line = said->setting == NULL ? 0 : said->setting->line;
    return settings_fail(import->file, line, STATUS_UNSUPPORTED, reterr, "%s%s%s",
                         said->setting == NULL ? "" : said->setting->key,
                         said->setting == NULL ? "" : ": ", what);
}

/* A whole number, or -1 for one axis at most, which takes what is left. */
static enum status sizes_find(const struct import *import, const struct said *said, uint32_t count,
                              uint64_t chips, uint32_t otherwise, uint64_t ret_size[AXES],
                              struct error *reterr)
{
    char what[160];
    uint32_t rest = count;
    uint64_t left = chips;
    for (uint32_t i = 0; i < AXES; i++) ret_size[i] = 1;
    for (uint32_t i = 0; i < count; i++) {
        bool const is_rest = name_same(said[i].size, "-1");
        char *end = NULL;
        uint64_t const size = is_rest ? 1 : strtoull(said[i].size, &end, 10);
        bool const is_wrong =
            !is_rest && (*end != '\0' || *said[i].size < '0' || *said[i].size > '9');
        (void)snprintf(what, sizeof what, "\"%.40s\" is no number of ranks; one axis may have -1",
                       said[i].size);
        if (is_wrong || size == 0 || (is_rest && rest < count))
            return said_refuse(import, &said[i], reterr, what);
        if (is_rest) rest = i;
        (void)snprintf(what, sizeof what,
                       "%" PRIu64 " ranks do not divide the %" PRIu64 " chips of %.60s", size,
                       chips, import->machine_text);
        if (left % size != 0) return said_refuse(import, &said[i], reterr, what);
        left /= size;
        ret_size[said[i].axis] *= size;
    }
    if (rest < count) ret_size[said[rest].axis] *= left;
    if (rest < count || left == 1) return STATUS_OK;
    (void)snprintf(what, sizeof what, "%" PRIu64 " of %" PRIu64 " chips of %.60s have no rank",
                   chips - chips / left, chips, import->machine_text);
    return said_refuse(import, &said[otherwise], reterr, what);
}

/* `otherwise` is the axis that takes what is left where nothing is said. */
static enum status axes_find(struct import *import, const struct import_axes *axes,
                             const char *prefix, uint64_t chips, uint32_t otherwise,
                             uint64_t ret_size[AXES], struct error *reterr)
{
    const char *const *const facts[AXES] = {&axes->dp, &axes->fsdp, &axes->tp, &axes->cp,
                                            &axes->ep};
    struct said said[SAID_MAX];
    uint32_t count = 0;
    for (; count < AXES; count++) {
        const char *const plain = count == otherwise ? "-1" : "1";
        said[count] = (struct said){import_said(import, facts[count]),
                                    *facts[count] == NULL ? plain : *facts[count], count};
    }
    STATUS_TRY(lacking_add(import, prefix, said, &count, reterr));
    return sizes_find(import, said, count, chips, otherwise, ret_size, reterr);
}

enum status maxtext_mesh_set(struct import *import, uint64_t *ret_copies, struct error *reterr)
{
    static const enum mesh_role roles[AXES] = {MESH_DP, MESH_FSDP, MESH_TP, MESH_CP, MESH_EP};
    const struct import_facts *facts = &import->facts;
    uint64_t inner[AXES], outer[AXES];
    uint64_t ranks[MESH_ROLE_COUNT] = {0}, across[MESH_ROLE_COUNT] = {0};
    uint64_t const slices = import_slices(import);
    STATUS_TRY(axes_find(import, &facts->inner, "ici_", import->machine.chip_count / slices,
                         AXIS_FSDP, inner, reterr));
    STATUS_TRY(axes_find(import, &facts->outer, "dcn_", slices, AXIS_DP, outer, reterr));
    *ret_copies = 1;
    for (uint32_t i = 0; i < AXES; i++) {
        ranks[roles[i]] = inner[i] * outer[i];
        across[roles[i]] = outer[i];
        if (roles[i] != MESH_TP && roles[i] != MESH_CP) *ret_copies *= inner[i] * outer[i];
    }
    import->facts.ranks.cp = ranks[MESH_CP];
    return import_mesh_across(import, ranks, across, reterr);
}
