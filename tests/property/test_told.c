/*
 * What is said of a step is what it does: the collectives that the listing names and those that the
 * roofline sets beside matmuls are the program's, by kind, ranks, bytes and count; of every shipped
 * scenario, and of steps drawn from a seed that is printed (or given as the first argument).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/quantity.h"
#include "sim/base/strbuf.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/told_lines.h"
#include "tests/support/walk.h"

enum { STEPS = 500 };

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
        if (op->kind != PROGRAM_OP_COLLECTIVE) continue;
        const char *group = last_word(program->stream[op->stream].name);
        move_add(&moves, (struct move){.kind = program->plans[op->index].kind,
                                       .group = is_weight(op->array) ? NULL : group,
                                       .size_bytes = program->plans[op->index].size_bytes,
                                       .ranks = group_rank_count(&program->plans[op->index].group),
                                       .experts = strcmp(group, "experts") == 0});
    }
    return moves;
}

/* Whether a template has a name, alone or as one batch or one pass of several, whose contexts
 * differ. */
static bool is_named(const struct program_template *template, const char *name)
{
    size_t const length = strlen(name);
    return strncmp(template->name, name, length) == 0 &&
           (template->name[length] == '\0' ||
            strncmp(template->name + length, ", batch ", 8) == 0 ||
            strncmp(template->name + length, ", pass ", 7) == 0);
}

/* Adds those of the last template of a name that has most of them: microbatches differ, and the
 * listing is that of the last pass. Returns whether there is one. */
static bool most_add(const struct play *play, const char *name, struct moves *moves)
{
    const struct model *model = &play->scenario.workload.model;
    bool const experts = model_dense_layers(model) < model->layers;
    bool found = false, right = false;
    struct moves most = {.count = 0};
    for (uint32_t t = 0; t < play->program.template_count; t++) {
        const struct program_template *template = &play->program.templates[t];
        if (!is_named(template, name)) continue;
        struct moves const one = template_moves(&play->program, template);
        bool const wanted = has_experts(template) == experts;
        if (!found || (wanted && !right) || (wanted == right && one.count >= most.count))
            most = one;
        right = right || wanted;
        found = true;
    }
    for (uint32_t i = 0; i < most.count; i++) move_add(moves, most.row[i]);
    return found;
}

static void program_moves(const struct play *play, enum section section, struct moves *ret_moves)
{
    static const char *const names[][4] = {
        {"layer forward", NULL},
        {"layer backward", NULL, "layer input gradient", "layer weight gradient"},
        {"update layer", NULL},
        {"mtp backward", NULL, "mtp input gradient", "mtp weight gradient"},
    };
    struct moves halves = {.count = 0};
    ret_moves->count = 0;
    if (section == MTP) (void)most_add(play, "mtp forward", ret_moves);
    bool const whole = most_add(play, names[section][0], ret_moves);
    if (names[section][2] == NULL || (whole && section == MTP)) return;
    /* A schedule may have backward passes of both kinds, of which only the last ones reduce. */
    (void)most_add(play, names[section][2], whole ? &halves : ret_moves);
    (void)most_add(play, names[section][3], whole ? &halves : ret_moves);
    if (halves.count > ret_moves->count) *ret_moves = halves;
}

static void print_moves(const char *who, const struct moves *moves)
{
    for (uint32_t i = 0; i < moves->count; i++)
        print_error("  %s: %s over %s, %" PRIu64 " bytes %s\n", who,
                    collective_kind_name(moves->row[i].kind),
                    moves->row[i].group != NULL ? moves->row[i].group : "data ranks",
                    moves->row[i].size_bytes, moves->row[i].line != NULL ? moves->row[i].line : "");
}

/* Whether a size of three digits, or a sum of such, is that of a number of bytes. */
static bool is_about(double shown, double bytes, double less)
{
    return shown < bytes * 1.006 && shown > bytes * (1 - less);
}

/* Whether a line is of a collective: of tp with the bytes that it leaves on a chip, of ep with
 * those of a rank. */
static bool is_line_of(const struct move *line, const struct move *move, uint32_t tp)
{
    char bytes[QUANTITY_TEXT_BYTES];
    if (line->group == NULL || line->kind != move->kind || strcmp(line->group, move->group) != 0)
        return false;
    bool const part = strchr(line->line, 'Y') < strstr(line->line, " = ");
    (void)quantity_text_bytes(bytes, (double)(move->size_bytes / (part ? tp : 1)));
    if (strcmp(move->group, "ep") == 0)
        return is_about(line->line_bytes, (double)(move->size_bytes / move->ranks), 0.006);
    return strcmp(move->group, "tp") != 0 || strstr(line->line, bytes) != NULL;
}

/* Whether each collective of activations has a line, and each such line a collective. */
static bool moves_agree(const struct moves *lines, const struct moves *moves, uint32_t tp)
{
    bool taken[MOVES_MAX] = {false};
    uint32_t left = 0;
    for (uint32_t i = 0; i < lines->count; i++) left += lines->row[i].group != NULL;
    for (uint32_t i = 0; i < moves->count; i++) {
        uint32_t at = 0;
        if (moves->row[i].group == NULL) continue;
        while (at < lines->count && (taken[at] || !is_line_of(&lines->row[at], &moves->row[i], tp)))
            at++;
        if (at == lines->count) return false;
        taken[at] = true;
        left--;
    }
    return left == 0;
}

static bool has_weights(const struct moves *moves, uint32_t kind)
{
    bool has = false;
    for (uint32_t i = 0; i < moves->count; i++)
        has = has || (moves->row[i].group == NULL && moves->row[i].kind == kind);
    return has;
}

/* Bytes that collectives of weights and gradients of one kind leave on a chip. Experts' reductions
 * over ranks that have no letter have lines without sizes, and are left out. */
static double weight_bytes(const struct moves *moves, uint32_t kind, bool experts)
{
    double sum = 0;
    for (uint32_t i = 0; i < moves->count; i++) {
        const struct move *move = &moves->row[i];
        if (move->group != NULL || move->kind != kind || (move->experts && !experts)) continue;
        uint64_t const parts = move->kind == COLLECTIVE_REDUCE_SCATTER ? move->ranks : 1;
        sum += move->line != NULL ? move->line_bytes : (double)move->size_bytes / (double)parts;
    }
    return sum;
}

static bool sizes_missing(const struct moves *lines, uint32_t kind)
{
    bool missing = false;
    for (uint32_t i = 0; i < lines->count; i++)
        missing = missing || (lines->row[i].group == NULL && lines->row[i].kind == kind &&
                              lines->row[i].line_bytes == 0);
    return missing;
}

/* Whether they are as many bytes. Lines have matrices, and no vectors. */
static bool weights_weigh(const struct moves *lines, const struct moves *moves)
{
    bool agree = true;
    for (uint32_t kind = 0; kind < COLLECTIVE_KIND_COUNT; kind++) {
        double const shown = weight_bytes(lines, kind, true);
        double const sent = weight_bytes(moves, kind, !sizes_missing(lines, kind));
        if (shown == 0 && sent == 0) continue;
        if (!is_about(shown, sent, 0.02))
            print_error("%s of weights: %.4g bytes listed, %.4g sent\n",
                        collective_kind_name((enum collective_kind)kind), shown, sent);
        agree = agree && is_about(shown, sent, 0.02);
    }
    return agree;
}

/* Whether weights and gradients, which travel several at once, have lines where they have
 * collectives, by their kind. A module has more of them in its layer. */
static bool weights_agree(const struct moves *lines, const struct moves *moves, bool module)
{
    bool agree = true;
    for (uint32_t kind = 0; kind < COLLECTIVE_KIND_COUNT; kind++)
        agree = agree && (has_weights(lines, kind) == has_weights(moves, kind) ||
                          (module && has_weights(moves, kind)));
    return agree;
}

/* With ZeRO-1 and 2 what was updated is gathered at the end of the step or by the next one, and the
 * listing has it with the update. */
static void updated_move(struct moves moves[SECTION_COUNT])
{
    for (enum section s = FORWARD; s < SECTION_COUNT; s++) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < moves[s].count; i++) {
            struct move const move = moves[s].row[i];
            if (s != UPDATE && move.group == NULL && move.kind == COLLECTIVE_ALL_GATHER)
                move_add(&moves[UPDATE], move);
            else
                moves[s].row[kept++] = move;
        }
        moves[s].count = kept;
    }
}

static void listing_is_the_program(const struct play *play, const char *text)
{
    static struct moves lines[SECTION_COUNT], moves[SECTION_COUNT];
    uint32_t const zero = play->scenario.workload.zero;
    struct strbuf listing = {0};
    struct error error = {0};
    if (workload_listing(&play->scenario.workload, &play->machine, &play->mesh, &play->program,
                         &listing, &error) != STATUS_OK)
        fail_msg("%s: %s\nin %s", error.where, error.message, text);
    listing_moves(listing.bytes, lines);
    for (enum section s = FORWARD; s < SECTION_COUNT; s++) program_moves(play, s, &moves[s]);
    if (zero == 1 || zero == 2) updated_move(moves);
    for (enum section s = FORWARD; s < SECTION_COUNT; s++) {
        if (moves_agree(&lines[s], &moves[s], play->mesh.axis[MESH_TP].size) &&
            weights_agree(&lines[s], &moves[s], s == MTP) &&
            (s == MTP || weights_weigh(&lines[s], &moves[s])))
            continue;
        print_moves("listing", &lines[s]);
        print_moves("program", &moves[s]);
        fail_msg("%s\nin %s", section_names[s], text);
    }
    strbuf_free(&listing);
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

/* What the roofline has of a name: a generation's passes have a row each. */
static struct tally tally_of_rows(const struct roofline *roofline, const char *name,
                                  enum collective_kind kind)
{
    struct tally tally = {0, 0};
    for (uint32_t i = 0; i < roofline->overlap_count; i++) {
        const struct roofline_overlap *overlap = &roofline->overlap[i];
        if (overlap->kind != kind || strcmp(overlap->name, name) != 0) continue;
        tally.count += overlap->count;
        tally.bytes += overlap->bytes * (double)overlap->count;
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
        struct tally const said = tally_of_rows(roofline, overlap->name, overlap->kind);
        if (done.count != said.count || said.bytes > done.bytes * 1.000001 ||
            said.bytes < done.bytes * 0.999999)
            fail_msg("%s %s: %" PRIu64 " of %.9g bytes in the roofline, %" PRIu64
                     " in the program, %.9g bytes together\nin %s",
                     collective_kind_name(overlap->kind), overlap->name, said.count, overlap->bytes,
                     done.count, done.bytes, text);
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

/* A group's name is that of streams with its collectives. */
static void axes_are_the_programs(const struct play *play, const char *text)
{
    const struct program *program = &play->program;
    for (uint32_t i = 0; i < play->roofline.group_count; i++) {
        const struct roofline_group *group = &play->roofline.group[i];
        bool named = group->of >= MESH_ROLE_COUNT; /* Neighbours, on part of an axis. */
        for (uint32_t s = 0; s < program->stream_count; s++)
            named = named || strcmp(last_word(program->stream[s].name), group->name) == 0;
        if (!named)
            fail_msg("no stream has collectives of %s, as the roofline has\nin %s", group->name,
                     text);
    }
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
    axes_are_the_programs(play, text);
    walk_copies_agree(play, text);
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
             "\"tests/property/norms-behind.json\"", "\"tests/property/norms-behind-alone.json\"",
             "\"tests/property/norms-embedding.json\"", "\"tests/property/norms-inside.json\"",
             "\"tests/property/xielu.json\"", "\"llama-3-8b\"", "\"megatron-7.5b\"",
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
                       "\"dp\":[\"node\",\"gpu\"]", "\"pp\":[\"node\"],\"fsdp\":[\"gpu\"]",
                       "\"cp\":[\"gpu:4\"],\"dp\":[\"node\",\"gpu:2\"]",
                       "\"cp\":[\"node\"],\"tp\":[\"gpu:4\"],\"fsdp\":[\"gpu:2\"]");
    const char *remat = PICK("none", "norms", "big_matmuls", "block", "layer");
    const char *gather = PICK("block", "tensor", "layer");
    const char *order = PICK("dw_first", "dx_first");
    const char *split = PICK("model", "tokens");
    const char *zero = strstr(mesh, "fsdp") == NULL ? PICK("0", "1", "2", "3") : "0";
    const char *accumulate = PICK("1", "2");
    const char *chunks = PICK("true", "false");
    const char *regather = PICK("microbatch", "step", "stage");
    if (strstr(mesh, "pp") == NULL) regather = "microbatch";
    bool const may_keep = !mlp && strcmp(remat, "none") == 0 && strstr(mesh, "\"tp\"") != NULL;
    const char *inputs = PICK("shards", "whole");
    if (!may_keep) inputs = "shards";
    const char *matmuls =
        PICK("", ",\"formats\":{\"matmuls\":\"fp8\"}", ",\"formats\":{\"gradients\":\"fp32\"}");
    unsigned const tokens = 65536u << case_random(state) % 2; /* Neighbours may share sequences. */
    unsigned const length_tokens = 2048u << 2 * (case_random(state) % 2);
    char sequence[96] = "";
    const char *context = PICK("ring", "all_gather", "ulysses");
    if (!mlp) (void)snprintf(sequence, sizeof sequence, ",\"sequence_length\":%u", length_tokens);
    if (strstr(mesh, "cp") != NULL)
        (void)snprintf(sequence + strlen(sequence), sizeof sequence - strlen(sequence),
                       ",\"context\":\"%s\"", context);
    case_text(
        text, WALK_TEXT_BYTES,
        "{\"podsim\":1,\"machine\":{\"chip\":\"h100-sxm\",\"nodes\":4,\"gpus\":8},\"mesh\":{%s},"
        "\"workload\":{\"kind\":\"train_step\",\"model\":%s,\"batch_tokens\":%u%s,"
        "\"remat\":\"%s\",\"gather\":\"%s\",\"backward_order\":\"%s\",\"activations\":\"%s\","
        "\"tp_inputs\":\"%s\",\"regather\":\"%s\",\"zero\":%s,\"accumulate\":%s%s,\"allow_"
        "oversubscription\":true},"
        "\"run\":{\"collective_matmul\":%s}}",
        mesh, model, tokens, sequence, remat, gather, order, split, inputs, regather, zero,
        accumulate, matmuls, chunks);
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

/* A router whose logits go with those of a shared expert's gate: one collective of two arrays. */
static void of_arrays_that_share_a_collective(void **unused)
{
    static const char text[] =
        "{\"podsim\":1,\"machine\":{\"chip\":\"h100-sxm\",\"gpus\":4},\"mesh\":{\"tp\":[\"gpu\"]},"
        "\"workload\":{\"kind\":\"train_step\",\"model\":\"qwen1.5-moe-14b\",\"batch_tokens\":8192,"
        "\"sequence_length\":4096,\"allow_oversubscription\":true}}";
    struct play play;
    bool named = false;
    (void)unused;
    play_run(&play, text, NULL);
    roofline_is_the_program(&play, text);
    for (uint32_t i = 0; i < play.roofline.overlap_count; i++)
        named = named || strcmp(play.roofline.overlap[i].name, "moe.Logits SharedLogit") == 0;
    assert_true(named);
    play_close(&play);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_every_shipped_scenario),
        cmocka_unit_test(of_drawn_steps),
        cmocka_unit_test(of_arrays_that_share_a_collective),
    };
    walk_seed(argc, argv);
    return cmocka_run_group_tests_name("what is told", tests, NULL, NULL);
}
