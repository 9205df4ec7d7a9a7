#include "tools/podsim/common/setting_place.h"

#include <string.h>

#include "sim/base/strbuf.h"

enum { POINTER_BYTES_SHOWN = 80, VALUE_BYTES_SHOWN = 40 };

/* Whether the place `inner` is `outer` or lies in it. */
static bool lies_in(const char *inner, size_t inner_bytes, const char *outer, size_t outer_bytes)
{
    return inner_bytes >= outer_bytes && strncmp(inner, outer, outer_bytes) == 0 &&
           (inner_bytes == outer_bytes || inner[outer_bytes] == '/');
}

static size_t pointer_bytes(const char *setting)
{
    return strcspn(setting, "=");
}

/* The last setting that has written the place, or else the last that has written a part of it:
 * later ones replace earlier ones. NULL: none has. */
static const char *writer_of(const struct options *options, const char *place)
{
    const char *setting = NULL, *whole = NULL, *part = NULL;
    size_t const bytes = strlen(place);
    for (uint32_t i = 0; (setting = options_value_at(options, "--set", i)) != NULL; i++) {
        if (lies_in(place, bytes, setting, pointer_bytes(setting))) whole = setting;
        if (lies_in(setting, pointer_bytes(setting), place, bytes)) part = setting;
    }
    return whole != NULL ? whole : part;
}

/* At most so many bytes of it, in whole characters. */
static int bytes_shown(const char *text, size_t bytes, size_t most)
{
    if (bytes <= most) return (int)bytes;
    while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80) most--;
    return (int)most;
}

void setting_add(const char *setting, struct strbuf *text)
{
    size_t const pointer = pointer_bytes(setting);
    const char *const value = setting + pointer;
    int const shown = bytes_shown(value, strlen(value), VALUE_BYTES_SHOWN);
    strbuf_add(text, "%.*s%.*s%s", bytes_shown(setting, pointer, POINTER_BYTES_SHOWN), setting,
               shown, value, value[shown] == '\0' ? "" : "...");
}

static void place_at_setting(const char *setting, struct error *error)
{
    struct error const from = *error;
    size_t const pointer = pointer_bytes(setting), place = strlen(from.where);
    struct strbuf named = {0};
    if (place < pointer) strbuf_add(&named, "%s with ", from.where);
    strbuf_add(&named, "--set ");
    setting_add(setting, &named);
    if (place > pointer) strbuf_add(&named, ": %s", from.where);
    if (!named.failed) (void)error_set(error, from.status, named.bytes, "%s", from.message);
    strbuf_free(&named);
}

void setting_place(const struct options *options, struct error *error)
{
    static const struct {
        const char *option, *pointer;
    } shorthands[] = {{"--preset", "/preset"}, {"--engine", "/run/engine"}};
    struct error const from = *error;
    if (from.where[0] != '/' || from.status == STATUS_IO) return;
    for (size_t i = 0; i < sizeof shorthands / sizeof *shorthands; i++) {
        if (strcmp(from.where, shorthands[i].pointer) != 0) continue;
        if (options_has(options, shorthands[i].option)) {
            (void)error_set(error, from.status, shorthands[i].option, "%s", from.message);
            return;
        }
    }
    const char *const setting = writer_of(options, from.where);
    if (setting != NULL) place_at_setting(setting, error);
}
