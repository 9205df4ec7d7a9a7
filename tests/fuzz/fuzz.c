#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/embed.h"
#include "sim/base/json.h"
#include "sim/base/quantity.h"
#include "sim/base/strbuf.h"
#include "sim/collective/msccl.h"
#include "sim/machine/chip_read.h"
#include "sim/machine/machine.h"
#include "sim/machine/shape.h"
#include "sim/measure/sizes.h"
#include "sim/mesh/mesh.h"
#include "sim/model/model_read.h"
#include "sim/report/show_levels.h"
#include "sim/scenario/program_file.h"
#include "sim/scenario/scenario.h"
#include "sim/schedule/schedule_csv.h"

extern const struct embed_file embed_scenarios[];

static const uint64_t memory_limit_bytes = 256u << 20;

/* A refusal says what is wrong, and that it is the input that is wrong. */
static bool taken_or_explained(enum status status, const struct error *error)
{
    if (status == STATUS_OK) return true;
    SIM_ASSERT(error->status == status);
    SIM_ASSERT(error->message[0] != '\0');
    SIM_ASSERT(status != STATUS_NO_MEMORY);
    SIM_ASSERT(memchr(error->message, '\0', sizeof error->message) != NULL);
    SIM_ASSERT(memchr(error->where, '\0', sizeof error->where) != NULL);
    return false;
}

static void check_scenario(struct arena *arena, const struct scenario *scenario,
                           struct fuzz_taken *taken)
{
    struct error error = {0};
    struct scenario again;
    struct machine machine;
    struct mesh mesh;
    const char *text = scenario_text(arena, scenario);
    SIM_ASSERT(text != NULL);
    enum status status =
        scenario_read_text(arena, "printed", text, strlen(text), NULL, 0, &again, &error);
    SIM_ASSERT(status == STATUS_OK);
    SIM_ASSERT(strcmp(scenario_text(arena, &again), text) == 0);
    taken->scenarios++;
    status = machine_build(arena, &scenario->machine, &machine, &error);
    if (!taken_or_explained(status, &error)) return;
    taken->machines++;
    status = mesh_build(&scenario->mesh, &machine, &mesh, &error);
    if (taken_or_explained(status, &error)) taken->meshes++;
}

static void fuzz_scenario(const char *text, uint64_t text_bytes, struct fuzz_taken *taken)
{
    struct error error = {0};
    struct scenario scenario;
    struct arena *arena = arena_create(memory_limit_bytes);
    SIM_ASSERT(arena != NULL);
    enum status const status =
        scenario_read_text(arena, "fuzz", text, text_bytes, NULL, 0, &scenario, &error);
    if (taken_or_explained(status, &error)) check_scenario(arena, &scenario, taken);
    arena_destroy(arena);
}

/* A chip that is taken makes a machine, or a refusal that is explained; its totals are printed. */
static void check_chip(struct arena *arena, struct json *document, const struct chip *chip,
                       struct fuzz_taken *taken)
{
    char shape_buffer[SHAPE_TEXT_BYTES];
    struct shape shape = {chip->pod.axis_count, {1, 1, 1}, false};
    struct machine_plan plan = {.chip = "fuzz", .chip_document = document, .profile = "ideal"};
    struct machine machine;
    struct error error = {0};
    for (uint32_t axis = 0; axis < CHIP_AXES_MAX; axis++) {
        plan.wrap[axis] = -1;
        if (chip->pod.slice_count > 0) shape.length[axis] = chip->pod.slice[0][axis];
    }
    plan.unrealisable = true;
    if (chip->kind == CHIP_TPU) {
        plan.shape = shape_text(shape_buffer, &shape);
        plan.slices = 2;
    } else {
        plan.nodes = chip->network.nic_count == 0 ? 0 : 3;
        plan.network.node_nics = plan.nodes == 0 ? 0 : 4;
    }
    if (!taken_or_explained(machine_build(arena, &plan, &machine, &error), &error)) return;
    struct strbuf text = {0};
    show_levels(&machine, &text);
    show_totals(&machine, &text);
    show_published(&machine, &text);
    SIM_ASSERT(text.size_bytes > 0);
    strbuf_free(&text);
    taken->machines++;
}

static void fuzz_documents(const char *text, uint64_t text_bytes, struct fuzz_taken *taken)
{
    struct arena *arena = arena_create(memory_limit_bytes);
    SIM_ASSERT(arena != NULL);
    struct json *document = NULL;
    struct error error = {0};
    if (taken_or_explained(json_read_text(arena, "fuzz", text, text_bytes, &document, &error),
                           &error)) {
        struct model model;
        struct chip chip;
        taken->json++;
        if (taken_or_explained(model_read_config(arena, document, "fuzz", &model, &error), &error))
            taken->models++;
        if (taken_or_explained(chip_read(arena, document, NULL, "ideal", "/profile", &chip, &error),
                               &error)) {
            taken->chips++;
            check_chip(arena, document, &chip, taken);
        }
    }
    arena_destroy(arena);
}

static void fuzz_setting(const char *text, struct fuzz_taken *taken)
{
    struct error error = {0};
    struct scenario scenario;
    struct scenario_setting const setting = {text};
    struct arena *arena = arena_create(memory_limit_bytes);
    SIM_ASSERT(arena != NULL);
    enum status const status =
        scenario_read_text(arena, "fuzz", embed_scenarios[0].bytes, embed_scenarios[0].size_bytes,
                           &setting, 1, &scenario, &error);
    if (taken_or_explained(status, &error)) {
        taken->settings++;
        check_scenario(arena, &scenario, taken);
    }
    arena_destroy(arena);
}

static void fuzz_quantities(const char *text, struct fuzz_taken *taken)
{
    struct error error = {0};
    uint64_t amount = 0;
    for (enum quantity what = QUANTITY_BYTES; what <= QUANTITY_POWER; what++) {
        enum status const status = quantity_read(what, text, "/q", &amount, &error);
        bool const is_taken = taken_or_explained(status, &error);
        SIM_ASSERT(!is_taken || what != QUANTITY_DURATION || amount <= INT64_MAX);
        taken->quantities += is_taken;
    }
    bool const is_size = taken_or_explained(sizes_parse(text, "-b", &amount, &error), &error);
    SIM_ASSERT(!is_size || (amount > 0 && amount <= UINT64_C(1) << 63));
    taken->quantities += is_size;
}

/* As after --machine, of what begins like it; what names a file is not tried. */
static void fuzz_machine(const char *text, struct fuzz_taken *taken)
{
    struct error error = {0};
    struct machine_plan plan;
    struct machine machine;
    bool const begins = text[0] >= 'a' && text[0] <= 'z' && strchr(text, ':') != NULL;
    if (!begins || strstr(text, ".json") != NULL) return;
    struct arena *arena = arena_create(memory_limit_bytes);
    SIM_ASSERT(arena != NULL);
    if (taken_or_explained(scenario_machine_parse(arena, text, "--machine", &plan, &error),
                           &error)) {
        taken->machine_texts++;
        taken->machines +=
            taken_or_explained(machine_build(arena, &plan, &machine, &error), &error);
    }
    arena_destroy(arena);
}

/* What is accepted is proved once more, from what was kept. */
static void fuzz_script(const char *text, uint64_t text_bytes, struct fuzz_taken *taken)
{
    struct error error = {0};
    const struct msccl_script *script = NULL;
    struct arena *arena = arena_create(memory_limit_bytes);
    SIM_ASSERT(arena != NULL);
    if (taken_or_explained(msccl_read(arena, "fuzz", text, text_bytes, &script, &error), &error)) {
        SIM_ASSERT(msccl_check(script, "fuzz", &error) == STATUS_OK);
        taken->scripts++;
    }
    arena_destroy(arena);
}

/* What is accepted comes back as it was, where it can be written. */
static void fuzz_schedule(const char *text, uint64_t text_bytes, struct fuzz_taken *taken)
{
    struct error error = {0};
    struct schedule schedule, again;
    struct strbuf written = {0};
    struct arena *arena = arena_create(memory_limit_bytes);
    SIM_ASSERT(arena != NULL);
    if (taken_or_explained(schedule_csv_read(arena, text, text_bytes, "fuzz", &schedule, &error),
                           &error)) {
        SIM_ASSERT(schedule_csv_write(arena, &schedule, SCHEDULE_COMPUTE_COMMS, &written, &error) ==
                   STATUS_OK);
        SIM_ASSERT(schedule_csv_read(arena, written.bytes, written.size_bytes, "fuzz", &again,
                                     &error) == STATUS_OK);
        taken->schedules++;
    }
    strbuf_free(&written);
    arena_destroy(arena);
}

/* What is accepted is printed, and read again as the same. */
static void fuzz_program(const char *text, uint64_t text_bytes, struct fuzz_taken *taken)
{
    struct error error = {0};
    struct scenario scenario;
    struct machine machine;
    struct program program, page;
    struct program_file_rest rest;
    struct strbuf first = {0}, second = {0};
    struct arena *arena = arena_create(memory_limit_bytes);
    SIM_ASSERT(arena != NULL);
    enum status status = program_file_read_scenario(arena, "fuzz", text, text_bytes, NULL, 0,
                                                    &scenario, &rest, &error);
    if (status == STATUS_OK) status = machine_build(arena, &scenario.machine, &machine, &error);
    if (status == STATUS_OK)
        status = program_file_read(arena, "fuzz", &rest, &machine, &program, &error);
    const struct program_text_part *pages = NULL;
    uint32_t count = 0;
    if (status == STATUS_OK)
        status = program_file_pages(arena, "fuzz", &rest, &pages, &count, &error);
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++)
        status = program_text_read(arena, &machine, "fuzz", pages[i].line, pages[i].text,
                                   pages[i].text_bytes, &page, &error);
    if (taken_or_explained(status, &error)) {
        SIM_ASSERT(program_file_write(arena, &scenario, &machine, &program, &first, &error) ==
                   STATUS_OK);
        SIM_ASSERT(program_file_read_scenario(arena, "printed", first.bytes, first.size_bytes, NULL,
                                              0, &scenario, &rest, &error) == STATUS_OK);
        SIM_ASSERT(program_file_read(arena, "printed", &rest, &machine, &program, &error) ==
                   STATUS_OK);
        SIM_ASSERT(program_file_write(arena, &scenario, &machine, &program, &second, &error) ==
                   STATUS_OK);
        SIM_ASSERT(first.size_bytes == second.size_bytes &&
                   memcmp(first.bytes, second.bytes, first.size_bytes) == 0);
        taken->programs++;
    }
    strbuf_free(&first);
    strbuf_free(&second);
    arena_destroy(arena);
}

void fuzz_readers(const char *text, uint64_t text_bytes, struct fuzz_taken *taken)
{
    char ended[4096];
    if (text_bytes > 0 && text[0] == '<') fuzz_script(text, text_bytes, taken);
    if (text_bytes > 0 && text[0] == '0') fuzz_schedule(text, text_bytes, taken);
    if (text_bytes > 0 && text[0] == 'p') fuzz_program(text, text_bytes, taken);
    fuzz_documents(text, text_bytes, taken);
    fuzz_scenario(text, text_bytes, taken);
    if (text_bytes >= sizeof ended) return;
    if (text_bytes > 0) memcpy(ended, text, (size_t)text_bytes);
    ended[text_bytes] = '\0';
    if (ended[0] == '/') fuzz_setting(ended, taken);
    if (text_bytes < 64) fuzz_quantities(ended, taken);
    if (text_bytes < 256) fuzz_machine(ended, taken);
}
