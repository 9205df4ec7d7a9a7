/* formats.c: number formats in the words of PyTorch and JAX. */
#include "sim/base/name.h"
#include "tools/podsim/import/import.h"

enum status import_formats_set(struct import *import, struct error *reterr)
{
    static const char *const theirs[] = {"bfloat16", "float32", "float16", "bf16",
                                         "fp32",     "fp16",    NULL};
    static const char *const ours[] = {"bf16", "fp32", "fp16", "bf16", "fp32", "fp16"};
    const struct import_formats *formats = &import->facts.formats;
    const char *const *const activations =
        formats->activations == NULL ? &formats->weights : &formats->activations;
    const struct {
        const char *const *fact;
        const char *key;
    } kinds[] = {{&formats->weights, "weights"},
                 {activations, "activations"},
                 {&formats->gradients, "gradients"}};
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *const word = *kinds[i].fact;
        uint32_t const found = name_find(word, theirs);
        if (theirs[found] == NULL)
            return import_refuse(import, kinds[i].fact, reterr, "no number format \"%.40s\"%s",
                                 word,
                                 name_offer(word, theirs, "; the nearest is ", "", NULL).text);
        STATUS_TRY(
            import_set(import, reterr, "/workload/formats/%s=%s", kinds[i].key, ours[found]));
    }
    return STATUS_OK;
}

enum status import_precision_check(const struct import *import, struct error *reterr)
{
    const struct import_formats *formats = &import->facts.formats;
    if (!formats->bf16 || !formats->fp16) return STATUS_OK;
    return import_refuse(import, &formats->fp16, reterr, "bf16 and fp16 are both on");
}
