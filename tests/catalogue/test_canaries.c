/* Canaries: each is a good primitive that breaks one promise, and the proof must say which. */
#include "sim/collective/collective.h"
#include "tests/support/case.h"
#include "tests/support/primitive_check.h"

/* What functions of the canary ask, and what they then spoil. */
static struct primitive good;
typedef uint32_t wrong_count(uint32_t count);
typedef void wrong_step(struct primitive_step *bad, uint32_t size, uint32_t position,
                        uint32_t step);
typedef void wrong_move(struct primitive_move *bad, uint32_t size, uint32_t position);
static wrong_count *spoil_count;
static wrong_step *spoil_step;
static wrong_move *spoil_move;

static uint32_t spoilt_count(uint32_t size, uint32_t lane, uint32_t position)
{
    return spoil_count(good.arrival_count(size, lane, position));
}

static struct primitive_step spoilt_step(uint32_t size, uint32_t lane, uint32_t position,
                                         uint32_t step)
{
    struct primitive_step bad = good.step(size, lane, position, step);
    spoil_step(&bad, size, position, step);
    return bad;
}

static struct primitive_move spoilt_move(uint32_t size, uint32_t lane, uint32_t position,
                                         uint32_t step, uint32_t move)
{
    struct primitive_move bad = good.move(size, lane, position, step, move);
    spoil_move(&bad, size, position);
    return bad;
}

enum wrong_network { AS_IT_IS, NO_SWITCHES, SWITCHES_ADD };

struct canary {
    enum collective_kind kind;
    const char *algorithm;
    bool routed;
    uint32_t size;
    const char *reason; /* NULL: the proof finds nothing. */
    wrong_count *sends, *arrivals;
    wrong_step *step;
    wrong_move *move;
    uint32_t (*chunk_at)(uint32_t size, uint32_t position, uint32_t index);
    enum wrong_network network;
    bool ordered;
};

static void canaries_are_caught(const struct canary *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct canary *row = &rows[i];
        const struct primitive *found =
            primitive_find(row->kind, algorithm_read(row->algorithm).family, row->routed);
        assert_non_null(found);
        struct primitive canary = good = *found;
        spoil_count = row->sends != NULL ? row->sends : row->arrivals;
        spoil_step = row->step;
        spoil_move = row->move;
        if (row->sends != NULL) canary.send_count = spoilt_count;
        if (row->arrivals != NULL) canary.arrival_count = spoilt_count;
        if (row->step != NULL) canary.step = spoilt_step;
        if (row->move != NULL) canary.move = spoilt_move;
        if (row->chunk_at != NULL) canary.chunk_at = row->chunk_at;
        if (row->network != AS_IT_IS)
            canary.network =
                row->network == SWITCHES_ADD ? PRIMITIVE_NETWORK_REDUCE : PRIMITIVE_NETWORK_NONE;
        if (row->ordered) canary.ordered = true;
        enum status const status = primitive_check(&canary, row->size, &case_error);
        if (row->reason == NULL)
            case_ok(status);
        else
            case_refused(status, STATUS_OK, NULL, row->reason);
    }
}

static uint32_t one_less(uint32_t count)
{
    return count - 1;
}

static uint32_t one_more(uint32_t count)
{
    return count + 1;
}

static uint32_t always_none(uint32_t count)
{
    (void)count;
    return 0;
}

static uint32_t always_one(uint32_t count)
{
    (void)count;
    return 1;
}

static void counts_that_are_not_those_announced_are_refused(void **state)
{
    static const struct canary rows[] = {
        {COLLECTIVE_ALL_GATHER, "ring", false, 7, "never gets what rank", .sends = one_less,
         .arrivals = one_less},
        {COLLECTIVE_REDUCE_SCATTER, "ring-one-way", false, 5, "lacks contributions",
         .sends = one_less, .arrivals = one_less},
        {COLLECTIVE_ALL_TO_ALL, "line", false, 5, "messages and expects", .arrivals = one_more},
        {COLLECTIVE_ALL_TO_ALL, "line", false, 5, "expects 0 messages", .arrivals = always_none},
        {COLLECTIVE_PERMUTE, "shift", false, 4, "nobody where it sends", .sends = always_one},
    };
    (void)state;
    canaries_are_caught(rows, sizeof rows / sizeof *rows);
}

static void whole_step(struct primitive_step *bad, uint32_t size, uint32_t position, uint32_t step)
{
    (void)size, (void)position, (void)step;
    bad->units = 2;
}

static void whole_move(struct primitive_move *bad, uint32_t size, uint32_t position)
{
    (void)size, (void)position;
    bad->halves = PRIMITIVE_HALVES;
}

static void nameless_move(struct primitive_move *bad, uint32_t size, uint32_t position)
{
    (void)position;
    *bad = (struct primitive_move){size, primitive_any, PRIMITIVE_HALVES};
}

static void move_to_one(struct primitive_move *bad, uint32_t size, uint32_t position)
{
    (void)size, (void)position;
    bad->destination = 0;
}

static void move_from_itself(struct primitive_move *bad, uint32_t size, uint32_t position)
{
    (void)size;
    bad->source = position;
}

/* Of an AllReduce the source 0 says that a sum is passed on. */
static void move_from_one(struct primitive_move *bad, uint32_t size, uint32_t position)
{
    (void)size, (void)position;
    bad->source = 1;
}

static void move_beyond(struct primitive_move *bad, uint32_t size, uint32_t position)
{
    (void)position;
    bad->destination = size;
}

static void empty_move(struct primitive_move *bad, uint32_t size, uint32_t position)
{
    (void)size, (void)position;
    bad->halves = 0;
}

static void third_half(struct primitive_move *bad, uint32_t size, uint32_t position)
{
    (void)size, (void)position;
    bad->halves = PRIMITIVE_HALVES + 1;
}

/* A gather says whose chunk it is, a reduction whom it is for, an exchange both, and each which
 * halves. */
static void moves_that_say_too_much_or_too_little_are_refused(void **state)
{
    static const struct canary rows[] = {
        {COLLECTIVE_ALL_GATHER, "ring", false, 5, "names no chunk", .move = nameless_move},
        {COLLECTIVE_ALL_GATHER, "ring", false, 5, "names no chunk", .move = move_to_one},
        {COLLECTIVE_ALL_GATHER, "ring", false, 5, "names no chunk", .move = empty_move},
        {COLLECTIVE_ALL_GATHER, "ring", false, 5, "names no chunk", .move = third_half},
        {COLLECTIVE_REDUCE_SCATTER, "direct", true, 5, "names no chunk", .move = move_from_itself},
        {COLLECTIVE_ALL_REDUCE, "tree", true, 5, "names no chunk", .move = move_from_one},
        {COLLECTIVE_ALL_REDUCE, "sharp", true, 5, "names no chunk", .move = move_from_itself},
        {COLLECTIVE_ALL_REDUCE, "sharp", true, 5, "names no chunk", .move = empty_move},
        {COLLECTIVE_ALL_TO_ALL, "line", false, 5, "names no chunk", .move = move_beyond},
    };
    (void)state;
    canaries_are_caught(rows, sizeof rows / sizeof *rows);
}

/* What the position before has. */
static void second_hand(struct primitive_move *bad, uint32_t size, uint32_t position)
{
    *bad = (struct primitive_move){(position + size - 1) % size, primitive_any, PRIMITIVE_HALVES};
}

static void what_has_come_before_or_not_yet_is_refused(void **state)
{
    static const struct canary rows[] = {
        {COLLECTIVE_ALL_GATHER, "ring", false, 8, "announces 1 half chunks and moves 2",
         .move = whole_move},
        /* The antipode comes twice, if there is one. */
        {COLLECTIVE_ALL_GATHER, "ring", false, 8, "has of rank", .move = whole_move,
         .step = whole_step},
        {COLLECTIVE_ALL_GATHER, "ring", false, 7, NULL, .move = whole_move, .step = whole_step},
        {COLLECTIVE_REDUCE_SCATTER, "ring", false, 8, "a second time", .move = whole_move,
         .step = whole_step},
        {COLLECTIVE_ALL_GATHER, "ring", false, 65, "not between 2 and 64", .move = nameless_move},
        {COLLECTIVE_ALL_GATHER, "ring", false, 1, "not between 2 and 64", .move = nameless_move},
        {COLLECTIVE_ALL_GATHER, "direct", true, 5, "before it has come", .move = second_hand},
    };
    (void)state;
    canaries_are_caught(rows, sizeof rows / sizeof *rows);
}

static void eager_step(struct primitive_step *bad, uint32_t size, uint32_t position, uint32_t step)
{
    (void)size, (void)position, (void)step;
    bad->arrivals = 0;
}

static void stuck_step(struct primitive_step *bad, uint32_t size, uint32_t position, uint32_t step)
{
    (void)size;
    bad->arrivals += position > 0 || step > 0;
}

static void waits_for_one(struct primitive_step *bad, uint32_t size, uint32_t position,
                          uint32_t step)
{
    (void)size, (void)position;
    bad->arrivals = step;
}

static void waits_elsewhere(struct primitive_step *bad, uint32_t size, uint32_t position,
                            uint32_t step)
{
    (void)size, (void)position, (void)step;
    bad->wait_lane = 1;
}

static void waiting_for_too_little_too_much_or_others_is_refused(void **state)
{
    static const struct canary rows[] = {
        {COLLECTIVE_ALL_GATHER, "ring", false, 6, "before it has come", .step = eager_step},
        {COLLECTIVE_ALL_GATHER, "ring", false, 6, "waits for ever", .step = stuck_step},
        /* Waiting for particular arrivals has to be declared. */
        {COLLECTIVE_ALL_GATHER, "direct", true, 5, "does not say that it is ordered",
         .step = waits_for_one},
        {COLLECTIVE_ALL_GATHER, "direct", true, 5, NULL, .step = waits_for_one, .ordered = true},
        {COLLECTIVE_ALL_GATHER, "direct", true, 5, "waits for lane 1 of 1", .step = waits_elsewhere,
         .ordered = true},
    };
    (void)state;
    canaries_are_caught(rows, sizeof rows / sizeof *rows);
}

static uint32_t chunk_in_order(uint32_t size, uint32_t position, uint32_t index)
{
    (void)size, (void)position;
    return index;
}

static uint32_t chunk_always_first(uint32_t size, uint32_t position, uint32_t index)
{
    (void)size, (void)position, (void)index;
    return 0;
}

static void chunks_computed_too_late_or_twice_are_refused(void **state)
{
    static const struct canary rows[] = {
        {COLLECTIVE_REDUCE_SCATTER, "ring", false, 8, "which is computed as number",
         .chunk_at = chunk_in_order},
        {COLLECTIVE_REDUCE_SCATTER, "ring", false, 8, "computes chunk 0 twice",
         .chunk_at = chunk_always_first},
    };
    (void)state;
    canaries_are_caught(rows, sizeof rows / sizeof *rows);
}

static void to_the_next(struct primitive_step *bad, uint32_t size, uint32_t position, uint32_t step)
{
    (void)size, (void)position, (void)step;
    bad->peer = 1;
}

static void to_nobody(struct primitive_step *bad, uint32_t size, uint32_t position, uint32_t step)
{
    (void)size, (void)position, (void)step;
    bad->peer += 1;
}

static void one_slot(struct primitive_step *bad, uint32_t size, uint32_t position, uint32_t step)
{
    (void)size, (void)position, (void)step;
    bad->slot = 0;
}

static void slot_beyond(struct primitive_step *bad, uint32_t size, uint32_t position, uint32_t step)
{
    (void)size, (void)position, (void)step;
    bad->slot++;
}

/* Position 0 begins with its neighbour, the others with the one before. */
static void turned_step(struct primitive_step *bad, uint32_t size, uint32_t position, uint32_t step)
{
    bad->peer = position == 0 ? step + 1 : size - 1 - step;
    bad->slot = bad->peer - 1;
}

static void messages_to_wrong_peers_and_slots_are_refused(void **state)
{
    static const struct canary rows[] = {
        {COLLECTIVE_ALL_GATHER, "direct", true, 5, "has of rank", .step = to_the_next},
        {COLLECTIVE_ALL_GATHER, "direct", true, 5, "nobody where it sends", .step = to_nobody},
        {COLLECTIVE_ALL_GATHER, "direct", true, 5, "which has come", .step = one_slot},
        {COLLECTIVE_ALL_GATHER, "direct", true, 5, "expects 4 messages a piece",
         .step = slot_beyond},
        {COLLECTIVE_ALL_GATHER, "direct", true, 5, "position 1 does not do what position 0 does",
         .step = turned_step},
    };
    (void)state;
    canaries_are_caught(rows, sizeof rows / sizeof *rows);
}

static void what_switches_do_has_to_fit_what_is_sent(void **state)
{
    static const struct canary rows[] = {
        {COLLECTIVE_ALL_GATHER, "sharp", true, 5, "where switches send to all",
         .step = to_the_next},
        {COLLECTIVE_ALL_GATHER, "sharp", true, 5, "nobody where it sends", .network = NO_SWITCHES},
        {COLLECTIVE_REDUCE_SCATTER, "sharp", true, 5, "which has come", .network = NO_SWITCHES},
        {COLLECTIVE_REDUCE_SCATTER, "direct", true, 5, "messages and expects",
         .network = SWITCHES_ADD},
        {COLLECTIVE_ALL_REDUCE, "sharp", true, 5, "which has come", .sends = one_more,
         .arrivals = one_more},
    };
    (void)state;
    canaries_are_caught(rows, sizeof rows / sizeof *rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_that_are_not_those_announced_are_refused),
        cmocka_unit_test(what_has_come_before_or_not_yet_is_refused),
        cmocka_unit_test(moves_that_say_too_much_or_too_little_are_refused),
        cmocka_unit_test(waiting_for_too_little_too_much_or_others_is_refused),
        cmocka_unit_test(chunks_computed_too_late_or_twice_are_refused),
        cmocka_unit_test(messages_to_wrong_peers_and_slots_are_refused),
        cmocka_unit_test(what_switches_do_has_to_fit_what_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
