#include "sim/report/words.h"

#include <stddef.h>

#include "sim/base/name.h"
#include "sim/machine/machine.h"

/* What a maker's own documents call it. */
static const struct {
    const char *key, *word[CHIP_MAKERS];
} words[] = {
    {"mxu", {"MXU", "tensor cores", "matrix cores"}},
    {"mxus", {"MXUs", "tensor cores", "matrix cores"}},
    {"math", {"MXU", "tensor", "matrix"}},
    {"vpu", {"VPU", "CUDA cores", "stream processors"}},
    {"hbm", {"HBM", "HBM", "HBM"}},
    {"vmem", {"VMEM", "L2", "Infinity Cache"}}, /* What compute reads through. */
    {"smem", {"SMEM", "SMEM", "LDS"}},
    {"vmem bandwidth", {"VMEM bandwidth", "L2 bandwidth", "its bandwidth"}},
    {"cores", {"TensorCores", "SMs", "CUs"}},
    {"launches", {"launches of the host", "launches of the host", "launches of the host"}},
    {"ici", {"ICI", "NVLink", "Infinity Fabric"}},
    {"padding", {"the MXU's", "the tensor cores' tile of", "the matrix cores' tile of"}},
};

const char *words_of_chip(const struct chip *chip, const char *key)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (name_same(key, words[i].key)) return words[i].word[chip->network.maker];
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
