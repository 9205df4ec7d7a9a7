/* list_presets.c: what frameworks do. */

#include <stddef.h>

#include "sim/base/strbuf.h"
#include "sim/report/table.h"
#include "sim/scenario/preset.h"
#include "tools/podsim/list/list_text.h"

enum { NAME_COLUMN = 22 };

enum status list_presets(struct arena *arena, struct strbuf *text, struct error *reterr)
{
    for (uint32_t i = 0; preset_name_at(i) != NULL; i++) {
        struct preset preset;
        STATUS_TRY(preset_find(arena, preset_name_at(i), "", &preset, reterr));
        strbuf_add(text, "  %s", preset.name);
        strbuf_pad(text, NAME_COLUMN);
        strbuf_add(text, "%s\n", preset.title);
    }
    return STATUS_OK;
}

/* "/workload/zero=1, with dp, ep or cp", and below it why. */
static void key_add(const struct preset_key *key, struct strbuf *text)
{
    strbuf_add(text, "  %s=%s", key->pointer, key->value);
    for (uint32_t i = 0; key->with[i] != NULL; i++)
        strbuf_add(text, "%s%s", i == 0 ? "  (on a mesh with " : " or ", key->with[i]);
    if (key->with[0] != NULL) strbuf_add(text, ")");
    strbuf_add(text, "\n      ");
    table_wrap(text, 6, key->source);
}

enum status list_preset(struct arena *arena, const char *name, struct strbuf *text,
                        struct error *reterr)
{
    struct preset preset;
    STATUS_TRY(preset_find(arena, name, name, &preset, reterr));
    strbuf_add(text, "%s, for %s\n", preset.title, preset.trains ? "train_step" : "inference");
    if (preset.stack != NULL)
        strbuf_add(text,
                   "\nits kernels are of the stack %s, where the chip has tables of it and the "
                   "profile is not ideal\n",
                   preset.stack);
    strbuf_add(text, "\nset where the scenario does not\n");
    for (uint32_t i = 0; i < preset.key_count; i++) key_add(&preset.key[i], text);
    for (uint32_t w = 0; w < preset.recompute_count; w++) {
        const struct preset_word *word = &preset.recompute[w];
        strbuf_add(text, "\nits recomputation called \"%s\" is\n", word->word);
        for (uint32_t i = 0; i < word->key_count; i++) key_add(&word->key[i], text);
    }
    return STATUS_OK;
}
