/*
 * cmd_calibrate.c: a program that measures the user's own machine, and a stack file out of what it
 * prints.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/path.h"
#include "sim/base/strbuf.h"
#include "sim/machine/chip_read.h"
#include "tools/podsim/calibrate/calibrate.h"
#include "tools/podsim/common/command.h"
#include "tools/podsim/common/input.h"
#include "tools/podsim/common/output.h"
#include "tools/podsim/common/report.h"

enum { ARENA_BYTES_MAX = 1 << 30, STACK_NAME_BYTES = 64 };

static const struct option calibrate_options[] = {
    {"--script", "NAME", "print the program that measures: pytorch, jax, cuda, nccl, overlap",
     false},
    {"--chip", "NAME", "whose roofline the shares are of: h100-sxm, FILE.json", false},
    {"--base", "STACK", "has what was not measured: te, h100-sxm.te, none", false},
    {"-o", "STACK.json", "where the stack goes (standard output)", false},
    {0},
};

static enum status chip_take(struct arena *arena, const struct options *options,
                             struct chip *ret_chip, struct error *reterr)
{
    const char *name = options_value(options, "--chip");
    struct json *document = NULL;
    if (name == NULL)
        return error_set(reterr, STATUS_INVALID, "--chip",
                         "is missing: shares are of a chip's roofline; for example --chip "
                         "h100-sxm, and `podsim list chips` has the names");
    if (!path_is_json(name))
        return chip_find(arena, name, "ideal", "--chip", "--chip", ret_chip, reterr);
    STATUS_TRY(json_read_file(arena, name, &document, reterr));
    return chip_read(arena, document, name, "ideal", "--chip", ret_chip, reterr);
}

/* Machines of the chip, in the profile that steps with a stack have. */
static enum status machine_take(struct arena *arena, const struct options *options,
                                struct machine_plan *ret_plan, struct error *reterr)
{
    const char *name = options_value(options, "--chip");
    *ret_plan = (struct machine_plan){.chip = name, .profile = "measured", .wrap = {-1, -1, -1}};
    if (!path_is_json(name)) return STATUS_OK;
    ret_plan->chip_path = name;
    return json_read_file(arena, name, &ret_plan->chip_document, reterr);
}

/* The stack of a chip that is nearest to what a program calls; the chip's first where it has no
 * such; NULL where none is shipped. */
static const char *base_default(const struct rows *rows, const struct chip *chip)
{
    const char *first = NULL, *wanted = calibrate_script_base(rows->script);
    for (uint32_t i = 0; kernel_stack_name_at(i) != NULL; i++) {
        const char *rest = name_after(kernel_stack_name_at(i), chip->name);
        if (rest == NULL || rest[0] != '.') continue;
        if (first == NULL || name_same(rest + 1, wanted)) first = rest + 1;
    }
    return first;
}

static enum status base_take(struct arena *arena, const struct options *options,
                             struct calibration *calibration, struct error *reterr)
{
    const char *name = options_value(options, "--base"), *chip = calibration->chip->name;
    void *memory = NULL;
    if (name == NULL) name = base_default(calibration->rows, calibration->chip);
    if (name == NULL || name_same(name, "none")) return STATUS_OK;
    if (path_is(name))
        return error_set(reterr, STATUS_INVALID, "--base",
                         "\"%.80s\" is a file; a base is a stack of `podsim list kernels`, such as "
                         "h100-sxm.te, or none",
                         name);
    bool const is_full = strchr(name, '.') != NULL;
    calibration->base_name = is_full ? name : arena_format(arena, "%s.%s", chip, name);
    if (calibration->base_name == NULL) return error_no_memory(reterr, "");
    STATUS_TRY(arena_try(arena, 1, sizeof(struct kernel_stack), &memory, reterr));
    calibration->base = memory;
    return is_full ? kernel_stack_find_full(arena, name, "--base", memory, reterr)
                   : kernel_stack_find(name, chip, "--base", memory, reterr);
}

/* "measured by podsim calibrate on NVIDIA H100 80GB HBM3, PyTorch 2.6.0, built with 12.4, driver
 * 550.54.15" */
static enum status source_make(struct arena *arena, struct calibration *calibration,
                               struct error *reterr)
{
    const struct rows *rows = calibration->rows;
    calibration->source = arena_format(
        arena, "measured by podsim calibrate on %s%s%s%s%s",
        rows->device != NULL ? rows->device : "a device without a name",
        rows->libraries != NULL ? ", " : "", rows->libraries != NULL ? rows->libraries : "",
        rows->driver != NULL ? ", driver " : "", rows->driver != NULL ? rows->driver : "");
    if (calibration->source != NULL) return STATUS_OK;
    return error_no_memory(reterr, "");
}

/* "mine" of "stacks/mine.json". Characters that a file of JSON might not take are "?". */
static void stack_name(const char *path, char name[STACK_NAME_BYTES])
{
    if (path == NULL || output_is_stdout(path)) path = "measured.json";
    const char *slash = strrchr(path, '/');
    const char *begin = slash == NULL ? path : slash + 1;
    size_t const length = strlen(begin) - (path_is_json(begin) ? strlen(".json") : 0);
    (void)snprintf(name, STACK_NAME_BYTES, "%.*s", (int)length, begin);
    for (char *at = name; *at != '\0'; at++)
        if (*at < ' ' || *at > '~') *at = '?';
}

/* What was written is read as a scenario would read it. */
static enum status stack_check(struct arena *arena, const char *path, const struct strbuf *text,
                               struct error *reterr)
{
    struct json *document = NULL;
    struct kernel_stack stack;
    if (text->failed) return error_no_memory(reterr, "");
    STATUS_TRY(json_read_text(arena, path, text->bytes, text->size_bytes, &document, reterr));
    enum status const status = kernel_stack_read(arena, document, &stack, reterr);
    json_free(document);
    if (status != STATUS_OK) error_in_file(reterr, path);
    return status;
}

/* To the file of -o, or to standard output. */
static enum status result_write(const struct options *options, const struct strbuf *text,
                                struct error *reterr)
{
    static struct output output;
    const char *path = options_value(options, "-o");
    output = (struct output){.path = NULL};
    enum status status = output_open(&output, path == NULL ? "-" : path, options, reterr);
    if (status == STATUS_OK) status = output_write(&output, text, reterr);
    if (status == STATUS_OK) status = output_finish(&output, reterr);
    output_abandon(&output);
    return status;
}

static enum status write_all(const struct options *options, const struct calibration *calibration,
                             const struct strbuf *stack, struct error *reterr)
{
    const char *path = options_value(options, "-o");
    bool const to_error = path == NULL || output_is_stdout(path);
    struct strbuf summary = {.columns = report_columns(to_error ? 2 : 1)};
    enum status status = result_write(options, stack, reterr);
    calibrate_summary(calibration, options->operand[0], &summary);
    if (status == STATUS_OK) status = output_print(&summary, to_error, reterr);
    strbuf_free(&summary);
    return status;
}

static enum status calibrate_all(struct arena *arena, const struct options *options,
                                 struct strbuf *stack, struct error *reterr)
{
    static struct calibration calibration;
    static struct rows rows;
    static struct chip chip;
    static struct kernel_stack made;
    const char *path = options->operand[0], *out = options_value(options, "-o");
    char name[STACK_NAME_BYTES];
    char *text = NULL;
    uint64_t text_bytes = 0;
    calibration = (struct calibration){.rows = &rows, .chip = &chip};
    STATUS_TRY(chip_take(arena, options, &chip, reterr));
    STATUS_TRY(machine_take(arena, options, &calibration.machine, reterr));
    STATUS_TRY(input_load(arena, path, ROWS_FILE_BYTES_MAX, &text, &text_bytes, reterr));
    const char *place = strcmp(path, "-") == 0 ? "standard input" : path;
    STATUS_TRY(rows_read(arena, place, text, text_bytes, &rows, reterr));
    STATUS_TRY(base_take(arena, options, &calibration, reterr));
    STATUS_TRY(source_make(arena, &calibration, reterr));
    STATUS_TRY(calibrate_tables(arena, place, &calibration, reterr));
    stack_name(out, name);
    STATUS_TRY(calibrate_stack(arena, &calibration, name, &made, reterr));
    kernel_stack_write(&made, calibration.base_name, stack);
    STATUS_TRY(stack_check(arena, out == NULL ? "the stack" : out, stack, reterr));
    return write_all(options, &calibration, stack, reterr);
}

static enum status script_print(const struct options *options, struct error *reterr)
{
    struct strbuf program = {.bytes = NULL};
    if (options->operand_count > 0)
        return error_set(reterr, STATUS_INVALID, options->operand[0],
                         "--script prints a program and reads no rows");
    for (uint32_t i = 0; i < options->given_count; i++) {
        const char *name = options->given[i].option->name;
        if (name_same(name, "--chip") || name_same(name, "--base"))
            return error_set(reterr, STATUS_INVALID, name,
                             "--script prints a program, which is "
                             "the same for each chip and stack");
    }
    STATUS_TRY(calibrate_script(options_value(options, "--script"), &program, reterr));
    enum status const status = result_write(options, &program, reterr);
    strbuf_free(&program);
    return status;
}

static int run_calibrate(const struct options *options)
{
    struct error error = {0};
    struct strbuf stack = {.bytes = NULL};
    if (options_has(options, "--script"))
        return script_print(options, &error) == STATUS_OK ? EXIT_DONE : command_fail(NULL, &error);
    if (options->operand_count == 0) {
        (void)error_set(&error, STATUS_INVALID, "calibrate",
                        "needs the rows that a program measured; `podsim calibrate --script "
                        "pytorch` prints the program");
        return command_fail(NULL, &error);
    }
    struct arena *arena = arena_create(ARENA_BYTES_MAX);
    enum status status = arena == NULL ? error_no_memory(&error, "") : STATUS_OK;
    if (status == STATUS_OK) status = calibrate_all(arena, options, &stack, &error);
    strbuf_free(&stack);
    arena_destroy(arena);
    return status == STATUS_OK ? EXIT_DONE : command_fail(options->operand[0], &error);
}

const struct command command_calibrate = {
    .name = "calibrate",
    .usage = "podsim calibrate --script pytorch|jax|cuda|nccl|overlap\n"
             "podsim calibrate ROWS --chip NAME [--base STACK] [-o STACK.json]",
    .summary = "makes kernel tables from measurements of your own machine",
    .help =
        "Works in two steps. First, print a program that measures, and run it on the machine:\n"
        "\n"
        "  podsim calibrate --script pytorch > measure.py\n"
        "  python3 measure.py > rows.txt\n"
        "\n"
        "The program needs nothing but the library that it measures. It measures matmuls,\n"
        "attention, kernels between matmuls and a launch, with random operands, and prints a\n"
        "line for each. `python3 measure.py --quick` measures every second size of each side.\n"
        "`nccl` measures collectives of a node's GPUs, as pytorch and jax do where there are\n"
        "several; `overlap` measures matmuls while a copy holds cores. Rows of several programs\n"
        "go into one file, one after the other.\n"
        "\n"
        "Second, make the file of a stack from the rows, which a scenario then names:\n"
        "\n"
        "  podsim calibrate rows.txt --chip h100-sxm -o mine.json\n"
        "  podsim run llama3-8b-decode-h100-1 --set /machine/profile=measured \\\n"
        "    --set /machine/stack=./mine.json\n"
        "\n"
        "Shares in the file are of the roofline of --chip. Rows faster than the roofline, or of\n"
        "collectives faster than the wire, are left out. What was not measured is carried over "
        "from --base, a stack of `podsim list\n"
        "kernels`; without the option, from the chip's stack of the library. The summary says\n"
        "what was read, how far apart repeats are, how accurate the tables are, what was left\n"
        "out and what was carried over. docs/calibrate.md has the format of the rows.\n",
    .operands_min = 0,
    .operands_max = 1,
    .options = calibrate_options,
    .run = run_calibrate,
};
