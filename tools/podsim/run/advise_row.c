#include "tools/podsim/run/advise_row.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"

enum status advise_setting_add(struct arena *arena, struct advise_row *row, const char *setting,
                               struct error *reterr)
{
    const char *const copy = setting == NULL ? NULL : arena_text(arena, setting);
    if (copy == NULL) return error_no_memory(reterr, "--advise");
    size_t const pointer = strcspn(copy, "=") + 1;
    uint32_t at = 0;
    while (at < row->setting_count && strncmp(row->setting[at], copy, pointer) != 0) at++;
    SIM_ASSERT(at < ADVISE_SETTINGS_MAX);
    row->setting[at] = copy;
    if (at == row->setting_count) row->setting_count++;
    return STATUS_OK;
}

bool advise_sets(const struct advise_row *row, const char *pointer)
{
    size_t const length = strlen(pointer);
    for (uint32_t i = 0; i < row->setting_count; i++)
        if (strncmp(row->setting[i], pointer, length) == 0 && row->setting[i][length] == '=')
            return true;
    return false;
}

bool advise_sets_to(const struct advise_row *row, const char *setting)
{
    for (uint32_t i = 0; i < row->setting_count; i++)
        if (strcmp(row->setting[i], setting) == 0) return true;
    return false;
}

bool advise_loses(const struct advise_row *row, enum mesh_role role)
{
    static const char mesh[] = "/mesh=";
    char axis[16];
    (void)snprintf(axis, sizeof axis, "\"%s\":", mesh_role_name(role));
    for (uint32_t i = 0; i < row->setting_count; i++)
        if (strncmp(row->setting[i], mesh, sizeof mesh - 1) == 0)
            return strstr(row->setting[i], axis) == NULL;
    return false;
}
