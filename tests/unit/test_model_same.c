/* What tells two models apart: each member of struct model, those of structs in it included. */
#include <stdio.h>
#include <string.h>

#include "sim/model/model.h"
#include "tests/support/case.h"

enum { LAYERS = 3, NAME_BYTES = 64 };

static bool none[LAYERS], last[LAYERS] = {[LAYERS - 1] = true};

/* The model has experts in some layers, so that some layer has each size. */
static struct model model_of_parts(void)
{
    return (struct model){.layers = LAYERS,
                          .mlp_width = 64,
                          .head_width = 8,
                          .value_width = 4,
                          .attends = {.window = 16},
                          .by_layer = {.windowed = none, .borrows = none},
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
    two.by_layer = (struct layer_arrays){.windowed = NULL};
    assert_true(model_same(&one, &two));
#define TELLS(flag, text)                                                                          \
    two.by_layer = (struct layer_arrays){.flag = last};                                            \
    assert_false(model_same(&one, &two));
    LAYER_FLAGS(TELLS)
#undef TELLS
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

static void header_read(char *ret_code, size_t size_bytes)
{
    FILE *file = fopen("sim/model/model.h", "rb");
    assert_non_null(file);
    size_t const read = fread(ret_code, 1, size_bytes - 1, file);
    (void)fclose(file);
    assert_true(read < size_bytes - 1);
    ret_code[read] = '\0';
}

/* A struct of the header is a table: then all members are rows. */
static void table_check(const char *code, const char *type)
{
    char head[NAME_BYTES];
    (void)snprintf(head, sizeof head, "struct %s {", type);
    const char *at = strstr(code, head);
    if (at == NULL) fail_msg("model.h has no struct %s", type);
    const char *const end = strchr(at, '}'), *const table = strstr(at, "_TABLE(");
    if (table == NULL || table > end || memchr(at, ';', (size_t)(end - at)) != NULL)
        fail_msg("struct %s has members besides the rows of its table", type);
}

static void every_member_is_a_row(void **state)
{
    (void)state;
    static char code[1 << 16];
    header_read(code, sizeof code);
    table_check(code, "model");
#define FACT(at, type, name)
#define OTHER(type, name)
#define PART(type, name, TABLE) table_check(code, strchr(#type, ' ') + 1);
    MODEL_TABLE(FACT, OTHER, PART)
#undef FACT
#undef OTHER
#undef PART
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fact_tells_models_apart),
        cmocka_unit_test(layers_tell_models_apart),
        cmocka_unit_test(what_no_layer_has_is_not_compared),
        cmocka_unit_test(every_member_is_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
