/*
 * Random streams that meet at links: on grids, over links of their own and over several, and on
 * fabrics; each begins when some math is done, so that they meet in the middle of messages. By
 * turns and by urgency, folded and full agree to the picosecond, the fast and the reference queue
 * in every event, and links carry what they carry first come, first served. The timeline shows each
 * message for as long as it is on its link, at least, and a link whose it is.
 */
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/exchange.h"
#include "tests/support/sampling.h"
#include "tests/support/scene.h"

enum { CASES = 900, STREAMS_MAX = 4, REPEATS = 2 };

static uint64_t random_state;

static uint32_t below(uint32_t count)
{
    return (uint32_t)(case_random(&random_state) % count);
}

static uint32_t among(const uint32_t *values, uint32_t count)
{
    return values[below(count)];
}

/* Of messages: below a segment of 1 MiB or of 64 KiB, and of several; round, so that instants
 * coincide. */
static uint64_t random_bytes(void)
{
    static const uint32_t thousands[] = {1, 400, 1000, 1500, 5000, 5000, 20000};
    return UINT64_C(1000) * among(thousands, 7);
}

static uint32_t on_grid(struct scene *scene, uint32_t stream)
{
    static const enum collective_kind kinds[] = {COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER,
                                                 COLLECTIVE_ALL_REDUCE};
    struct plan_request request = {.kind = kinds[below(3)]};
    request.group = scene_group(scene, true, below(2) == 0, false);
    request.size_bytes = 8 * random_bytes();
    struct group_dimension *x = &request.group.dimension[0];
    switch (below(5)) {
    case 0: /* To some chip further on, over several links. */
        request.kind = COLLECTIVE_PERMUTE;
        request.size_bytes = random_bytes();
        for (uint32_t d = 0; d < request.group.dimension_count; d++)
            request.offset[d] = (int32_t)below(3) - 1;
        request.offset[0] = (int32_t)below(x->size - 1) + 1;
        break;
    case 1: /* Every other chip: each message goes over two links. */
        if (x->size % 2 != 0 || x->size == 2) break;
        x->size /= 2;
        x->stride = 2;
        break;
    case 2: /* Neighbours of a line, of which the ends differ from those between. */
        if (x->size % 2 != 0 || x->size == 2) break;
        x->size /= 2;
        x->ring = false;
        break;
    case 3: /* Each to each other one: messages pass links that are the first of others' ways. */
        return scene_routed(scene, stream, &exchange_direct, &request.group, true,
                            random_bytes() / 2, 1);
    default:
        break;
    }
    return scene_plan(scene, stream, &request);
}

static uint32_t on_fabric(struct scene *scene, uint32_t stream)
{
    static const struct primitive *const own[] = {&exchange_direct, &exchange_lanes,
                                                  &exchange_scatter, &exchange_unlike};
    uint32_t const axes = scene->machine.shape[1] > 1 ? 2 : 1;
    struct group group = {.dimension[0] = scene_dimension(scene, below(axes)),
                          .dimension_count = 1};
    if (axes == 2 && below(2) == 0) {
        group.dimension[0] = scene_dimension(scene, 0);
        group.dimension[1] = scene_dimension(scene, 1);
        group.dimension_count = 2;
    }
    const struct primitive *primitive = own[below(4)];
    bool const flat = below(2) == 0;
    uint64_t const unit_bytes = random_bytes() / 2;
    return scene_routed(scene, stream, primitive, &group, flat, unit_bytes, 1 + below(2));
}

static void random_tier(struct level *level, const uint32_t box[MACHINE_AXES_MAX])
{
    static const uint32_t cables[] = {1, 1, 2, 3}, rates[] = {25, 50, 100, 400};
    uint32_t const count = among(cables, 4);
    uint64_t const rate = UINT64_C(1000000000) * among(rates, 4);
    struct level_tier *tier = scene_tier(level, box, count, rate, (int64_t)below(3) * 250000);
    tier->policy = (enum level_policy)below(LEVEL_POLICY_COUNT);
}

static void fabric_open(struct scene *scene)
{
    static const uint32_t inside[] = {2, 3, 4}, nodes[] = {2, 3, 4, 6};
    uint32_t const gpus = among(inside, 3), shape[] = {gpus, among(nodes, 4), 1, 1};
    uint32_t const chip[] = {1, 1, 1, 1}, node[] = {shape[0], 1, 1, 1};
    uint32_t const all[] = {shape[0], shape[1], 1, 1};
    scene_open_axes(scene, shape, 0);
    struct level *inside_node = scene_level(scene, "node", 0);
    random_tier(inside_node, node);
    if (gpus > 2 && below(3) == 0) { /* No switch: a link a pair. */
        inside_node->tier[0].policy = LEVEL_PAIR;
        inside_node->tier[0].cable_count = gpus - 1;
    }
    struct level *level = scene_level(scene, "network", 1);
    if (below(2) == 0) {
        uint32_t const leaf[] = {below(2) == 0 ? 1 : shape[0],
                                 shape[1] % 2 == 0 ? shape[1] / 2 : shape[1], 1, 1};
        random_tier(level, below(3) == 0 ? chip : leaf);
    }
    random_tier(level, all);
}

static void grid_open(struct scene *scene)
{
    static const uint32_t lengths[] = {3, 4, 6, 8};
    uint32_t const length = among(lengths, 4);
    scene_open(scene, length, 2 + 2 * below(2), 1, true);
}

/* Streams of a collective each, behind parts of the math; played REPEATS times. */
static void random_program(struct scene *scene, bool grid)
{
    (void)scene_compute(scene, UINT64_C(1000000000) * (1 + below(400)), 8);
    for (uint32_t s = 2 + below(STREAMS_MAX - 1); s > 0; s--) {
        uint32_t const stream = scene_stream(scene, "stream");
        scene->program.stream[stream].urgency = (uint8_t)below(3);
        uint32_t const op = grid ? on_grid(scene, stream) : on_fabric(scene, stream);
        uint32_t const part = below(9);
        if (part > 0)
            scene->op[op].need[scene->op[op].need_count++] =
                (struct program_need){.stream = PROGRAM_COMPUTE, .part = part};
    }
}

static void describe(const struct scene *scene, uint32_t number)
{
    const struct machine *machine = &scene->machine;
    print_message("    case %u, %s: %ux%u\n", number,
                  scene->arbitration == ARBITRATION_PRIORITY ? "priority" : "fair",
                  machine->shape[0], machine->shape[1]);
    for (uint32_t i = 0; i < scene->program.plan_count; i++) {
        const struct plan *plan = &scene->plan[i];
        print_message("    %s of %llu bytes, %u dimensions, %ux%u\n", plan->item[0].primitive->name,
                      (unsigned long long)plan->size_bytes, plan->group.dimension_count,
                      plan->group.dimension[0].size, plan->group.dimension[0].stride);
    }
}

/* A message's own time on a cable of the chip. */
static int64_t work_of(const struct scene *scene, const struct trace_record *record)
{
    uint64_t rate = scene->machine.chip.ici_bytes_per_s;
    if (record->port >= MACHINE_GRID_PORTS) {
        uint32_t const index = (uint32_t)(record->port - MACHINE_GRID_PORTS) / 2; /* Up and down. */
        const struct level_tier *tier =
            &scene->machine.level[index / LEVEL_TIERS_MAX].tier[index % LEVEL_TIERS_MAX];
        bool const bundled = tier->policy == LEVEL_SPRAY || tier->policy == LEVEL_RAIL;
        rate = tier->cable_bytes_per_s * (bundled ? tier->cable_count : 1);
    }
    return units_duration_ps(record->bytes, rate);
}

/* They are nearly in this order. */
static void sort_by_begin(struct trace *trace)
{
    for (uint64_t i = 1; i < trace->records.count; i++) {
        struct trace_record const record = trace->records.record[i];
        uint64_t at = i;
        for (; at > 0 && trace->records.record[at - 1].begin_ps > record.begin_ps; at--)
            trace->records.record[at] = trace->records.record[at - 1];
        trace->records.record[at] = record;
    }
}

/* On a grid a port is one link, so that at each instant at which it is busy some slice shows it. */
static void slices_compare(const struct scene *scene, struct trace *trace, uint32_t number)
{
    int64_t work_ps = 0, shown_ps = 0, until[MACHINE_GRID_PORTS] = {0};
    sort_by_begin(trace);
    for (uint64_t i = 0; i < trace->records.count; i++) {
        const struct trace_record *at = &trace->records.record[i];
        if (at->kind != TRACE_TRANSFER) continue;
        int64_t const own_ps = work_of(scene, at);
        if (at->end_ps - at->begin_ps < own_ps || at->wait_ps < 0) {
            describe(scene, number);
            fail_msg("port %u: %llu bytes from %lld to %lld ps, a wait of %lld", at->port,
                     (unsigned long long)at->bytes, (long long)at->begin_ps, (long long)at->end_ps,
                     (long long)at->wait_ps);
        }
        if (at->port >= MACHINE_GRID_PORTS) continue;
        int64_t *until_ps = &until[at->port];
        int64_t const from_ps = at->begin_ps > *until_ps ? at->begin_ps : *until_ps;
        if (at->end_ps > from_ps) shown_ps += at->end_ps - from_ps;
        if (at->end_ps > *until_ps) *until_ps = at->end_ps;
        work_ps += own_ps;
    }
    if (shown_ps >= work_ps) return;
    describe(scene, number);
    fail_msg("%lld ps of messages in %lld ps of slices", (long long)work_ps, (long long)shown_ps);
}

/* Returns whether the arbitration made a difference. */
static bool compare(struct scene *scene, const struct trace *fifo, uint32_t number, bool *ret_folds)
{
    scene->engine = "fast";
    struct trace full;
    struct error error = {0};
    if (scene_try(scene, REPEATS, true, false, &full, &error) != STATUS_OK) {
        describe(scene, number);
        fail_msg("%s: %s", error.where, error.message);
    }
    struct trace const folded = scene_run(scene, REPEATS, false, false);
    scene->engine = "reference";
    struct trace reference = scene_run(scene, REPEATS, true, true);
    bool same = full.step_ps == folded.step_ps && full.digest == reference.digest &&
                full.work.events == reference.work.events &&
                full.work.transfers == fifo->work.transfers;
    for (uint32_t i = 0; i < full.class_count; i++)
        same = same && full.classes[i].end_ps == folded.classes[i].end_ps;
    for (uint32_t port = 0; port < MACHINE_PORTS_MAX; port++)
        same = same && full.link[port].sum_bytes == fifo->link[port].sum_bytes &&
               full.link[port].sum_busy_ps == fifo->link[port].sum_busy_ps &&
               full.link[port].busy_ps == folded.link[port].busy_ps;
    if (!same) {
        describe(scene, number);
        fail_msg("full %lld ps, folded %lld, reference %lld", (long long)full.step_ps,
                 (long long)folded.step_ps, (long long)reference.step_ps);
    }
    slices_compare(scene, &reference, number);
    *ret_folds = folded.fold.replayed < full.fold.replayed;
    return full.digest != fifo->digest;
}

static void streams_that_meet_agree(void **state)
{
    (void)state;
    static const enum arbitration arbitrations[] = {ARBITRATION_FAIR, ARBITRATION_PRIORITY};
    uint32_t walked = 0, taken = 0, folds = 0, meet = 0;
    for (uint32_t i = 0; i < CASES; i++) {
        if (sampling_skips(&walked)) continue;
        random_state = i * 7919ull + 11;
        struct scene scene;
        bool const grid = i % 2 == 0;
        if (grid)
            grid_open(&scene);
        else
            fabric_open(&scene);
        random_program(&scene, grid);
        scene.segment_bytes = i % 3 == 0 ? 0 : 1 << 20;
        scene.arbitration = ARBITRATION_FIFO;
        struct trace const fifo = scene_run(&scene, REPEATS, true, false);
        for (uint32_t a = 0; a < 2; a++) {
            bool is_folded = false;
            scene.arbitration = arbitrations[a];
            meet += compare(&scene, &fifo, i, &is_folded);
            folds += is_folded;
            taken++;
        }
        scene_close(&scene);
    }
    print_message("    %u cases, %u were folded, in %u streams met\n", taken, folds, meet);
    assert_true(folds > taken / 4 && meet > taken / 2);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_that_meet_agree),
    };
    return cmocka_run_group_tests_name("arbitration", tests, NULL, NULL);
}
