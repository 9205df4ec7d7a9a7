/*
 * libfuzzer.c: the same readers, driven by libFuzzer's coverage:
 *
 *     CC=clang meson setup build-fuzz && ninja -C build-fuzz tests/fuzz/libfuzzer
 *     build-fuzz/tests/fuzz/libfuzzer -max_len=65536 FOLDER tests/fuzz/corpus scenarios/train
 */
#include <stddef.h>
#include <stdint.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz_taken taken;
    fuzz_readers((const char *)data, size, &taken);
    return 0;
}
