#include "sim/report/words.h"

#include <stddef.h>
#include <string.h>

#include "sim/machine/machine.h"

const char *words_resource(const struct machine *machine, const char *key)
{
    static const char *const words[][3] = {
        {"mxu", "MXU", "tensor cores"}, {"vpu", "VPU", "CUDA cores"}, {"hbm", "HBM", "HBM"},
        {"vmem", "VMEM", "SMEM"},       {"ici", "ICI", "NVLink"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(key, words[i][0]) == 0) return words[i][machine->chip.kind == CHIP_GPU ? 2 : 1];
    return key;
}

const char *words_padding(const struct machine *machine)
{
    return machine->chip.kind == CHIP_GPU ? "the tensor cores' tile of" : "the MXU's";
}
