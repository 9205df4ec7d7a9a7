/* function_pass.h: kernels of a pass over an array, and their bytes of an element of 16 bits. */
#ifndef SIM_KERNELS_FUNCTION_PASS_H
#define SIM_KERNELS_FUNCTION_PASS_H

#include <stdint.h>

/* A pass of a function. */
struct function_pass {
    uint8_t kernels;
    uint8_t read_bytes, write_bytes; /* In addition to those of a single kernel. */
};

#endif
