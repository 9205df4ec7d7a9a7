/*
 * Who goes first at a link under `priority`: activations, then weights, then sums of gradients. A
 * stream's urgency follows from what it carries, whatever its ranks are: data ranks, experts' or
 * stages.
 */
#include <string.h>

#include "tests/support/case.h"
#include "tests/support/play.h"

enum { ACTIVATIONS, WEIGHTS, GRADIENTS };

/* By how a stream's name begins; each is one of some case. */
static struct {
    const char *name;
    uint8_t urgency;
    bool met;
} streams[] = {
    {"gather tp", ACTIVATIONS, false},
    {"reduce tp", ACTIVATIONS, false},
    {"sum tp", ACTIVATIONS, false},
    {"dispatch ep", ACTIVATIONS, false},
    {"combine ep", ACTIVATIONS, false},
    {"gather sequence", ACTIVATIONS, false},
    {"exchange sequence", ACTIVATIONS, false},
    {"reduce sequence", ACTIVATIONS, false},
    {"home sequence", ACTIVATIONS, false},
    {"exchange kv", ACTIVATIONS, false},
    {"gather kv", ACTIVATIONS, false},
    {"reduce kv", ACTIVATIONS, false},
    {"send next", ACTIVATIONS, false},
    {"send previous", ACTIVATIONS, false},
    {"gather fsdp", WEIGHTS, false},
    {"gather dp", WEIGHTS, false},
    {"gather experts", WEIGHTS, false},
    {"reduce fsdp", GRADIENTS, false},
    {"reduce dp", GRADIENTS, false},
    {"reduce cp", GRADIENTS, false},
    {"reduce experts", GRADIENTS, false},
    {"kv", GRADIENTS, false},
    {"send copy", GRADIENTS, false},
    {"send mtp", GRADIENTS, false},
    {"send first", GRADIENTS, false},
};
enum { STREAMS = sizeof streams / sizeof *streams };

#define STEP(machine, mesh, model, more)                                                           \
    "{\"podsim\": 1, \"title\": \"urgency\", \"machine\": {" machine "}, \"mesh\": {" mesh         \
    "}, \"workload\": {\"kind\": \"train_step\", \"model\": \"" model                              \
    "\", \"batch_tokens\": 1048576, \"sequence_length\": 4096" more                                \
    ", \"allow_oversubscription\": true}}"
#define DECODE(mesh, batch)                                                                        \
    "{\"podsim\": 1, \"title\": \"urgency\", \"machine\": {" NODES "}, \"mesh\": {" mesh           \
    "}, \"workload\": {\"kind\": \"decode\", \"model\": \"mixtral-8x7b\", \"batch\": " batch       \
    ", \"context\": 4096, \"allow_oversubscription\": true}}"
#define TORUS "\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\""
#define NODES "\"chip\": \"h100-sxm\", \"nodes\": 8"

static const char *const steps[] = {
    STEP(TORUS, "\"cp\": [\"x\"], \"fsdp\": [\"y\"], \"tp\": [\"z\"]", "mixtral-8x7b",
         ", \"context\": \"ring\""),
    STEP(TORUS, "\"cp\": [\"x\"], \"fsdp\": [\"y\"], \"tp\": [\"z\"]", "llama-3-8b",
         ", \"context\": \"ulysses\""),
    STEP(NODES, "\"fsdp\": [\"node:4\"], \"dp\": [\"node:2\"], \"tp\": [\"gpu\"]", "llama-2-13b",
         ""),
    STEP(TORUS, "\"fsdp\": [\"x\"], \"tp\": [\"y\", \"z\"]", "llama-3-8b", ""),
    STEP(NODES,
         "\"pp\": [\"node:4\"], \"dp\": [\"node:2\"], \"ep\": [\"gpu\"], "
         "\"order\": [\"pp\", \"dp\", \"ep\"]",
         "mixtral-8x7b", ", \"zero\": 1, \"accumulate\": 8, \"schedule\": \"dualpipe\""),
    STEP(NODES,
         "\"pp\": [\"node:4\"], \"dp\": [\"node:2\"], \"ep\": [\"gpu\"], "
         "\"order\": [\"pp\", \"dp\", \"ep\"]",
         "tests/property/mtp.json", ", \"accumulate\": 8, \"layout\": \"Ett|tttt|m|L\""),
    DECODE("\"tp\": [\"node:2\", \"gpu\"], \"fsdp\": [\"node:4\"]", "64"),
    DECODE("\"tp\": [\"node:2\", \"gpu\"], \"ep\": [\"node:4\"]", "4"),
};

static void stream_check(const struct program_stream *stream)
{
    uint32_t named = STREAMS;
    for (uint32_t i = 0; i < STREAMS; i++)
        if (strncmp(stream->name, streams[i].name, strlen(streams[i].name)) == 0) named = i;
    if (named == STREAMS) fail_msg("what does \"%s\" carry?", stream->name);
    if (stream->urgency != streams[named].urgency)
        fail_msg("\"%s\" has urgency %u, not %u", stream->name, stream->urgency,
                 streams[named].urgency);
    streams[named].met = true;
}

/* An op of some template lies on it. */
static bool is_used(const struct program *program, uint32_t stream)
{
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t i = 0; i < program->templates[t].op_count; i++)
            if (program->templates[t].op[i].stream == stream) return true;
    return false;
}

static void urgency_follows_from_what_a_stream_carries(void **state)
{
    (void)state;
    struct play_options const options = {.lower_only = true};
    for (uint32_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct play play;
        play_run(&play, steps[i], &options);
        for (uint32_t s = 0; s < play.program.stream_count; s++) {
            const struct program_stream *stream = &play.program.stream[s];
            if (stream->kind == PROGRAM_OP_COLLECTIVE || stream->kind == PROGRAM_OP_SEND)
                stream_check(stream);
            if (!is_used(&play.program, s)) fail_msg("\"%s\" carries nothing", stream->name);
        }
        play_close(&play);
    }
    for (uint32_t i = 0; i < STREAMS; i++)
        if (!streams[i].met) fail_msg("no case has \"%s\"", streams[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urgency_follows_from_what_a_stream_carries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
