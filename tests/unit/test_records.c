/*
 * Records of messages: each carries the op whose bytes they are, whatever the chip at the link does
 * at the time. Every chip is recorded, so no record needs to be believed: ops that play one plan on
 * the same chips put as many messages on as many links each time, and a collective's messages are
 * under way while some chip is in it. And what a run keeps of passes and memory is what records of
 * all that happened say.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/scene.h"

enum { CHIPS_MAX = 64, LABELS_MAX = 4096, PASSES_MAX = 128 };

/* What is recorded of an op. */
struct seen {
    uint64_t chips;      /* That play it, as bits, */
    uint64_t executions; /* and how often all of them together. */
    uint64_t transfers;
    uint64_t bytes;
};

static struct seen seen[LABELS_MAX];

static uint32_t label_of(const struct program *program, uint32_t template_index, uint32_t op)
{
    uint32_t label = op;
    assert_true(template_index < program->template_count);
    assert_true(op < program->templates[template_index].op_count);
    for (uint32_t t = 0; t < template_index; t++) label += program->templates[t].op_count;
    assert_true(label < LABELS_MAX);
    return label;
}

static const struct program_op *op_of(const struct program *program, uint32_t label)
{
    uint32_t t = 0;
    for (; label >= program->templates[t].op_count; t++) label -= program->templates[t].op_count;
    return &program->templates[t].op[label];
}

static bool has_messages(const struct program_op *op)
{
    return op->kind == PROGRAM_OP_COLLECTIVE || op->kind == PROGRAM_OP_SEND;
}

static uint32_t template_of(const struct play *play, const struct trace_record *record)
{
    if (record->kind == TRACE_TRANSFER) return record->slot;
    const struct program *program = &play->program;
    uint32_t at[MACHINE_AXES_MAX];
    machine_coordinates(&play->machine, record->chip, at);
    return program_slot_block(&program->roles[program_role_at(program, at)], record->slot)
        ->template_index;
}

static void see(const struct play *play)
{
    memset(seen, 0, sizeof seen);
    for (uint64_t i = 0; i < play->trace.records.count; i++) {
        const struct trace_record *record = &play->trace.records.record[i];
        if (record->kind == TRACE_MEMORY || record->kind == TRACE_ARRIVAL) continue;
        if (record->stream == PROGRAM_COMPUTE) continue;
        uint32_t const label = label_of(&play->program, template_of(play, record), record->op);
        const struct program_op *op = op_of(&play->program, label);
        if (!has_messages(op)) continue;
        assert_int_equal(op->stream, record->stream);
        struct seen *its = &seen[label];
        if (record->kind == TRACE_TRANSFER) {
            its->transfers++;
            its->bytes += record->bytes;
            continue;
        }
        its->chips |= UINT64_C(1) << record->chip;
        its->executions++;
    }
}

/* Ops that play a plan on the same chips: returns of how many the shares were compared. */
static uint32_t shares_check(const struct program *program)
{
    uint32_t compared = 0;
    for (uint32_t a = 0; a < LABELS_MAX; a++) {
        if (seen[a].executions == 0) {
            assert_int_equal(seen[a].transfers, 0);
            continue;
        }
        for (uint32_t b = 0; b < a; b++) {
            const struct program_op *one = op_of(program, a), *other = op_of(program, b);
            if (seen[b].chips != seen[a].chips || one->stream != other->stream ||
                one->index != other->index)
                continue;
            compared++;
            assert_int_equal(seen[a].transfers * seen[b].executions,
                             seen[b].transfers * seen[a].executions);
            assert_int_equal(seen[a].bytes * seen[b].executions,
                             seen[b].bytes * seen[a].executions);
            break;
        }
    }
    return compared;
}

/* Whether the chip is in such an op at that time; of chip UINT32_MAX: any. */
static bool runs(const struct play *play, uint32_t chip, uint32_t label, int64_t at_ps)
{
    for (uint64_t i = 0; i < play->trace.records.count; i++) {
        const struct trace_record *record = &play->trace.records.record[i];
        if (record->kind != TRACE_OP || record->stream == PROGRAM_COMPUTE) continue;
        if (chip != UINT32_MAX && chip != record->chip) continue;
        if (record->begin_ps <= at_ps && at_ps <= record->end_ps &&
            label_of(&play->program, template_of(play, record), record->op) == label)
            return true;
    }
    return false;
}

/* Of some hundred messages of collectives; returns how many crossed a chip that was elsewhere. */
static uint32_t times_check(const struct play *play)
{
    uint64_t const stride = play->trace.records.count / 2000 + 1;
    uint32_t elsewhere = 0;
    for (uint64_t i = 0; i < play->trace.records.count; i += stride) {
        const struct trace_record *record = &play->trace.records.record[i];
        if (record->kind != TRACE_TRANSFER) continue;
        uint32_t const label = label_of(&play->program, record->slot, record->op);
        if (op_of(&play->program, label)->kind != PROGRAM_OP_COLLECTIVE) continue;
        assert_true(runs(play, UINT32_MAX, label, record->begin_ps));
        elsewhere += !runs(play, record->chip, label, record->begin_ps);
    }
    return elsewhere;
}

/* Returns how many messages, of those looked at, crossed a chip that was elsewhere. */
static uint32_t check(const char *text)
{
    struct play play;
    uint32_t shown[CHIPS_MAX];
    for (uint32_t chip = 0; chip < CHIPS_MAX; chip++) shown[chip] = chip;
    struct play_options options = {.full = true, .lower_only = true};
    play_run(&play, text, &options);
    options = (struct play_options){
        .full = true, .record = true, .shown = shown, .shown_count = play.machine.chip_count};
    assert_true(play.machine.chip_count <= CHIPS_MAX);
    play_close(&play);
    play_run(&play, text, &options);
    see(&play);
    assert_true(shares_check(&play.program) > 0);
    uint32_t const elsewhere = times_check(&play);
    play_close(&play);
    return elsewhere;
}

#define HEAD "{\"podsim\": 1, \"title\": \"records\", \"machine\": {"
#define MLP(tokens, width, inner)                                                                  \
    "\"workload\": {\"kind\": \"train_step\", \"model\": {\"kind\": \"mlp\", \"D\": " width        \
    ", \"F\": " inner ", \"layers\": 8, \"matrices\": 2}, \"batch_tokens\": " tokens ", "

static void messages_between_every_other_chip_keep_their_op(void **state)
{
    (void)state;
    static const char *const rest[] = {
        "\"schedule\": \"zb-v\", \"accumulate\": 2, \"regather\": \"stage\"}}",
        "\"schedule\": \"v-half\", \"accumulate\": 4, \"gather\": \"tensor\"}}",
        "\"schedule\": \"1f1b\", \"accumulate\": 4, \"remat\": \"big_matmuls\"}}",
    };
    for (uint32_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text, "%s%s%s%s", HEAD,
                       "\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"}, \"mesh\": {"
                       "\"pp\": [\"x:2\"], \"tp\": [\"x:2\"], \"dp\": [\"y\"], \"fsdp\": [\"z\"]"
                       ", \"order\": [\"pp\", \"tp\", \"dp\", \"fsdp\"]}, ",
                       MLP("65536", "2048", "8192"), rest[i]);
        assert_true(check(text) > 0);
    }
}

/* A slow chip, and whoever waits for it, is at another op than its neighbours. */
static void rings_over_a_part_of_an_axis_cross_chips_that_are_elsewhere(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *slow, *mesh;
    } cases[] = {
        {"4x2x2", "1, \"*\", \"*\"",
         "\"dp\": [\"x:2\"], \"tp\": [\"x:2\"], \"fsdp\": [\"y\", \"z\"]"
         ", \"order\": [\"dp\", \"tp\", \"fsdp\"]"},
        {"8", "1", "\"dp\": [\"x:4\"], \"tp\": [\"x:2\"], \"order\": [\"dp\", \"tp\"]"},
        {"8", "6", "\"tp\": [\"x:4\"], \"fsdp\": [\"x:2\"]"},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "%s\"chip\": \"tpu-v5p\", \"shape\": \"%s\", \"unrealisable\": true, "
                       "\"chips\": [{\"at\": [%s], \"math\": 0.5}]}, "
                       "\"mesh\": {%s}, %s\"accumulate\": 2, \"gather\": \"tensor\"}}",
                       HEAD, cases[i].shape, cases[i].slow, cases[i].mesh,
                       MLP("65536", "2048", "8192"));
        (void)check(text);
    }
}

/* Over switches a message names its receiver, and is on its sender's cable, or the receiver's; what
 * switches add or copy has come from several. */
static void messages_over_switches_keep_their_op(void **state)
{
    (void)state;
    static const char *const rest[][2] = {
        {"\"tp\": [\"gpu:4\"], \"dp\": [\"gpu:2\"], \"fsdp\": [\"node\"]",
         "\"accumulate\": 2, \"gather\": \"tensor\"}}"},
        {"\"tp\": [\"gpu\"], \"pp\": [\"node:2\"], \"dp\": [\"node:2\"]"
         ", \"order\": [\"tp\", \"pp\", \"dp\"]",
         "\"accumulate\": 4, \"schedule\": \"zb-v\"}, \"run\": {\"algorithm\": \"sharp\"}}"},
        {"\"tp\": [\"gpu\"], \"dp\": [\"node\"]", "\"accumulate\": 2}}"},
    };
    for (uint32_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "%s\"chip\": \"h100-sxm\", \"nodes\": 4, \"network\": {\"sharp\": "
                       "\"on\"}}, \"mesh\": {%s}, %s%s",
                       HEAD, rest[i][0], MLP("512", "256", "512"), rest[i][1]);
        (void)check(text);
    }
}

/* The root has begun the next broadcast, or has finished, before the last message is there. */
static void what_a_root_sent_before_it_went_on_keeps_its_op(void **state)
{
    (void)state;
    enum { BROADCASTS = 3 };
    static const uint32_t shown[] = {1};
    struct scene scene;
    scene_open_node(&scene, 4);
    scene.shown = shown;
    scene.shown_count = 1;
    uint32_t const stream = scene_stream(&scene, "broadcasts");
    struct group const group = {.dimension = {scene_dimension(&scene, 0)}, .dimension_count = 1};
    for (uint64_t i = 0; i < BROADCASTS; i++)
        (void)scene_collective(&scene, stream, COLLECTIVE_BROADCAST, group, UINT64_C(4096) << i,
                               NULL, 0);
    struct trace const trace = scene_run(&scene, 1, true, true);
    uint64_t bytes[BROADCASTS] = {0};
    for (uint64_t i = 0; i < trace.records.count; i++) {
        const struct trace_record *record = &trace.records.record[i];
        if (record->kind == TRACE_TRANSFER && record->port == machine_level_port(0, 0, true))
            bytes[record->op] += record->bytes;
    }
    for (uint64_t i = 0; i < BROADCASTS; i++) assert_int_equal(bytes[i], UINT64_C(4096) << i);
    scene_close(&scene);
}

/* Switches copy what a root sends to a chip that is late: up to three broadcasts, of this slot and
 * the next one, come before it has begun the first. */
static void what_comes_before_its_op_has_begun_keeps_it(void **state)
{
    (void)state;
    static const uint32_t shown[] = {1};
    static const struct machine_chip_override late = {
        .at = {1, 0, 0, 0}, .math_ppm = PPM_ONE / 5, .hbm_ppm = PPM_ONE};
    struct scene scene;
    uint32_t broadcast[2], work[2];
    scene_open_node(&scene, 4);
    scene.machine.level[0].tier[0].multicasts = true;
    case_override_chips(scene.arena, &scene.machine, &late, 1);
    scene.shown = shown;
    scene.shown_count = 1;
    uint32_t const stream = scene_stream(&scene, "broadcasts");
    for (uint64_t i = 0; i < 2; i++) {
        struct plan_request const request = {
            .kind = COLLECTIVE_BROADCAST,
            .algorithm = algorithm_read("sharp"),
            .group = {.dimension = {scene_dimension(&scene, 0)}, .dimension_count = 1},
            .size_bytes = UINT64_C(4096) << i,
            .multicasts = {true}};
        work[i] = scene_compute(&scene, UINT64_C(5000000000) << i, 1); /* 5 us, 10 us. */
        broadcast[i] = scene_plan(&scene, stream, &request);
        scene_need(&scene, broadcast[i], work[i], 0);
    }
    struct trace const trace = scene_run(&scene, 2, true, true);
    uint64_t bytes[2] = {0};
    int64_t before = 0;
    for (uint64_t i = 0; i < trace.records.count; i++) {
        const struct trace_record *record = &trace.records.record[i];
        if (record->kind != TRACE_TRANSFER || record->port != machine_level_port(0, 0, true))
            continue;
        bytes[record->op == broadcast[1]] += record->bytes;
        assert_true(record->op == broadcast[0] || record->op == broadcast[1]);
        before += record->end_ps < 25 * TIME_PS_PER_US; /* When the late one ends its first op. */
    }
    assert_int_equal(before, 3);
    for (uint64_t i = 0; i < 2; i++) assert_int_equal(bytes[i], UINT64_C(2) * 4096 << i);
    scene_close(&scene);
}

/* Every message of an exchange, from each to each, crosses the sender's cable and the receiver's;
 * what all of them waited is what the cables' books say. */
static void each_message_says_its_ends_and_its_wait(void **state)
{
    (void)state;
    enum { GPUS = 4 };
    static const uint32_t shown[GPUS] = {0, 1, 2, 3};
    struct scene scene;
    scene_open_node(&scene, GPUS);
    scene.shown = shown;
    scene.shown_count = GPUS;
    uint32_t const stream = scene_stream(&scene, "exchange");
    struct group const group = {.dimension = {scene_dimension(&scene, 0)}, .dimension_count = 1};
    (void)scene_collective(&scene, stream, COLLECTIVE_ALL_TO_ALL, group, 1 << 20, NULL, 0);
    struct trace const trace = scene_run(&scene, 1, true, true);
    uint32_t crossed[GPUS][GPUS][2] = {{{0}}};
    int64_t waited_ps[2][GPUS] = {{0}};
    for (uint64_t i = 0; i < trace.records.count; i++) {
        const struct trace_record *record = &trace.records.record[i];
        if (record->kind != TRACE_TRANSFER) continue;
        bool const down = record->port == machine_level_port(0, 0, true);
        assert_true(record->from < GPUS && record->to < GPUS);
        assert_int_equal(record->chip, down ? record->to : record->from);
        assert_int_equal(record->at, record->chip);
        crossed[record->from][record->to][down]++;
        waited_ps[down][record->chip] += record->wait_ps;
    }
    for (uint32_t from = 0; from < GPUS; from++)
        for (uint32_t to = 0; to < GPUS; to++)
            for (uint32_t down = 0; down < 2; down++)
                assert_int_equal(crossed[from][to][down], from != to);
    assert_true(waited_ps[0][0] > 0); /* Three messages leave over one cable. */
    for (uint32_t down = 0; down < 2; down++) {
        const struct trace_link *link = &trace.link[machine_level_port(0, 0, down)];
        assert_int_equal(waited_ps[down][link->busiest_chip], link->waited_ps);
    }
    scene_close(&scene);
}

/* The books of passes and of memory, made anew out of records: of the compute of a pass, and of
 * what each change leaves. */
static void books_check(const struct play *play, uint32_t rank, uint32_t chip)
{
    const struct trace_role *role = &play->trace.roles[rank];
    int64_t begin_ps[PASSES_MAX] = {0}, end_ps[PASSES_MAX] = {0};
    uint64_t held[PROGRAM_MEMORY_COUNT] = {0}, sum = 0, before = 0, points = 0;
    int64_t at_ps = 0;
    assert_in_range(role->pass_count, 8, PASSES_MAX - 1);
    for (uint64_t i = 0; i < play->trace.records.count; i++) {
        const struct trace_record *record = &play->trace.records.record[i];
        if (record->chip != chip) continue;
        if (record->kind == TRACE_MEMORY) {
            sum += record->bytes - held[record->lane];
            held[record->lane] = record->bytes;
            if (points > 0 && at_ps != record->begin_ps)
                assert_int_equal(role->curve.bytes[points - 1], before);
            if (points == 0 || at_ps != record->begin_ps) {
                assert_true(points < role->curve.count);
                assert_int_equal(role->curve.at_ps[points++], record->begin_ps);
            }
            at_ps = record->begin_ps;
            before = sum;
        }
        if (record->kind != TRACE_OP || record->stream != PROGRAM_COMPUTE) continue;
        const struct program_block *block =
            program_slot_block(&play->program.roles[rank], record->slot);
        uint32_t const last = block->pass + (block->phase == PROGRAM_PHASE_PAIR);
        for (uint32_t pass = block->pass; block->pass > 0 && pass <= last; pass++) {
            if (end_ps[pass - 1] == 0) begin_ps[pass - 1] = record->begin_ps;
            end_ps[pass - 1] = record->end_ps;
        }
    }
    assert_int_equal(points, role->curve.count);
    assert_int_equal(role->curve.bytes[points - 1], sum);
    assert_memory_equal(begin_ps, role->pass_begin_ps, role->pass_count * sizeof *begin_ps);
    assert_memory_equal(end_ps, role->pass_end_ps, role->pass_count * sizeof *end_ps);
}

static void passes_and_memory_are_those_of_the_records(void **state)
{
    (void)state;
    static const char *const schedules[] = {"1f1b", "zb-v", "dualpipev", "interleaved:2"};
    for (uint32_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "%s\"chip\": \"h100-sxm\", \"nodes\": 2}, \"mesh\": {\"tp\": "
                       "[\"gpu:4\"], \"pp\": [\"gpu:2\"], \"dp\": [\"node\"]}, "
                       "%s\"accumulate\": 8, \"schedule\": \"%s\"}}",
                       HEAD, MLP("65536", "2048", "8192"), schedules[i]);
        struct play play;
        uint32_t chips[2] = {0};
        struct play_options const options = {.lower_only = true};
        play_run(&play, text, &options);
        for (uint32_t rank = 0; rank < 2; rank++) {
            uint32_t at[MACHINE_AXES_MAX];
            program_role_first(&play.program, rank, at);
            chips[rank] = machine_chip_at(&play.machine, at);
        }
        struct replay_options const replay = {.engine = "fast",
                                              .record = true,
                                              .curves = true,
                                              .shown_chips = chips,
                                              .shown_count = 2};
        case_ok(
            fold_build(play.arena, &play.machine, &play.program, false, &play.fold, &case_error));
        case_ok(replay_run(play.arena, &replay, &play.machine, &play.program, &play.fold,
                           &play.trace, &case_error));
        for (uint32_t rank = 0; rank < 2; rank++) books_check(&play, rank, chips[rank]);
        play_close(&play);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_between_every_other_chip_keep_their_op),
        cmocka_unit_test(rings_over_a_part_of_an_axis_cross_chips_that_are_elsewhere),
        cmocka_unit_test(messages_over_switches_keep_their_op),
        cmocka_unit_test(what_a_root_sent_before_it_went_on_keeps_its_op),
        cmocka_unit_test(what_comes_before_its_op_has_begun_keeps_it),
        cmocka_unit_test(each_message_says_its_ends_and_its_wait),
        cmocka_unit_test(passes_and_memory_are_those_of_the_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
