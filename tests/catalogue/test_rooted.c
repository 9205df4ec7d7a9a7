/* Plans from and to a root, dimension by dimension: proved on sets, who takes part in what, and
 * canaries in which the wrong ones do. */
#include <string.h>

#include "sim/collective/plan.h"
#include "tests/oracle/plan_cost.h"
#include "tests/support/case.h"

static const struct group nodes = {{{1, 3, 1, false, true, "node"}, {0, 4, 1, false, true, "gpu"}},
                                   2};
static const struct group slices = {
    {{0, 4, 1, true, false, "x"}, {1, 3, 1, false, false, "y"}, {3, 2, 1, false, true, "slice"}},
    3};
static const struct group torus = {
    {{0, 4, 1, true, false, "x"}, {1, 4, 1, true, false, "y"}, {2, 3, 1, true, false, "z"}}, 3};

static const enum collective_kind kinds[] = {COLLECTIVE_BROADCAST, COLLECTIVE_REDUCE,
                                             COLLECTIVE_GATHER, COLLECTIVE_SCATTER};
enum { KINDS = sizeof kinds / sizeof *kinds };

static struct plan_request request_of(const struct group *group, enum collective_kind kind,
                                      const char *algorithm, uint32_t root)
{
    return (struct plan_request){.kind = kind,
                                 .algorithm = algorithm_read(algorithm),
                                 .group = *group,
                                 .size_bytes = 12000017,
                                 .root = root,
                                 .piece_count = 2,
                                 .multicasts = {true, true, true, true},
                                 .reduces = {true, true, true, true}};
}

static void prove(const struct group *group, enum collective_kind kind, const char *algorithm)
{
    for (uint32_t root = 0; root < group_rank_count(group); root += 5) {
        struct plan_request const request = request_of(group, kind, algorithm, root);
        struct plan const plan = case_plan(&request);
        assert_string_equal(plan.algorithm_name, algorithm);
        case_ok(plan_check(&plan, &case_error));
    }
}

static void names_a_level_are_proved(void **state)
{
    (void)state;
    static const char *const spreads[] = {"hierarchical", "chain+chain",  "tree+tree",
                                          "direct+chain", "sharp+direct", "sharp+sharp"};
    for (uint32_t i = 0; i < sizeof spreads / sizeof *spreads; i++) {
        prove(&nodes, COLLECTIVE_BROADCAST, spreads[i]);
        prove(&nodes, COLLECTIVE_REDUCE, spreads[i]);
    }
    prove(&nodes, COLLECTIVE_GATHER, "tree+direct");
    prove(&nodes, COLLECTIVE_SCATTER, "direct+tree");
    for (uint32_t k = 0; k < KINDS; k++) {
        prove(&torus, kinds[k], "hierarchical");
        prove(&slices, kinds[k], "hierarchical");
        prove(&slices, kinds[k], "auto+tree");
    }
}

/* Boxes add up no more than a few pieces ahead of the chains of other orders. */
static void boxes_wait_for_chains_beside_them(void **state)
{
    (void)state;
    struct plan_request request = request_of(&slices, COLLECTIVE_REDUCE, "hierarchical", 5);
    uint32_t count = 0;
    request.piece_count = 7;
    struct plan plan = case_plan(&request);
    case_ok(plan_check(&plan, &case_error));
    for (uint32_t i = 0; i < plan.item_count; i++) {
        struct plan_item *item = &plan.item[i];
        if (item->turn == PLAN_NO_ITEM) continue;
        assert_int_equal(plan.item[item->turn].dimension, item->dimension);
        assert_int_not_equal(plan.item[item->turn].order, item->order);
        assert_int_equal(plan.item[item->turn].primitive->kind, COLLECTIVE_REDUCE);
        assert_int_equal(item->turn_lead, 4);
        item->turn_lead = 0;
        count++;
    }
    assert_int_equal(count, 4);
    case_refused(plan_check(&plan, &case_error), STATUS_STUCK, NULL, "waits for ever");
}

static void what_a_level_lacks_is_refused(void **state)
{
    (void)state;
    struct plan plan;
    struct plan_request request = request_of(&slices, COLLECTIVE_SCATTER, "ring+direct", 0);
    case_refused(plan_build(case_arena, &request, "/test", &plan, &case_error), STATUS_UNSUPPORTED,
                 NULL, "the 3 chips along y do not");
    request = request_of(&nodes, COLLECTIVE_GATHER, "chain+direct", 0);
    case_refused(plan_build(case_arena, &request, "/test", &plan, &case_error), STATUS_UNSUPPORTED,
                 NULL, "there is no \"chain\" along");
    request = request_of(&torus, COLLECTIVE_GATHER, "ring", 0);
    case_refused(plan_build(case_arena, &request, "/test", &plan, &case_error), STATUS_UNSUPPORTED,
                 NULL, "goes round one ring");
    struct group const one = {{{0, 8, 1, false, true, "gpu"}}, 1};
    request = request_of(&one, COLLECTIVE_BROADCAST, "hierarchical", 0);
    case_refused(plan_build(case_arena, &request, "/test", &plan, &case_error), STATUS_UNSUPPORTED,
                 NULL, "several levels or axes");
}

/* Bytes that a rank sends along a dimension; digits of node and GPU. */
static uint64_t sent(const struct plan *plan, uint32_t dimension, uint32_t node, uint32_t gpu)
{
    uint32_t const at[GROUP_DIMENSIONS_MAX] = {node, gpu};
    return plan_sent_bytes(plan, dimension, at);
}

static void only_those_concerned_send(void **state)
{
    (void)state;
    uint64_t const part = 1000000; /* Of each of 12 ranks. */
    struct plan_request request = request_of(&nodes, COLLECTIVE_BROADCAST, "hierarchical", 6);
    request.size_bytes = 12 * part;
    struct plan plan = case_plan(&request);            /* The root: node 1, GPU 2. */
    assert_int_equal(sent(&plan, 1, 1, 2), 12 * part); /* Once into its node, */
    assert_int_equal(sent(&plan, 1, 1, 1), 0);         /* whose last member keeps it; */
    for (uint32_t gpu = 0; gpu < 4; gpu++) {
        assert_int_equal(sent(&plan, 0, 1, gpu), 3 * part); /* each rail takes a quarter on, */
        assert_int_equal(sent(&plan, 1, 0, gpu), 9 * part); /* and other nodes gather. */
    }
    request.kind = COLLECTIVE_SCATTER;
    plan = case_plan(&request);
    assert_int_equal(sent(&plan, 1, 1, 2), 9 * part); /* For its node's other GPUs and rails. */
    for (uint32_t gpu = 0; gpu < 4; gpu++) {
        assert_int_equal(sent(&plan, 0, 1, gpu), 2 * part);
        assert_int_equal(sent(&plan, 1, 0, gpu) + sent(&plan, 0, 0, gpu), 0);
    }
}

/* On a torus all links of the root carry the same of a scatter, and of a gather. */
static void a_root_uses_all_its_links_alike(void **state)
{
    (void)state;
    struct group const cube = {
        {{0, 4, 1, true, false, "x"}, {1, 4, 1, true, false, "y"}, {2, 4, 1, true, false, "z"}}, 3};
    uint64_t const part = 3 * 2 * 64;
    struct plan_request request = request_of(&cube, COLLECTIVE_SCATTER, "hierarchical", 0);
    uint32_t const root[GROUP_DIMENSIONS_MAX] = {0}, overlap[GROUP_DIMENSIONS_MAX] = {0, 0, 1};
    request.size_bytes = 64 * part;
    struct plan plan = case_plan(&request);
    for (uint32_t d = 0; d < 3; d++)
        assert_int_equal(plan_sent_bytes(&plan, d, root), 63 * part / 3);
    request.kind = COLLECTIVE_GATHER;
    plan = case_plan(&request);
    for (uint32_t d = 0; d < 3; d++) assert_int_equal(plan_sent_bytes(&plan, d, root), 0);
    assert_true(plan_sent_bytes(&plan, 2, overlap) > 0);
}

/* Trees of a broadcast or reduction on a torus that cross a chip's link, one way. */
static uint32_t trees_over(const struct plan *plan, uint32_t dimension, uint32_t way,
                           const uint32_t *at)
{
    uint32_t trees = 0;
    for (uint32_t l = 0; l < plan->lane_count; l++) {
        const struct plan_lane *lane = &plan->lane[l];
        const struct plan_item *item = &plan->item[lane->item];
        if (item->dimension != dimension || lane->lane != way) continue;
        trees += lane->send_count[plan_item_seat(plan, item, at)];
    }
    return trees;
}

/* No link is crossed twice, each rank but the root is reached by every tree once, and the root
 * sends the array by all its links alike. With the shorter ways there are half as many trees, which
 * reach a rank that stands where the root does along their first axis from both sides. */
static void trees_share_no_link(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 8; k++) {
        enum collective_kind const kind = kinds[k % 2];
        struct group group = torus;
        bool const near = k / 2 % 2 == 1;
        group.dimension_count = k < 4 ? 3 : 2;
        uint32_t const root = k < 4 ? 29 : 6; /* 2, 1, 2 and 1, 2. */
        struct plan_request request = request_of(&group, kind, "hierarchical", root);
        request.hop_bytes[0] = near ? UINT64_C(1) << 40 : 0;
        struct plan const plan = case_plan(&request);
        case_ok(plan_check(&plan, &case_error));
        uint32_t const links = 2 * group.dimension_count;
        uint32_t const trees = near ? group.dimension_count : links;
        uint32_t const ranks = (uint32_t)group_rank_count(&group);
        uint32_t all = 0, overlap = 0;
        for (uint32_t d = 0; near && d < group.dimension_count; d++)
            overlap += ranks / group.dimension[d].size - 1;
        for (uint32_t r = 0; r < ranks; r++) {
            uint32_t at[GROUP_DIMENSIONS_MAX] = {0}, rest = r, out = 0;
            for (uint32_t d = group.dimension_count; d-- > 0; rest /= group.dimension[d].size)
                at[group.dimension[d].axis] = rest % group.dimension[d].size;
            for (uint32_t d = 0; d < group.dimension_count; d++)
                for (uint32_t way = 0; way < 2; way++) {
                    assert_in_range(trees_over(&plan, d, way, at), 0, 1);
                    out += trees_over(&plan, d, way, at);
                }
            if (r == root) assert_int_equal(out, kind == COLLECTIVE_BROADCAST ? links : 0);
            if (r != root && kind == COLLECTIVE_REDUCE && !near) assert_int_equal(out, trees);
            if (r != root && kind == COLLECTIVE_REDUCE) assert_in_range(out, trees, links);
            all += out;
        }
        assert_int_equal(all, trees * (ranks - 1) + overlap);
    }
}

/* Lines cannot be closed, and rings of two have one link: there boxes are crossed one by one. */
static void trees_need_rings(void **state)
{
    (void)state;
    struct group groups[3] = {torus, torus, torus};
    groups[1].dimension[1].ring = false;
    groups[2].dimension[2].size = 2;
    for (uint32_t g = 0; g < 3; g++) {
        struct plan_request const request =
            request_of(&groups[g], COLLECTIVE_BROADCAST, "hierarchical", 0);
        struct plan const plan = case_plan(&request);
        bool gathers = false;
        for (uint32_t i = 0; i < plan.item_count; i++)
            gathers = gathers || plan.item[i].primitive->kind == COLLECTIVE_ALL_GATHER;
        assert_int_equal(gathers, g > 0);
        case_ok(plan_check(&plan, &case_error));
    }
}

/* Each breaks one promise of a good plan. */
static void those_not_concerned_are_noticed(void **state)
{
    (void)state;
    for (uint32_t k = 0; k <= KINDS; k++) {
        bool const trees = k == KINDS; /* There who has given its part has nothing more to send. */
        struct plan_request const request = request_of(
            trees ? &torus : &nodes, trees ? COLLECTIVE_REDUCE : kinds[k], "hierarchical", 5);
        struct plan const good = case_plan(&request);
        for (uint32_t i = 0; i < good.item_count; i++) {
            struct plan bad = good;
            bad.item[i].at_root = bad.item[i].off_root = 0; /* Everybody. */
            if (good.item[i].at_root > 0 || (good.item[i].off_root > 0 && !trees))
                case_refused(plan_check(&bad, &case_error), STATUS_OK, NULL, "");
            bad = good;
            bad.item[i].at_root = good.item[i].off_root; /* The others. */
            bad.item[i].off_root = good.item[i].at_root;
            if (good.item[i].at_root + good.item[i].off_root > 0)
                case_refused(plan_check(&bad, &case_error), STATUS_OK, NULL, "");
            bad = good;
            bad.item[i].at_root |= (uint8_t)(1u << good.item[i].dimension);
            case_refused(plan_check(&bad, &case_error), STATUS_INVALID, NULL, "told apart");
            bad = good;
            bad.item[i].parted = 0; /* All of it, and not each its own part. */
            if (good.item[i].parted > 0)
                case_refused(plan_check(&bad, &case_error), STATUS_INVALID, NULL, "");
        }
    }
    struct plan_request const all = {
        .kind = COLLECTIVE_ALL_GATHER, .group = nodes, .size_bytes = 1200, .piece_count = 1};
    struct plan bad = case_plan(&all);
    bad.item[1].off_root = 1;
    case_refused(plan_check(&bad, &case_error), STATUS_INVALID, NULL, "has none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_a_level_are_proved),
        cmocka_unit_test(boxes_wait_for_chains_beside_them),
        cmocka_unit_test(what_a_level_lacks_is_refused),
        cmocka_unit_test(only_those_concerned_send),
        cmocka_unit_test(a_root_uses_all_its_links_alike),
        cmocka_unit_test(trees_share_no_link),
        cmocka_unit_test(trees_need_rings),
        cmocka_unit_test(those_not_concerned_are_noticed),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
