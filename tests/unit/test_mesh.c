/* The mesh: parts, strides, rings, ranks and subgroups, against the machine's own links. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/name.h"
#include "sim/mesh/mesh.h"
#include "tests/support/case.h"

/* A machine of any grid; `wrap` names the axes that wrap, "xz". */
static struct machine machine_of(const char *shape, const char *wrap)
{
    struct machine_plan plan = {.chip = "v5p", .shape = shape, .profile = "ideal"};
    plan.unrealisable = true;
    uint32_t axis_count = 1;
    for (const char *c = shape; *c != '\0'; c++) axis_count += *c == 'x';
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++)
        plan.wrap[axis] = axis >= axis_count ? -1 : strchr(wrap, "xyz"[axis]) != NULL;
    return case_machine_built(&plan);
}

/* "fsdp x y, tp z:4": mesh axes, which lie in the standard order. */
static struct mesh_plan standard_plan_of(const char *text)
{
    struct mesh_plan plan = {0};
    char *save_axis = NULL;
    char *copy = arena_text(case_arena, text);
    for (char *axis = strtok_r(copy, ",", &save_axis); axis != NULL;
         axis = strtok_r(NULL, ",", &save_axis)) {
        char *save = NULL;
        struct mesh_axis_plan *to = &plan.axis[plan.axis_count++];
        to->role = (enum mesh_role)name_find(strtok_r(axis, " ", &save), mesh_role_names);
        for (char *part = strtok_r(NULL, " ", &save); part != NULL;
             part = strtok_r(NULL, " ", &save))
            to->part[to->part_count++] = part;
    }
    return plan;
}

/* ... which lie in the order in which they are named. */
static struct mesh_plan plan_of(const char *text)
{
    struct mesh_plan plan = standard_plan_of(text);
    plan.order_count = plan.axis_count;
    for (uint32_t i = 0; i < plan.axis_count; i++) plan.order[i] = plan.axis[i].role;
    return plan;
}

static struct mesh mesh_of(const struct machine *machine, const char *text)
{
    struct mesh mesh = {0};
    struct mesh_plan const plan = plan_of(text);
    case_ok(mesh_build(&plan, machine, &mesh, &case_error));
    return mesh;
}

static void refused(const struct machine *machine, const char *text, const char *where,
                    const char *words)
{
    struct mesh mesh;
    struct mesh_plan const plan = plan_of(text);
    case_refused(mesh_build(&plan, machine, &mesh, &case_error), STATUS_OK, where, words);
}

static void dimension_is(const struct group *group, uint32_t index, uint32_t axis, uint32_t size,
                         uint32_t stride, bool ring)
{
    assert_true(index < group->dimension_count);
    assert_int_equal(group->dimension[index].axis, axis);
    assert_int_equal(group->dimension[index].size, size);
    assert_int_equal(group->dimension[index].stride, stride);
    assert_int_equal(group->dimension[index].ring, ring);
}

static void whole_axes_are_rings_where_the_machine_wraps(void **state)
{
    (void)state;
    struct machine const machine = machine_of("16x8x4", "xz");
    struct mesh const mesh = mesh_of(&machine, "fsdp x y,tp z");
    assert_int_equal(mesh.rank_count, 512);
    assert_int_equal(mesh.axis[MESH_FSDP].size, 128);
    assert_int_equal(mesh.axis[MESH_FSDP].group.dimension_count, 2);
    dimension_is(&mesh.axis[MESH_FSDP].group, 0, 0, 16, 1, true);
    dimension_is(&mesh.axis[MESH_FSDP].group, 1, 1, 8, 1, false);
    dimension_is(&mesh.axis[MESH_TP].group, 0, 2, 4, 1, true);
    assert_int_equal(mesh.axis[MESH_DP].size, 1);
    assert_int_equal(mesh.axis[MESH_DP].group.dimension_count, 0);
    assert_false(mesh.present[MESH_DP]);
    assert_int_equal(mesh.order_count, 2);
    assert_int_equal(mesh.named[0], MESH_FSDP);
}

static void the_first_named_takes_neighbours_and_the_next_is_strided(void **state)
{
    (void)state;
    struct machine const wrapped = machine_of("16", "x");
    struct mesh mesh = mesh_of(&wrapped, "tp x:4,fsdp x:4");
    dimension_is(&mesh.axis[MESH_TP].group, 0, 0, 4, 1, false);
    dimension_is(&mesh.axis[MESH_FSDP].group, 0, 0, 4, 4, true);
    mesh = mesh_of(&wrapped, "fsdp x:4,tp x:4");
    dimension_is(&mesh.axis[MESH_FSDP].group, 0, 0, 4, 1, false);
    dimension_is(&mesh.axis[MESH_TP].group, 0, 0, 4, 4, true);
    mesh = mesh_of(&wrapped, "dp x:2,tp x:4,fsdp x:2");
    dimension_is(&mesh.axis[MESH_TP].group, 0, 0, 4, 2, false);
    dimension_is(&mesh.axis[MESH_FSDP].group, 0, 0, 2, 8, true);
    mesh = mesh_of(&wrapped, "tp x:16");
    dimension_is(&mesh.axis[MESH_TP].group, 0, 0, 16, 1, true);
    struct machine const line = machine_of("16", "");
    mesh = mesh_of(&line, "tp x:4,fsdp x:4");
    dimension_is(&mesh.axis[MESH_FSDP].group, 0, 0, 4, 4, false);
}

static bool lies_before(const struct mesh *mesh, enum mesh_role inner, enum mesh_role outer)
{
    return mesh->axis[inner].part[0].stride < mesh->axis[outer].part[0].stride;
}

/* All axes on one axis of the machine, named in drawn orders: where each lies is the same. */
static void without_an_order_of_its_own_a_mesh_lies_in_the_standard_one(void **state)
{
    (void)state;
    enum { DRAWS = 64 };
    struct machine const machine = machine_of("128", "x");
    uint32_t differing = 0;
    for (uint32_t draw = 0; draw < DRAWS; draw++) {
        enum mesh_role named[MESH_ROLE_COUNT];
        struct mesh_plan plan = {.axis_count = MESH_ROLE_COUNT};
        uint32_t left = draw * 2654435761u >> 8;
        memcpy(named, mesh_order_standard, sizeof named);
        for (uint32_t i = MESH_ROLE_COUNT; draw > 0 && i > 1; left /= i, i--) {
            enum mesh_role const other = named[left % i];
            named[left % i] = named[i - 1];
            named[i - 1] = other;
        }
        for (uint32_t i = 0; i < MESH_ROLE_COUNT; i++)
            plan.axis[i] =
                (struct mesh_axis_plan){.role = named[i], .part = {"x:2"}, .part_count = 1};
        struct mesh mesh;
        case_ok(mesh_build(&plan, &machine, &mesh, &case_error));
        for (uint32_t i = 0; i + 1 < MESH_ROLE_COUNT; i++) {
            assert_true(lies_before(&mesh, mesh_order_standard[i], mesh_order_standard[i + 1]));
            assert_int_equal(mesh.order[i], mesh_order_standard[i]);
        }
        bool const differs = memcmp(named, mesh_order_standard, sizeof named) != 0;
        assert_int_equal(mesh.keys_differ_on, differs ? 0 : MACHINE_AXES_MAX);
        differing += differs;
        /* Its own order goes before, and nothing is left to say. */
        plan.order_count = MESH_ROLE_COUNT;
        memcpy(plan.order, named, sizeof named);
        case_ok(mesh_build(&plan, &machine, &mesh, &case_error));
        for (uint32_t i = 0; i + 1 < MESH_ROLE_COUNT; i++)
            assert_true(lies_before(&mesh, named[i], named[i + 1]));
        assert_int_equal(mesh.keys_differ_on, MACHINE_AXES_MAX);
    }
    assert_true(differing > DRAWS / 2);
}

static void axes_that_share_nothing_may_be_named_in_any_order(void **state)
{
    (void)state;
    struct machine const machine = machine_of("4x4x4", "xyz");
    struct mesh_plan const plan = standard_plan_of("pp x,dp y,tp z");
    struct mesh mesh;
    case_ok(mesh_build(&plan, &machine, &mesh, &case_error));
    assert_int_equal(mesh.keys_differ_on, MACHINE_AXES_MAX);
    struct mesh_plan const shared = standard_plan_of("pp x y:2,dp y:2,tp z");
    case_ok(mesh_build(&shared, &machine, &mesh, &case_error));
    assert_int_equal(mesh.keys_differ_on, 1);
    assert_int_equal(mesh.named[0], MESH_PP);
}

static void an_order_names_each_axis_of_the_mesh_once(void **state)
{
    (void)state;
    struct machine const machine = machine_of("16x8", "x");
    static const struct {
        enum mesh_role order[3];
        uint32_t count;
    } rows[] = {{{MESH_TP}, 1}, {{MESH_TP, MESH_TP}, 2}, {{MESH_TP, MESH_FSDP, MESH_DP}, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mesh_plan plan = standard_plan_of("fsdp x,tp y");
        struct mesh mesh;
        memcpy(plan.order, rows[i].order, sizeof rows[i].order);
        plan.order_count = rows[i].count;
        case_refused(mesh_build(&plan, &machine, &mesh, &case_error), STATUS_INVALID, "/mesh/order",
                     "the standard one is [\"tp\", \"fsdp\"]");
    }
}

static void parts_of_size_one_stay_out_of_the_group(void **state)
{
    (void)state;
    struct machine const machine = machine_of("2x2x1", "");
    struct mesh const mesh = mesh_of(&machine, "dp z,fsdp x y:1,tp y:2");
    assert_int_equal(mesh.axis[MESH_DP].size, 1);
    assert_int_equal(mesh.axis[MESH_DP].group.dimension_count, 0);
    assert_true(mesh.present[MESH_DP]);
    assert_int_equal(mesh.axis[MESH_FSDP].group.dimension_count, 1);
    assert_int_equal(mesh_of(&machine, "fsdp x,tp y").rank_count, 4);
    struct machine const single = machine_of("1x1x1", "");
    assert_int_equal(mesh_of(&single, "").rank_count, 1);
    assert_int_equal(mesh_of(&single, "tp").axis[MESH_TP].size, 1);
}

/* Over many machines and meshes: ranks of the mesh axes together name each chip once, each axis
 * splits the chips evenly, and a group's dimensions step through real links. */
static void ranks_name_every_chip_once_and_groups_step_over_real_links(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *wrap, *mesh;
    } rows[] = {
        {"4x4x4", "xyz", "fsdp x y,tp z"},          {"4x4x4", "xyz", "fsdp y x,tp z"},
        {"4x6x8", "xyz", "dp z:2,fsdp x z:4,tp y"}, {"4x6x8", "y", "tp z:2 y:3,fsdp y:2 x,dp z:4"},
        {"16", "x", "tp x:2,dp x:4,fsdp x:2"},      {"3x5", "xy", "tp y,fsdp x"},
        {"8x16", "y", "tp y:4,fsdp x y:4"},         {"1x4x1", "y", "fsdp x y z"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct machine const machine = machine_of(rows[i].shape, rows[i].wrap);
        struct mesh const mesh = mesh_of(&machine, rows[i].mesh);
        bool *seen = arena_take(case_arena, machine.chip_count, sizeof *seen);
        for (uint32_t chip = 0; chip < machine.chip_count; chip++) {
            uint32_t name = 0;
            for (uint32_t role = 0; role < MESH_ROLE_COUNT; role++) {
                uint32_t const rank = mesh_rank(&mesh, &machine, (enum mesh_role)role, chip);
                assert_true(rank < mesh.axis[role].size);
                name = name * mesh.axis[role].size + rank;
            }
            assert_false(seen[name]);
            seen[name] = true;
        }
        for (uint32_t role = 0; role < MESH_ROLE_COUNT; role++) {
            const struct group *group = &mesh.axis[role].group;
            uint32_t product = 1;
            for (uint32_t d = 0; d < group->dimension_count; d++) {
                const struct group_dimension *dimension = &group->dimension[d];
                product *= dimension->size;
                assert_true(dimension->size >= 2);
                if (!dimension->ring) continue;
                /* Walking `size` members forward comes back to the start over links. */
                uint32_t at[MACHINE_AXES_MAX] = {0, 0, 0};
                for (uint32_t hop = 0; hop < dimension->size * dimension->stride; hop++) {
                    uint32_t const port = machine_port(dimension->axis, false);
                    assert_true(machine_has_link(&machine, machine_chip_at(&machine, at), port));
                    at[dimension->axis] =
                        (at[dimension->axis] + 1) % machine.shape[dimension->axis];
                }
                assert_int_equal(at[dimension->axis], 0);
            }
            assert_int_equal(product, mesh.axis[role].size);
        }
    }
}

static void the_last_part_varies_fastest(void **state)
{
    (void)state;
    struct machine const machine = machine_of("4x2x8", "");
    struct mesh const mesh = mesh_of(&machine, "tp z:2,fsdp y x z:4");
    for (uint32_t chip = 0; chip < machine.chip_count; chip++) {
        uint32_t at[MACHINE_AXES_MAX];
        machine_coordinates(&machine, chip, at);
        assert_int_equal(mesh_rank(&mesh, &machine, MESH_TP, chip), at[2] % 2);
        assert_int_equal(mesh_rank(&mesh, &machine, MESH_FSDP, chip),
                         (at[1] * 4 + at[0]) * 4 + at[2] / 2);
        assert_int_equal(mesh_rank(&mesh, &machine, MESH_DP, chip), 0);
    }
}

static void meshes_that_do_not_lie_on_the_machine_are_refused(void **state)
{
    (void)state;
    struct machine const machine = machine_of("16x8", "x");
    refused(&machine, "fsdp x", "/mesh", "\"y\" is named nowhere");
    refused(&machine, "fsdp x:4,tp y", "/mesh", "\"x:4\" is missing");
    refused(&machine, "", "/mesh", "holds 1 of the machine's 128 chips");
    refused(&machine, "fsdp x,tp x y", "/mesh/tp/0", "the whole of x is taken");
    refused(&machine, "fsdp x,tp x:2 y", "/mesh/tp/0", "taken already");
    refused(&machine, "fsdp x:4,tp x y", "/mesh/tp/0", "write x:4 for the rest");
    refused(&machine, "fsdp x:4 x:4,tp y", "/mesh/fsdp/1", "named twice in one mesh axis");
    refused(&machine, "fsdp x:5,tp y", "/mesh/fsdp/0", "x:4");
    refused(&machine, "fsdp x:8,tp x:4 y", "/mesh/tp/0", "does not divide the 2 left of x");
    refused(&machine, "fsdp x:0,tp y", "/mesh/fsdp/0", "between 1 and the length of x, 16");
    refused(&machine, "fsdp x:17,tp y", "/mesh/fsdp/0", "between 1 and");
    refused(&machine, "fsdp x:99999999999999999999", "/mesh/fsdp/0", "between 1 and");
    refused(&machine, "fsdp x:,tp y", "/mesh/fsdp/0", "write \"x:4\"");
    refused(&machine, "fsdp x:-4,tp y", "/mesh/fsdp/0", "not a part");
    refused(&machine, "fsdp x:4a,tp y", "/mesh/fsdp/0", "not a part");
    refused(&machine, "fsdp z,tp y", "/mesh/fsdp/0", "it has x and y");
    refused(&machine, "fsdp xy", "/mesh/fsdp/0", "names no axis");
    refused(&machine, "fsdp X", "/mesh/fsdp/0", "names no axis");
    refused(&machine, "fsdp x,fsdp y", "/mesh/fsdp", "named twice");
    struct mesh_plan plan = plan_of("fsdp x y");
    plan.axis[0].part[0] = "";
    struct mesh mesh;
    case_refused(mesh_build(&plan, &machine, &mesh, &case_error), STATUS_INVALID, NULL, "");
}

/* Against the definition: the ranks k·count .. k·count + count - 1 must be exactly those that agree
 * in every coordinate the subgroup does not span. */
static void a_subgroup_is_a_box_of_neighbouring_ranks(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *mesh;
    } rows[] = {{"4x6x8", "fsdp x y z"},
                {"4x6x8", "tp z:2,fsdp x z:4 y"},
                {"16", "fsdp x"},
                {"6x1x4", "fsdp z y x"},
                {"8x4", "dp x:2,fsdp y x:4"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct machine const machine = machine_of(rows[i].shape, "x");
        struct mesh const mesh = mesh_of(&machine, rows[i].mesh);
        uint32_t accepted = 0;
        for (uint32_t count = 0; count <= mesh.axis[MESH_FSDP].size + 1; count++) {
            struct group group;
            struct error error = {0};
            if (mesh_subgroup(&mesh, &machine, MESH_FSDP, count, "/w", &group, &error) !=
                STATUS_OK) {
                const char *last = strrchr(error.message, ' ');
                uint32_t const near = (uint32_t)strtoul(last, NULL, 10);
                case_ok(mesh_subgroup(&mesh, &machine, MESH_FSDP, near, "/w", &group, &case_error));
                continue;
            }
            accepted++;
            uint32_t product = 1;
            for (uint32_t d = 0; d < group.dimension_count; d++) product *= group.dimension[d].size;
            assert_int_equal(product, count);
            for (uint32_t chip = 0; chip < machine.chip_count; chip++) {
                uint32_t at[MACHINE_AXES_MAX];
                uint32_t base[MACHINE_AXES_MAX];
                machine_coordinates(&machine, chip, at);
                memcpy(base, at, sizeof base);
                /* The member at position 0 of every dimension is the box's first rank. */
                for (uint32_t d = 0; d < group.dimension_count; d++)
                    base[group.dimension[d].axis] -=
                        group.dimension[d].stride *
                        group_position(&group.dimension[d], at[group.dimension[d].axis]);
                uint32_t const rank = mesh_rank(&mesh, &machine, MESH_FSDP, chip);
                uint32_t const first =
                    mesh_rank(&mesh, &machine, MESH_FSDP, machine_chip_at(&machine, base));
                assert_int_equal(first, rank / count * count);
            }
        }
        assert_true(accepted >= 4);
    }
}

static void a_subgroup_of_part_of_a_ring_is_a_line(void **state)
{
    (void)state;
    struct machine const machine = machine_of("16x4", "xy");
    struct mesh const mesh = mesh_of(&machine, "fsdp y x");
    struct group group;
    case_ok(mesh_subgroup(&mesh, &machine, MESH_FSDP, 4, "", &group, &case_error));
    assert_int_equal(group.dimension_count, 1);
    dimension_is(&group, 0, 0, 4, 1, false);
    case_ok(mesh_subgroup(&mesh, &machine, MESH_FSDP, 32, "", &group, &case_error));
    dimension_is(&group, 0, 1, 2, 1, false);
    dimension_is(&group, 1, 0, 16, 1, true);
    case_ok(mesh_subgroup(&mesh, &machine, MESH_FSDP, 1, "", &group, &case_error));
    assert_int_equal(group.dimension_count, 0);
    case_refused(mesh_subgroup(&mesh, &machine, MESH_FSDP, 24, "/w", &group, &case_error),
                 STATUS_INVALID, "/w", "");
}

/* dp, ep, cp and tp in any order on one axis: what a refusal names stands between, and the order
 * that it gives is one in which nothing does. */
static void a_union_is_of_neighbours_or_the_refusal_says_in_which_order(void **state)
{
    (void)state;
    static const char *const names[] = {"dp", "ep", "cp", "tp"};
    static const uint32_t all = 1u << MESH_DP | 1u << MESH_EP | 1u << MESH_CP;
    static const uint32_t unions[] = {all, 1u << MESH_DP | 1u << MESH_CP};
    struct machine const machine = machine_of("16", "x");
    uint32_t refused_count = 0;
    for (uint32_t draw = 0; draw < 256; draw++) {
        char text[80] = "";
        uint32_t used = 0, index[4];
        for (uint32_t i = 0; i < 4; i++) {
            index[i] = draw >> 2 * i & 3;
            used |= 1u << index[i];
            (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s x:2",
                           i == 0 ? "" : ",", names[index[i]]);
        }
        if (used != 15) continue;
        struct mesh const mesh = mesh_of(&machine, text);
        /* As a step asks: for all gradients first, then for those of experts. */
        for (uint32_t u = 0, left = 1; u < 2 && left; u++) {
            struct group group;
            if (mesh_union(&mesh, &machine, unions[u], "sums go", &group, &case_error) ==
                STATUS_OK) {
                assert_int_equal(group.dimension_count, 1);
                assert_int_equal(group.dimension[0].size, u == 0 ? 8 : 4);
                continue;
            }
            refused_count++;
            left = 0;
            assert_string_equal(case_error.where, "/mesh");
            assert_true(strstr(case_error.message, "sums go over ") == case_error.message);
            assert_true(strstr(case_error.message, u == 0 ? "with tp between" : "between") != NULL);
            static const char begins[] = "\"order\": [";
            char *order = strstr(case_error.message, begins), *save = NULL, again[80] = "";
            assert_non_null(order);
            order[strcspn(order, "]")] = '\0';
            for (char *name = strtok_r(order + strlen(begins), ", \"", &save); name != NULL;
                 name = strtok_r(NULL, ", \"", &save))
                (void)snprintf(again + strlen(again), sizeof again - strlen(again), "%s%s x:2",
                               *again == '\0' ? "" : ",", name);
            struct mesh const other = mesh_of(&machine, again);
            for (uint32_t k = 0; k < 2; k++)
                case_ok(mesh_union(&other, &machine, unions[k], "sums go", &group, &case_error));
        }
    }
    assert_int_equal(refused_count, 12 + 4);
}

/* Ranks of ep are those of tp and of its own, neighbours all together. Chips are counted once. */
static void ep_lies_over_other_axes(void **state)
{
    (void)state;
    struct machine const machine = machine_of("16x2", "x");
    struct mesh const mesh = mesh_of(&machine, "tp x:2,ep x:4 tp,dp x:2,pp y");
    assert_int_equal(mesh.rank_count, 32);
    assert_int_equal(mesh.ep_over, 1u << MESH_TP);
    assert_int_equal(mesh.own_ep.size, 4);
    assert_int_equal(mesh.own_ep.part[0].stride, 2);
    assert_int_equal(mesh.axis[MESH_EP].size, 8);
    assert_int_equal(mesh.axis[MESH_EP].group.dimension_count, 1);
    dimension_is(&mesh.axis[MESH_EP].group, 0, 0, 8, 1, false);
    for (uint32_t chip = 0; chip < 32; chip++)
        assert_int_equal(mesh_rank(&mesh, &machine, MESH_EP, chip), chip / 2 % 8);
    assert_int_equal(mesh_replica_roles(&mesh, false), 1u << MESH_DP | 1u << MESH_EP);
    assert_int_equal(mesh_replica_roles(&mesh, true), 1u << MESH_DP);

    struct mesh const all = mesh_of(&machine, "tp x:2,cp x:4,ep tp cp dp,dp x:2 y");
    assert_int_equal(all.axis[MESH_EP].size, 32);
    assert_int_equal(all.own_ep.size, 1);
    dimension_is(&all.axis[MESH_EP].group, 0, 1, 2, 1, false);
    dimension_is(&all.axis[MESH_EP].group, 1, 0, 16, 1, true);
    assert_int_equal(mesh_replica_roles(&all, false), 1u << MESH_DP | 1u << MESH_CP);
    assert_int_equal(mesh_replica_roles(&all, true), 0);

    struct mesh const alone = mesh_of(&machine, "tp x,ep y");
    assert_int_equal(alone.ep_over, 0);
    assert_int_equal(alone.own_ep.size, 2);
}

static void what_ep_cannot_lie_over_is_refused(void **state)
{
    (void)state;
    struct machine const machine = machine_of("16x2", "x");
    refused(&machine, "tp x,ep y cp", "/mesh/ep/1", "the mesh has no cp whose ranks could have");
    refused(&machine, "fsdp x,ep y fsdp", "/mesh/ep/1",
            "experts over ranks of fsdp are not modelled; ep lies over tp, cp and dp");
    refused(&machine, "tp x,ep tp tp,dp y", "/mesh/ep/1", "tp is named twice in one mesh axis");
    refused(&machine, "tp x:2,cp x:2,ep x:4 tp,dp y", "/mesh",
            "experts are split over tp and ep together, which lie on x with cp between them; that "
            "is modelled where they lie side by side: with \"order\": [\"tp\", \"ep\", \"cp\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_axes_are_rings_where_the_machine_wraps),
        cmocka_unit_test(the_first_named_takes_neighbours_and_the_next_is_strided),
        cmocka_unit_test(without_an_order_of_its_own_a_mesh_lies_in_the_standard_one),
        cmocka_unit_test(axes_that_share_nothing_may_be_named_in_any_order),
        cmocka_unit_test(an_order_names_each_axis_of_the_mesh_once),
        cmocka_unit_test(parts_of_size_one_stay_out_of_the_group),
        cmocka_unit_test(ranks_name_every_chip_once_and_groups_step_over_real_links),
        cmocka_unit_test(the_last_part_varies_fastest),
        cmocka_unit_test(meshes_that_do_not_lie_on_the_machine_are_refused),
        cmocka_unit_test(a_subgroup_is_a_box_of_neighbouring_ranks),
        cmocka_unit_test(a_subgroup_of_part_of_a_ring_is_a_line),
        cmocka_unit_test(ep_lies_over_other_axes),
        cmocka_unit_test(what_ep_cannot_lie_over_is_refused),
        cmocka_unit_test(a_union_is_of_neighbours_or_the_refusal_says_in_which_order),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
