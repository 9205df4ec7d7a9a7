/*
 * The worked numbers of the book, case by case: what the book says, what the project says, how far
 * apart they are and why.
 *
 *   test_book_cases [--ids IDS.json] [--markdown FILE | --check FILE] CASES.json...
 *
 * prints the table and fails on a difference that is not explained, by as much as the explanation
 * says. --ids fails unless exactly the answers that it lists are judged; --markdown writes
 * docs/accuracy.md; --check fails if that file is not what it would write.
 *
 * A case file holds rows: the book's value and unit, which evaluator gives ours ("by") and its
 * parameters. A known difference states its reason and what it comes to: ours is expected at
 * book·factor + plus, within the tolerance, or up to `slack` above. "out" says why an answer is
 * not in scope.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "tests/validation/case_ids.h"
#include "tests/validation/document.h"

enum { OUTCOMES_MAX = 4096, CASES_MAX = 1024 };

/* What counts as equal: the derived answers are printed with six digits. */
static const double equal_tolerance = 2e-5;
static const double expected_tolerance = 1e-3;

static struct {
    struct arena *arena;
    struct case_outcome outcome[OUTCOMES_MAX];
    uint32_t count;
} run;

static double unit_size(const char *unit)
{
    static const struct {
        const char *name;
        double size;
    } units[] = {{"ns", 1e-9},
                 {"us", 1e-6},
                 {"ms", 1e-3},
                 {"days", 86400},
                 {"years", 365.25 * 86400},
                 {"kB", 1e3},
                 {"MB", 1e6},
                 {"GB", 1e9},
                 {"TB", 1e12},
                 {"KiB", 1024},
                 {"MiB", 1048576},
                 {"GiB", 1073741824},
                 {"GB/s", 1e9},
                 {"TB/s", 1e12},
                 {"GFLOP/s", 1e9},
                 {"PFLOP/s", 1e15},
                 {"h", 3600},
                 {"%", 0.01}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].name, unit) == 0) return units[i].size;
    return 1;
}

static struct case_value book_value(const struct case_row *row)
{
    struct json *book = json_take(row->object, "book");
    if (book == NULL) row_fail(row, "the book's value is missing");
    if (json_kind(book) == JSON_STRING) return value_text("%s", row_text(row, "book"));
    if (json_kind(book) == JSON_BOOLEAN) return value_truth(row_flag_or(row, "book", false));
    return value_number(row_number(row, "book"));
}

/* Whether the difference is what the reason says; texts have nothing to measure. */
static bool explained(const struct case_row *row, const struct case_outcome *outcome)
{
    if (outcome->book.is_text) return true;
    double const book = outcome->book.number, ours = outcome->ours.number;
    double const expected = book * row_number_or(row, "factor", 1) + row_number_or(row, "plus", 0);
    double const tolerance = row_number_or(row, "tolerance", expected_tolerance);
    double const above = tolerance + row_number_or(row, "slack", 0);
    return ours >= expected - tolerance * fabs(expected) &&
           ours <= expected + above * fabs(expected);
}

static bool is_equal(const struct case_outcome *outcome)
{
    if (outcome->book.is_text != outcome->ours.is_text) return false;
    if (outcome->book.is_text) return strcmp(outcome->book.text, outcome->ours.text) == 0;
    return fabs(outcome->difference) <= equal_tolerance;
}

/* Of an explanation, whether or not it is needed. */
static void take_explanation(struct json *answer)
{
    static const char *const keys[] = {"reason", "factor", "plus", "tolerance", "slack"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) (void)json_take(answer, keys[i]);
}

static void judge(const struct case_row *row, struct case_outcome *outcome)
{
    const char *reason = row_text_or(row, "reason", "");
    if (!outcome->ours.is_text) {
        outcome->ours.number /= unit_size(outcome->unit);
        double const book = outcome->book.number;
        outcome->difference = (outcome->ours.number - book) / (book != 0 ? fabs(book) : 1);
    }
    take_explanation(row->object);
    outcome->why = reason;
    bool const equal = is_equal(outcome);
    if (equal && *reason == '\0')
        outcome->status = CASE_EQUAL;
    else if (equal)
        outcome->why = "a reason is given, but nothing differs";
    else if (*reason != '\0' && explained(row, outcome))
        outcome->status = CASE_EXPLAINED;
    else if (*reason != '\0')
        outcome->why = "differs by more or less than the reason says";
}

static void evaluate_answer(struct json *answer, const struct case_row *shared,
                            struct case_outcome outcome)
{
    struct arena *arena = arena_create(0);
    struct case_row const row = {
        .object = answer, .outer = shared, .name = outcome.id, .arena = arena};
    outcome.answer = row_text(&row, "name");
    outcome.unit = row_text(&row, "unit");
    outcome.book = book_value(&row);
    outcome.status = CASE_WRONG;
    if (json_take(answer, "out") != NULL) {
        outcome.status = CASE_OUT;
        outcome.why = row_text(&row, "out");
    } else {
        (void)row_simulated();
        outcome.ours = row_evaluate(&row);
        outcome.simulated = row_simulated();
        judge(&row, &outcome);
    }
    arena_destroy(arena);
    if (run.count == OUTCOMES_MAX) row_fail(&row, "more answers than %d", OUTCOMES_MAX);
    run.outcome[run.count++] = outcome;
}

static const char *const case_keys[] = {"id", "chapter", "with", "answers", NULL};

static void evaluate_case(struct json *object, const char *category)
{
    struct error error = {0};
    struct case_row const whole = {.object = object, .name = category, .arena = run.arena};
    struct case_outcome outcome = {.category = category};
    outcome.id = row_text(&whole, "id");
    outcome.chapter = row_text(&whole, "chapter");
    struct case_row const shared = {
        .object = json_take(object, "with"), .name = outcome.id, .arena = run.arena};
    struct json *answers = json_take(object, "answers");
    if (answers == NULL || json_count(answers) == 0) row_fail(&whole, "%s: no answers", outcome.id);
    for (uint32_t i = 0; i < json_count(answers); i++)
        evaluate_answer(json_at(answers, i), &shared, outcome);
    /* A parameter that nobody asked for is a misspelt one. */
    static const char *const none[] = {NULL};
    if (shared.object != NULL) row_check(&shared, json_end(shared.object, none, &error), &error);
    for (uint32_t i = 0; i < json_count(answers); i++)
        row_check(&shared, json_end(json_at(answers, i), none, &error), &error);
    row_check(&whole, json_end(object, case_keys, &error), &error);
}

static void evaluate_file(const char *path)
{
    struct json *document = NULL;
    struct error error = {0};
    struct case_row const file = {.name = path, .arena = run.arena};
    row_check(&file, json_read_file(run.arena, path, &document, &error), &error);
    struct case_row const row = {.object = document, .name = path, .arena = run.arena};
    const char *category = row_text(&row, "category");
    struct json *cases = json_take(document, "cases");
    if (cases == NULL) row_fail(&file, "no cases");
    for (uint32_t i = 0; i < json_count(cases); i++) evaluate_case(json_at(cases, i), category);
}

static void add_document(struct strbuf *text)
{
    static const char head[] =
        "# Accuracy: the book's worked numbers compared with podsim's\n"
        "\n"
        "`tests/validation/test_book_cases --markdown` writes this page; a test fails when it is\n"
        "not up to date.\n"
        "\n"
        "The source of the book's values is Austin et al., How to Scale Your Model (2025), "
        "chapters\n"
        "1 to 8 and 12. The project's own code computes each answer of each case; the column\n"
        "`by` says how. Profiles are ideal except where the book measured.\n"
        "\n"
        "| by | what has answered |\n"
        "|---|---|\n"
        "| `simulated` | an op, a collective, a schedule or a step that was simulated, or figures "
        "made of such |\n"
        "| `formula` | a closed form, a count of bytes and FLOP, or data of a chip; nothing was "
        "simulated. Steps of inference are of this kind; "
        "[inference.md](inference.md#against-the-book) has simulated ones |\n"
        "\n"
        "Published training steps are compared in "
        "[accuracy-published.md](accuracy-published.md).\n"
        "\n"
        "| result | meaning |\n"
        "|---|---|\n"
        "| `equal` | equal to the printed digits |\n"
        "| `explained` | the difference is as large as the stated reason; the test fails if it "
        "is not |\n"
        "| `not in scope` | podsim does not model a necessary part yet |\n"
        "\n";
    strbuf_add_bytes(text, head, sizeof head - 1);
    case_markdown(text, run.outcome, run.count);
}

int main(int argc, char **argv)
{
    const char *ids = NULL, *mode = NULL, *path = NULL;
    run.arena = arena_create(0);
    for (int i = 1; i < argc; i++) {
        bool const is_option = strncmp(argv[i], "--", 2) == 0 && i + 1 < argc;
        if (!is_option) {
            evaluate_file(argv[i]);
        } else if (strcmp(argv[i], "--ids") == 0) {
            ids = argv[++i];
        } else {
            mode = argv[i];
            path = argv[++i];
        }
    }
    struct strbuf text = {0};
    case_print(&text, run.outcome, run.count);
    struct case_counts const counts = case_count(run.outcome, run.count, NULL);
    strbuf_add(&text,
               "\n%u cases: %u equal, %u explained, %u not in scope, %u wrong\n"
               "%u answers: %u equal, %u explained, %u not in scope, %u wrong\n",
               counts.case_count, counts.cases[CASE_EQUAL], counts.cases[CASE_EXPLAINED],
               counts.cases[CASE_OUT], counts.cases[CASE_WRONG], counts.answer_count,
               counts.answers[CASE_EQUAL], counts.answers[CASE_EXPLAINED], counts.answers[CASE_OUT],
               counts.answers[CASE_WRONG]);
    (void)fwrite(text.bytes, 1, text.size_bytes, stdout);
    strbuf_free(&text);
    int failed = counts.cases[CASE_WRONG] != 0 || run.count == 0;
    if (ids != NULL) failed |= case_ids_compare(run.arena, ids, run.outcome, run.count) != 0;
    if (mode != NULL) {
        text = (struct strbuf){0};
        add_document(&text);
        failed |= document_end(&text, mode, path);
    }
    arena_destroy(run.arena);
    return failed;
}
