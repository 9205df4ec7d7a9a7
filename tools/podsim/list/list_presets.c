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

static void words_add(const char *begin, const char *const *word, uint32_t count,
                      struct strbuf *text)
{
    for (uint32_t i = 0; i < count; i++) strbuf_add(text, "%s%s", i == 0 ? begin : " or ", word[i]);
}

/* "/workload/zero=1  (on a mesh with dp or ep)", and below it where not, and why. */
static void key_add(const struct preset_key *key, struct strbuf *text)
{
    struct strbuf unless = {0};
    strbuf_add(text, "  %s=%s", key->pointer, key->value);
    words_add("  (on a mesh with ", key->with, key->with_count, text);
    strbuf_add(text, key->with_count > 0 ? ")\n      " : "\n      ");
    words_add("not with ", key->unless, key->unless_count, &unless);
    if (unless.bytes != NULL && !unless.failed) {
        table_wrap(text, 6, unless.bytes);
        strbuf_add(text, "      ");
    }
    text->failed = text->failed || unless.failed;
    strbuf_free(&unless);
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
