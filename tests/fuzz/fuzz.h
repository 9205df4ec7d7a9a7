/*
 * fuzz.h: one input, through every reader of the program. Whoever calls it (the deterministic
 * mutator, libFuzzer) only makes inputs.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdint.h>

/* Which readers took the input as good: a fuzzer that never gets past the first test of a reader
 * tests nothing, and this says so. */
struct fuzz_taken {
    uint64_t json, scenarios, machines, meshes, chips, models, settings, quantities;
    uint64_t machine_texts, scripts, schedules, programs;
};

/* Text that starts with "/" is also a setting, one shorter than 64 bytes also a quantity, one
 * shorter than 256 also a machine of a command line, one that starts with "<" also a script,
 * and one that starts with "podsim" also a program.
 * What is refused must say why; an accepted scenario must be printed, read back and be the same. A
 * broken promise aborts. */
void fuzz_readers(const char *text, uint64_t text_bytes, struct fuzz_taken *taken);

#endif
