/*
 * Conservation: what each rank puts on its links is what the algorithm asks of it. The expected
 * bytes are formulas of this file, of tokens, widths and places; neither plans nor lanes of the
 * program are asked, and no chip stands for another: all are recorded, in full runs.
 *
 * Folded and full runs agree on a rank that sends too little, and so do bounds of the busiest link:
 * only a sum of each rank finds it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/scene.h"

enum { TEXT_BYTES = 1400, CHIPS_MAX = TRACE_SHOWN_MAX, DRAWN = 24, DRAWN_COLLECTIVES = 120 };

static const uint32_t *all_chips(void)
{
    static uint32_t chips[CHIPS_MAX];
    for (uint32_t i = 0; i < CHIPS_MAX; i++) chips[i] = i;
    return chips;
}

/* Links that leave a chip: of a grid all of them, of a level the cables up into its first tier. */
static bool leaves_a_chip(uint32_t port)
{
    if (port < MACHINE_GRID_PORTS) return true;
    uint32_t const behind = port - MACHINE_GRID_PORTS;
    return port < MACHINE_HOST_PORT && behind % 2 == 0 && behind / 2 % LEVEL_TIERS_MAX == 0;
}

/* Bytes that a chip's links have carried of ops whose class ends as `of` says; "": of all. */
static double sent_bytes(const struct program *program, const struct trace *trace, uint32_t chip,
                         const char *of)
{
    uint64_t bytes = 0;
    size_t const length = strlen(of);
    for (uint64_t r = 0; r < trace->records.count; r++) {
        const struct trace_record *record = &trace->records.record[r];
        if (record->kind != TRACE_TRANSFER || record->chip != chip || !leaves_a_chip(record->port))
            continue;
        const char *class_name = program->templates[record->slot].op[record->op].class_name;
        size_t const all = strlen(class_name);
        if (all >= length && strcmp(class_name + all - length, of) == 0) bytes += record->bytes;
    }
    return (double)bytes;
}

static void expect(const char *what, uint32_t chip, double sent, double wanted)
{
    if (fabs(sent - wanted) > 0.5)
        fail_msg("chip %u sends %.0f bytes, and has to send %.0f, in %s", chip, sent, wanted, what);
}

static void drawn_play(struct play *play, const char *text)
{
    struct play_options options = {.full = true, .record = true, .shown = all_chips()};
    struct play sized;
    play_run(&sized, text, &(struct play_options){.lower_only = true});
    options.shown_count = sized.machine.chip_count;
    assert_true(options.shown_count <= CHIPS_MAX);
    play_close(&sized);
    play_run(play, text, &options);
}

/* tests/property/dense.json. */
enum { WIDTH = 512, KV_HEADS = 4, HEAD = 64, LAYERS = 3 };

/* Keys and values that each rank of cp gives on: to all others in the forward pass, where that is
 * repeated again, and, round a ring, once more in the backward pass; the sums of their gradients
 * come back the same way, and round a ring need one hop more to their owner. */
static void each_rank_of_a_ring_sends_as_much(void **state)
{
    static const struct {
        const char *machine, *mesh;
        uint32_t ranks, data;
    } rows[] = {
        {"\"chip\": \"tpu-v5e\", \"shape\": \"2x2\"", "{\"cp\": [\"x\"], \"dp\": [\"y\"]}", 2, 2},
        {"\"chip\": \"tpu-v5p\", \"shape\": \"2x2x1\"", "{\"cp\": [\"y\"], \"fsdp\": [\"x\"]}", 2,
         2},
        {"\"chip\": \"tpu-v6e\", \"shape\": \"2x4\"", "{\"cp\": [\"x\"], \"fsdp\": [\"y\"]}", 2, 4},
        {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"", "{\"cp\": [\"z\"], \"dp\": [\"x\", \"y\"]}",
         4, 16},
        {"\"chip\": \"h100-sxm\"", "{\"cp\": [\"gpu\"]}", 8, 1},
        {"\"chip\": \"h100-sxm\", \"gpus\": 2", "{\"cp\": [\"gpu\"]}", 2, 1},
    };
    uint32_t walked = 0;
    (void)state;
    for (uint64_t i = 0; i < DRAWN; i++) {
        if (sampling_skips(&walked)) continue;
        uint64_t seed = i;
        uint64_t const row = i % (sizeof rows / sizeof *rows);
        uint64_t const tokens = UINT64_C(256) << case_random(&seed) % 2,
                       accumulate = 1 + case_random(&seed) % 2;
        uint64_t const sequences = 1 + case_random(&seed) % 2, ranks = rows[row].ranks;
        bool const again = case_random(&seed) % 2 == 0;
        char text[TEXT_BYTES];
        struct play play;
        (void)snprintf(
            text, sizeof text,
            "{\"podsim\": 1, \"machine\": {%s}, \"mesh\": %s, \"workload\": {\"kind\": "
            "\"train_step\", \"model\": \"tests/property/dense.json\", \"sequence_length\": "
            "%" PRIu64 ", \"batch_tokens\": %" PRIu64 ", \"accumulate\": %" PRIu64
            ", \"context\": \"ring\", \"remat\": \"%s\", \"allow_oversubscription\": true}}",
            rows[row].machine, rows[row].mesh, tokens * ranks,
            tokens * ranks * sequences * accumulate * rows[row].data, accumulate,
            again ? "block" : "norms");
        drawn_play(&play, text);
        double const block = 2.0 * (double)(sequences * tokens) * KV_HEADS * HEAD * 2;
        double const passes = (again ? 4 : 3) * ((double)ranks - 1) + 1;
        double const wanted = LAYERS * (double)accumulate * passes * block;
        for (uint32_t chip = 0; chip < play.machine.chip_count; chip++)
            expect(text, chip, sent_bytes(&play.program, &play.trace, chip, "(sequence)"), wanted);
        play_close(&play);
    }
}

/* tests/property/experts.json, one layer's experts split over ep: 16 of them, 4 for each token. */
enum { EXPERTS = 16, CHOSEN = 4, EXPERTS_WIDTH = 1024, EXPERTS_LAYERS = 4 };

/* Of tokens with 4 of 16 experts, those that have one among `count` of them. */
static double share_that_goes(uint32_t count)
{
    double none = 1;
    for (uint32_t k = 0; k < CHOSEN; k++)
        none *= (double)(EXPERTS - count - k) / (double)(EXPERTS - k);
    return EXPERTS - count < CHOSEN ? 1 : 1 - none;
}

/* Tokens go to each rank that has an expert for them, and come back; gradients the same way. Block
 * remat sends tokens once more, and nothing back; `layer` both. Where ep lies over tp, ranks of tp
 * have tokens of their own. */
static void each_rank_sends_its_tokens_to_experts_and_back(void **state)
{
    static const char *const remats[] = {"none", "block", "layer"};
    static const struct {
        const char *machine, *mesh;
        uint32_t ranks, data, tp;
        double hops; /* Of a message to each other rank, together. */
    } rows[] = {
        {"\"chip\": \"h100-sxm\"", "{\"ep\": [\"gpu\"]}", 8, 8, 1, 7},
        {"\"chip\": \"h100-sxm\", \"gpus\": 4", "{\"ep\": [\"gpu:2\"], \"dp\": [\"gpu:2\"]}", 2, 4,
         1, 1},
        {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"", "{\"ep\": [\"x\"], \"dp\": [\"y\", \"z\"]}",
         4, 64, 1, 1 + 2 + 1},
        {"\"chip\": \"tpu-v5e\", \"shape\": \"2x2\"", "{\"ep\": [\"x\"], \"fsdp\": [\"y\"]}", 2, 4,
         1, 1},
        {"\"chip\": \"h100-sxm\"", "{\"ep\": [\"gpu:2\", \"tp\"], \"tp\": [\"gpu:4\"]}", 8, 2, 4,
         7},
        {"\"chip\": \"h100-sxm\", \"gpus\": 4",
         "{\"ep\": [\"tp\", \"dp\"], \"tp\": [\"gpu:2\"], "
         "\"dp\": [\"gpu:2\"]}",
         4, 2, 2, 3},
    };
    uint32_t walked = 0;
    (void)state;
    for (uint64_t i = 0; i < DRAWN / 2; i++) {
        if (sampling_skips(&walked)) continue;
        uint64_t seed = i;
        uint64_t const row = i % (sizeof rows / sizeof *rows);
        uint64_t const tokens = UINT64_C(64) << case_random(&seed) % 3,
                       accumulate = 1 + case_random(&seed) % 2;
        uint64_t const again = case_random(&seed) % 3;
        char text[TEXT_BYTES];
        struct play play;
        (void)snprintf(text, sizeof text,
                       "{\"podsim\": 1, \"machine\": {%s}, \"mesh\": %s, \"workload\": {\"kind\": "
                       "\"train_step\", \"model\": \"tests/property/experts.json\", "
                       "\"sequence_length\": %" PRIu64 ", \"batch_tokens\": %" PRIu64
                       ", \"accumulate\": %" PRIu64 "%s, \"remat\": \"%s\", "
                       "\"allow_oversubscription\": true}}",
                       rows[row].machine, rows[row].mesh, tokens,
                       tokens * accumulate * rows[row].data, accumulate,
                       rows[row].tp > 1 ? ", \"activations\": \"tokens\"" : "", remats[again]);
        drawn_play(&play, text);
        /* Tokens of all ranks that share a set of experts are rounded up together. */
        double const senders = (double)rows[row].ranks, own = (double)(tokens / rows[row].tp);
        double const share = share_that_goes(EXPERTS / rows[row].ranks);
        double const to_one = ceil(senders * own * share) / senders;
        double const exchanges = (4.0 + (double)again) * EXPERTS_LAYERS * (double)accumulate;
        double const wanted = exchanges * rows[row].hops * to_one * EXPERTS_WIDTH * 2;
        for (uint32_t chip = 0; chip < play.machine.chip_count; chip++) {
            double const rows_sent = sent_bytes(&play.program, &play.trace, chip, " rows (ep)") +
                                     sent_bytes(&play.program, &play.trace, chip, "dRows (ep)") +
                                     sent_bytes(&play.program, &play.trace, chip, " outputs (ep)") +
                                     sent_bytes(&play.program, &play.trace, chip, "dOutputs (ep)");
            expect(text, chip, rows_sent, wanted);
        }
        play_close(&play);
    }
}

/* A microbatch crosses each border once as an activation, and back as a gradient. */
static void each_stage_sends_each_microbatch_on_and_back(void **state)
{
    static const struct {
        const char *machine, *mesh;
        uint32_t ranks, data, tp;
    } rows[] = {
        {"\"chip\": \"tpu-v5p\", \"shape\": \"2x2x1\"", "{\"pp\": [\"x\"], \"dp\": [\"y\"]}", 2, 2,
         1},
        {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
         "{\"pp\": [\"z\"], \"dp\": [\"x\"], \"tp\": [\"y\"]}", 4, 4, 4},
        {"\"chip\": \"h100-sxm\"", "{\"pp\": [\"gpu:4\"], \"dp\": [\"gpu:2\"]}", 4, 2, 1},
        {"\"chip\": \"h100-sxm\", \"nodes\": 4", "{\"pp\": [\"node\"], \"fsdp\": [\"gpu\"]}", 4, 8,
         1},
    };
    static const char *const schedules[] = {"1f1b", "gpipe", "zb-h1"};
    uint32_t walked = 0;
    (void)state;
    for (uint64_t i = 0; i < DRAWN / 2; i++) {
        if (sampling_skips(&walked)) continue;
        uint64_t seed = i;
        uint64_t const row = i % (sizeof rows / sizeof *rows);
        uint64_t const ranks = rows[row].ranks, microbatches = ranks + case_random(&seed) % 3;
        uint64_t const tokens = UINT64_C(256) << case_random(&seed) % 3;
        char text[TEXT_BYTES];
        struct play play;
        (void)snprintf(text, sizeof text,
                       "{\"podsim\": 1, \"machine\": {%s}, \"mesh\": %s, \"workload\": {\"kind\": "
                       "\"train_step\", \"model\": {\"kind\": \"mlp\", \"D\": %d, \"F\": 1024, "
                       "\"layers\": 8, \"matrices\": 2}, \"batch_tokens\": %" PRIu64
                       ", \"accumulate\": %" PRIu64
                       ", \"schedule\": \"%s\", \"allow_oversubscription\": true}}",
                       rows[row].machine, rows[row].mesh, WIDTH,
                       tokens * microbatches * rows[row].data, microbatches,
                       schedules[case_random(&seed) % 3]);
        drawn_play(&play, text);
        double const message = (double)tokens * WIDTH / rows[row].tp * 2;
        double all = 0;
        for (uint32_t chip = 0; chip < play.machine.chip_count; chip++) {
            uint32_t const rank = mesh_rank(&play.mesh, &play.machine, MESH_PP, chip);
            double const on = sent_bytes(&play.program, &play.trace, chip, "send activations");
            double const back = sent_bytes(&play.program, &play.trace, chip, "send gradients");
            all += on + back;
            expect(text, chip, on, rank + 1 < ranks ? (double)microbatches * message : 0);
            expect(text, chip, back, rank > 0 ? (double)microbatches * message : 0);
        }
        assert_true(all > 0);
        play_close(&play);
    }
}

/* What a rank puts on its links, by what is moved and where it stands. */
static double asked_bytes(enum collective_kind kind, uint64_t bytes, uint64_t size,
                          uint64_t position, bool line, bool switched)
{
    double const chunk = (double)bytes / (double)size, others = (double)(size - 1);
    /* On a line chunks pass on away from where they come from; partial sums the other way. */
    bool const first = position == 0, last = position + 1 == size;
    double const passed =
        (last ? 0 : (double)position + 1) + (first ? 0 : (double)(size - position));
    double hops = 0;
    if (kind == COLLECTIVE_ALL_GATHER) return chunk * (line ? passed : others);
    if (kind == COLLECTIVE_REDUCE_SCATTER) return chunk * others;
    if (kind == COLLECTIVE_ALL_REDUCE) return chunk * (line ? others + passed : 2 * others);
    if (kind == COLLECTIVE_PERMUTE) return (double)bytes;
    for (uint64_t other = 0; other < size; other++) {
        uint64_t const on = (other + size - position) % size;
        hops += switched ? on != 0 : (double)(on < size - on ? on : size - on);
    }
    return chunk / (double)size * hops; /* AllToAll */
}

/* Alone on rings, on lines and through a switch; chunks are of one size. */
static void each_rank_of_a_collective_sends_what_it_has_to(void **state)
{
    static const enum collective_kind kinds[] = {COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER,
                                                 COLLECTIVE_ALL_REDUCE, COLLECTIVE_ALL_TO_ALL,
                                                 COLLECTIVE_PERMUTE};
    uint32_t walked = 0;
    (void)state;
    for (uint64_t i = 0; i < DRAWN_COLLECTIVES; i++) {
        if (sampling_skips(&walked)) continue;
        uint64_t seed = i;
        enum collective_kind const kind = kinds[i % 5];
        uint32_t const size = 2 + (uint32_t)(case_random(&seed) % 8),
                       where = (uint32_t)(case_random(&seed) % 3);
        bool const switched = where == 0, ring = where == 1 && size > 2;
        bool const line = !switched && !ring;
        uint64_t const bytes = (uint64_t)size * size * 4 * (1 + case_random(&seed) % 65536);
        if (line && (kind == COLLECTIVE_ALL_TO_ALL || kind == COLLECTIVE_PERMUTE)) continue;
        struct scene scene;
        if (switched)
            scene_open_node(&scene, size);
        else
            scene_open(&scene, size, 1, 1, ring);
        scene.shown = all_chips();
        scene.shown_count = size;
        struct plan_request const request = {
            .kind = kind,
            .algorithm = algorithm_read(kind == COLLECTIVE_ALL_REDUCE && switched ? "ring" : NULL),
            .group = {.dimension = {scene_dimension(&scene, 0)}, .dimension_count = 1},
            .size_bytes = bytes,
            .offset = {1}};
        (void)scene_plan(&scene, scene_stream(&scene, "collective"), &request);
        struct trace const trace = scene_run(&scene, 1, true, true);
        char what[128];
        (void)snprintf(what, sizeof what, "%s of %" PRIu64 " bytes over %u on a %s",
                       collective_kind_name(kind), bytes, size,
                       switched ? "switch"
                       : ring   ? "ring"
                                : "line");
        for (uint32_t chip = 0; chip < size; chip++)
            expect(what, chip, sent_bytes(&scene.program, &trace, chip, ""),
                   asked_bytes(kind, bytes, size, chip, line, switched));
        scene_close(&scene);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rank_of_a_ring_sends_as_much),
        cmocka_unit_test(each_rank_sends_its_tokens_to_experts_and_back),
        cmocka_unit_test(each_stage_sends_each_microbatch_on_and_back),
        cmocka_unit_test(each_rank_of_a_collective_sends_what_it_has_to),
    };
    return cmocka_run_group_tests_name("conservation", tests, NULL, NULL);
}
