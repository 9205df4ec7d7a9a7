/* What tells two models apart: each member of struct model, those of structs in it included. */
#include <stdio.h>
#include <string.h>

#include "sim/model/model.h"
#include "tests/support/case.h"

enum { LAYERS = 3, NAME_BYTES = 64 };

static const bool none[LAYERS], last[LAYERS] = {[LAYERS - 1] = true};

/* The model has experts in some layers, so that some layer has each size. */
static struct model model_of_parts(void)
{
    return (struct model){.layers = LAYERS,
                          .mlp_width = 64,
                          .head_width = 8,
                          .value_width = 4,
                          .attends = {.windowed = none, .borrows = none},
                          .experts = {.count = 8, .dense_layers = 1}};
}

static void each_fact_tells_models_apart(void **state)
{
    (void)state;
    for (const struct model_fact *fact = model_facts; fact->name != NULL; fact++) {
        struct model const one = model_of_parts();
        struct model two = one;
        ((unsigned char *)&two)[fact->at] ^= 1;
        if (model_same(&one, &two) || model_same(&two, &one))
            fail_msg("models that differ in %s are the same", fact->name);
    }
}

static void layers_tell_models_apart(void **state)
{
    (void)state;
    struct model const one = model_of_parts();
    struct model two = one;
    two.attends.windowed = two.attends.borrows = NULL;
    assert_true(model_same(&one, &two));
    two.attends.windowed = last;
    assert_false(model_same(&one, &two));
    two.attends = (struct model_attends){.borrows = last};
    assert_false(model_same(&one, &two));
}

static void what_no_layer_has_is_not_compared(void **state)
{
    (void)state;
    struct model one = model_of_parts();
    one.experts.dense_layers = 0;
    one.value_width = one.head_width;
    struct model two = one;
    two.name = "another";
    two.positions.most = 1024;
    two.mlp_width = 128;
    two.value_width = 0;
    assert_true(model_same(&one, &two));
    one.experts.dense_layers = two.experts.dense_layers = 1;
    assert_false(model_same(&one, &two));
}

/* --- Completeness --- */

/* Facts that are no rows: names and bounds, and arrays that are compared by layer. */
static bool is_apart(const char *name)
{
    static const char *const apart[] = {"name", "positions.most", "attends.windowed",
                                        "attends.borrows"};
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        if (strcmp(name, apart[i]) == 0) return true;
    return false;
}

static bool is_fact(const char *name)
{
    for (const struct model_fact *fact = model_facts; fact->name != NULL; fact++)
        if (strcmp(name, fact->name) == 0) return true;
    return false;
}

static void header_read(char *ret_code, size_t size_bytes)
{
    FILE *file = fopen("sim/model/model.h", "rb");
    assert_non_null(file);
    size_t const read = fread(ret_code, 1, size_bytes - 1, file);
    (void)fclose(file);
    assert_true(read < size_bytes - 1);
    ret_code[read] = '\0';
}

/* Blanks in the place of comments. */
static void comments_blank(char *code)
{
    for (char *begin = NULL; (begin = strstr(code, "/*")) != NULL;) {
        const char *end = strstr(begin, "*/");
        assert_non_null(end);
        memset(begin, ' ', (size_t)(end + 2 - begin));
    }
}

/* The members that a struct of the header declares, each as "PREFIX NAME"; those of structs in it
 * as well. The number of plain members. */
static uint32_t members_check(const char *code, const char *type, const char *prefix)
{
    char head[NAME_BYTES];
    uint32_t count = 0;
    (void)snprintf(head, sizeof head, "struct %s {", type);
    const char *at = strstr(code, head);
    if (at == NULL) fail_msg("model.h has no struct %s", type);
    at += strlen(head);
    const char *const end = strchr(at, '}');
    for (const char *stop = NULL; (stop = strchr(at, ';')) != NULL && stop < end; at = stop + 1) {
        char inner[NAME_BYTES] = "", name[2 * NAME_BYTES];
        const char *begin = stop;
        while (begin[-1] != ' ' && begin[-1] != '*') begin--;
        (void)snprintf(name, sizeof name, "%s%.*s", prefix, (int)(stop - begin), begin);
        at += strspn(at, " \n");
        if (sscanf(at, "struct %63s", inner) == 1) {
            (void)snprintf(name + strlen(name), sizeof name - strlen(name), ".");
            count += members_check(code, inner, name);
            continue;
        }
        if (strchr(name, ',') != NULL || is_fact(name) == is_apart(name))
            fail_msg("%s is no row of model_facts[]", name);
        count++;
    }
    return count;
}

static void every_member_is_a_fact_or_set_apart(void **state)
{
    (void)state;
    static char code[1 << 16];
    uint32_t facts = 0;
    header_read(code, sizeof code);
    while (model_facts[facts].name != NULL) facts++;
    comments_blank(code);
    assert_int_equal(members_check(code, "model", ""), facts + 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fact_tells_models_apart),
        cmocka_unit_test(layers_tell_models_apart),
        cmocka_unit_test(what_no_layer_has_is_not_compared),
        cmocka_unit_test(every_member_is_a_fact_or_set_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
