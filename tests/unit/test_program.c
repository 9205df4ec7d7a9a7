/* Program: sealing, slots, and the refusal of programs that cannot end. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/program/program.h"
#include "tests/support/case.h"
#include "tests/support/stages.h"

enum { LAYERS = 3 };

static const struct primitive ring = {.name = "ring"};
static const struct primitive line = {.name = "line"};

/* Three layers forward and backward: a gather of two chunks feeds a matmul of two parts, which
 * feeds a reduce-scatter. */
struct sample {
    struct program program;
    struct program_template template[2];
    struct program_op forward[3];
    struct program_op backward[1];
    struct program_block block[2];
    struct program_role role;
    struct work work[2];
    struct plan plan[2];
};

static void sample_fill(struct sample *sample)
{
    memset(sample, 0, sizeof *sample);
    sample->plan[0] =
        (struct plan){.part_count = 4, .chunk_parts = 2, .chunk_count = 2, .lane_count = 1};
    sample->plan[1] =
        (struct plan){.part_count = 1, .chunk_parts = 1, .chunk_count = 2, .lane_count = 1};
    sample->plan[0].item[0].primitive = &ring;
    sample->plan[1].item[0].primitive = &ring;
    sample->forward[0] = (struct program_op){.name = "AllGather In",
                                             .class_name = "AllGather (tp)",
                                             .kind = PROGRAM_OP_COLLECTIVE,
                                             .stream = 1,
                                             .parts = 4,
                                             .index = 0,
                                             .operand_op = PROGRAM_NONE,
                                             .need = {{.stream = 2, .slot = 0}},
                                             .need_count = 1};
    sample->forward[1] = (struct program_op){.name = "matmul",
                                             .class_name = "matmul",
                                             .parts = 2,
                                             .operand_op = PROGRAM_NONE,
                                             .need = {{.stream = 1, .part = 2, .per_part = 2}},
                                             .need_count = 1};
    sample->forward[2] = (struct program_op){.name = "ReduceScatter Out",
                                             .class_name = "ReduceScatter (tp)",
                                             .kind = PROGRAM_OP_COLLECTIVE,
                                             .stream = 2,
                                             .parts = 1,
                                             .index = 1,
                                             .operand_op = 1,
                                             .need = {{.stream = 0, .begun = true, .part = 1}},
                                             .need_count = 1};
    sample->backward[0] = (struct program_op){.name = "matmul",
                                              .class_name = "matmul",
                                              .parts = 5,
                                              .index = 1,
                                              .operand_op = PROGRAM_NONE,
                                              .need = {{.stream = 2, .slot = -3, .part = 1}},
                                              .need_count = 1};
    sample->template[0] =
        (struct program_template){.name = "layer forward", .op = sample->forward, .op_count = 3};
    sample->template[1] =
        (struct program_template){.name = "layer backward", .op = sample->backward, .op_count = 1};
    sample->block[0] = (struct program_block){
        .template_index = 0, .name = "layer", .repeat = LAYERS, .layer_step = 1};
    sample->block[1] = (struct program_block){.template_index = 1,
                                              .phase = PROGRAM_PHASE_BACKWARD,
                                              .name = "layer",
                                              .repeat = LAYERS,
                                              .layer_first = LAYERS - 1,
                                              .layer_step = -1};
    sample->role = (struct program_role){.block = sample->block, .block_count = 2};
    sample->program =
        (struct program){.stream = {{.name = "compute"},
                                    {.name = "gather tp", .kind = PROGRAM_OP_COLLECTIVE},
                                    {.name = "reduce tp", .kind = PROGRAM_OP_COLLECTIVE}},
                         .stream_count = 3,
                         .templates = sample->template,
                         .template_count = 2,
                         .roles = &sample->role,
                         .role_count = 1,
                         .works = sample->work,
                         .work_count = 2,
                         .plans = sample->plan,
                         .plan_count = 2};
}

static void sealing_counts_parts_slots_and_classes(void **state)
{
    (void)state;
    struct sample sample;
    sample_fill(&sample);
    case_ok(program_seal(case_arena, &sample.program, &case_error));
    const struct program_role *role = &sample.role;
    assert_int_equal(role->slot_count, 2 * LAYERS);
    assert_int_equal(role->stream_total[0], LAYERS * 2 + LAYERS * 5);
    assert_int_equal(role->stream_total[1], LAYERS * 4);
    assert_int_equal(sample.block[1].slot_first, LAYERS);
    assert_int_equal(sample.block[1].stream_first[0], LAYERS * 2);
    assert_int_equal(sample.template[0].stream_parts[1], 4);
    /* "matmul" is one class though two templates have it. */
    assert_int_equal(sample.program.class_count, 3);
    assert_int_equal(sample.forward[1].class_index, sample.backward[0].class_index);
    assert_string_equal(sample.program.class_names[sample.forward[2].class_index],
                        "ReduceScatter (tp)");
}

static void parts_of_one_stream_add_up_in_a_slot(void **state)
{
    (void)state;
    struct sample sample;
    sample_fill(&sample);
    struct program_op twice[2] = {sample.backward[0], sample.backward[0]};
    sample.template[1].op = twice;
    sample.template[1].op_count = 2;
    case_ok(program_seal(case_arena, &sample.program, &case_error));
    assert_int_equal(twice[0].part_first, 0);
    assert_int_equal(twice[1].part_first, 5);
    assert_int_equal(sample.template[1].stream_parts[0], 10);
}

static void slots_have_starts_blocks_and_names(void **state)
{
    (void)state;
    struct sample sample;
    sample_fill(&sample);
    case_ok(program_seal(case_arena, &sample.program, &case_error));
    const struct program_role *role = &sample.role;
    assert_int_equal(program_slot_start(role, &sample.program, 0, -1), 0);
    assert_int_equal(program_slot_start(role, &sample.program, 0, 0), 0);
    assert_int_equal(program_slot_start(role, &sample.program, 0, 2), 4);
    assert_int_equal(program_slot_start(role, &sample.program, 0, 4), 6 + 5);
    assert_int_equal(program_slot_start(role, &sample.program, 0, 6), 21);
    assert_int_equal(program_slot_start(role, &sample.program, 0, 99), 21);
    assert_ptr_equal(program_slot_block(role, 2), &sample.block[0]);
    assert_ptr_equal(program_slot_block(role, 3), &sample.block[1]);
    char name[64];
    program_slot_name(role, 1, name, sizeof name);
    assert_string_equal(name, "layer 1 forward");
    program_slot_name(role, 5, name, sizeof name);
    assert_string_equal(name, "layer 0 backward");
    sample.block[1].layer_first = -1;
    sample.block[1].name = "head";
    program_slot_name(role, 5, name, sizeof name);
    assert_string_equal(name, "head backward");
}

/* Whether sealing stops the program. */
static bool seal_aborts(struct program *program)
{
    (void)fflush(NULL);
    pid_t const child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        /* The claim that is printed is not for the reader of the test's output. */
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(2);
        struct arena *arena = arena_create(0);
        case_ok(program_seal(arena, program, &case_error));
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status);
}

/* Or, where the program came out of a text, refuses it. */
static void seal_refused(struct program *program)
{
    struct program_place place;
    assert_true(seal_aborts(program));
    case_refused(program_try_seal(case_arena, program, &place, &case_error), STATUS_INVALID, NULL,
                 "");
}

static void a_sound_program_is_sealed(void **state)
{
    (void)state;
    struct sample sample;
    sample_fill(&sample);
    assert_false(seal_aborts(&sample.program));
}

static void a_need_that_can_never_be_met_is_an_assertion(void **state)
{
    (void)state;
    struct sample sample;
    sample_fill(&sample);
    sample.forward[0].need[0].part = 1; /* The gather waits for its own slot's reduction. */
    seal_refused(&sample.program);
    sample_fill(&sample);
    sample.forward[1].need[0].per_part = 3; /* The second part: 5 of 4, which the next slot has, */
    seal_refused(&sample.program);          /* but whose gather waits for this matmul. */
    sample_fill(&sample);
    sample.backward[0].need[0].part = 99; /* More than the whole step has. */
    seal_refused(&sample.program);
}

/* What an op needs may stand behind it. Rows: whether the matmul stands before its gather; slot and
 * parts of the reduction that the gather needs; whether the program ends. */
static void ops_may_stand_in_any_order(void **state)
{
    static const int16_t row[][4] = {
        {0, 0, 0, 1},
        {1, 0, 0, 1},
        {0, 0, 1, 0},
        {1, 0, 1, 0},
        {0, -1, 1, 1},
        {1, -1, 1, 1}, /* The first slot needs nothing. */
        {1, 1, 0, 0},
        {1, PROGRAM_SLOT_SINCE, 0, 1},
        {0, PROGRAM_SLOT_SINCE, 1, 0},
    };
    struct sample sample;
    struct program_place place;
    (void)state;
    for (uint32_t i = 0; i < sizeof row / sizeof *row; i++) {
        sample_fill(&sample);
        struct program_op const gather = sample.forward[0];
        if (row[i][0] == 1) sample.forward[0] = sample.forward[1], sample.forward[1] = gather;
        sample.forward[2].operand_op = row[i][0] == 0;
        struct program_need *need = sample.forward[row[i][0]].need;
        *need = (struct program_need){.stream = 2, .slot = row[i][1], .part = (uint32_t)row[i][2]};
        assert_int_equal(program_try_seal(case_arena, &sample.program, &place, &case_error),
                         row[i][3] == 1 ? STATUS_OK : STATUS_INVALID);
    }
}

/* A role that is too long to be played has its needs counted, in more than 32 bits: of the stream
 * of reductions it has REPEAT parts, and the last of 5 parts asks for 4 times `per_part` more. */
static void needs_of_a_long_role_are_counted(void **state)
{
    enum { REPEAT = 3000 };
    static const struct {
        int16_t slot;
        uint32_t part, per_part;
        bool holds;
    } row[] = {
        {PROGRAM_SLOT_SINCE, REPEAT, 0, true},
        {PROGRAM_SLOT_SINCE, REPEAT + 1, 0, false},
        {PROGRAM_SLOT_SINCE, 0, REPEAT / 4, true},
        {PROGRAM_SLOT_SINCE, 0, REPEAT / 4 + 1, false},
        {PROGRAM_SLOT_SINCE, 0, UINT32_C(1) << 30, false},
        {-REPEAT, 1, 0, true},
        {-REPEAT, 2, 0, false},
        {-REPEAT, UINT32_MAX, 0, false},
        {-2 * REPEAT, UINT32_MAX, 0, true}, /* Before the first slot nothing is needed. */
        {1, 0, 0, true},
        {1, 1, 0, false},
    };
    struct sample sample;
    struct program_place place;
    (void)state;
    for (uint32_t i = 0; i < sizeof row / sizeof *row; i++) {
        sample_fill(&sample);
        sample.block[0].repeat = sample.block[1].repeat = REPEAT;
        sample.backward[0].need[0] = (struct program_need){
            .stream = 2, .slot = row[i].slot, .part = row[i].part, .per_part = row[i].per_part};
        enum status const status =
            program_try_seal(case_arena, &sample.program, &place, &case_error);
        if (row[i].holds) {
            case_ok(status);
            continue;
        }
        case_refused(status, STATUS_INVALID, "template 1, op 0 (matmul)", "is never done");
        assert_int_equal(place.template_index, 1);
        assert_int_equal(place.op, 0);
    }
}

static void a_careless_op_is_an_assertion(void **state)
{
    (void)state;
    struct sample sample;
    sample_fill(&sample);
    sample.forward[1].parts = 3; /* The operand has not as many parts as the plan has chunks. */
    seal_refused(&sample.program);
    sample_fill(&sample);
    sample.forward[0].parts = 2; /* Not the plan's. */
    seal_refused(&sample.program);
    sample_fill(&sample);
    sample.forward[0].need[0].stream = 3;
    seal_refused(&sample.program);
    sample_fill(&sample);
    sample.forward[0].index = 2;
    seal_refused(&sample.program);
    sample_fill(&sample);
    sample.backward[0].index = 0; /* The work of two parts, in five. */
    seal_refused(&sample.program);
}

/* What is resident, and what each slot's ops take or give, stay below 2^62 bytes: one more is too
 * many. */
static void the_bytes_of_a_role_have_a_limit(void **state)
{
    (void)state;
    struct sample sample;
    for (uint64_t more = 0; more < 2; more++) {
        sample_fill(&sample);
        sample.forward[1].effect[0] = (struct program_effect){.bytes = 5};
        sample.forward[1].effect[1] = (struct program_effect){.bytes = -7};
        sample.forward[1].effect_count = 2;
        sample.role.resident_bytes[0] = (UINT64_C(1) << 62) - 1 - LAYERS * 12 + more;
        struct program_place place;
        enum status const status =
            program_try_seal(case_arena, &sample.program, &place, &case_error);
        if (more > 0) case_refused(status, STATUS_INVALID, NULL, "more than 2^62 bytes of memory");
        if (more == 0) case_ok(status);
    }
}

/* What is careless in a sample, by the place that its refusal names. */
static void stream_spoil(struct sample *sample, uint32_t slip)
{
    if (slip == 0) sample->program.stream_count = 0;
    if (slip == 1) sample->program.stream_count = PROGRAM_STREAMS_MAX + 1;
    if (slip == 2) sample->program.stream[PROGRAM_COMPUTE].kind = PROGRAM_OP_COPY;
    if (slip == 3) sample->program.stream[1].kind = PROGRAM_OP_COPY;
}

static void op_spoil(struct sample *sample, uint32_t slip)
{
    struct program_op *op = &sample->forward[1];
    if (slip == 0) op->stream = 7;
    if (slip == 1) op->parts = 0;
    if (slip == 2) op->parts = PROGRAM_PARTS_MAX + 1;
    if (slip == 3) op->need_count = PROGRAM_NEEDS_MAX + 1;
    if (slip == 4) op->class_name = NULL;
    if (slip == 5) op->index = 9;
    if (slip == 6) op->operand_op = 0;
    if (slip == 7) sample->forward[2].operand_op = 0;
    if (slip == 8) sample->template[1].op_count = 0;
}

static void role_spoil(struct sample *sample, uint32_t slip)
{
    if (slip == 0) sample->program.role_count = 0;
    if (slip == 1) sample->role.block_count = 0;
    if (slip == 2) sample->block[1].template_index = 5;
    if (slip == 3) sample->block[1].repeat = 0;
    if (slip == 4) sample->block[1].repeat = PROGRAM_SLOTS_MAX - LAYERS + 1;
    if (slip == 5) sample->block[1].arrivals = 1;
}

static void each_refusal_names_its_place(void **state)
{
    static void (*const spoil[])(struct sample *, uint32_t) = {stream_spoil, op_spoil, role_spoil};
    static const uint32_t counts[] = {4, 9, 6};
    (void)state;
    for (uint32_t s = 0; s < sizeof spoil / sizeof *spoil; s++)
        for (uint32_t slip = 0; slip < counts[s]; slip++) {
            struct sample sample;
            struct program_place place;
            sample_fill(&sample);
            spoil[s](&sample, slip);
            case_refused(program_try_seal(case_arena, &sample.program, &place, &case_error),
                         STATUS_INVALID, NULL, "");
        }
}

static void plans_of_one_stream_are_of_one_group(void **state)
{
    (void)state;
    struct sample sample;
    sample_fill(&sample);
    struct program_op both[4] = {sample.forward[0], sample.forward[1], sample.forward[2],
                                 sample.forward[0]};
    both[3].index = 1; /* Another plan on the gather's stream. */
    both[3].parts = 1;
    sample.template[0].op = both;
    sample.template[0].op_count = 4;
    sample.forward[1].need[0].per_part = 2;
    assert_false(seal_aborts(&sample.program));
    sample.plan[1].item[0].primitive = &line; /* Collectives may go any way. */
    sample.plan[1].lane_count = 2;
    assert_false(seal_aborts(&sample.program));
    sample.plan[1].group.dimension_count = 1;
    seal_refused(&sample.program);
}

/* Rank 0 sends to rank 1; rank 2 has work of its own. */
static void pair_fill(struct stages *stages)
{
    static struct machine machine;
    struct group_dimension const x = {.size = 3, .stride = 1, .name = "x"};
    stages_open(stages, case_arena, &machine, &x, 1000, 8);
    uint32_t const work = stages_work(stages, 1000);
    stages_compute(stages, 0, work);
    stages_send(stages, 0, STAGES_UP);
    stages_receive(stages, 1, STAGES_UP, 1);
    stages_compute(stages, 1, work);
    stages_compute(stages, 2, work);
}

/* The template of messages up, and of those that wait for them. */
enum { SEND_UP, RECEIVE_UP };

static void careless_messages_are_assertions(void **state)
{
    (void)state;
    struct stages stages;
    pair_fill(&stages);
    assert_false(seal_aborts(&stages.program));
    pair_fill(&stages);
    stages.program.stream[1].kind =
        PROGRAM_OP_COLLECTIVE; /* A SEND on a stream that is not for them. */
    seal_refused(&stages.program);
    pair_fill(&stages);
    stages.program.stream[1].inbox = 3; /* Which sends itself. */
    seal_refused(&stages.program);
    pair_fill(&stages);
    stages.template[SEND_UP].op->stream = 3; /* As it was, but both ways on one stream. */
    stages.template[SEND_UP + 2].op->stream = 3;
    seal_refused(&stages.program);
    pair_fill(&stages);
    stages.template[RECEIVE_UP].op->parts = 2;
    seal_refused(&stages.program);
    pair_fill(&stages);
    stages.role[1].block[1].arrivals = 1; /* Nothing there waits for any. */
    seal_refused(&stages.program);
    pair_fill(&stages);
    struct program_op both[2] = {*stages.template[RECEIVE_UP].op, *stages.template[RECEIVE_UP].op};
    stages.template[RECEIVE_UP].op = both;
    stages.template[RECEIVE_UP].op_count = 2; /* For which of them are its arrivals? */
    seal_refused(&stages.program);
    pair_fill(&stages);
    stages.program.role_stride = 0;
    seal_refused(&stages.program);
}

static void roles_are_places_along_an_axis(void **state)
{
    (void)state;
    struct program program = {.role_count = 1};
    char name[32] = "?";
    assert_int_equal(program_role_at(&program, (uint32_t[]){1, 7, 3, 0}), 0);
    program_role_name(&program, 0, name, sizeof name);
    assert_string_equal(name, "");
    program = (struct program){.role_count = 3, .role_axis = 1, .role_stride = 2};
    for (uint32_t y = 0; y < 12; y++)
        assert_int_equal(program_role_at(&program, (uint32_t[]){1, y, 3, 0}), y / 2 % 3);
    program_role_name(&program, 2, name, sizeof name);
    assert_string_equal(name, "pipeline rank 2");
}

static void a_role_has_a_first_chip(void **state)
{
    (void)state;
    const struct program programs[] = {
        {.role_count = 1},
        {.role_count = 3, .role_axis = 1, .role_stride = 2},
        {.role_count = 8,
         .role_axis = 1,
         .role_stride = 1,
         .inner_axis = 0,
         .inner_stride = 2,
         .inner_count = 4},
        {.role_count = 6,
         .role_axis = 3,
         .role_stride = 4,
         .inner_axis = 2,
         .inner_stride = 1,
         .inner_count = 3},
    };
    for (uint32_t p = 0; p < sizeof programs / sizeof *programs; p++)
        for (uint32_t role = 0; role < programs[p].role_count; role++) {
            uint32_t at[MACHINE_AXES_MAX];
            program_role_first(&programs[p], role, at);
            assert_int_equal(program_role_at(&programs[p], at), role);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sealing_counts_parts_slots_and_classes),
        cmocka_unit_test(parts_of_one_stream_add_up_in_a_slot),
        cmocka_unit_test(slots_have_starts_blocks_and_names),
        cmocka_unit_test(a_sound_program_is_sealed),
        cmocka_unit_test(a_need_that_can_never_be_met_is_an_assertion),
        cmocka_unit_test(ops_may_stand_in_any_order),
        cmocka_unit_test(needs_of_a_long_role_are_counted),
        cmocka_unit_test(a_careless_op_is_an_assertion),
        cmocka_unit_test(the_bytes_of_a_role_have_a_limit),
        cmocka_unit_test(each_refusal_names_its_place),
        cmocka_unit_test(plans_of_one_stream_are_of_one_group),
        cmocka_unit_test(careless_messages_are_assertions),
        cmocka_unit_test(roles_are_places_along_an_axis),
        cmocka_unit_test(a_role_has_a_first_chip),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
