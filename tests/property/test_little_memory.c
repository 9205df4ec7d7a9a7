/*
 * With too little memory every stage says so, and none crashes: scenarios through all stages, with
 * arenas of many sizes up to what they take.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/report/notes.h"
#include "sim/report/result.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"

enum { SIZES = 300, SMALL = 150, SMALL_BYTES = 1024 };

static const char *const texts[] = {
    "{\"podsim\":1,\"machine\":{\"chip\":\"h100-sxm\",\"nodes\":2,\"gpus\":4},\"mesh\":{\"pp\":["
    "\"node\"],"
    "\"ep\":[\"gpu:2\"],\"tp\":[\"gpu:2\"]},\"workload\":{\"kind\":\"train_step\",\"model\":"
    "\"tests/property/"
    "experts.json\",\"batch_tokens\":16384,\"sequence_length\":1024,\"accumulate\":4,"
    "\"schedule\":\"interleaved:2\",\"routing_skew\":0.5,\"allow_oversubscription\":true},"
    "\"run\":{\"prefetch_layers\":2}}",
    "{\"podsim\":1,\"machine\":{\"chip\":\"tpu-v5p\",\"shape\":\"4x4x4\",\"links\":[{\"from\":[0,0,"
    "0],"
    "\"to\":[1,0,0],\"rate\":\"9GB/"
    "s\"}]},\"mesh\":{\"fsdp\":[\"x\",\"y\"],\"tp\":[\"z\"]},\"workload\":{"
    "\"kind\":\"train_step\",\"model\":\"llama-3-8b\",\"batch_tokens\":524288,\"sequence_length\":"
    "4096,"
    "\"remat\":\"block\",\"offload\":\"both\"},\"run\":{\"collective_matmul\":true,\"arbitration\":"
    "\"fair\"}}",
};

/* All stages, and what is told of them. */
static enum status tell(struct play *play, const char *text, uint64_t memory_bytes,
                        struct strbuf *result, struct error *reterr)
{
    struct play_options const options = {.record = true, .memory_bytes = memory_bytes};
    struct analysis analysis;
    struct notes notes;
    STATUS_TRY(play_try(play, text, &options, reterr));
    STATUS_TRY(workload_listing(&play->scenario.workload, &play->machine, &play->mesh,
                                &play->program, result, reterr));
    struct report_input const input = play_report(play);
    STATUS_TRY(analysis_build(play->arena, &input, &analysis, reterr));
    STATUS_TRY(notes_build(play->arena, &input, &analysis, &notes, reterr));
    return result_write(play->arena, &input, result, reterr);
}

static void each_size_of_memory_is_enough_or_said_to_be_too_little(void **state)
{
    (void)state;
    uint32_t walked = 0, refused = 0;
    for (uint32_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        uint64_t whole_bytes = 0;
        for (uint32_t i = 0; i <= SIZES + SMALL; i++) {
            struct error error = {.status = STATUS_OK};
            struct strbuf result = {0};
            uint64_t const limit_bytes = i == 0       ? 0 /* As much as it takes. */
                                         : i <= SMALL ? i * SMALL_BYTES
                                                      : whole_bytes / SIZES * (i - SMALL);
            if (i > 0 && sampling_skips(&walked)) continue;
            struct play play;
            enum status const status = tell(&play, texts[t], limit_bytes, &result, &error);
            if (i == 0) whole_bytes = arena_taken_bytes(play.arena);
            play_close(&play);
            strbuf_free(&result);
            if (i == 0 && status != STATUS_OK) fail_msg("%s: %s", error.where, error.message);
            if (status != STATUS_OK && status != STATUS_NO_MEMORY)
                fail_msg("%llu bytes: %s: %s", (unsigned long long)limit_bytes, error.where,
                         error.message);
            if (status == STATUS_NO_MEMORY) assert_true(strlen(error.message) > 8);
            refused += status == STATUS_NO_MEMORY;
        }
        print_message("    %llu bytes in all\n", (unsigned long long)whole_bytes);
    }
    print_message("    %u sizes were too little\n", refused);
    assert_true(refused > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_size_of_memory_is_enough_or_said_to_be_too_little)};
    return cmocka_run_group_tests_name("little memory", tests, NULL, NULL);
}
