#include "sim/report/words.h"

#include <stddef.h>
#include <string.h>

#include "sim/base/name.h"
#include "sim/machine/machine.h"

enum maker { GOOGLE, NVIDIA, AMD, MAKERS };

/* What a maker's own documents call it. */
static const struct {
    const char *key, *word[MAKERS];
} words[] = {
    {"mxu", {"MXU", "tensor cores", "matrix cores"}},
    {"mxus", {"MXUs", "tensor cores", "matrix cores"}},
    {"math", {"MXU", "tensor", "matrix"}},
    {"vpu", {"VPU", "CUDA cores", "stream processors"}},
    {"hbm", {"HBM", "HBM", "HBM"}},
    {"vmem", {"VMEM", "SMEM", "LDS"}},
    {"cache", {"VMEM", "L2", "Infinity Cache"}},
    {"cache bandwidth", {"VMEM bandwidth", "L2 bandwidth", "its bandwidth"}},
    {"cores", {"TensorCores", "SMs", "CUs"}},
    {"ici", {"ICI", "NVLink", "Infinity Fabric"}},
    {"padding", {"the MXU's", "the tensor cores' tile of", "the matrix cores' tile of"}},
};

/* GPUs that are joined by NVLink are NVIDIA's. */
static enum maker maker_of(const struct chip *chip)
{
    if (chip->kind == CHIP_TPU) return GOOGLE;
    return strcmp(chip->network.link_name, "NVLink") == 0 ? NVIDIA : AMD;
}

const char *words_of_chip(const struct chip *chip, const char *key)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (name_same(key, words[i].key)) return words[i].word[maker_of(chip)];
    return key;
}

const char *words_resource(const struct machine *machine, const char *key)
{
    return words_of_chip(&machine->chip, key);
}

const char *words_padding(const struct machine *machine)
{
    return words_of_chip(&machine->chip, "padding");
}
