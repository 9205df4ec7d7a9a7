/* The tidy rules themselves: each canary must be refused, with its place and a reason. */
#include "tests/tidy/canaries.h"

static void a_layer_may_include_only_what_the_table_allows(void **state)
{
    (void)state;
    refuses("topology/ring.c", "int a;\n\n#include \"sim/engine/engine.h\"\n",
            "topology/ring.c:3: topology may not include sim/engine/engine.h\n");
    refuses("sim/base/strbuf.c", "#include \"sim/machine/machine.h\"\n",
            "sim/base/strbuf.c:1: sim/base may not include sim/machine/machine.h\n");
    refuses("sim/engine/heap.c", "#include \"tools/podsim/options.h\"\n",
            "sim/engine/heap.c:1: sim/engine may not include tools/podsim/options.h\n");
    refuses("tools/podsim/common/a.c", "#include \"tools/podsim/run/advise.h\"\n",
            "tools/podsim/common/a.c:1: tools/podsim/common may not include "
            "tools/podsim/run/advise.h\n");
    accepts("tools/podsim/run/a.c", "#include \"sim/engine/engine.h\"\n"
                                    "#include \"tools/podsim/common/options.h\"\n");
    accepts("tools/podsim/main.c", "#include \"tools/podsim/run/advise.h\"\n");
    refuses("sim/new/new.c", "#include \"sim/base/status.h\"\n",
            "sim/new/new.c:1: tools/layers.txt has no line for this folder\n");
    refuses("sim/engine/heap.c", "#include \"engine.h\"\n",
            "sim/engine/heap.c:1: engine.h is not included by its path from the root\n");
    accepts("topology/deep/ring.c", "#include \"sim/machine/machine.h\"\n");
    accepts("topology/ring.c", "#include \"sim/base/status.h\"\n#include \"topology/ring.h\"\n");
    accepts("sim/machine/table.c", "#include \"topology/chips.def\"\n");
    accepts("tests/unit/test_a.c", "#include \"sim/engine/engine.h\"\n");
}

static void a_library_has_one_user(void **state)
{
    (void)state;
    refuses("sim/machine/chip.c", "#include <jansson.h>\n",
            "sim/machine/chip.c:1: only sim/base/json may include jansson.h\n");
    refuses("sim/engine/engine.c", "#include <uv.h>\n",
            "sim/engine/engine.c:1: only tools/podsim/ may include uv.h\n");
    refuses("sim/base/json.c", "#include <expat.h>\n",
            "sim/base/json.c:1: only sim/collective/msccl_read.c may include expat.h\n");
    accepts("sim/collective/msccl_read.c", "#include <expat.h>\n");
    accepts("sim/base/json.c", "#include <jansson.h>\n#include <stdio.h>\n");
    accepts("tools/podsim/main.c", "#include <uv.h>\n");
}

static void layout_is_held(void **state)
{
    (void)state;
    char line[256];
    (void)snprintf(line, sizeof line, "/*%98s*/\n", "");
    refuses("sim/a.c", line, "sim/a.c:1: 102 columns are more than 100\n");
    refuses("tools/test", line, "tools/test:1: 102 columns are more than 100\n");
    accepts("README.md", line);
    refuses("sim/a.c", "int a; \n", "sim/a.c:1: trailing blank\n");
    refuses("sim/a.c", "int a;\r\n", "sim/a.c:1: trailing blank\n");
    refuses("sim/a.c", "\tint a;\n", "sim/a.c:1: tab\n");
    refuses("sim/a.c", "int a;", "sim/a.c:1: no newline at the end\n");
    (void)snprintf(line, sizeof line, "/*%94s·*/\n", ""); /* A wide character is one column. */
    accepts("sim/a.c", line);
}

/* A file with a signature of two lines, a brace, `body` lines and a brace. */
static void function_text(char *text, size_t size, unsigned body)
{
    size_t at = (size_t)snprintf(text, size, "int a;\n\nint f(int b,\n      int c)\n{\n");
    for (unsigned i = 0; i < body; i++) at += (size_t)snprintf(text + at, size - at, "    a++;\n");
    (void)snprintf(text + at, size - at, "}\n");
}

static void long_functions_and_files_are_refused(void **state)
{
    (void)state;
    char text[8192];
    function_text(text, sizeof text, TIDY_FUNCTION_LINES_MAX - 4);
    accepts("sim/a.c", text);
    function_text(text, sizeof text, TIDY_FUNCTION_LINES_MAX - 3);
    refuses("sim/a.c", text, "sim/a.c:3: function of 76 lines is longer than 75\n");

    memset(text, '\n', TIDY_FILE_LINES_MAX + 1);
    text[TIDY_FILE_LINES_MAX + 1] = '\0';
    refuses("sim/a.h", text, "sim/a.h:501: file of 501 lines is longer than 500\n");
    text[TIDY_FILE_LINES_MAX] = '\0';
    accepts("sim/a.h", text);
}

static void private_words_stay_out_of_what_users_read(void **state)
{
    (void)state;
    refuses("sim/base/a.c", "int a;\nchar *b = \"it is played\";\n",
            "sim/base/a.c:2: \"played\" is no word for users\n");
    refuses("tools/podsim/a.c", "char b = '\"', *c = \"so many\";\n",
            "tools/podsim/a.c:1: \"so many\" is no word for users\n");
    refuses("docs/a.md", "One\nbeside the other.\n",
            "docs/a.md:2: \"beside\" is no word for users\n");
    refuses("docs/a.md", "Beside it.\n", "docs/a.md:1: \"beside\" is no word for users\n");
    refuses("docs/a.md", "BESIDE\nOne beside two.\n",
            "docs/a.md:2: \"beside\" is no word for users\n");
    refuses("docs/a.md", "Waits for what comes.\n",
            "docs/a.md:1: \"waits for what\" is no word for users\n");
    refuses("sim/base/a.c", "char *b = \"Played.\";\n",
            "sim/base/a.c:1: \"played\" is no word for users\n");
    refuses("CONTRIBUTING.md", "A plan is played.\n",
            "CONTRIBUTING.md:1: \"played\" is no word for users\n");
    refuses("ARCHITECTURE.md", "It is held against\nthe bound.\n",
            "ARCHITECTURE.md:1: \"held against\" is no word for users\n");
    refuses("sim/base/a.c", "char *a = \"where it comes to lie\";\n",
            "sim/base/a.c:1: \"comes to lie\" is no word for users\n");
    accepts("sim/base/a.c",
            "#include \"sim/base/beside.h\"\n/* \"played\" */ int beside; // \"plays\"\n");
    accepts("sim/base/a.c", "char *a = \"chips_replayed, displays \\\"\"; int played;\n");
    refuses("sim/base/a.c", "int a;\n/* Steps that\n * are played. */\n",
            "sim/base/a.c:3: what is \"played\" is simulated, or run\n");
    refuses("sim/base/a.c", "/* Played once. */\n",
            "sim/base/a.c:1: what is \"played\" is simulated, or run\n");
    accepts("sim/base/a.c", "/* Ticks of `played`. */\nint a = b->played;\n");
    accepts("tests/a.c", "/* It is played. */\n");
    accepts("tests/a.c", "char *a = \"played\";\n");
    accepts("CHANGELOG.md", "- played\n");
}

static void pictures_are_drawn_in_one_place(void **state)
{
    (void)state;
    refuses("sim/report/a.c", "int a;\nchar *b = \"  <rect x='1'/>\";\n",
            "sim/report/a.c:2: <rect> is drawn by sim/base/svg.h\n");
    accepts("sim/base/svg.c", "char *a = \"<text\";\n");
    accepts("tools/podsim/a.c", "char *a = \"line <FILE> 1 < text, <lines>\"; /* <g> */\n");
    accepts("tests/a.c", "char *a = \"<svg\";\n");
}

static void calls_that_lose_a_size_or_an_order_are_refused(void **state)
{
    (void)state;
    refuses("sim/a.c", "int a;\nvoid f(char *a) { strcpy(a, a); }\n",
            "sim/a.c:2: strcpy() is not used here: it does not know the buffer's size\n");
    refuses("sim/a.c", "long a = time(0);\n",
            "sim/a.c:1: time() is not used here: a run depends on its inputs only\n");
    refuses("sim/a.c", "void f(void) { qsort(0, 0, 0, 0); }\n",
            "sim/a.c:1: qsort() is not used here: its order of equals is not defined\n");
    accepts("sim/a.c", "/* time(0) */ int compute_time(int time);\nchar *a = \"rand()\";\n");
    accepts("sim/a.c", "char *a = \"a\\\"b\"; char c = '\"'; // sprintf(\n");
}

static void comments_of_headers_stand_alone(void **state)
{
    static const char said[] =
        ": a comment of a header begins or ends in the middle of a sentence\n";
    static const char *const torn[] = {"/* Sum of it, */", "/* Sum of it; */", "/* Sum and */",
                                       "/* and it. */", "/* Or\n * it. */"};
    (void)state;
    for (size_t i = 0; i < sizeof torn / sizeof *torn; i++) {
        char text[64], message[128];
        (void)snprintf(text, sizeof text, "int a;\nint b; %s\n", torn[i]);
        (void)snprintf(message, sizeof message, "sim/a.h:2%s", said);
        refuses("sim/a.h", text, message);
        accepts("sim/a.c", text);
        accepts("tests/unit/a.h", text);
    }
    accepts("sim/a.h", "int a; /* The order, and a brand. */\nint b; /* oral */\n/* */\n");
}

static void comments_of_fields_have_a_subject(void **state)
{
    (void)state;
    static const char *const leaning[] = {
        "struct a {\n    int b; /* As asked. */\n};\n",
        "enum {\n    A, /* It was looked for. */\n};\n",
        "struct a {\n    int b; /* Its line. */\n};\n",
        "struct a {\n    int b; /* The same, once more. */\n};\n",
        "struct a {\n    int b; /* Of a matmul. */\n};\n",
        "struct a {\n    int b; /* Of the whole chip;\n              GPU: SMs. */\n};\n",
    };
    for (size_t i = 0; i < sizeof leaning / sizeof *leaning; i++)
        refuses("sim/engine/engine.h", leaning[i],
                "sim/engine/engine.h:2: the comment of a field or enumerator has no subject of its "
                "own\n");
    accepts("sim/engine/engine.h", "int a; /* Of a choice: what it means. */\n");
    accepts("sim/engine/engine.h", "int a; /* Assets, Items and Sameness. */\n");
    accepts("sim/engine/engine.h", "int a; /* Of two chips of one node the nearer. */\n");
    accepts("sim/engine/engine.h", "int f(int a); /* As g(). */\n/* As f(). */\nint g(int);\n");
    accepts("sim/engine/engine.c", "int a; /* As asked. */\n");
}

static void comments_of_functions_have_a_subject(void **state)
{
    (void)state;
    refuses("sim/engine/engine.h",
            "int f(int);\n/* The same of ranks that are made. */\nint g(int);\n",
            "sim/engine/engine.h:2: a comment of a header says what the one above says: it has a "
            "subject of its own\n");
    accepts("sim/engine/engine.h",
            "/* The sameness of ranks, and the same again. */\nint g(int);\n");
    accepts("sim/engine/engine.c", "/* The same of ranks that are made. */\nint g(int);\n");
}

static void draws_have_an_order(void **state)
{
    (void)state;
    refuses(
        "tests/unit/test_a.c", "int f(void)\n{\n    g(below(2), 1 + below(3));\n}\n",
        "tests/unit/test_a.c:3: 2 draws in one list, in an order that is each compiler's own\n");
    refuses(
        "tests/unit/test_a.c",
        "int f(void)\n{\n    g(h(below(2)),\n      PICK(\"a\"), below(3));\n}\n",
        "tests/unit/test_a.c:4: 3 draws in one list, in an order that is each compiler's own\n");
    refuses(
        "tests/unit/test_a.c", "int f(void)\n{\n    int a[] = {below(2), below(3)};\n}\n",
        "tests/unit/test_a.c:3: 2 draws in one list, in an order that is each compiler's own\n");
    accepts("tests/unit/test_a.c", "int f(void)\n{\n    int a = below(2), b = below(3);\n"
                                   "    return below(2) == 0 ? below(3) : g(a, below(b));\n}\n");
    accepts("tests/unit/test_a.c", "int f(void)\n{\n    for (int i = below(2), k = below(3); i < "
                                   "k; i++) g(a, below(2));\n}\n");
    accepts("sim/a.c", "int f(void)\n{\n    g(below(2), below(3));\n}\n");
}

static void inexact_numbers_need_an_excuse(void **state)
{
    (void)state;
    refuses("sim/report/summary.c", "float a;\ndouble b;\n",
            "sim/report/summary.c:1: float is not used here\n");
    refuses("sim/engine/a.c", "\ndouble a;\n",
            "sim/engine/a.c:2: double decides no instant and no order: "
            "a file that needs it says why in tests/tidy/doubles.txt\n");
    refuses("sim/report/summary.c", "int a;\n",
            "sim/report/summary.c:1: has no double, but tests/tidy/doubles.txt excuses it\n");
    accepts("sim/report/summary.c", "double a;\n");
    accepts("sim/roofline/any.c", "double a;\n");
    accepts("sim/roofline/any.c", "int a;\n");
    accepts("sim/engine/a.c", "int doubled; /* double */\n");
    accepts("tests/unit/test_a.c", "double a;\n");
}

/* The complaints on a header that `includers` files see: one and a test include it, and the others
 * include the one. A stranger does not count. */
static void header_complains(const char *text, unsigned includers, const char *message)
{
    struct tidy tidy = {0};
    struct tidy_headers headers = {0};
    char *code = tidy_blank(text);
    tidy_note_header(&headers, &(struct tidy_file){"sim/a/a.h", text, code});
    const char *const user = "int a;\n#include \"sim/a/a.h\"\n#include <a.h>\n";
    const char *const behind = "#include \"sim/a/b.h\"\n", *other = "#include \"sim/b/b.h\"\n";
    char path[] = "sim/a/0.c";
    for (unsigned i = 2; i < includers; i++, path[6]++)
        tidy_note_header(&headers, &(struct tidy_file){path, behind, behind});
    tidy_note_header(&headers, &(struct tidy_file){"sim/a/b.h", user, user});
    tidy_note_header(&headers, &(struct tidy_file){"tests/unit/test_a.c", user, user});
    tidy_note_header(&headers, &(struct tidy_file){"sim/b/b.c", other, other});
    tidy_check_headers(&tidy, &headers);
    assert_string_equal(tidy.text == NULL ? "" : tidy.text, message);
    tidy_headers_free(&headers);
    tidy_free(&tidy);
    free(code);
}

static void wide_structs_are_not_for_many_files(void **state)
{
    (void)state;
    static const char wide[] =
        "#define X(a) \\\n    struct x { int a, b; };\nstruct few {\n    int a;\n};\n"
        "struct many\n{\n    int a, b, c, d, e, f, g, h, i, j; /* int k; */\n"
        "    enum kind { ONE, TWO } k;\n    int (*l)(int a, int b), m[sizeof(struct few)];\n"
        "    struct { int n, o, p, q, r, s, t, u, v; union { int w, x; } y; } z;\n};\n";
    static const char refusal[] =
        "sim/a/a.h:6: a struct of 26 fields in a header that 6 files see: divide it by what "
        "belongs together\n";
    header_complains(wide, TIDY_INCLUDERS_MAX + 1, refusal);
    header_complains(wide, TIDY_INCLUDERS_MAX, "");

    /* A row of a table is a field, and so is each row of a table in it. */
    static const char table[] =
        "#define INNER(X) \\\n    X(int, r) /* X(s) */ X(int, t) \\\n    X(int, u)\n"
        "#define TABLE(X, at) X(int, a) X(int, b) X(int, c) X(int, d) X(int, e) X(int, f) \\\n"
        "    X(int, g) X(int, h) INNER(X) X(int, i) X(f(int), at) \\\n    INNER(X) X(int, j)\n"
        "#define FIELD(type, name) type name;\n"
        "enum kind { TABLE(VALUE, ) };\nstruct many {\n    int k, l, m, n, o, p, q, v;\n"
        "    TABLE(FIELD, )\n    int (*w)(int);\n};\n";
    header_complains(table, TIDY_INCLUDERS_MAX + 1,
                     "sim/a/a.h:9: a struct of 26 fields in a header that 6 files see: divide it "
                     "by what belongs together\n");

    static const char narrow[] =
        "struct many {\n    int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, "
        "w;\n    struct other x, *y;\n};\nstruct other {\n    int a;\n};\n";
    header_complains(narrow, TIDY_INCLUDERS_MAX + 1, "");
}

/* The complaints on a header, a page or a source next to a program that calls used() and inlined().
 */
static void tree_complains(const char *path, const char *text, const char *message)
{
    struct tidy tidy = {0};
    struct tidy_tree tree = {0};
    static const char user[] = "int main(void) { return used() + inlined(); }\n";
    static const char test[] = "int main(void) { return used() + tested() + f(); }\n";
    char *code = tidy_ends_with(path, ".md") ? NULL : tidy_blank(text);
    tidy_note_tree(&tree, &(struct tidy_file){"sim/b/b.c", user, user});
    tidy_note_tree(&tree, &(struct tidy_file){"sim/a/a.c", "int used(void) {}\n", "int used("});
    tidy_note_tree(&tree, &(struct tidy_file){"sim/a/c.c", "", "int tested(void) {}\n"});
    tidy_note_tree(&tree, &(struct tidy_file){"tests/a.c", test, test});
    tidy_note_tree(&tree, &(struct tidy_file){path, text, code});
    tidy_check_tree(&tidy, &tree, "theirs(): NCCL\n");
    assert_string_equal(tidy.text == NULL ? "" : tidy.text, message);
    tidy_tree_free(&tree);
    tidy_free(&tidy);
    free(code);
}

static void what_only_tests_call_is_theirs(void **state)
{
    (void)state;
    tree_complains("sim/a/a.h", "int used(void);\nstatic inline int inlined(void) {}\n", "");
    tree_complains("sim/a/a.h", "int a;\nint tested(void);\n",
                   "sim/a/a.h:2: tested() is called by tests alone: it belongs there\n");
    tree_complains("sim/a/a.h", "static inline int f(void) {}\n",
                   "sim/a/a.h:1: f() is called by tests alone: it belongs there\n");
    tree_complains("tests/a.h", "int tested(void);\n", "");
}

static void what_is_mentioned_exists(void **state)
{
    (void)state;
    static const char said[] =
        "is mentioned but does not exist; what others have is in tests/tidy/foreign.txt\n";
    char message[256];
    (void)snprintf(message, sizeof message, "sim/a/d.c:2: gone() %ssim/a/d.c:2: b/a.c %s", said,
                   said);
    tree_complains("sim/a/d.c", "int a;\n/* See gone() and b/a.c. */\n", message);
    (void)snprintf(message, sizeof message, "docs/a.md:2: lost.h %s", said);
    tree_complains("docs/a.md", "gone()\n`lost.h` and `a/a.c`\n", message);
    tree_complains("sim/a/d.c", "/* used(), theirs(), a.c, a/c.c, ..._d.c, fo() */ int fo;\n", "");
    tree_complains("sim/a/d.c", "const char *a = \"/* gone() */\";\n", "");
}

static void reminders_are_refused_even_in_comments(void **state)
{
    (void)state;
    refuses("sim/a.c",
            "int a;\n/* TO"
            "DO later */\n",
            "sim/a.c:2: TO"
            "DO: do it or leave it\n");
    refuses("README.md",
            "FIX"
            "ME\n",
            "README.md:1: FIX"
            "ME: do it or leave it\n");
}

static void catalogues_are_sorted_and_know_their_sources(void **state)
{
    (void)state;
    refuses("a.def", "A(one)\nA(zero)\nA(two)\n", "a.def:3: two does not come after zero\n");
    refuses("a.def", "A(one)\nA(one)\n", "a.def:2: one does not come after one\n");
    refuses("a.def", "A(ones)\nA(one)\n", "a.def:2: one does not come after ones\n");
    accepts("a.def", "/* comment */\nA(one)\nA(ones)\nA(two)\n");
    assert_true(tidy_def_has("A(one)\nA(ones)\n", "ones", 4));
    assert_false(tidy_def_has("A(one)\nA(ones)\n", "two", 3));

    struct tidy tidy = {0};
    tidy_check_source(&tidy, &(struct tidy_file){"workloads/a.c", "int a;\n", NULL});
    tidy_check_source(&tidy, &(struct tidy_file){"workloads/b.c", ".source = \"\",\n", NULL});
    tidy_check_source(&tidy, &(struct tidy_file){"topology/c.json", "{}\n", NULL});
    tidy_check_source(&tidy, &(struct tidy_file){"workloads/d.c", ".source = \"[1]\",\n", NULL});
    const char *const chip = "\"a\": {\"value\": 1, \"source\": \"b\"}\n"
                             "\"b\": {\"value\": 1}\n"
                             "\"c\": {\"value\": 1, \"source\": \"\"}\n";
    tidy_check_source(&tidy, &(struct tidy_file){"topology/e.json", chip, NULL});
    assert_string_equal(tidy.text, "workloads/a.c:1: does not say where it comes from\n"
                                   "workloads/b.c:1: has an empty source\n"
                                   "topology/c.json:1: does not say where it comes from\n"
                                   "topology/e.json:2: a value without its source\n"
                                   "topology/e.json:3: a value without its source\n");
    tidy_free(&tidy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_may_include_only_what_the_table_allows),
        cmocka_unit_test(a_library_has_one_user),
        cmocka_unit_test(layout_is_held),
        cmocka_unit_test(long_functions_and_files_are_refused),
        cmocka_unit_test(private_words_stay_out_of_what_users_read),
        cmocka_unit_test(pictures_are_drawn_in_one_place),
        cmocka_unit_test(calls_that_lose_a_size_or_an_order_are_refused),
        cmocka_unit_test(comments_of_headers_stand_alone),
        cmocka_unit_test(comments_of_fields_have_a_subject),
        cmocka_unit_test(comments_of_functions_have_a_subject),
        cmocka_unit_test(draws_have_an_order),
        cmocka_unit_test(inexact_numbers_need_an_excuse),
        cmocka_unit_test(wide_structs_are_not_for_many_files),
        cmocka_unit_test(what_only_tests_call_is_theirs),
        cmocka_unit_test(what_is_mentioned_exists),
        cmocka_unit_test(reminders_are_refused_even_in_comments),
        cmocka_unit_test(catalogues_are_sorted_and_know_their_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
