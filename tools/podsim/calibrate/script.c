/* The programs that measure. They are files of this folder, and built into the binary. */
#include <stddef.h>
#include <string.h>

#include "sim/base/embed.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/calibrate/calibrate.h"

/* Written at build time. */
extern const struct embed_file calibrate_files[];
extern const unsigned calibrate_files_count;

/* `base` is the stack, of those that chips have, whose kernels are nearest to the library's. */
static const struct {
    const char *name, *file, *base;
    bool shares; /* shared.cu stands behind its comment. */
} scripts[] = {
    {.name = "cuda", .file = "cuda.cu", .base = "te", .shares = true},
    {.name = "jax", .file = "jax.py", .base = "torch-compile"},
    {.name = "nccl", .file = "nccl.cu", .base = "te", .shares = true},
    {.name = "overlap", .file = "overlap.cu", .base = "te", .shares = true},
    {.name = "pytorch", .file = "pytorch.py", .base = "torch-eager"},
};
enum { SCRIPTS = sizeof scripts / sizeof *scripts };

static const char *text_of(const char *name)
{
    const struct embed_file *const file = embed_find(calibrate_files, calibrate_files_count, name);
    SIM_ASSERT(file != NULL);
    return file->bytes;
}

enum status calibrate_script(const char *name, struct strbuf *text, struct error *reterr)
{
    static const char comment_end[] = " */\n";
    const char *names[SCRIPTS + 1] = {NULL};
    for (uint32_t i = 0; i < SCRIPTS; i++) names[i] = scripts[i].name;
    uint32_t const index = name_find(name, names);
    if (index == SCRIPTS)
        return error_set(reterr, STATUS_NOT_FOUND, "--script", "no program \"%.40s\"%s", name,
                         name_offer(name, names, "; the nearest is \"", "\"", NULL).text);
    const char *rest = text_of(scripts[index].file);
    if (scripts[index].shares) {
        const char *const end = strstr(rest, comment_end) + strlen(comment_end);
        strbuf_add(text, "%.*s%s", (int)(end - rest), rest, text_of("shared.cu"));
        rest = end;
    }
    strbuf_add(text, "%s", rest);
    return STATUS_OK;
}

const char *calibrate_script_base(const char *script)
{
    for (uint32_t i = 0; i < SCRIPTS; i++)
        if (name_same(scripts[i].name, script)) return scripts[i].base;
    return "te";
}
