/*
 * What is said of a step is what it does: the collectives that the listing names and those that the
 * roofline sets beside matmuls are the program's, by kind, ranks, bytes and count; of every shipped
 * scenario, and of steps drawn from a seed that is printed (or given as the first argument).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { STEPS = 500, MOVES_MAX = 512 };

/* The collectives of a part of the step. */
struct moves {
    struct workload_listed row[MOVES_MAX];
    uint32_t count;
};

static const char *last_word(const char *text)
{
    const char *space = strrchr(text, ' ');
    return space == NULL ? text : space + 1;
}

static void move_add(struct moves *moves, enum collective_kind kind, const char *group,
                     uint64_t size_bytes)
{
    assert_true(moves->count < MOVES_MAX);
    moves->row[moves->count++] =
        (struct workload_listed){.kind = kind, .group = group, .size_bytes = size_bytes};
}

/* Whether both have the same collectives, however often each, in any order. */
static bool moves_equal(const struct moves *left, const struct moves *right)
{
    bool taken[MOVES_MAX] = {false};
    if (left->count != right->count) return false;
    for (uint32_t i = 0; i < left->count; i++) {
        const struct workload_listed *wanted = &left->row[i];
        uint32_t at = 0;
        while (at < right->count && (taken[at] || right->row[at].kind != wanted->kind ||
                                     right->row[at].size_bytes != wanted->size_bytes ||
                                     strcmp(right->row[at].group, wanted->group) != 0))
            at++;
        if (at == right->count) return false;
        taken[at] = true;
    }
    return true;
}

/* Layers of two kinds have templates of one name. */
static bool has_experts(const struct program_template *template)
{
    for (uint32_t i = 0; i < template->op_count; i++)
        if (strncmp(template->op[i].name, "moe.", 4) == 0 ||
            strstr(template->op[i].name, "W_experts") != NULL)
            return true;
    return false;
}

static struct moves template_moves(const struct program *program,
                                   const struct program_template *template)
{
    struct moves moves = {.count = 0};
    for (uint32_t i = 0; i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        if (op->kind == PROGRAM_OP_COLLECTIVE)
            move_add(&moves, program->plans[op->index].kind,
                     last_word(program->stream[op->stream].name),
                     program->plans[op->index].size_bytes);
    }
    return moves;
}

/* Adds those of the template of a name that has most of them: microbatches differ. Returns whether
 * there is one. */
static bool most_add(const struct play *play, const char *name, struct moves *moves)
{
    const struct model *model = &play->scenario.workload.model;
    bool const experts = model_dense_layers(model) < model->layers;
    bool found = false, right = false;
    struct moves most = {.count = 0};
    for (uint32_t t = 0; t < play->program.template_count; t++) {
        const struct program_template *template = &play->program.templates[t];
        if (strcmp(template->name, name) != 0) continue;
        struct moves const one = template_moves(&play->program, template);
        bool const wanted = has_experts(template) == experts;
        if (!found || (wanted && !right) || (wanted == right && one.count > most.count)) most = one;
        right = right || wanted;
        found = true;
    }
    for (uint32_t i = 0; i < most.count; i++)
        move_add(moves, most.row[i].kind, most.row[i].group, most.row[i].size_bytes);
    return found;
}

static struct moves program_moves(const struct play *play, enum workload_section section)
{
    static const char *const names[][4] = {
        {"layer forward", NULL},
        {"layer backward", NULL, "layer input gradient", "layer weight gradient"},
        {"update layer", NULL},
        {"mtp backward", NULL, "mtp input gradient", "mtp weight gradient"},
    };
    struct moves moves = {.count = 0}, halves = {.count = 0};
    if (section == WORKLOAD_SECTION_MTP) (void)most_add(play, "mtp forward", &moves);
    bool const whole = most_add(play, names[section][0], &moves);
    if (names[section][2] == NULL || (whole && section == WORKLOAD_SECTION_MTP)) return moves;
    /* A schedule may have backward passes of both kinds, of which only the last ones reduce. */
    (void)most_add(play, names[section][2], whole ? &halves : &moves);
    (void)most_add(play, names[section][3], whole ? &halves : &moves);
    return halves.count > moves.count ? halves : moves;
}

static struct moves listing_moves(const struct workload_listing *listing,
                                  enum workload_section section)
{
    struct moves moves = {.count = 0};
    for (uint32_t i = 0; i < listing->listed_count; i++)
        if (listing->listed[i].section == section)
            move_add(&moves, listing->listed[i].kind, listing->listed[i].group,
                     listing->listed[i].size_bytes);
    return moves;
}

static void print_moves(const char *who, const struct moves *moves)
{
    for (uint32_t i = 0; i < moves->count; i++)
        print_error("  %s: %s over %s, %" PRIu64 " bytes\n", who,
                    collective_kind_name(moves->row[i].kind), moves->row[i].group,
                    moves->row[i].size_bytes);
}

/* Lines of a part of the listing that name a collective, without those that say that it is not
 * there, being shared. */
static uint32_t lines_named(const char *begin, const char *end, const char *name)
{
    uint32_t count = 0;
    for (const char *line = begin; line < end; line += strcspn(line, "\n") + 1) {
        char one[WALK_TEXT_BYTES];
        (void)snprintf(one, sizeof one, "%.*s", (int)strcspn(line, "\n"), line);
        count += strstr(one, name) != NULL && strstr(one, "and is)") == NULL;
    }
    return count;
}

static uint32_t told_count(const struct workload_listing *listing, enum workload_section section,
                           enum collective_kind kind, const char *group)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < listing->listed_count; i++)
        count += listing->listed[i].section == section && listing->listed[i].kind == kind &&
                 strcmp(listing->listed[i].group, group) == 0;
    return count;
}

/* What is told stands in the text, too. What remat repeats before a backward pass has no lines. */
static void lines_are_told(const struct play *play, const struct workload_listing *listing,
                           const char *text)
{
    static const struct {
        const char *name, *group;
        enum collective_kind kind;
    } rows[] = {{" = AllGather_Y(", "tp", COLLECTIVE_ALL_GATHER},
                {" = ReduceScatter_Y(", "tp", COLLECTIVE_REDUCE_SCATTER},
                {" ranks of ep", "ep", COLLECTIVE_ALL_TO_ALL}};
    const char *forward = strstr(listing->text, "\nForward pass");
    const char *backward = strstr(listing->text, "\nBackward pass");
    if (backward == NULL) backward = forward + strlen(forward); /* Inference has none. */
    const char *end = strstr(backward, "\nMulti-token");
    bool const repeats = workload_remat_repeats(play->scenario.workload.remat);
    if (end == NULL) end = strstr(backward, "\nStreams:");
    if (end == NULL) end = backward;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t const before =
            told_count(listing, WORKLOAD_SECTION_FORWARD, rows[i].kind, rows[i].group);
        uint32_t const after =
            told_count(listing, WORKLOAD_SECTION_BACKWARD, rows[i].kind, rows[i].group);
        if (lines_named(forward, backward, rows[i].name) != before ||
            (!repeats && lines_named(backward, end, rows[i].name) != after))
            fail_msg("lines with \"%s\"\nin %s\n%s", rows[i].name, text, listing->text);
    }
}

static void listing_is_the_program(const struct play *play, const char *text)
{
    static const char *const sections[] = {"forward", "backward", "update", "predictors"};
    struct workload_listing listing;
    struct error error = {0};
    if (workload_listing(play->arena, &play->scenario.workload, &play->machine, &play->mesh,
                         &play->program, &listing, &error) != STATUS_OK)
        fail_msg("%s: %s\nin %s", error.where, error.message, text);
    for (uint32_t s = 0; s <= WORKLOAD_SECTION_MTP; s++) {
        struct moves const listed = listing_moves(&listing, (enum workload_section)s);
        struct moves const done = program_moves(play, (enum workload_section)s);
        if (moves_equal(&listed, &done)) continue;
        print_moves("listing", &listed);
        print_moves("program", &done);
        fail_msg("%s\nin %s", sections[s], text);
    }
    lines_are_told(play, &listing, text);
}

/* A collective of the layers, by its name in the roofline. */
struct tally {
    uint64_t count;
    double bytes;
};

static struct tally tally_of(const struct program *program, const char *name,
                             enum collective_kind kind)
{
    struct tally tally = {0, 0};
    struct walk_op walk = {.program = program};
    while (walk_next(&walk)) {
        if (walk.op->kind != PROGRAM_OP_COLLECTIVE) continue;
        const struct plan *plan = &program->plans[walk.op->index];
        if (strcmp(last_word(program->stream[walk.op->stream].name), "tp") != 0) continue;
        if (plan->kind != kind && name != NULL) continue;
        const char *own = strchr(walk.op->name, ' ') + 1;
        const char *dot = strchr(own, '.');
        if (strncmp(own, "dW_", 3) == 0) continue; /* Nothing waits for it but the update. */
        bool const layer = strncmp(own, "attention.", 10) == 0 || dot == NULL ||
                           strncmp(own, "parallel.", 9) == 0 || strncmp(own, "mlp.", 4) == 0 ||
                           strncmp(own, "moe.", 4) == 0 || strncmp(own, "shared.", 7) == 0;
        /* A bare MLP has one block, and no name for it. */
        if (name == NULL ? !layer : strcmp(own, dot != NULL ? name : name + 4) != 0) continue;
        tally.count += walk.times;
        tally.bytes += (double)walk.times * (double)plan->size_bytes;
    }
    return tally;
}

static void roofline_is_the_program(const struct play *play, const char *text)
{
    const struct roofline *roofline = &play->roofline;
    uint64_t count = 0;
    for (uint32_t i = 0; i < roofline->overlap_count; i++) {
        const struct roofline_overlap *overlap = &roofline->overlap[i];
        struct tally const done = tally_of(&play->program, overlap->name, overlap->kind);
        double const bytes = overlap->bytes * (double)overlap->count;
        if (done.count != overlap->count || bytes > done.bytes * 1.000001 ||
            bytes < done.bytes * 0.999999)
            fail_msg("%s %s: %" PRIu64 " of %.9g bytes in the roofline, %" PRIu64
                     " in the program, %.9g bytes together\nin %s",
                     collective_kind_name(overlap->kind), overlap->name, overlap->count,
                     overlap->bytes, done.count, done.bytes, text);
        /* Sorts and sums need all of a gather; shared experts run while rows travel, or their
         * gradients, as does what is repeated; and the parts of the router while its input does. */
        if (strncmp(overlap->name, "moe.", 4) == 0 && strcmp(overlap->name, "moe.rows") != 0 &&
            strcmp(overlap->name, "moe.In") != 0 && strcmp(overlap->name, "moe.dOutputs") != 0 &&
            (overlap->width != 0 || overlap->math_s != 0))
            fail_msg("%s is beside a matmul of %.9g columns\nin %s", overlap->name, overlap->width,
                     text);
        count += overlap->count;
    }
    uint64_t const all = tally_of(&play->program, NULL, COLLECTIVE_ALL_GATHER).count;
    if (count != all)
        fail_msg("%" PRIu64 " tp collectives of layers in the roofline, %" PRIu64
                 " in the program\nin %s",
                 count, all, text);
}

static bool is_text(const char *name)
{
    const char *at = name;
    while (*at >= ' ' && *at <= '~') at++;
    return at > name && *at == '\0';
}

/* Arrays have names that outlive what they were built from. */
static void needs_are_named(const struct program *program, const char *text)
{
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            for (uint32_t n = 0; n < op->need_count; n++)
                if (op->need[n].array != NULL && !is_text(op->need[n].array))
                    fail_msg("%s needs an array without a name\nin %s", op->name, text);
        }
}

static void all_is_the_program(struct play *play, const char *text)
{
    needs_are_named(&play->program, text);
    listing_is_the_program(play, text);
    roofline_is_the_program(play, text);
}

static void of_every_shipped_scenario(void **unused)
{
    (void)unused;
    static const struct play_options lower_only = {.lower_only = true, .engine = "fast"};
    walk_shipped(&lower_only, NULL, all_is_the_program);
}

#define PICK(...) CASE_PICK(state, __VA_ARGS__)

static void step_random(uint64_t *state, char text[WALK_TEXT_BYTES])
{
    const char *model =
        PICK("{\"kind\":\"mlp\",\"D\":4096,\"F\":8192,\"layers\":3,\"matrices\":2}",
             "{\"kind\":\"mlp\",\"D\":4096,\"F\":8192,\"layers\":3,\"matrices\":3}",
             "\"tests/property/parallel.json\"", "\"tests/property/parallel-norms.json\"",
             "\"tests/property/norms-behind.json\"", "\"llama-3-8b\"", "\"megatron-7.5b\"",
             "\"mixtral-8x7b\"", "\"qwen3-30b-a3b\"", "\"deepseek-v3\"", "\"gpt-oss-20b\"");
    bool const mlp = model[0] == '{', experts = strchr("mqdg", model[1]) != NULL && model[2] != 'e';
    const char *mesh =
        experts ? PICK("\"fsdp\":[\"node\"],\"tp\":[\"gpu\"]",
                       "\"dp\":[\"node\"],\"tp\":[\"gpu:4\"],"
                       "\"fsdp\":[\"gpu:2\"]",
                       "\"ep\":[\"gpu\"],\"tp\":[\"node\"]", "\"ep\":[\"node\"],\"tp\":[\"gpu\"]",
                       "\"ep\":[\"gpu:4\"],\"tp\":[\"gpu:2\"],\"dp\":[\"node\"]")
                : PICK("\"fsdp\":[\"node\"],\"tp\":[\"gpu\"]", "\"tp\":[\"node\",\"gpu\"]",
                       "\"dp\":[\"node\"],\"tp\":[\"gpu\"]", "\"fsdp\":[\"node\",\"gpu\"]",
                       "\"dp\":[\"node\"],\"fsdp\":[\"gpu:4\"],\"tp\":[\"gpu:2\"]",
                       "\"dp\":[\"node\",\"gpu\"]");
    const char *remat = PICK("none", "norms", "big_matmuls", "block", "layer");
    const char *gather = PICK("block", "tensor", "layer");
    const char *order = PICK("dw_first", "dx_first");
    const char *split = PICK("model", "tokens");
    const char *zero = strstr(mesh, "fsdp") == NULL ? PICK("0", "1", "2", "3") : "0";
    const char *accumulate = PICK("1", "2");
    const char *chunks = PICK("true", "false");
    bool const may_keep = !mlp && strcmp(remat, "none") == 0 && strstr(mesh, "\"tp\"") != NULL;
    const char *inputs = PICK("shards", "whole");
    if (!may_keep) inputs = "shards";
    const char *matmuls =
        PICK("", ",\"formats\":{\"matmuls\":\"fp8\"}", ",\"formats\":{\"gradients\":\"fp32\"}");
    unsigned const tokens = 65536u << case_random(state) % 2; /* Neighbours may share sequences. */
    unsigned const length_tokens = 2048u << 2 * (case_random(state) % 2);
    char sequence[48] = "";
    if (!mlp) (void)snprintf(sequence, sizeof sequence, ",\"sequence_length\":%u", length_tokens);
    case_text(
        text, WALK_TEXT_BYTES,
        "{\"podsim\":1,\"machine\":{\"chip\":\"h100-sxm\",\"nodes\":4,\"gpus\":8},\"mesh\":{%s},"
        "\"workload\":{\"kind\":\"train_step\",\"model\":%s,\"batch_tokens\":%u%s,"
        "\"remat\":\"%s\",\"gather\":\"%s\",\"backward_order\":\"%s\",\"activations\":\"%s\","
        "\"tp_inputs\":\"%s\",\"zero\":%s,\"accumulate\":%s%s,\"allow_oversubscription\":true},"
        "\"run\":{\"collective_matmul\":%s}}",
        mesh, model, tokens, sequence, remat, gather, order, split, inputs, zero, accumulate,
        matmuls, chunks);
}

static void of_drawn_steps(void **unused)
{
    (void)unused;
    static const struct play_options lower_only = {.lower_only = true, .engine = "fast"};
    uint32_t walked = 0, played = 0, refused = 0;
    for (uint32_t i = 0; i < STEPS + refused && i < 4 * STEPS; i++) {
        struct error error;
        if (sampling_skips(&walked)) continue;
        if (walk_drawn(i, step_random, &lower_only, all_is_the_program, &error) == STATUS_OK)
            played++;
        else
            refused++; /* What does not divide, or is not modelled. */
    }
    print_message("    %u steps, %u refused\n", played, refused);
    assert_true(played >= STEPS / sampling_of() / 2);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_every_shipped_scenario),
        cmocka_unit_test(of_drawn_steps),
    };
    walk_seed(argc, argv);
    return cmocka_run_group_tests_name("what is told", tests, NULL, NULL);
}
