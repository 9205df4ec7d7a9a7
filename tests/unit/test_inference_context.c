/*
 * Prompts of unlike lengths over ranks of cp, by hand: what the rank has that the others wait for.
 * Prompts of 10 and of 3 tokens stand behind 6 others, on 2 ranks.
 */
#include "sim/base/cancel.h"
#include "sim/graph/print.h"
#include "sim/step/counts.h"
#include "sim/step/graph_terms.h"
#include "sim/step/ranks.h"
#include "tests/support/case.h"
#include "tests/support/catalogue.h"
#include "tests/unit/workload_case.h"

static const uint64_t lengths[] = {10, 3};

static void made_of(struct workload_case *made, uint64_t chunk)
{
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_CP] = "x"};
    struct model const model = catalogue_model("llama-3-8b");
    assert_int_equal(case_build_roles(made, &model, "2x1x1", parts), STATUS_OK);
    made->plan.attention.context = WORKLOAD_CONTEXT_ALL_GATHER;
    made->plan.attention.mask = WORKLOAD_ATTENTION_CAUSAL;
    made->plan.kind = WORKLOAD_PREFILL;
    made->plan.inference =
        (struct inference_plan){.prompts = {2, lengths_given(lengths, 2), 6, chunk}};
}

static void served_are(const struct workload_case *made, bool windowed, uint64_t tokens,
                       uint64_t rows, uint64_t columns, uint64_t read)
{
    struct ranks ranks;
    case_ok(ranks_make(&made->plan, &made->machine, &made->mesh, &ranks, &case_error));
    const struct graph_served *served = &ranks.inference.served[INFERENCE_PROMPTS][windowed];
    assert_int_equal(ranks.rows, tokens);
    assert_int_equal(served->rows, rows);
    assert_int_equal(served->columns, columns);
    assert_int_equal(served->read, read);
}

/* Cut into 4, the prompts are 12 and 4 tokens; the second rank has those from the 4th to the 9th,
 * with 10 to 15 keys, and the 2nd and the 3rd, with 8 and 9: 92 keys of 8 queries, of which half
 * with the keys of two are 4 rows of 23. Of 25 rows of the cache a rank has 13. */
static void parts_from_either_end(void **state)
{
    struct workload_case made;
    (void)state;
    made_of(&made, 0);
    served_are(&made, false, 8, 4, 23, 13);
    case_free(&made);
}

/* Cut into 2, the last rank has the 6th to the 10th, with 12 to 16 keys, and the 3rd with one of
 * padding, 9 and 10: 89 keys of 7 queries. If they see all, 5 have 16 and 2 have 10. */
static void parts_in_their_order(void **state)
{
    struct workload_case made;
    (void)state;
    made_of(&made, 0);
    made.plan.attention.order = WORKLOAD_CONTEXT_CONTIGUOUS;
    served_are(&made, false, 7, 7, 13, 13);
    made.plan.attention.mask = WORKLOAD_ATTENTION_FULL;
    served_are(&made, false, 7, 7, 15, 13);
    case_free(&made);
}

/* A query sees 4 keys, so 8 have 32. Read are the rows that some token sees: 3 before the first. */
static void parts_see_a_window(void **state)
{
    static bool windowed[32] = {[3] = true};
    struct workload_case made;
    (void)state;
    made_of(&made, 0);
    made.plan.model.by_layer.windowed = windowed;
    made.plan.model.attends.window = 4;
    served_are(&made, true, 8, 4, 8, 10);
    case_free(&made);
}

/* The last of three chunks has 2 tokens of the first prompt alone. Cut into 4, the rank in the
 * middle has the second, with 16 keys, and one of padding, with 17. */
static void parts_of_a_chunk(void **state)
{
    struct workload_case made;
    (void)state;
    made_of(&made, 4);
    served_are(&made, false, 2, 1, 16 + 17, 8);
    case_free(&made);
}

static bool stops_at_once(void *owner)
{
    return ++*(uint32_t *)owner > 0;
}

/* Each pass goes through all sequences, of which there may be millions. */
static void a_step_may_be_left_between_passes(void **state)
{
    struct workload_case made;
    struct workload_counts counts;
    struct ranks ranks;
    uint32_t asked = 0;
    struct cancel const cancel = {stops_at_once, &asked};
    (void)state;
    made_of(&made, 4);
    case_ok(ranks_make(&made.plan, &made.machine, &made.mesh, &ranks, &case_error));
    made.plan.cancel = &cancel;
    case_ok(ranks_pass_set(&ranks, ranks.pass.index, &case_error)); /* There is nothing to do. */
    assert_int_equal(ranks_pass_set(&ranks, 0, &case_error), STATUS_INTERRUPTED);
    assert_int_equal(workload_count(&made.plan, &made.machine, &made.mesh, &counts, &case_error),
                     STATUS_INTERRUPTED);
    assert_int_equal(case_lower(&made), STATUS_INTERRUPTED);
    assert_int_equal(asked, 3);
    case_free(&made);
}

static void graph_write(const struct graph_derived *derived, struct strbuf *ret_text)
{
    graph_print_tensors(&derived->sharded, ret_text);
    graph_print(&derived->sharded, ret_text);
    graph_print_kept(&derived->sharded, &derived->kept, ret_text);
}

/* What is kept is what would be derived anew. Another pass has other sizes. */
static void graphs_are_kept_for_a_pass(void **state)
{
    static struct step_graph room;
    struct step_part parts[STEP_PARTS_MAX];
    struct workload_case made;
    struct ranks *ranks = NULL;
    (void)state;
    made_of(&made, 4);
    case_ok(ranks_take(made.arena, &made.plan, &made.machine, &made.mesh, &ranks, &case_error));
    uint32_t const count = step_parts(ranks, parts);
    assert_true(count > 1);
    for (uint32_t i = 0; i < count; i++) {
        struct strbuf kept = {0}, derived = {0};
        assert_non_null(step_graph_kept(ranks, &parts[i]));
        assert_ptr_equal(step_graph(ranks, &parts[i], &room), step_graph_kept(ranks, &parts[i]));
        step_graph_derive(ranks, &parts[i], &room);
        graph_write(step_graph_kept(ranks, &parts[i]), &kept);
        graph_write(&room.derived, &derived);
        assert_string_equal(kept.bytes, derived.bytes);
        strbuf_free(&kept);
        strbuf_free(&derived);
    }
    case_ok(ranks_pass_set(ranks, 0, &case_error));
    assert_null(step_graph_kept(ranks, &parts[0]));
    assert_ptr_equal(step_graph(ranks, &parts[0], &room), &room.derived);
    case_free(&made);
}

/* Templates are shared by passes whose terms are equal in all that a layer reads of them: of its
 * own kind, with a window or without. */
static void passes_that_differ_in_one_term_are_not_alike(void **state)
{
    enum { FLAGS = 7, OF_PARTS = 6, COUNTS = OF_PARTS + 2 * 6 };
    (void)state;
    for (uint32_t windowed = 0; windowed < 2; windowed++)
        for (uint32_t field = 0; field < FLAGS + COUNTS; field++) {
            struct layer_kind const layer = {.windowed = windowed == 1},
                                    otherwise = {.windowed = windowed == 0};
            struct inference_ranks const one = {.tokens = 8};
            struct inference_ranks other = one;
            struct graph_served *answer = &other.served[INFERENCE_DECODES][windowed],
                                *ask = &other.served[INFERENCE_PROMPTS][windowed];
            bool *const flags[FLAGS] = {&other.begins,           &other.own_rows,
                                        &other.prompts_stay,     &other.kinds_apart,
                                        &other.prompts_in_parts, &other.has_decodes,
                                        &other.makes_heads};
            uint64_t *const counts[COUNTS] = {&other.part[INFERENCE_DECODES].own,
                                              &other.part[INFERENCE_PROMPTS].own,
                                              &other.part[INFERENCE_DECODES].all,
                                              &other.part[INFERENCE_PROMPTS].all,
                                              &other.part[INFERENCE_DECODES].kept,
                                              &other.part[INFERENCE_PROMPTS].kept,
                                              &answer->rows,
                                              &answer->columns,
                                              &answer->read,
                                              &answer->count,
                                              &answer->longest,
                                              &answer->paired,
                                              &ask->rows,
                                              &ask->columns,
                                              &ask->read,
                                              &ask->count,
                                              &ask->longest,
                                              &ask->paired};
            assert_true(inference_alike(&one, &other, BLOCK_LAYER, layer));
            if (field < FLAGS)
                *flags[field] = true;
            else
                *counts[field - FLAGS] = 1;
            if (inference_alike(&one, &other, BLOCK_LAYER, layer))
                fail_msg("field %u of window %u", field, windowed);
            bool const of_window = field >= FLAGS + OF_PARTS;
            assert_int_equal(inference_alike(&one, &other, BLOCK_LAYER, otherwise), of_window);
            assert_true(inference_alike(&one, &other, BLOCK_EMBEDDING, layer));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_that_differ_in_one_term_are_not_alike),
        cmocka_unit_test(parts_from_either_end),
        cmocka_unit_test(parts_in_their_order),
        cmocka_unit_test(parts_see_a_window),
        cmocka_unit_test(parts_of_a_chunk),
        cmocka_unit_test(a_step_may_be_left_between_passes),
        cmocka_unit_test(graphs_are_kept_for_a_pass),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
