/* Rules on what is named, compared and computed where (canaries.h). */
#include "tests/tidy/canaries.h"

static void a_figure_of_a_report_is_a_row(void **state)
{
    (void)state;
    refuses("sim/report/result.c", "int a;\nx = json_put_real(json, \"mfu\", facts->mfu);\n",
            "sim/report/result.c:2: json_put_real() writes a figure by its key: it is a row of "
            "columns (sim/report/column_table.h)\n");
    refuses("tools/podsim/run/a.c", "x = json_put_unsigned(&json,\n    \"best\", 1);\n",
            "tools/podsim/run/a.c:1: json_put_unsigned() writes a figure by its key: it is a row "
            "of columns (sim/report/column_table.h)\n");
    accepts("sim/report/result.c", "x = json_put_real(json, machine_axis_name(machine, 1), 2);\n");
    accepts("sim/report/result.c", "x = json_put_unsigned(&json, \"podsim\", 1);\n");
    accepts("sim/base/key.c", "x = json_put_real(json, \"minimum\", 1);\n");
}

static void names_are_looked_up_and_not_compared(void **state)
{
    (void)state;
    static const char compares[] = "int a;\nint b = strcmp(name, other);\n";
    static const char refusal[] = "strcmp() is not used here: a name is looked up where it is read "
                                  "(sim/base/name.h), or tests/tidy/names.txt says why not\n";
    char complaint[256];
    (void)snprintf(complaint, sizeof complaint, "sim/engine/engine.c:2: %s", refusal);
    refuses("sim/engine/engine.c", compares, complaint);
    refuses(
        "sim/engine/engine.c", "int b = strncasecmp(name, \"fast\", 4);\n",
        "sim/engine/engine.c:1: strncasecmp() is not used here: a name is looked up where it is "
        "read (sim/base/name.h), or tests/tidy/names.txt says why not\n");
    refuses("sim/engine/wheel.c", "bool b = name_same(name_of(a), \"fast\");\n",
            "sim/engine/wheel.c:1: name_same() has a name among its arguments: name_find() says "
            "which it is\n");
    accepts("sim/engine/wheel.c", "bool b = name_same(a, name_of(c)) || is(\"fast\");\n");
    refuses("sim/engine/wheel.c", "bool b = name_same(a.schedule, SCHEDULE_1);\n",
            "sim/engine/wheel.c:1: name_same() has a name among its arguments: name_find() says "
            "which it is\n");
    accepts("sim/engine/wheel.c", "bool b = name_same(a, b.Id[I]) || X(SCHEDULE_1);\n");
    refuses("sim/engine/engine.c",
            "static const char *const fast[] = {\"fast\", NULL};\n"
            "bool b = name_find(name_of(a), fast) == 0;\n",
            "sim/engine/engine.c:2: name_find() looks in a list of one name, which compares by "
            "name: the name is read to a value once\n");
    accepts("sim/engine/engine.c",
            "static const char *const speed[] = {\"fast\", \"slow\", NULL};\n"
            "bool b = name_find(a, speed) == 0 || name_find(a, eed);\n");
    refuses("sim/engine/wheel.c", "bool b = name_same(name_of(a), mlp_names[0]);\n",
            "sim/engine/wheel.c:1: name_same() has a name among its arguments: name_find() says "
            "which it is\n");
    refuses("sim/engine/wheel.c", "bool b = name_same(mlp_names[KIND_MLP], name);\n",
            "sim/engine/wheel.c:1: name_same() has a name among its arguments: name_find() says "
            "which it is\n");
    refuses("sim/engine/wheel.c", "bool b = name_same(name, *mlp_names);\n",
            "sim/engine/wheel.c:1: name_same() has a name among its arguments: name_find() says "
            "which it is\n");
    refuses("sim/engine/wheel.c",
            "static const char fast[] = \"fast\";\nbool b = name_same(name, fast);\n",
            "sim/engine/wheel.c:2: name_same() has a name among its arguments: name_find() says "
            "which it is\n");
    accepts(
        "sim/engine/wheel.c",
        "static const char fast[] = \"fast\";\nbool b = name_same(name, faster) || is(fast);\n");
    accepts("sim/engine/wheel.c", "bool b = name_same(names[i], *at) || is(names[0], *names);\n");
    accepts("sim/engine/engine.c", "/* strcmp(a, b) */\nint my_strcmp(int a);\n");
    refuses("sim/engine/engine.c", "bool b = name_same(a, name_of(c));\n",
            "sim/engine/engine.c:1: name_same() may tell what a name means, which is read once: "
            "tests/tidy/names.txt says why it does not\n");
    refuses("sim/engine/engine.c", "bool b = strchr(name, '+') != NULL;\n",
            "sim/engine/engine.c:1: strchr() may tell what a name means, which is read once: "
            "tests/tidy/names.txt says why it does not\n");
    accepts("sim/engine/engine.c", "bool b = strchr(\"+-\", *at) != NULL;\n");
    refuses("sim/engine/wheel.c", "bool b = name_same(a, c) || strcmp(a, c) == 0;\n",
            "sim/engine/wheel.c:1: strcmp() is not used here: a name is looked up where it is read "
            "(sim/base/name.h), or tests/tidy/names.txt says why not\n");
    refuses("sim/engine/wheel.c", "int a;\n",
            "sim/engine/wheel.c:1: compares no text, but tests/tidy/names.txt excuses it\n");
    accepts("sim/base/name.c", compares);
    accepts("sim/graph/op.c", compares);
    accepts("sim/report/words.c", compares);
    accepts("tools/podsim/main.c", compares);
    refuses("sim/report/words.c", "int a;\n",
            "sim/report/words.c:1: compares no text, but tests/tidy/names.txt excuses it\n");
}

static void bytes_and_letters_of_names_are_not_compared(void **state)
{
    (void)state;
    static const char why[] = " may tell what a name means, which is read once: "
                              "tests/tidy/names.txt says why it does not\n";
    char complaint[256];
    refuses("sim/engine/wheel.c", "bool b = memcmp(name, \"ring\", 4) == 0;\n",
            "sim/engine/wheel.c:1: memcmp() has a name among its arguments: name_find() says "
            "which it is\n");
    (void)snprintf(complaint, sizeof complaint, "sim/engine/engine.c:1: memcmp()%s", why);
    refuses("sim/engine/engine.c", "bool b = memcmp(name, other, length) == 0;\n", complaint);
    accepts("sim/engine/wheel.c", "bool b = memcmp(name, other, length) == 0;\n");
    accepts("sim/engine/engine.c",
            "bool b = memcmp(&a, &b, sizeof a) + memcmp(a, b, 2 * bytes);\n");

    static const char *const letters[] = {"bool b = name[0] == 'm';\n", "bool b = 'm' != *name;\n",
                                          "switch (c) { case 'm': d(); }\n"};
    (void)snprintf(complaint, sizeof complaint, "sim/engine/engine.c:1: 'm'%s", why);
    for (unsigned i = 0; i < sizeof letters / sizeof *letters; i++) {
        refuses("sim/engine/engine.c", letters[i], complaint);
        accepts("sim/engine/wheel.c", letters[i]);
        accepts("sim/base/strbuf.c", letters[i]);
    }
    accepts("sim/engine/engine.c",
            "bool b = *at == ',' || *at >= 'a' || add('m') || is(\"'m' == c\"); /* 'm' == c */\n");
}

static void entries_of_the_graph_are_asked_and_not_told_apart(void **state)
{
    (void)state;
    refuses("sim/graph/a.c", "bool is = op->kind == &op_kind_norm;\n",
            "sim/graph/a.c:1: op_kind_norm is not told apart here: what an entry states is asked "
            "of it (struct op_kind, struct block)\n");
    refuses("sim/step/a.c", "if (a &&\n    block != &block_mla) f();\n",
            "sim/step/a.c:2: block_mla is not told apart here: what an entry states is asked of it "
            "(struct op_kind, struct block)\n");
    refuses("sim/step/a.c", "bool is = &block_mla == block;\n",
            "sim/step/a.c:1: block_mla is not told apart here: what an entry states is asked of it "
            "(struct op_kind, struct block)\n");
    accepts("sim/graph/a.c", "struct graph_op *op = graph_op(g, &op_kind_norm, name, 1, &x);\n");
    accepts("sim/graph/a.c", "bool is = op->kind == kind && of == &block_table[0];\n");
    accepts("tests/unit/a.c", "bool is = op->kind == &op_kind_norm;\n");
}

static void families_are_known_where_plans_are_made_of_them(void **state)
{
    (void)state;
    static const char tells[] = "int a;\nbool b = family == PRIMITIVE_RING_ONE_WAY;\n";
    refuses("sim/roofline/gather_form.c", tells,
            "sim/roofline/gather_form.c:2: PRIMITIVE_RING_ONE_WAY is not told apart here: what an "
            "algorithm takes is asked of its entry (primitive.cost)\n");
    accepts("sim/collective/choice.c", tells);
    refuses("sim/choose/estimate.c", tells,
            "sim/choose/estimate.c:2: PRIMITIVE_RING_ONE_WAY is not told apart here: what an "
            "algorithm takes is asked of its entry (primitive.cost)\n");
    accepts("workloads/collectives/all_gather_ring.c", tells);
    accepts("tests/unit/test_plan.c", tells);
    accepts("sim/roofline/gather_form.c", "/* PRIMITIVE_RING */\nbool b = PRIMITIVE_RINGS;\n");
}

static void algorithms_are_read_by_readers(void **state)
{
    (void)state;
    static const char reads[] = "int a;\nstruct algorithm b = algorithm_read(name);\n";
    refuses("sim/step/lower.c", reads,
            "sim/step/lower.c:2: algorithm_read() is called by readers of files alone: a request "
            "and a plan have the algorithm itself\n");
    accepts("sim/scenario/run_keys.c", reads);
    accepts("tools/podsim/common/collective_args.c", reads);
    accepts("tests/unit/test_plan.c", reads);
    accepts("sim/step/lower.c", "/* algorithm_read() */\nbool b = is_algorithm_read(a);\n");
}

static void sizes_of_a_model_are_multiplied_by_the_graph(void **state)
{
    (void)state;
    static const char wide[] = "int a = 2 * plan->model.vocabulary;\n";
    refuses("sim/report/notes.c", wide,
            "sim/report/notes.c:1: a model's vocabulary is multiplied here: sizes of tensors come "
            "from the graph, or from model_count()\n");
    refuses("sim/model/model_family.c", "int a = model->kv_heads\n  * b;\n",
            "sim/model/model_family.c:1: a model's kv_heads is multiplied here: sizes of tensors "
            "come from the graph, or from model_count()\n");
    refuses("sim/roofline/inference.c", wide,
            "sim/roofline/inference.c:1: a model's vocabulary is multiplied here: sizes of tensors "
            "come from the graph, or from model_count()\n");
    accepts("sim/graph/count.c", wide);
    refuses("tools/podsim/run/advise.c", "int a = m->heads * b;\n",
            "tools/podsim/run/advise.c:1: a model's heads is multiplied here: sizes of tensors "
            "come from the graph, or from model_count()\n");
    refuses("sim/step/ranks.c", "int a = b * of->model.head_width;\n",
            "sim/step/ranks.c:1: a model's head_width is multiplied here: sizes of tensors come "
            "from the graph, or from model_count()\n");
    accepts("tests/oracle/counts.c", wide);
    accepts("sim/step/ranks.c",
            "int a = model->kv_heads + b * ranks->heads.held * ranks->sequences.kv_heads;\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_figure_of_a_report_is_a_row),
        cmocka_unit_test(names_are_looked_up_and_not_compared),
        cmocka_unit_test(bytes_and_letters_of_names_are_not_compared),
        cmocka_unit_test(entries_of_the_graph_are_asked_and_not_told_apart),
        cmocka_unit_test(families_are_known_where_plans_are_made_of_them),
        cmocka_unit_test(algorithms_are_read_by_readers),
        cmocka_unit_test(sizes_of_a_model_are_multiplied_by_the_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
