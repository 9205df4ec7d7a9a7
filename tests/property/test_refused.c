/*
 * What a step cannot be is refused: at its place in the scenario, with the reason. One row a reason
 * that no other test gives.
 */
#include <stdio.h>
#include <string.h>

#include "sim/schedule/schedule.h"
#include "tests/support/case.h"
#include "tests/support/play.h"

enum { TEXT_BYTES = 1400 };

#define GRID "\"chip\":\"tpu-v5p\",\"shape\":\"4x4x4\""
#define NODES "\"chip\":\"h100-sxm\",\"nodes\":4"
#define MLP "{\"kind\":\"mlp\",\"D\":4096,\"F\":4096,\"layers\":8}"
#define LLAMA "\"llama-3-8b\""

static const struct {
    const char *machine, *mesh, *model, *more, *where, *words;
} rows[] = {
    {GRID, "\"dp\":[\"x\",\"y\",\"z\"]", MLP, "\"regather\":\"step\"", "/workload/regather",
     "the mesh has no pp; without stages each microbatch gathers"},
    {GRID, "\"dp\":[\"x\",\"y\",\"z\"]", MLP, "\"layout\":\"t*8\"", "/workload/layout",
     "the mesh has no pp whose stages it could lay out"},
    {GRID, "\"pp\":[\"x\",\"y\"],\"dp\":[\"z\"]", MLP, "\"accumulate\":8", "/mesh/pp",
     "stages over 2 axes of the machine are modelled on two levels of switches"},
    {NODES, "\"pp\":[\"gpu:2\",\"node\"],\"tp\":[\"gpu:4\"],\"order\":[\"tp\",\"pp\"]", LLAMA,
     "\"accumulate\":8", "/mesh/pp", "the outer level is named first, node and then gpu"},
    {NODES, "\"pp\":[\"node\",\"gpu:2\"],\"tp\":[\"gpu:4\"],\"order\":[\"tp\",\"pp\"]", LLAMA,
     "\"accumulate\":16,\"schedule\":\"dualpipe\"", "/mesh/pp", "lay each stage on two ranks"},
    {NODES, "\"pp\":[\"node\"],\"tp\":[\"gpu\"]", "\"megatron-1.7b\"",
     "\"accumulate\":8,\"schedule\":\"zb-v\"", "/workload/schedule",
     "megatron-1.7b ties its embedding to its head"},
    {NODES, "\"dp\":[\"node\"],\"tp\":[\"gpu\"]", "\"tests/property/windows-dense.json\"",
     "\"attention_kernel\":\"unfused\"", "/workload/attention_kernel",
     "layers that attend to a window of 200 keys are modelled with \"flash\" only"},
    {NODES, "\"fsdp\":[\"node\"],\"tp\":[\"gpu\"]", "\"tests/property/windows-dense.json\"",
     "\"accumulate\":32", "/workload/batch_tokens",
     "ranks share each sequence, which is not modelled for layers that attend to a window"},
    {NODES, "\"dp\":[\"node\"],\"ep\":[\"gpu\"]", "\"deepseek-v3\"", "\"routing_skew\":0.5",
     "/workload/routing_skew", "where a token's experts are in few groups"},
    {NODES, "\"fsdp\":[\"node\"],\"ep\":[\"gpu\"]", "\"deepseek-v3\"", "\"accumulate\":4",
     "/workload/batch_tokens", "2 of the 32 data ranks would share each sequence"},
    {NODES, "\"pp\":[\"node\"],\"tp\":[\"gpu\"]", MLP, "\"accumulate\":8,\"layout\":\"t*|t|t|t\"",
     "/workload/layout", "a number of times must follow"},
    {NODES, "\"pp\":[\"node\"],\"tp\":[\"gpu\"]", MLP,
     "\"accumulate\":8,\"layout\":\"(t*4096)*17|t|t|t\"", "/workload/layout",
     "more than 65536 letters and borders"},
    {NODES, "\"pp\":[\"node\"],\"tp\":[\"gpu\"]", MLP,
     "\"accumulate\":8,\"layout\":\"(t*4096)*16t|t|t|t\"", "/workload/layout",
     "more than 65536 letters and borders"},
    {NODES, "\"pp\":[\"node\"],\"tp\":[\"gpu\"]", MLP,
     "\"accumulate\":8,\"layout\":\"(t*32768)*2\"", "/workload/layout",
     "1 stages, where the schedule has 4"},
    {NODES, "\"pp\":[\"node\"],\"tp\":[\"gpu\"]", MLP,
     "\"accumulate\":8,\"layout\":\"t*32768|t|t|t\"", "/workload/layout",
     "32771 layers, where the model has 8"},
    {NODES, "\"pp\":[\"node\"],\"tp\":[\"gpu\"]", MLP,
     "\"accumulate\":8,\"layout\":\"t*32769|t|t|t\"", "/workload/layout", "too many times"},
    {NODES, "\"pp\":[\"node\"],\"tp\":[\"gpu\"]", MLP,
     "\"accumulate\":8,\"layout\":\"tt|tt|(tt|(tt\"", "/workload/layout", "a \"(\" in another"},
    {NODES, "\"pp\":[\"node\"],\"tp\":[\"gpu\"]", MLP,
     "\"accumulate\":8,\"layout\":\"tt|tt|tt)|tt\"", "/workload/layout", "no \"(\" before it"},
    {NODES, "\"pp\":[\"node\"],\"tp\":[\"gpu\"]", MLP,
     "\"accumulate\":8,\"layout\":\"tt|tt|tt|(tt\"", "/workload/layout", "\"(\" is not closed"},
    {NODES, "\"pp\":[\"node\"],\"tp\":[\"gpu\"]", MLP,
     "\"accumulate\":8,\"layout\":\"Ett|tt|tt|ttL\"", "/workload/layout",
     "the bare MLP has neither embedding nor head"},
    {NODES, "\"pp\":[\"node\"],\"tp\":[\"gpu\"]", LLAMA,
     "\"accumulate\":8,\"layout\":\"t*8|t*8|t*8|t*8\"", "/workload/layout",
     "\"E\" and \"L\" must stand there once each"},
    {NODES, "\"pp\":[\"node\"],\"tp\":[\"gpu\"]", LLAMA,
     "\"accumulate\":8,\"layout\":\"t*8E|t*8|t*8|t*8L\"", "/workload/layout",
     "\"E\" must be the first and \"L\" the last letter"},
    {"\"chip\":\"tpu-v5p\",\"shape\":\"4x4x8_twisted\",\"unrealisable\":true,\"wrap\":{\"x\":true}",
     "\"dp\":[\"x\",\"y\",\"z\"]", MLP, "\"zero\":0", "/machine/wrap",
     "the wraparound of a twisted torus follows from its shape"},
};

static void each_reason_is_given_at_its_place(void **state)
{
    (void)state;
    static const struct play_options lower_only = {.lower_only = true};
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[TEXT_BYTES];
        struct play play;
        case_text(text, sizeof text,
                  "{\"podsim\":1,\"machine\":{%s},\"mesh\":{%s},\"workload\":{\"kind\":"
                  "\"train_step\",\"model\":%s,\"batch_tokens\":262144,%s%s,"
                  "\"allow_oversubscription\":true}}",
                  rows[i].machine, rows[i].mesh, rows[i].model,
                  rows[i].model[0] == '{' ? "" : "\"sequence_length\":4096,", rows[i].more);
        case_error = (struct error){.status = STATUS_OK};
        enum status const status = play_try(&play, text, &lower_only, &case_error);
        if (status == STATUS_OK) fail_msg("taken: %s", text);
        case_refused(status, STATUS_OK, rows[i].where, rows[i].words);
        play_close(&play);
    }
}

/* A schedule out of a file is of so many ranks and microbatches. */
static void a_schedule_that_is_given_fits_the_step(void **state)
{
    (void)state;
    static const char text[] =
        "{\"podsim\":1,\"machine\":{\"chip\":\"h100-sxm\",\"nodes\":2},\"mesh\":{\"pp\":[\"node\"],"
        "\"tp\":[\"gpu\"]},\"workload\":{\"kind\":\"train_step\",\"model\":\"llama-3-8b\","
        "\"batch_tokens\":262144,\"sequence_length\":4096,\"accumulate\":8}}";
    static const struct {
        uint32_t ranks, microbatches;
        const char *words;
    } given[] = {{4, 8, "1f1b has 4 ranks, where the mesh has 2 of pp"},
                 {2, 6, "1f1b has 6 microbatches, where \"accumulate\" is 8"}};
    for (uint32_t i = 0; i < 2; i++) {
        struct schedule_request request = {.rank_count = given[i].ranks,
                                           .microbatch_count = given[i].microbatches};
        struct schedule schedule;
        struct play play;
        const struct schedule_form *form = NULL;
        struct play_options const options = {.lower_only = true, .schedule = &schedule};
        (void)case_arena_up(NULL);
        case_ok(schedule_form_parse("1f1b", "/", &form, &request.chunk_count, &case_error));
        case_ok(schedule_build(case_arena, form, &request, "/", &schedule, &case_error));
        case_refused(play_try(&play, text, &options, &case_error), STATUS_INVALID,
                     "/workload/schedule", given[i].words);
        play_close(&play);
        (void)case_arena_down(NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_reason_is_given_at_its_place),
        cmocka_unit_test(a_schedule_that_is_given_fits_the_step),
    };
    return cmocka_run_group_tests_name("what is refused", tests, NULL, NULL);
}
