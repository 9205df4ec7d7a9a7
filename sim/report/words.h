/*
 * words.h: what makers call the parts of a chip: a TPU has an MXU, a VPU, VMEM and ICI, a GPU of
 * NVIDIA's tensor cores, CUDA cores, L2, SMs and NVLink, one of AMD's matrix cores, stream
 * processors, Infinity Cache, CUs and Infinity Fabric. JSON has the keys for all of them ("mxu").
 */
#ifndef SIM_REPORT_WORDS_H
#define SIM_REPORT_WORDS_H

struct chip;
struct machine;

/* Of what a result's key names: "mxu", "vpu", "hbm", "vmem", "ici"; other keys are words already.
 */
const char *words_of_chip(const struct chip *chip, const char *key);
const char *words_resource(const struct machine *machine, const char *key);
/* The side of the unit that multiplies matrices: "the MXU's 128", "the tensor cores' tile of 64".
 */
const char *words_padding(const struct machine *machine);

#endif
