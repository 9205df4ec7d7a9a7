/*
 * words.h: what makers call the parts of a chip: a TPU has an MXU, a VPU, VMEM and ICI, a GPU of
 * NVIDIA's tensor cores, CUDA cores, L2, SMs and NVLink, one of AMD's matrix cores, stream
 * processors, Infinity Cache, CUs and Infinity Fabric. Libraries that hold memory are NCCL, cuBLAS
 * and CUDA, or RCCL, hipBLASLt and HIP. JSON has the keys for all of them ("mxu", "NCCL_buffers").
 */
#ifndef SIM_REPORT_WORDS_H
#define SIM_REPORT_WORDS_H

#include <stdbool.h>

#include "sim/program/program.h"

struct chip;
struct machine;

enum words_part {
    WORDS_MXU,
    WORDS_MXUS, /* Several MXUs, in a list of a chip's parts. */
    WORDS_MATH, /* The unit before a format: "tensor bf16". */
    WORDS_TILE, /* A side of the unit, before a number: "the MXU's 128", "the tensor cores' tile of
                   64". */
    WORDS_VPU,
    WORDS_HBM,
    WORDS_VMEM,
    WORDS_VMEM_BANDWIDTH,
    WORDS_SMEM,
    WORDS_CORES,
    WORDS_LAUNCHES,
    WORDS_ICI,
    WORDS_C2C, /* What joins a GPU with the memory of its CPU, in place of PCIe. */
    WORDS_NCCL,
    WORDS_CUBLAS,
    WORDS_CONTEXT,
};

const char *words_of_chip(const struct chip *chip, enum words_part part);

/* What a result's key names: "mxu", "vpu", "hbm", "vmem", "launches", "ici". Any other key, such as
 * the name of an axis, is a word already and comes back. */
const char *words_resource(const struct machine *machine, const char *key);

/* A row of PROGRAM_MEMORY_TABLE: "saved activations", "RCCL buffers". */
const char *words_memory(const struct machine *machine, enum program_memory memory);

/* Which rank of a pipeline is reported: "which ends last"; or, where ranks end together, by their
 * passes. */
const char *words_last_rank(bool roles_meet);

#endif
