/* Where tokens go: counted by formula against all choices that a router has, one by one; and the
 * meshes that experts cannot lie on. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/base/units.h"
#include "sim/collective/ragged.h"
#include "sim/step/ranks.h"
#include "sim/step/routing.h"
#include "sim/step/routing_load.h"
#include "tests/support/case.h"
#include "tests/support/catalogue.h"
#include "tests/unit/workload_case.h"

/* Choices of k experts that a token may make, and those with one among the first `held`. */
static void choices_count(const struct model_experts *experts, uint64_t held, uint64_t *ret_all,
                          uint64_t *ret_hit)
{
    uint64_t const group = experts->groups == 0 ? 1 : experts->count / experts->groups;
    *ret_all = *ret_hit = 0;
    for (uint32_t open = 0; open < 1u << (experts->groups == 0 ? 0 : experts->groups); open++) {
        if ((uint64_t)__builtin_popcount(open) != experts->top_groups) continue;
        for (uint32_t set = 0; set < 1u << experts->count; set++) {
            bool allowed = (uint64_t)__builtin_popcount(set) == experts->top_k;
            for (uint32_t e = 0; e < experts->count && experts->groups != 0; e++)
                if ((set >> e & 1) && !(open >> (e / group) & 1)) allowed = false;
            if (!allowed) continue;
            (*ret_all)++;
            if ((set & ((1u << held) - 1)) != 0) (*ret_hit)++;
        }
    }
}

static void hits_are_those_of_all_choices(void **state)
{
    (void)state;
    static const struct model_experts rows[] = {
        {.count = 8, .top_k = 2},
        {.count = 12, .top_k = 5},
        {.count = 8, .top_k = 8},
        {.count = 8, .top_k = 2, .groups = 4, .top_groups = 1},
        {.count = 12, .top_k = 4, .groups = 4, .top_groups = 2},
        {.count = 16, .top_k = 4, .groups = 8, .top_groups = 4},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (uint64_t held = 1; held <= rows[r].count; held++) {
            uint64_t all = 0, hit = 0;
            if (rows[r].count % held != 0 || !routing_fits_groups(&rows[r], held)) continue;
            choices_count(&rows[r], held, &all, &hit);
            uint64_t const tokens = 1000000;
            uint64_t const counted = routing_hits(&rows[r], held, tokens);
            uint64_t const exact = (hit * tokens + all - 1) / all;
            /* Rounded up, and the fractions are of 2^32. */
            assert_in_range(counted, exact, exact + 1);
        }
}

static void a_limit_to_groups_keeps_tokens_on_fewer_nodes(void **state)
{
    (void)state;
    /* DeepSeek-V3 over 8 nodes: a group each. Of 8 of 256 experts 5.3 nodes get a token; of four
     * groups' at most four. */
    struct model_experts experts = {.count = 256, .top_k = 8};
    uint64_t const free_nodes = 8 * routing_hits(&experts, 32, 1000);
    experts.groups = 8;
    experts.top_groups = 4;
    uint64_t const nodes = 8 * routing_hits(&experts, 32, 1000);
    assert_in_range(free_nodes, 5250, 5350);
    assert_in_range(nodes, 3500, 4000);
    assert_false(routing_fits_groups(&experts, 48));
}

static const struct model small = {.kind = MODEL_DECODER,
                                   .name = "experts",
                                   .layers = 2,
                                   .width = 2048,
                                   .mlp_width = 1024,
                                   .matrices = 3,
                                   .heads = 16,
                                   .kv_heads = 8,
                                   .head_width = 128,
                                   .vocabulary = 32768,
                                   .experts = {.count = 64, .top_k = 6, .width = 1024}};

static void refused(const struct model *model, uint32_t nodes, enum mesh_role role,
                    enum workload_offload offload, const char *where, const char *words)
{
    struct workload_case made;
    const char *parts[MESH_ROLE_COUNT] = {[MESH_TP] = "gpu"};
    struct machine_plan const machine = {
        .chip = "h100-sxm", .nodes = nodes, .profile = "ideal", .wrap = {-1, -1, -1}};
    parts[role] = "node";
    assert_int_equal(case_build_on(&made, model, &machine, parts), STATUS_OK);
    made.plan.batch_tokens = UINT64_C(4096) * 24;
    made.plan.kept.offload = offload;
    case_lower_refused(&made, where, words);
}

static void what_experts_cannot_do_is_refused(void **state)
{
    (void)state;
    struct model further = small, shared = small, window = small, dense = small, grouped = small,
                 tied = small, split = small, predicts = small;
    further.mtp_modules = 17;
    tied.mtp_modules = split.mtp_modules = predicts.mtp_modules = 1;
    tied.tied = true;
    shared.mla = (struct model_mla){768, 256, 64, 64};
    window.attends.window = 128;
    window.by_layer.windowed = (bool[2]){[1] = true};
    dense.experts = (struct model_experts){0};
    grouped.experts.groups = 16;
    grouped.experts.top_groups = 4;
    grouped.experts.count = 48;
    grouped.experts.top_k = 2;
    enum workload_offload const none = WORKLOAD_OFFLOAD_NONE;
    refused(&small, 3, MESH_EP, none, "/mesh/ep",
            "64 experts evenly; the nearest numbers of "
            "ranks that can: 2 and 4");
    refused(&predicts, 2, MESH_EP, WORKLOAD_OFFLOAD_OPTIMIZER, "/workload/offload",
            "nothing is offloaded with multi-token prediction");
    refused(&further, 2, MESH_EP, none, "/workload/mtp", "more than the 16 that are simulated");
    refused(&tied, 2, MESH_EP, none, "/workload/mtp", "one matrix");
    refused(&split, 2, MESH_CP, none, "/workload/mtp", "share sequences");
    refused(&shared, 2, MESH_CP, none, "/mesh/cp", "MLA");
    refused(&window, 2, MESH_CP, none, "/workload/context",
            "window of 128 keys are modelled with cp where each rank attends to whole sequences "
            "(\"ulysses\"), or where sequences have 128 tokens or fewer");
    refused(&dense, 2, MESH_EP, none, "/mesh/ep", "no experts");
    refused(&grouped, 6, MESH_EP, none, "/mesh/ep", "groups");
}

/* Counts how often it is asked, and stops at one of these times. */
struct patience {
    uint32_t asked, stops_at;
};

static bool is_asked(void *owner)
{
    struct patience *patience = owner;
    return ++patience->asked == patience->stops_at;
}

/* What is remembered is what would be drawn, and nothing else is taken for it. */
static void the_same_is_drawn_once(void **state)
{
    (void)state;
    static const struct group groups[] = {
        {.dimension = {{.axis = 0, .size = 4, .stride = 1, .switched = true}},
         .dimension_count = 1},
        {.dimension = {{.axis = 0, .size = 8, .stride = 1, .switched = true}},
         .dimension_count = 1},
        {.dimension = {{.axis = 0, .size = 8, .stride = 1, .ring = true}}, .dimension_count = 1},
        {.dimension = {{.axis = 0, .size = 8, .stride = 1}}, .dimension_count = 1},
    };
    static const struct plan_ragged ragged[] = {
        {.expert_count = 16, .top_k = 2, .token_bytes = 1, .skew_ppm = 1000000},
        {.expert_count = 16, .top_k = 2, .token_bytes = 1, .skew_ppm = 500000},
        {.expert_count = 16, .top_k = 2, .token_bytes = 1, .skew_ppm = 500000, .seed = 7},
        {.expert_count = 16, .top_k = 3, .token_bytes = 1, .skew_ppm = 500000, .seed = 7},
        {.expert_count = 32, .top_k = 3, .token_bytes = 1, .skew_ppm = 500000, .seed = 7},
    };
    struct patience patience = {0};
    struct cancel const cancel = {.stops = is_asked, .owner = &patience};
    struct routing_drawn drawn = {0};
    for (uint32_t turn = 0; turn < 4 * 5 * 2 * 2; turn++) {
        struct routing_request const request = {.group = &groups[turn / 20],
                                                .ragged = &ragged[turn / 4 % 5],
                                                .tokens = 100 + turn / 2 % 2,
                                                .capacity = turn % 2 * 20,
                                                .cancel = &cancel};
        struct routing_load alone = {0}, first = {0}, again = {0};
        struct error error;
        assert_int_equal(routing_load_draw(&request, NULL, &alone, &error), STATUS_OK);
        patience.asked = 0;
        assert_int_equal(routing_load_draw(&request, &drawn, &first, &error), STATUS_OK);
        assert_int_equal(patience.asked, 1);
        assert_int_equal(routing_load_draw(&request, &drawn, &again, &error), STATUS_OK);
        assert_int_equal(patience.asked, 1);
        assert_memory_equal(&alone, &first, sizeof alone);
        assert_memory_equal(&alone, &again, sizeof alone);
    }
}

/* The tokens of all ranks, drawn once more: experts that one of them asks for are read. */
static void experts_that_are_hit_are_those_of_the_tokens(void **state)
{
    enum { RANKS = 4, EXPERTS = 16, HELD = EXPERTS / RANKS };
    static const uint32_t skews_ppm[] = {100000, 500000, 1000000};
    static const uint64_t tokens[] = {1, 2, 5, 200};
    static const struct group group = {
        .dimension = {{.axis = 0, .size = RANKS, .stride = 1, .switched = true}},
        .dimension_count = 1};
    uint64_t sum = 0;
    (void)state;
    for (uint32_t n = 0; n < 12; n++) {
        struct plan_ragged const ragged = {.expert_count = EXPERTS,
                                           .top_k = 2,
                                           .token_bytes = 1,
                                           .skew_ppm = skews_ppm[n % 3],
                                           .seed = n};
        struct routing_request const request = {
            .group = &group, .ragged = &ragged, .tokens = tokens[n / 3]};
        struct arena *arena = arena_create(0);
        struct ragged_draw draw;
        struct routing_load load = {0};
        struct error error;
        bool hit[EXPERTS] = {false};
        uint64_t most = 0;
        assert_int_equal(routing_load_draw(&request, NULL, &load, &error), STATUS_OK);
        assert_int_equal(ragged_draw_begin(arena, &ragged, RANKS, &draw, &error), STATUS_OK);
        for (uint64_t token = 0; token < RANKS * tokens[n / 3]; token++) {
            uint32_t ranks[RAGGED_TOP_K_MAX];
            (void)ragged_draw_next(&draw, ranks);
            hit[draw.token[0]] = hit[draw.token[1]] = true;
        }
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            uint64_t own = 0;
            for (uint32_t i = 0; i < HELD; i++) own += hit[rank * HELD + i];
            if (own > most) most = own;
        }
        assert_int_equal(load.hit_most, most);
        sum += most;
        arena_destroy(arena);
    }
    assert_true(sum < 12 * HELD); /* Some are not. */
}

/* Ranks without a token send none: what is drawn adds up to the tokens that there are. */
static void only_tokens_that_are_there_are_drawn(void **state)
{
    enum { EXPERTS = 16, TOP_K = 2, BUFFER = 4, RANKS_MOST = 8 };
    (void)state;
    for (uint32_t ranks = 1; ranks <= RANKS_MOST; ranks *= 2)
        for (uint64_t tokens = 1; tokens <= ranks * BUFFER; tokens++) {
            struct group const group = {
                .dimension = {{.axis = 0, .size = (uint16_t)ranks, .stride = 1, .switched = true}},
                .dimension_count = ranks > 1};
            struct plan_ragged const ragged = {.expert_count = EXPERTS,
                                               .top_k = TOP_K,
                                               .token_bytes = 1,
                                               .tokens = tokens,
                                               .skew_ppm = 500000};
            struct routing_request const request = {
                .group = &group, .ragged = &ragged, .tokens = BUFFER};
            struct routing_load load = {0};
            struct error error;
            uint64_t sum = 0;
            for (uint32_t rank = 0; rank < ranks; rank++)
                sum += ragged_tokens_of(&ragged, rank, BUFFER);
            assert_int_equal(sum, tokens);
            assert_int_equal(routing_load_draw(&request, NULL, &load, &error), STATUS_OK);
            assert_in_range(load.sent, tokens, tokens * TOP_K);
            assert_in_range(load.rows_most * ranks, tokens * TOP_K, ranks * tokens * TOP_K);
            assert_true(load.came_most <= tokens && load.hit_most <= tokens * TOP_K);
            if (ranks == 1) assert_int_equal(load.rows_most, tokens * TOP_K);
        }
}

/* A decode of few sequences on eight ranks of ep: a token, chosen by 8 of 128 experts, goes to each
 * rank with one of them, and ranks without a token send none. */
static void tokens_that_are_not_there_are_not_sent(void **state)
{
    static const uint64_t context[] = {1024};
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_EP] = "x"};
    (void)state;
    double missed = 1;
    for (int i = 0; i < 8; i++) missed *= (112.0 - i) / (128 - i);
    for (uint64_t batch = 1; batch <= 16; batch++) {
        uint64_t const rows = (batch + 7) / 8;
        uint64_t const copies = (uint64_t)ceil((double)batch * (1 - missed)),
                       sent = (uint64_t)ceil((double)(8 * rows) * (1 - missed));
        struct workload_case made;
        struct ranks ranks;
        struct model const model = catalogue_model("qwen3-30b-a3b");
        assert_int_equal(case_build_roles(&made, &model, "8x1x1", parts), STATUS_OK);
        made.plan.kind = WORKLOAD_DECODE;
        made.plan.attention.context = WORKLOAD_CONTEXT_ALL_GATHER;
        made.plan.attention.mask = WORKLOAD_ATTENTION_CAUSAL;
        made.plan.inference =
            (struct inference_plan){.decodes = {batch, lengths_given(context, 1), 1}};
        case_ok(ranks_make(&made.plan, &made.machine, &made.mesh, &ranks, &case_error));
        assert_int_equal(ranks.experts.arrivals, copies);
        assert_int_equal(ranks.experts.exchanged, 8 * copies);
        assert_int_equal(ranks.experts.crossing[0], 8 * copies);
        assert_int_equal(ranks.experts.sent, sent);
        case_free(&made);
    }
}

/* A token that comes to a rank has a row there, and one that is sent has an expert at each place:
 * without drawn choices, whatever is rounded up. */
static void no_more_tokens_come_than_have_rows(void **state)
{
    static const struct model_experts all[] = {{.count = 3, .top_k = 1},
                                               {.count = 64, .top_k = 1},
                                               {.count = 128, .top_k = 8},
                                               {.count = 256, .top_k = 8},
                                               {.count = 384, .top_k = 8}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (uint64_t held = 1; held <= all[i].count; held++)
            for (uint64_t tokens = 1; tokens < 200000; tokens = 3 * tokens + held % 2) {
                uint64_t const rows = units_ceil_divide(tokens * all[i].top_k * held, all[i].count);
                uint64_t const hits = routing_hits(&all[i], held, tokens);
                if (hits == 0 || hits > rows || hits > tokens)
                    fail_msg("%llu of %llu tokens come to %llu experts", (unsigned long long)hits,
                             (unsigned long long)tokens, (unsigned long long)held);
            }
}

/* Prompts on 128 ranks of ep, each token with 8 experts: with one, all ranks together have its
 * tokens; with as many as ranks, each rank has as many. */
static void only_choices_that_are_drawn_count_for_their_limit(void **state)
{
    static const uint64_t tokens[] = {RAGGED_CHOICES_MAX / 8 / 128 + 1};
    static const uint64_t prompts[] = {1, 128};
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_EP] = "x y z"};
    (void)state;
    for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++) {
        struct workload_case made;
        struct ranks ranks;
        struct model const model = catalogue_model("qwen3-30b-a3b");
        assert_int_equal(case_build_roles(&made, &model, "4x4x8", parts), STATUS_OK);
        made.plan.kind = WORKLOAD_PREFILL;
        made.plan.attention.context = WORKLOAD_CONTEXT_ALL_GATHER;
        made.plan.attention.mask = WORKLOAD_ATTENTION_CAUSAL;
        made.plan.routing.skew_ppm = PPM_ONE / 2;
        made.plan.inference = (struct inference_plan){
            .prompts = {.count = prompts[i], .tokens = lengths_given(tokens, 1)}};
        enum status const status =
            ranks_make(&made.plan, &made.machine, &made.mesh, &ranks, &case_error);
        if (prompts[i] == 1)
            case_ok(status);
        else
            case_refused(status, STATUS_LIMIT, "/workload/routing_skew",
                         "8388736 tokens on 128 ranks of ep choose 8 experts each, and all are "
                         "drawn: more than 2^26 choices would take minutes; up to 8388608 tokens");
        case_free(&made);
    }
}

static const char *const over_nodes[MESH_ROLE_COUNT] = {[MESH_EP] = "node", [MESH_TP] = "gpu"};

/* Whether the loads of ranks or the exchange are drawn. Formulas, which cannot say so, go on. */
static void drawing_is_interrupted(void **state)
{
    (void)state;
    static const struct machine_plan machine = {
        .chip = "h100-sxm", .nodes = 2, .profile = "ideal", .wrap = {-1, -1, -1}};
    for (uint32_t at = 1; at <= 4; at++) {
        struct patience patience = {.stops_at = at};
        struct cancel const cancel = {.stops = is_asked, .owner = &patience};
        struct workload_case made;
        assert_int_equal(case_build_on(&made, &small, &machine, over_nodes), STATUS_OK);
        made.plan.batch_tokens = 1 << 15;
        made.plan.sequence_length = 512;
        made.plan.routing.skew_ppm = 1000000;
        made.plan.cancel = &cancel;
        assert_int_equal(case_lower(&made), STATUS_INTERRUPTED);
        assert_int_equal(patience.asked, at);
        case_free(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hits_are_those_of_all_choices),
        cmocka_unit_test(a_limit_to_groups_keeps_tokens_on_fewer_nodes),
        cmocka_unit_test(what_experts_cannot_do_is_refused),
        cmocka_unit_test(experts_that_are_hit_are_those_of_the_tokens),
        cmocka_unit_test(only_tokens_that_are_there_are_drawn),
        cmocka_unit_test(tokens_that_are_not_there_are_not_sent),
        cmocka_unit_test(no_more_tokens_come_than_have_rows),
        cmocka_unit_test(only_choices_that_are_drawn_count_for_their_limit),
        cmocka_unit_test(the_same_is_drawn_once),
        cmocka_unit_test(drawing_is_interrupted),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
