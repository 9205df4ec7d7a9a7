/* The builder of programs: what is there once, what follows from a template, and failures. */
#include <string.h>

#include "sim/program/builder.h"
#include "tests/support/case.h"

static struct builder builder;
static struct program program;
static struct machine machine;

static void begin(struct builder_room room)
{
    machine = case_machine("tpu-v5p:4x4x4");
    builder_begin(&builder, case_arena, &machine, room, &program, &case_error);
    case_ok(builder.status);
    assert_int_equal(builder_stream(&builder, (struct program_stream){.name = "compute"}), 0);
    assert_int_equal(
        builder_stream(&builder,
                       (struct program_stream){.name = "gather", .kind = PROGRAM_OP_COLLECTIVE}),
        1);
    builder_template_begin(&builder, "layer");
}

static uint32_t compute(const char *name, uint64_t vector_flop, uint32_t parts)
{
    struct work const work = {.vector_flop = vector_flop};
    uint32_t const index = builder_work(&builder, &work, parts, "/works");
    return builder_op(&builder, (struct program_op){.name = name,
                                                    .kind = PROGRAM_OP_COMPUTE,
                                                    .stream = PROGRAM_COMPUTE,
                                                    .parts = parts,
                                                    .index = (uint16_t)index});
}

static struct plan_request gather_of(uint64_t size_bytes)
{
    return (struct plan_request){.kind = COLLECTIVE_ALL_GATHER,
                                 .group = case_group(&machine, "x,y"),
                                 .size_bytes = size_bytes};
}

static void what_is_alike_is_there_once(void **state)
{
    (void)state;
    begin(builder_room_most);
    (void)compute("a", 1000, 1);
    (void)compute("b", 1000, 1);
    assert_int_equal(program.work_count, 1);
    (void)compute("c", 1000, 2); /* In other parts it takes another time. */
    (void)compute("d", 1001, 1);
    assert_int_equal(program.work_count, 3);
    struct plan_request small = gather_of(4096), large = gather_of(8192);
    uint32_t const plan = builder_plan(&builder, &small, false, "/plan");
    assert_int_equal(builder_plan(&builder, &small, false, "/plan"), plan);
    assert_int_not_equal(builder_plan(&builder, &large, false, "/plan"), plan);
    assert_int_equal(program.plan_count, 2);
    assert_int_equal(builder_plan_add(&builder, &small, true, "/plan"), 2);
    assert_int_equal(program.requests[plan].bytes_per_s[0], 0);
    assert_int_not_equal(program.requests[2].bytes_per_s[0], 0);
    small.group.dimension_count = 0; /* One rank has nobody to send to. */
    assert_int_equal(builder_plan(&builder, &small, false, "/plan"), BUILDER_NONE);
    case_ok(builder.status);
}

static void templates_count_parts_and_add_up_effects(void **state)
{
    (void)state;
    begin(builder_room_most);
    uint32_t const first = compute("first", 1, 3), second = compute("second", 2, 1);
    struct program_need const need = builder_end_of(&builder, first);
    assert_int_equal(need.part, 3);
    assert_int_equal(builder_end_of(&builder, second).part, 4);
    builder_need(&builder, second, need);
    builder_need(&builder, BUILDER_NONE, need);
    builder_effect(&builder, first, (struct program_effect){PROGRAM_MEMORY_BUFFERS, false, 8});
    builder_effect(&builder, first, (struct program_effect){PROGRAM_MEMORY_BUFFERS, false, 4});
    builder_effect(&builder, first, (struct program_effect){PROGRAM_MEMORY_BUFFERS, true, -12});
    builder_effect(&builder, first, (struct program_effect){PROGRAM_MEMORY_GRADIENTS, true, 0});
    assert_int_equal(builder_template_end(&builder), 0);
    const struct program_op *op = program.templates[0].op;
    assert_int_equal(program.templates[0].op_count, 2);
    assert_int_equal(program.templates[0].stream_parts[PROGRAM_COMPUTE], 4);
    assert_int_equal(op[0].effect_count, 2);
    assert_int_equal(op[0].effect[0].bytes, 12);
    assert_int_equal(op[1].need_count, 1);
    assert_string_equal(op[1].class_name, "second");
    assert_int_equal(op[1].operand_op, PROGRAM_NONE);
    struct program_role *role = builder_roles(&builder, 1, 1);
    assert_non_null(role);
    builder_block(role, (struct program_block){.name = "layer", .repeat = 2});
    case_ok(program_seal(case_arena, &program, &case_error));
    assert_int_equal(role->slot_count, 2);
}

/* An op on a stream of its own, done when `need` is. */
static uint32_t on_stream(uint8_t stream)
{
    return builder_op(&builder,
                      (struct program_op){.name = "copy",
                                          .kind = PROGRAM_OP_COPY,
                                          .stream = stream,
                                          .parts = 1,
                                          .index = (uint16_t)builder_copy(&builder, true, 1)});
}

static void need_end(uint32_t op, uint32_t target)
{
    builder_need(&builder, op, builder_end_of(&builder, target));
}

/* What the stream has waited for, and what others have that are waited for, goes without saying. */
static void needs_that_others_imply_are_left_out(void **state)
{
    (void)state;
    begin(builder_room_most);
    uint8_t const out = builder_stream(&builder, (struct program_stream){.name = "out"});
    uint8_t const back = builder_stream(&builder, (struct program_stream){.name = "back"});
    uint32_t const first = compute("first", 1, 1);
    uint32_t const sent = on_stream(out);
    need_end(sent, first);
    uint32_t const second = on_stream(out);
    builder_need(&builder, second, (struct program_need){.stream = PROGRAM_COMPUTE});
    uint32_t const third = on_stream(back);
    need_end(third, sent);
    need_end(third, first); /* Before what is sent. */
    need_end(third, sent);
    uint32_t const fourth = on_stream(back);
    need_end(fourth, second);
    need_end(fourth, sent); /* Waited for before. */
    builder_need(&builder, fourth, (struct program_need){.stream = PROGRAM_COMPUTE, .slot = -1});
    uint32_t const last = compute("last", 1, 4);
    builder_need(&builder, last, (struct program_need){.stream = out, .part = 1, .per_part = 1});
    builder_needs_reduce(&builder);
    const struct program_op *op = builder.op;
    assert_int_equal(op[sent].need_count, 1);
    assert_int_equal(op[second].need_count, 0);
    assert_int_equal(op[third].need_count, 1);
    assert_int_equal(op[third].need[0].stream, out);
    assert_int_equal(op[fourth].need_count, 2); /* Other slots are others. */
    assert_int_equal(op[fourth].need[0].slot, -1);
    assert_int_equal(op[fourth].need[1].part, 2);
    assert_int_equal(op[last].need_count, 1);
    case_ok(builder.status);
}

static void the_first_failure_is_kept(void **state)
{
    (void)state;
    begin((struct builder_room){.templates = 1, .ops = 8, .works = 2, .plans = 1, .copies = 1});
    (void)compute("a", 1, 1);
    (void)compute("b", 2, 1);
    assert_int_equal(compute("c", 3, 1), BUILDER_NONE);
    case_refused(builder.status, STATUS_LIMIT, "/works", "more than 2 different ops");
    (void)builder_fail(&builder, STATUS_INVALID, "/later", "another");
    case_refused(builder.status, STATUS_LIMIT, "/works", "more than 2 different ops");
    assert_int_equal(compute("a", 1, 1), BUILDER_NONE);
    assert_int_equal(builder_template_end(&builder), 0);
    assert_int_equal(program.template_count, 0);
    assert_null(builder_roles(&builder, 1, 1));
    begin(builder_room_most);
    while (program.stream_count < PROGRAM_STREAMS_MAX)
        (void)builder_stream(&builder, (struct program_stream){.name = "more"});
    assert_int_equal(builder_stream(&builder, (struct program_stream){.name = "too many"}),
                     PROGRAM_STREAMS_MAX);
    struct plan_request request = gather_of(4096);
    request.algorithm = algorithm_read("nonsense");
    assert_int_equal(builder_plan(&builder, &request, false, "/plan"), BUILDER_NONE);
    assert_string_equal(case_error.where, "/plan");
}

/* Steps of inference may have as many passes as prompts have chunks. */
static void what_has_no_room_is_refused(void **state)
{
    struct plan_request const gathers[] = {gather_of(4096), gather_of(8192)};
    (void)state;
    begin((struct builder_room){.templates = 1, .ops = 8, .works = 8, .plans = 1, .copies = 1});
    assert_int_equal(builder_plan(&builder, &gathers[0], false, "/plan"), 0);
    assert_int_equal(builder_plan(&builder, &gathers[0], false, "/plan"), 0);
    assert_int_equal(builder_plan(&builder, &gathers[1], false, "/plan"), BUILDER_NONE);
    case_refused(builder.status, STATUS_LIMIT, "/plan", "more than 1 different collectives");
    begin((struct builder_room){.templates = 1, .ops = 8, .works = 8, .plans = 1, .copies = 1});
    for (uint32_t i = 0; i < 2; i++) {
        builder_template_begin(&builder, "t");
        (void)compute("a", 1, 1);
        assert_int_equal(builder_template_end(&builder), 0);
    }
    assert_int_equal(program.template_count, 1);
    case_refused(builder.status, STATUS_LIMIT, "/workload", "more than 1 different passes");
}

static void an_op_with_too_many_needs_is_refused(void **state)
{
    (void)state;
    begin(builder_room_most);
    uint32_t const op = compute("a", 1000, 1);
    for (int16_t i = 1; i <= PROGRAM_NEEDS_MAX + 1; i++)
        builder_need(&builder, op,
                     (struct program_need){.stream = 1, .slot = (int16_t)-i, .part = 1});
    case_ok(builder.status);
    struct builder whole = builder; /* A template whose needs are not reduced has them all. */
    assert_int_equal(builder_template_end(&whole), 0);
    case_refused(whole.status, STATUS_LIMIT, "/workload", "waits for more others");
    builder_needs_reduce(&builder);
    case_refused(builder.status, STATUS_LIMIT, "/workload", "waits for more others");
}

/* More than a program can say, of which one implies the others. */
static void needs_count_once_they_are_reduced(void **state)
{
    (void)state;
    enum { COUNT = PROGRAM_NEEDS_MAX + 3 };
    begin(builder_room_most);
    uint8_t const out = builder_stream(&builder, (struct program_stream){.name = "out"});
    uint32_t read[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) read[i] = compute("read", 1, 1);
    uint32_t const sent = on_stream(out);
    for (uint32_t i = 0; i < COUNT; i++) need_end(sent, read[i]);
    assert_int_equal(builder.more_count, COUNT - PROGRAM_NEEDS_MAX);
    builder_needs_reduce(&builder);
    case_ok(builder.status);
    assert_int_equal(builder.op[sent].need_count, 1);
    assert_int_equal(builder.op[sent].need[0].part, COUNT);
    assert_int_equal(builder_template_end(&builder), 0);
    case_ok(builder.status);
}

/* Whatever needs differ by, in which order they are stated does not show. */
static void needs_stand_in_one_order(void **state)
{
    (void)state;
    static const struct program_need needs[] = {
        {.stream = 1, .part = 2},
        {.stream = 1, .part = 2, .per_part = 1},
        {.stream = 1, .part = 2, .begun = true},
        {.stream = 1, .part = 2, .begun = true, .per_part = 1},
    };
    enum { COUNT = sizeof needs / sizeof *needs };
    for (uint32_t from = 0; from < COUNT; from++) {
        begin(builder_room_most);
        (void)on_stream(1);
        (void)on_stream(1);
        uint32_t const op = compute("a", 1, 2);
        for (uint32_t i = 0; i < COUNT; i++) builder_need(&builder, op, needs[(from + i) % COUNT]);
        builder_needs_reduce(&builder);
        case_ok(builder.status);
        assert_int_equal(builder.op[op].need_count, COUNT);
        for (uint32_t i = 0; i < COUNT; i++) {
            assert_int_equal(builder.op[op].need[i].begun, needs[i].begun);
            assert_int_equal(builder.op[op].need[i].per_part, needs[i].per_part);
        }
    }
}

static void a_stream_is_called_what_it_is_for(void **state)
{
    (void)state;
    char text[STREAM_USE_BYTES];
    struct stream_use const replicas = {STREAM_REDUCE, STREAM_OF_DP | STREAM_OF_EP | STREAM_OF_CP},
                            heads = {STREAM_NO_VERB, STREAM_OF_KV}, gather = {STREAM_GATHER, 0};
    assert_string_equal(stream_use_text(replicas, text), "reduce dp,ep,cp");
    assert_string_equal(stream_use_text(heads, text), "kv");
    assert_string_equal(stream_use_text(gather, text), "gather");
    begin((struct builder_room){.templates = 1, .ops = 1});
    struct program_stream const stream = {.use = {STREAM_SUM, STREAM_OF_TP}};
    assert_int_equal(builder_stream(&builder, stream), 2);
    assert_string_equal(program.stream[2].name, "sum tp");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_is_called_what_it_is_for),
        cmocka_unit_test(what_is_alike_is_there_once),
        cmocka_unit_test(templates_count_parts_and_add_up_effects),
        cmocka_unit_test(needs_that_others_imply_are_left_out),
        cmocka_unit_test(the_first_failure_is_kept),
        cmocka_unit_test(what_has_no_room_is_refused),
        cmocka_unit_test(an_op_with_too_many_needs_is_refused),
        cmocka_unit_test(needs_count_once_they_are_reduced),
        cmocka_unit_test(needs_stand_in_one_order),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
