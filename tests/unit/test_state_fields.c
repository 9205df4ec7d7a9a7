/*
 * The fields of the state of a run (sim/replay/state_fields.h): a list has all of its struct, and
 * the searches for layers that recur and for stretches tell states apart by what it says.
 */
#include <string.h>

#include "sim/replay/arrival_cost.h"
#include "sim/replay/chain.h"
#include "sim/replay/flight.h"
#include "sim/replay/p2p.h"
#include "sim/replay/recur_state.h"
#include "sim/replay/route.h"
#include "sim/replay/stretch_record.h"
#include "tests/support/case.h"

enum { CHIPS = 2, STREAMS = 2, ROWS_MAX = 64, SLOTS = 4, NOW_PS = 1000, STRUCT_BYTES_MAX = 1024 };

/* gcc tells padding from fields since version 11; other compilers leave this test to it. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define PADDING_IS_KNOWN
#endif
#endif

/* --- Lists and structs --- */

#ifdef PADDING_IS_KNOWN
static void field_take(unsigned char *bytes, size_t offset, size_t count, const char *field)
{
    for (size_t i = offset; i < offset + count; i++) {
        if (bytes[i] == 0) fail_msg("byte %zu of %s is named twice", i, field);
        bytes[i] = 0;
    }
}

static void none_is_left(const unsigned char *bytes, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0) fail_msg("byte %zu of struct %s is in no field of its list", i, name);
}

/* Bytes of a struct that are no padding, and in no field of its list. */
static void lists_name_all_fields(void **state)
{
    (void)state;
#define TAKE(type, member, again, name, keeping)                                                   \
    field_take(bytes, offsetof(struct type, member), sizeof(((struct type *)0)->member),           \
               #type "." #member);
#define ALL(type, LIST)                                                                            \
    {                                                                                              \
        struct type item;                                                                          \
        unsigned char bytes[STRUCT_BYTES_MAX];                                                     \
        assert_true(sizeof item <= sizeof bytes);                                                  \
        memset(&item, 0xff, sizeof item);                                                          \
        __builtin_clear_padding(&item);                                                            \
        memcpy(bytes, &item, sizeof item);                                                         \
        LIST(TAKE, type, )                                                                         \
        none_is_left(bytes, sizeof item, #type);                                                   \
    }
    STATE_STRUCTS(ALL)
}
#endif

/* --- Layers that recur --- */

static void *taken(uint64_t count, uint64_t bytes)
{
    void *memory = NULL;
    case_ok(arena_try(case_arena, count + 1, bytes, &memory, &case_error));
    return memory;
}

/* Two chips with one or a few rows of each array of state, all of which is 0. */
static struct replay *replay_by_hand(void)
{
    static struct replay replay;
    static struct program program;
    static struct machine machine;
    static struct routes routes;
    static struct replay_options const options = {.count_waits = true};
    static struct p2p p2p;
    static struct chains chains;
    static struct stretches stretches;
    static struct flights flights;
    program = (struct program){.class_count = 2, .stream_count = STREAMS, .role_count = 1};
    replay = (struct replay){.program = &program,
                             .machine = &machine,
                             .routes = &routes,
                             .options = &options,
                             .chip_count = CHIPS,
                             .stream_count = STREAMS,
                             .p2p = &p2p};
    replay.lanes = (struct lanes){.count = 3, .flights = &flights};
    replay.grid.port_count = 2;
    replay.servers.chip_count = CHIPS;
    replay.servers.port_ways = 2;
    replay.servers.read_ways = 4;
    replay.servers.cores.is_on = true;
    replay.breakdowns.link_sets = 2;
    replay.streams = (struct streams){.chains = &chains, .stretches = &stretches};
#define X(array, rows, fields) replay.array = taken(ROWS_MAX * CHIPS, sizeof *replay.array);
    REPLAY_STATE_TABLE(X)
#undef X
    replay.servers.ports = replay.grid.ports;
    replay.breakdowns.class_end_ps = taken(program.class_count, sizeof(int64_t));
    p2p.came = taken(STREAMS * CHIPS, sizeof *p2p.came);
    p2p.transfer_ps = taken(STREAMS * CHIPS, sizeof *p2p.transfer_ps);
    p2p.waits = taken(CHIPS, sizeof *p2p.waits);
    chains.of = taken(CHIPS, sizeof *chains.of);
    stretches.runs = taken(CHIPS, sizeof *stretches.runs);
    flights.aloft = taken(STREAMS * CHIPS, sizeof *flights.aloft);
    flights.of_chip = taken(CHIPS, sizeof *flights.of_chip);
    flights.timer_ps = taken(STREAMS, sizeof *flights.timer_ps);
    return &replay;
}

static const struct recur_field *field_of(const struct recur_array *array, uint32_t byte)
{
    const struct recur_field *field = array->fields;
    while (field->bytes != 0 &&
           (byte < field->offset || byte >= field->offset + (uint32_t)field->count * field->bytes))
        field++;
    return field;
}

/* Each byte of the last item of an array, changed by itself. */
static void bytes_tell(struct recur_state *state, const struct recur_array *array)
{
    char *item = (char *)array->items + (array->count - 1) * array->item_bytes;
    for (uint32_t byte = 0; byte < array->item_bytes; byte++) {
        const struct recur_field *field = field_of(array, byte);
        bool const tells =
            field->bytes != 0 && (field->kind == RECUR_SAME || field->kind == RECUR_INSTANT);
        item[byte] ^= 1;
        bool const again = recur_state_again(state, NOW_PS / 2, NOW_PS / 2);
        item[byte] ^= 1;
        if (again == tells)
            fail_msg("byte %u of items of %u bytes: %s", byte, array->item_bytes,
                     again ? "another state counts as the same" : "the same counts as another");
    }
}

static void each_byte_tells_states_apart_as_its_kind_says(void **state)
{
    (void)state;
    static struct recur_state all;
    memset(&all, 0, sizeof all);
    case_ok(recur_state_build(case_arena, replay_by_hand(), &all, &case_error));
    recur_image_take(&all);
    assert_true(recur_state_again(&all, NOW_PS / 2, NOW_PS / 2));
    for (uint32_t i = 0; i < all.array_count; i++) bytes_tell(&all, &all.array[i]);
}

/* What a repeated period makes of each kind. */
static void numbers_move_as_their_kind_says(void **state)
{
    (void)state;
    static struct recur_state all;
    struct replay *replay = replay_by_hand();
    memset(&all, 0, sizeof all);
    case_ok(recur_state_build(case_arena, replay, &all, &case_error));
    recur_image_take(&all);
    struct server_past *past = server_past_at(&replay->servers, SERVER_VPU, CHIPS - 1);
    replay->chips[1].exposed_ps = 3;
    replay->chips[1].part_end_ps = 500;
    past->run[SERVER_RUNS - 1].end_ps = 500;
    replay->breakdowns.memories[1].held_bytes[PROGRAM_MEMORY_COUNT - 1] = 7;
    replay->tally.recurred = 11;
    assert_true(recur_state_again(&all, 500, 500));
    recur_state_repeat(&all, 2);
    assert_int_equal(replay->chips[1].exposed_ps, 9);
    assert_int_equal(replay->chips[1].part_end_ps, 1500);
    assert_int_equal(past->run[SERVER_RUNS - 1].end_ps, 1500);
    assert_int_equal(replay->breakdowns.memories[1].held_bytes[PROGRAM_MEMORY_COUNT - 1], 21);
    assert_int_equal(replay->tally.recurred, 11);
}

/* --- Stretches --- */

/* A chip of two like roles, in the second slot: its second stream waits for parts of the compute
 * stream, messages leave, and the latest runs of its servers had no length. */
static struct replay *quiet_replay(void)
{
    static struct program_template template;
    static struct program_block block;
    static struct program_role role[2];
    static struct role_table tables[2];
    struct replay *replay = replay_by_hand();
    struct program *program = (struct program *)replay->program;
    template = (struct program_template){.stream_parts = {5, 3}};
    block = (struct program_block){.repeat = SLOTS};
    for (uint32_t r = 0; r < 2; r++) {
        role[r] = (struct program_role){.block = &block,
                                        .block_count = 1,
                                        .slot_count = SLOTS,
                                        .stream_total = {5 * SLOTS, 3 * SLOTS}};
        tables[r] = (struct role_table){.role = &role[r]};
    }
    program->templates = &template;
    program->template_count = 1;
    program->roles = role;
    program->role_count = 2;
    replay->roles = tables;
    case_ok(
        stretch_slots_build(case_arena, replay, &replay->streams.stretches->slots, &case_error));
    *stream_at(replay, 0, 1) = (struct stream_state){.done = 7,
                                                     .begun = 8,
                                                     .slot = 1,
                                                     .position = 2,
                                                     .phase = STREAM_RUNS,
                                                     .waiters = 2,
                                                     .wake_done = 9,
                                                     .wake_begun = 12,
                                                     .wants = 30};
    *stream_at(replay, 1, 1) = (struct stream_state){.done = 3,
                                                     .begun = 3,
                                                     .slot = 1,
                                                     .phase = STREAM_WAITS,
                                                     .wake_done = 5,
                                                     .wake_begun = 5,
                                                     .wants = 18};
    for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++) {
        *server_at(&replay->servers, server, 1) =
            (struct server_state){.edge_ps = 500, .dma_ps = 40, .settled_ps = 30};
        server_past_at(&replay->servers, server, 1)->run_begin_ps = 500;
    }
    for (uint32_t way = 0; way < replay->servers.read_ways; way++)
        *reads_at(&replay->servers, way, 1) =
            (struct server_reads){.work_ps = 50, .since_ps = 900, .until_ps = 2000};
    replay->chips[1].part_end_ps = 3000;
    return replay;
}

static struct stretch_key key_of(struct replay *replay)
{
    struct stretch_key key = {{0}};
    assert_true(stretch_key_find(replay, 1, NOW_PS, &key));
    return key;
}

/* Whether the name of the state is another one where the first byte of a field is. */
static bool is_told(struct replay *replay, void *field)
{
    struct stretch_key const before = key_of(replay);
    *(unsigned char *)field ^= 1;
    struct stretch_key const after = key_of(replay);
    *(unsigned char *)field ^= 1;
    return memcmp(&before, &after, sizeof before) != 0;
}

static void names_have_of_a_state_what_lists_say(void **state)
{
    (void)state;
    struct replay *replay = quiet_replay();
    struct servers *servers = &replay->servers;
#define TELLS(item, member, again, name, keeping)                                                  \
    if (is_told(replay, &(item)->member) != (NAMED_##name <= NAMED_OWN))                           \
        fail_msg("%s is %s, but the name of a state says otherwise", #member, #name);
    CHIP_STATE_FIELDS(TELLS, &replay->chips[1], )
    STREAM_STATE_FIELDS(TELLS, stream_at(replay, 1, 1), )
    for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++) {
        SERVER_STATE_FIELDS(TELLS, server_at(servers, server, 1), )
        SERVER_PAST_FIELDS(TELLS, server_past_at(servers, server, 1), )
    }
    CORES_STATE_FIELDS(TELLS, &servers->cores.states[1], )
    for (uint32_t way = 0; way < servers->read_ways; way++) {
        SERVER_READS_FIELDS(TELLS, reads_at(servers, way, 1), )
    }
    LANE_STATE_FIELDS(TELLS, lane_at(replay, 0, 1), )
    MEMORY_STATE_FIELDS(TELLS, &replay->breakdowns.memories[1], )
    P2P_WAIT_FIELDS(TELLS, &replay->p2p->waits[1], )
}

/* What a stretch has done to a field of chip 1: `was` at its begin, `is` at its end. Where it comes
 * again LATER_PS later, `before` has become `now`. */
enum { LENGTH_PS = 70, LATER_PS = 500, MORE = 100 };

#define FOLLOWS_NOT(item, member) (item).now.member == (item).before.member
#define FOLLOWS_VALUE(item, member) (item).now.member == (item).is.member
#define FOLLOWS_LATER(item, member) (item).now.member == (item).is.member + LATER_PS
#define FOLLOWS_ADDED(item, member)                                                                \
    (item).now.member == (item).before.member + ((item).is.member - (item).was.member)
#define FOLLOWS_OWN(item, member) true
#define FOLLOWS(item, member, again, name, keeping)                                                \
    if (!(FOLLOWS_##keeping(item, member)))                                                        \
        fail_msg("%s does not follow a stretch as %s says", #member, #keeping);

/* The state before the stretch comes again. */
#define BEFORE_NOT(item, member)
#define BEFORE_VALUE(item, member)
#define BEFORE_LATER(item, member) (item).before.member += LATER_PS;
#define BEFORE_ADDED(item, member) (item).before.member += MORE;
#define BEFORE_OWN(item, member)
#define BEFORE(item, member, again, name, keeping) BEFORE_##keeping(item, member)

#define FOUR(type)                                                                                 \
    struct {                                                                                       \
        struct type was, is, before, now;                                                          \
    }

/* X(item, where the state of the run has it) of each struct that is looked at. */
#define EACH(X)                                                                                    \
    X(chip, replay->chips[1])                                                                      \
    X(compute, *stream_at(replay, PROGRAM_COMPUTE, 1))                                             \
    X(other, *stream_at(replay, 1, 1))                                                             \
    X(server, *server_at(&replay->servers, SERVER_VPU, 1))                                         \
    X(cores, replay->servers.cores.states[1])                                                      \
    X(breakdown, replay->breakdowns.of_phase[breakdown_row(replay, 0, 1)])

static void recording_ready(struct replay *replay)
{
    static uint16_t slot_template[SLOTS];
    struct stretches *stretches = replay->streams.stretches;
    struct program *program = (struct program *)replay->program;
    struct engine_options const options = {.queue = "reference",
                                           .chip_count = CHIPS,
                                           .channel_count = replay_channel_count(replay),
                                           .pending_max = 1,
                                           .handler = replay_handle,
                                           .owner = replay};
    for (uint32_t r = 0; r < program->role_count; r++)
        replay->roles[r].slot_template = slot_template;
    stretches->arena = case_arena;
    stretches->chips = taken(CHIPS, sizeof *stretches->chips);
    stretches->notes = taken(CHIPS, sizeof *stretches->notes);
    case_ok(engine_create(case_arena, &options, &replay->engine, &case_error));
}

/* Ops of the compute stream end. Its chip's other stream, which waits for much later parts, is
 * waited for from now on. */
static void ops_end_by_hand(struct replay *replay)
{
    struct chip_state *chip = &replay->chips[1];
    struct stream_state *compute = stream_at(replay, PROGRAM_COMPUTE, 1);
    struct server_state *server = server_at(&replay->servers, SERVER_VPU, 1);
    chip->part_begin_ps = compute->begin_ps = NOW_PS + LENGTH_PS;
    chip->part_end_ps = NOW_PS + LENGTH_PS + 9;
    chip->breakdown_ps = chip->last_end_ps = NOW_PS + LENGTH_PS - 1;
    chip->exposed_ps += 3;
    chip->exposed_last_ps = chip->exposed_ps - 1;
    chip->last_phase++;
    compute->op_first = compute->done += 2;
    compute->begun += 2;
    compute->slot++;
    compute->position = 1;
    stream_at(replay, 1, 1)->waiters = 1;
    server->dma_ps += 4;
    server->settled_ps += 2;
    server->debt_ps += 1;
    replay->servers.cores.states[1] = (struct cores_state){NOW_PS + LENGTH_PS, 8, 2};
    replay->breakdowns.of_phase[breakdown_row(replay, 0, 1)].compute_ps += 5;
}

static void what_is_kept_of_a_stretch_follows_it_again(void **state)
{
    (void)state;
    struct replay *replay = quiet_replay();
    struct stretch_place from = {.stretch = NULL}, to = {.stretch = NULL};
    FOUR(chip_state) chip;
    FOUR(stream_state) compute, other;
    FOUR(server_state) server;
    FOUR(cores_state) cores;
    FOUR(breakdown) breakdown;
    recording_ready(replay);
    stretch_record(replay, 1, &from, NOW_PS);
#define WAS(item, at) item.was = item.before = at;
    EACH(WAS)
    ops_end_by_hand(replay);
#define IS(item, at) item.is = at;
    EACH(IS)
    stretch_keep(replay, 1, &to, NOW_PS + LENGTH_PS);
    assert_non_null(from.stretch);
    CHIP_STATE_FIELDS(BEFORE, chip, )
    STREAM_STATE_FIELDS(BEFORE, compute, )
    SERVER_STATE_FIELDS(BEFORE, server, )
    CORES_STATE_FIELDS(BEFORE, cores, )
    BREAKDOWN_FIELDS(BEFORE, breakdown, )
    other.before.slot += 2; /* No name of a state has it: no stretch comes to what it waits for. */
#define SET(item, at) at = item.before;
    EACH(SET)
    stretch_close(replay, 1, from.stretch, NOW_PS + LATER_PS);
#define NOW(item, at) item.now = at;
    EACH(NOW)
    CHIP_STATE_FIELDS(FOLLOWS, chip, )
    STREAM_STATE_FIELDS(FOLLOWS, compute, )
    SERVER_STATE_FIELDS(FOLLOWS, server, )
    CORES_STATE_FIELDS(FOLLOWS, cores, )
    BREAKDOWN_FIELDS(FOLLOWS, breakdown, )
    assert_int_equal(chip.now.exposed_last_ps, chip.now.exposed_ps - 1);
    assert_int_equal(compute.now.op_first, compute.now.done);
    assert_int_equal(compute.now.begin_ps, NOW_PS + LENGTH_PS + LATER_PS);
    assert_int_equal(other.now.slot, other.before.slot);
    assert_int_equal(other.now.wants, other.before.wants);
    assert_int_equal(other.now.waiters, 1);
}

/* What a name leaves out since no stretch changes it: a stretch that does is not kept. */
static void what_no_stretch_changes_is_looked_at(void **state)
{
    (void)state;
    struct chip_state const was = {.running = 0};
    struct chip_state is = was;
    is.exposed_ps = is.part_begin_ps = is.last_end_ps = 5;
    is.last_phase = 1;
    assert_true(stretch_leaves(&was, &is));
    is.sends = 1;
    assert_false(stretch_leaves(&was, &is));
    is.sends = 0;
    is.exposed_first_ps = 1;
    assert_false(stretch_leaves(&was, &is));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef PADDING_IS_KNOWN
        cmocka_unit_test(lists_name_all_fields),
#endif
        cmocka_unit_test_setup_teardown(each_byte_tells_states_apart_as_its_kind_says,
                                        case_arena_up, case_arena_down),
        cmocka_unit_test_setup_teardown(numbers_move_as_their_kind_says, case_arena_up,
                                        case_arena_down),
        cmocka_unit_test_setup_teardown(names_have_of_a_state_what_lists_say, case_arena_up,
                                        case_arena_down),
        cmocka_unit_test_setup_teardown(what_is_kept_of_a_stretch_follows_it_again, case_arena_up,
                                        case_arena_down),
        cmocka_unit_test(what_no_stretch_changes_is_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
