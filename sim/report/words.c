#include "sim/report/words.h"

#include <stddef.h>

#include "sim/base/name.h"
#include "sim/machine/machine.h"

/* What a maker's own documents call a part. `key`: of a result; NULL: no result has the part. */
static const struct {
    const char *key, *word[CHIP_MAKERS];
} words[] = {
    [WORDS_MXU] = {"mxu", {"MXU", "tensor cores", "matrix cores"}},
    [WORDS_MXUS] = {NULL, {"MXUs", "tensor cores", "matrix cores"}},
    [WORDS_MATH] = {NULL, {"MXU", "tensor", "matrix"}},
    [WORDS_TILE] = {NULL, {"the MXU's", "the tensor cores' tile of", "the matrix cores' tile of"}},
    [WORDS_VPU] = {"vpu", {"VPU", "CUDA cores", "stream processors"}},
    [WORDS_HBM] = {"hbm", {"HBM", "HBM", "HBM"}},
    [WORDS_VMEM] = {"vmem", {"VMEM", "L2", "Infinity Cache"}}, /* What compute reads through. */
    [WORDS_VMEM_BANDWIDTH] = {NULL, {"VMEM bandwidth", "L2 bandwidth", "its bandwidth"}},
    [WORDS_SMEM] = {NULL, {"SMEM", "SMEM", "LDS"}},
    [WORDS_CORES] = {NULL, {"TensorCores", "SMs", "CUs"}},
    [WORDS_LAUNCHES] = {"launches",
                        {"launches of the host", "launches of the host", "launches of the host"}},
    [WORDS_ICI] = {"ici", {"ICI", "NVLink", "Infinity Fabric"}},
    [WORDS_C2C] = {NULL, {"C2C", "NVLink-C2C", "C2C"}},
    [WORDS_NCCL] = {"NCCL buffers", {"NCCL buffers", "NCCL buffers", "RCCL buffers"}},
    [WORDS_CUBLAS] = {"cuBLAS workspaces",
                      {"cuBLAS workspaces", "cuBLAS workspaces", "hipBLASLt workspaces"}},
    [WORDS_CONTEXT] = {"CUDA context", {"CUDA context", "CUDA context", "HIP context"}},
};

static const char *const memories[] = {
#define X(name, text) [PROGRAM_MEMORY_##name] = text,
    PROGRAM_MEMORY_TABLE(X)
#undef X
};

const char *words_of_chip(const struct chip *chip, enum words_part part)
{
    return words[part].word[chip->network.maker];
}

const char *words_resource(const struct machine *machine, const char *key)
{
    for (uint32_t part = 0; part < sizeof words / sizeof *words; part++)
        if (words[part].key != NULL && name_same(key, words[part].key))
            return words_of_chip(&machine->chip, (enum words_part)part);
    return key;
}

const char *words_memory(const struct machine *machine, enum program_memory memory)
{
    return words_resource(machine, memories[memory]);
}

const char *words_last_rank(bool roles_meet)
{
    return roles_meet ? "whose passes end last" : "which ends last";
}
