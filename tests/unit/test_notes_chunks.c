/* Notes of a step made by hand with collective matmul: why its tp collectives are exposed. */
#include "sim/collective/collective.h"
#include "tests/unit/notes_case.h"

static void build(void)
{
    case_ok(notes_build(case_arena, &made.input, &made.analysis, &made.notes, &case_error));
}

static struct roofline_group *tp_group(void)
{
    made.mesh.axis[MESH_TP].size = 8;
    return notes_case_group(MESH_TP, "tp", 2, 8);
}

/* The step plays one AllGather of tp chunk by chunk, by this algorithm along an axis. */
static void gather_in_chunks(const struct primitive *primitive, uint32_t axis)
{
    static struct plan plan;
    static struct program_op op;
    static struct program_template template;
    assert_non_null(primitive);
    plan = (struct plan){.kind = COLLECTIVE_ALL_GATHER, .item_count = 1, .chunk_count = 8};
    plan.group.dimension_count = 1;
    plan.group.dimension[0] = (struct group_dimension){.axis = axis, .size = 8};
    plan.item[0] = (struct plan_item){.primitive = primitive, .size = 8};
    op = (struct program_op){.stream = 1, .index = 0};
    template = (struct program_template){.name = "layer", .op = &op, .op_count = 1};
    made.program.stream[1] = (struct program_stream){
        .use = {.verb = STREAM_GATHER, .of = STREAM_OF_TP}, .kind = PROGRAM_OP_COLLECTIVE};
    made.program.stream_count = 2;
    made.program.templates = &template;
    made.program.template_count = 1;
    made.program.plans = &plan;
    made.program.plan_count = 1;
}

/* The note on what stays exposed, with this cause. */
static void assert_exposed_by(const char *cause)
{
    assert_string_equal(made.notes.text[2],
                        arena_format(case_arena,
                                     "tp collectives stay exposed for 125 ms (12.5%% of the step), "
                                     "though collective matmul overlaps each with its matmuls: %s",
                                     cause));
}

/* With links between any two GPUs each chunk crosses its own, so all arrive together and the width
 * of matmuls matters little. Behind a switch they arrive one after the other, and none is passed
 * on. */
static void chunks_of_a_direct_exchange_pass_no_ring(void **state)
{
    (void)state;
    const struct primitive *direct = primitive_find(COLLECTIVE_ALL_GATHER, PRIMITIVE_DIRECT, true);
    tp_group()->count = 50;
    made.roofline.rules.tp_layer_width = 12000;
    made.plan.collective_matmul = true;
    made.roofline.overlap[0] =
        (struct roofline_overlap){.name = "mlp.Out", .width = 6000, .math_s = 1, .link_s = 1.5};
    made.roofline.overlap_count = 1;
    (void)notes_case_collective("AllGather In", STREAM_OF_TP, 0.25, 0.125);
    made.machine = case_machine("mi300x:nodes=1");
    gather_in_chunks(direct, 0);
    build();
    assert_int_equal(made.notes.count, 4);
    assert_exposed_by("each chunk has a link "
                      "of its own, where it takes as long as the whole collective; chunks of a "
                      "gather arrive together at its end, and the last of a scatter leaves when "
                      "its math is done, so about one chunk's math in 8 overlaps");
    made.machine = case_machine("h100-sxm:nodes=1");
    gather_in_chunks(direct, 0);
    build();
    assert_int_equal(made.notes.count, 5);
    assert_non_null(strstr(made.notes.text[2], "narrower than that width: mlp.Out 6000"));
    assert_string_equal(made.notes.text[3],
                        "collective matmul goes in 8 chunks: no math overlaps the first to arrive "
                        "and the last to leave; that is about 2.50 ms of each of the 50 tp "
                        "collectives");
    /* Nor is each chunk alone on a link where ranks pass them on. */
    made.machine = case_machine("mi300x:nodes=1");
    gather_in_chunks(primitive_find(COLLECTIVE_ALL_GATHER, PRIMITIVE_BRUCK, true), 0);
    build();
    assert_non_null(strstr(made.notes.text[3], "each hop of the bruck adds its latency"));
}

/* The links may need longer than the math that overlaps them, or the chunks at both ends do. */
static void tp_with_collective_matmul_says_why_it_is_exposed(void **state)
{
    (void)state;
    struct roofline *roofline = &made.roofline;
    gather_in_chunks(primitive_find(COLLECTIVE_ALL_GATHER, PRIMITIVE_RING, false), 2);
    tp_group()->count = 50;
    roofline->rules.tp_layer_width = 12000;
    made.plan.collective_matmul = true;
    (void)notes_case_collective("AllGather In", STREAM_OF_TP, 0.25, 0.125);
    build();
    assert_int_equal(made.notes.count, 5);
    assert_exposed_by("all are wide enough for "
                      "their bytes to hide behind that math by formulas; what is exposed is the "
                      "first chunk and the last");
    assert_string_equal(made.notes.text[3],
                        "collective matmul goes in 8 chunks: no math overlaps the first to arrive "
                        "and the last to leave, and each hop of the ring adds its latency; that is "
                        "about 2.50 ms of each of the 50 tp collectives");
    roofline->overlap[0] =
        (struct roofline_overlap){.name = "mlp.In", .width = 8000, .math_s = 1, .link_s = 1};
    roofline->overlap[1] =
        (struct roofline_overlap){.name = "mlp.Out", .width = 6000, .math_s = 1, .link_s = 1.5};
    roofline->overlap[2] = (struct roofline_overlap){.name = "head.In", .link_s = 1};
    roofline->overlap_count = 3;
    roofline->tp_excess_s = 0.125;
    build();
    assert_int_equal(made.notes.count, 4);
    assert_exposed_by("narrower than "
                      "that width: mlp.Out 6000, head.In; by formulas the links need 125 "
                      "ms longer than that math");
    roofline->tp_excess_s = 0.0625;
    build();
    assert_int_equal(made.notes.count, 5);
    assert_non_null(strstr(made.notes.text[3], "about 1.25 ms of each of the 50 tp"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, notes_case_up, case_arena_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tp_with_collective_matmul_says_why_it_is_exposed),
        TEST(chunks_of_a_direct_exchange_pass_no_ring),
    };
    return cmocka_run_group_tests_name("notes_chunks", tests, NULL, NULL);
}
