/*
 * What an op waits for is what it reads, by the table of tests/oracle/reads.c: of every shipped
 * scenario and of 500 drawn ones, lowered and not played.
 *
 * - A need is of data if and only if its op reads what is written by what it waits for.
 * - An op that reads what another stream of its slot has written waits for it, by way of others if
 *   need be.
 * - Gradients travel as soon as they are there: a collective of a gradient waits for nothing by
 *   mere order, and for no op that was repeated.
 * - What a gradient from above begins with, an exchange with experts, has no repeated op before it
 *   either, neither by needs nor by the order of a stream. Gathers over tp stand behind those of
 *   the repetition, whose compute hides them (docs/program.md).
 */
#include <stdio.h>
#include <string.h>

#include "tests/oracle/reads.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1400, DRAWN = 500, OPS_MAX = 256 };

/* A program, and what it is called where it fails. */
struct checked {
    const struct program *program;
    enum graph_remat remat;
    const char *text;
    uint64_t data, orders; /* Needs that were held. */
    uint64_t exchanges;    /* Ahead of a repetition. */
};

#define fail_at(checked, op, ...)                                                                  \
    do {                                                                                           \
        print_error("%s: ", (op)->name);                                                           \
        print_error(__VA_ARGS__);                                                                  \
        fail_msg("in %s", (checked)->text);                                                        \
    } while (0)

/* The table has the ops of a bare MLP, which reads and writes the stream itself, without the name
 * of its block: "AllGather In" of "AllGather mlp.In". */
static bool is_bare;
static const struct reads *row_of(const struct program_op *op)
{
    static const char block[] = "mlp.";
    const char *const at = is_bare ? strstr(op->name, block) : NULL;
    char name[128];
    if (at == NULL) return reads_find(op->name);
    (void)snprintf(name, sizeof name, "%.*s%s", (int)(at - op->name), op->name,
                   at + sizeof block - 1);
    return reads_find(name);
}

static const char *read_by(const struct program_op *op)
{
    return row_of(op)->reads;
}
static const char *written_by(const struct program_op *op)
{
    return row_of(op)->writes;
}

static bool meet(const char *list, const char *other)
{
    char unused[READS_ARRAY_BYTES];
    return reads_meet(list, other, unused);
}

/* The op of a template in which a count of a stream's parts is reached. */
static const struct program_op *op_of_part(const struct program_template *template, uint32_t stream,
                                           uint32_t part)
{
    for (uint32_t i = 0; i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        if (op->stream == stream && op->part_first < part && part <= op->part_first + op->parts)
            return op;
    }
    return NULL;
}

/* Whether the need is of an op of the same slot. */
static bool is_local(const struct program_need *need)
{
    return need->slot == 0 && need->part != 0;
}

static bool stream_writes(const struct program *program, uint32_t stream, const char *list)
{
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            if (op->stream == stream && meet(written_by(op), list)) return true;
        }
    return false;
}

/* Of activations of the forward pass, which a backward pass can only repeat. */
static bool is_forward_array(const char *list)
{
    const char *dot = strchr(list, '.');
    const char *own = dot != NULL ? dot + 1 : list;
    return *own != 'd' && !reads_have(list, "W") && !reads_have(list, "copy") &&
           !reads_have(list, "moments") && !reads_have(list, "activations");
}

static bool moves_a_gradient(const struct program_op *op)
{
    bool const moves = op->kind == PROGRAM_OP_COLLECTIVE;
    return moves && !is_forward_array(written_by(op)) && !reads_have(written_by(op), "W");
}

static bool is_backward(const struct program_template *template)
{
    return strstr(template->name, "backward") != NULL;
}

static void data_check(struct checked *checked, const struct program_template *template,
                       const struct program_op *op, const struct program_need *need)
{
    const struct program_op *on = op_of_part(template, need->stream, need->part);
    enum program_op_kind const kind = checked->program->stream[need->stream].kind;
    bool const copied = op->kind == PROGRAM_OP_COPY || kind == PROGRAM_OP_COPY;
    checked->data++;
    if (need->array == NULL) fail_at(checked, op, "data of no name\n");
    if (is_local(need) && !copied && !meet(read_by(op), written_by(on)))
        fail_at(checked, op, "does not read %s of %s\n", need->array, on->name);
    if (!is_local(need) && !copied && kind != PROGRAM_OP_COMPUTE && kind != PROGRAM_OP_RECEIVE &&
        !stream_writes(checked->program, need->stream, read_by(op)))
        fail_at(checked, op, "nothing of its stream writes %s\n", need->array);
}

/* The repetition goes first in `layer`, and what is loaded of the host comes before all. */
static void order_check(struct checked *checked, const struct program_template *template,
                        const struct program_op *op, const struct program_need *need)
{
    bool const loaded = checked->program->stream[need->stream].kind == PROGRAM_OP_COPY;
    const struct program_op *target =
        is_local(need) ? op_of_part(template, need->stream, need->part) : NULL;
    checked->orders++;
    if (!loaded && target != NULL && meet(read_by(op), written_by(target)))
        fail_at(checked, op, "reads what %s writes\n", target->name);
    if (!moves_a_gradient(op) || loaded) return;
    if (is_local(need) && checked->remat == GRAPH_REMAT_LAYER) {
        const struct program_op *on = op_of_part(template, need->stream, need->part);
        if (is_forward_array(written_by(on))) return;
    }
    fail_at(checked, op, "waits, and reads nothing of what it waits for\n");
}

static void needs_check(struct checked *checked, const struct program_template *template,
                        const struct program_op *op)
{
    for (uint32_t n = 0; n < op->need_count; n++) {
        const struct program_need *need = &op->need[n];
        if (need->reason == PROGRAM_REASON_DATA) data_check(checked, template, op, need);
        if (need->reason == PROGRAM_REASON_ORDER) order_check(checked, template, op, need);
        if (need->reason == PROGRAM_REASON_WINDOW && moves_a_gradient(op))
            fail_at(checked, op, "is held back by a window\n");
        if (!is_local(need) || !moves_a_gradient(op) || !is_backward(template)) continue;
        const struct program_op *on = op_of_part(template, need->stream, need->part);
        if (checked->remat != GRAPH_REMAT_LAYER && is_forward_array(written_by(on)))
            fail_at(checked, op, "waits for %s, which was repeated\n", on->name);
    }
}

/* Parts of each stream in its slot that are done before an op ends, if it has ended. */
struct behind {
    uint32_t parts[PROGRAM_STREAMS_MAX];
};

static void behind_add(struct behind *behind, const struct behind *other)
{
    for (uint32_t s = 0; s < PROGRAM_STREAMS_MAX; s++)
        if (other->parts[s] > behind->parts[s]) behind->parts[s] = other->parts[s];
}

static void behind_op_add(struct behind *behind, const struct behind *all,
                          const struct program_template *template, const struct program_op *on)
{
    uint32_t const end = on->part_first + on->parts;
    behind_add(behind, &all[on - template->op]);
    if (end > behind->parts[on->stream]) behind->parts[on->stream] = end;
}

/* What is done before an op of a template ends, by its needs and by the order of its stream. */
static struct behind behind_of(const struct behind *all, const struct program_template *template,
                               const struct program_op *op)
{
    struct behind behind = {{0}};
    const struct program_op *former = op_of_part(template, op->stream, op->part_first);
    if (op->part_first > 0) behind_op_add(&behind, all, template, former);
    if (op->kind == PROGRAM_OP_COLLECTIVE && op->operand_op != PROGRAM_NONE)
        behind_op_add(&behind, all, template, &template->op[op->operand_op]);
    for (uint32_t n = 0; n < op->need_count; n++) {
        const struct program_need *need = &op->need[n];
        if (!is_local(need) || need->begun) continue;
        uint32_t const part = need->part + need->per_part * (op->parts - 1);
        behind_op_add(&behind, all, template, op_of_part(template, need->stream, part));
    }
    return behind;
}

static const struct program_op *last_writer(const struct program_template *template,
                                            uint32_t before, const char *array)
{
    for (uint32_t i = before; i-- > 0;)
        if (reads_have(written_by(&template->op[i]), array)) return &template->op[i];
    return NULL;
}

static bool is_repeated(const struct program_op *op)
{
    static const char again[] = " again";
    size_t const length = strlen(op->name), suffix = sizeof again - 1;
    return length > suffix && strcmp(op->name + length - suffix, again) == 0;
}

/* Takes the next array of a list; false: there are no more. */
static bool array_next(const char **list, char ret_array[READS_ARRAY_BYTES])
{
    size_t const length = strcspn(*list, " ");
    memcpy(ret_array, *list, length);
    ret_array[length] = '\0';
    *list += length + ((*list)[length] == ' ');
    return length > 0;
}

/* Whether an op reads, by way of others of its template if need be, what a repeated one writes. */
static bool reads_repeated(const struct program_template *template, const struct program_op *op)
{
    bool wanted[OPS_MAX] = {false};
    uint32_t at = (uint32_t)(op - template->op);
    wanted[at] = true;
    do {
        char array[READS_ARRAY_BYTES];
        if (!wanted[at]) continue;
        if (is_repeated(&template->op[at])) return true;
        for (const char *list = read_by(&template->op[at]); array_next(&list, array);) {
            const struct program_op *writer = last_writer(template, at, array);
            if (writer != NULL) wanted[writer - template->op] = true;
        }
    } while (at-- > 0);
    return false;
}

static void ahead_check(struct checked *checked, const struct program_template *template,
                        const struct program_op *op, const struct behind *behind)
{
    bool const experts = (checked->program->stream[op->stream].use.of & STREAM_OF_EP) != 0 &&
                         checked->program->stream[op->stream].use.verb == STREAM_DISPATCH;
    if (!experts || !moves_a_gradient(op) || checked->remat == GRAPH_REMAT_LAYER) return;
    if (reads_repeated(template, op)) return;
    for (uint32_t i = 0; i < template->op_count; i++) {
        const struct program_op *on = &template->op[i];
        if (!is_repeated(on)) continue;
        checked->exchanges++;
        if (behind->parts[on->stream] >= on->part_first + on->parts)
            fail_at(checked, op, "comes behind %s\n", on->name);
    }
}

/* Weights and their gradients go by units, which the table does not tell apart. */
static void reads_check(const struct checked *checked, const struct program_template *template,
                        const struct program_op *op, const struct behind *behind)
{
    char array[READS_ARRAY_BYTES];
    for (const char *list = read_by(op); array_next(&list, array);) {
        const struct program_op *writer =
            last_writer(template, (uint32_t)(op - template->op), array);
        if (writer == NULL || strcmp(array, "W") == 0 || strcmp(array, "dW") == 0) continue;
        if (behind->parts[writer->stream] < writer->part_first + writer->parts)
            fail_at(checked, op, "does not wait for %s, which writes %s\n", writer->name, array);
    }
}

/* Two passes in one template write the same arrays. */
static bool is_pair(const struct program *program, uint32_t template_index)
{
    for (uint32_t r = 0; r < program->role_count; r++)
        for (uint32_t b = 0; b < program->roles[r].block_count; b++) {
            const struct program_block *block = &program->roles[r].block[b];
            if (block->template_index == template_index && block->phase == PROGRAM_PHASE_PAIR)
                return true;
        }
    return false;
}

static void program_check(struct checked *checked)
{
    static struct behind all[OPS_MAX];
    for (uint32_t t = 0; t < checked->program->template_count; t++) {
        const struct program_template *template = &checked->program->templates[t];
        bool const pair = is_pair(checked->program, t);
        assert_true(template->op_count <= OPS_MAX);
        for (uint32_t i = 0; i < template->op_count; i++) {
            const struct program_op *op = &template->op[i];
            if (row_of(op) == NULL) fail_msg("no row: %s", op->name);
            all[i] = behind_of(all, template, op);
            needs_check(checked, template, op);
            if (!pair) reads_check(checked, template, op, &all[i]);
            if (!pair) ahead_check(checked, template, op, &all[i]);
        }
    }
}

static struct checked shipped;

static void shipped_check(struct play *play, const char *path)
{
    shipped.program = &play->program;
    is_bare = play->scenario.workload.model.kind == MODEL_MLP;
    shipped.remat = play->scenario.workload.remat;
    shipped.text = path;
    program_check(&shipped);
}

static void every_shipped_scenario_waits_for_what_it_reads(void **state)
{
    static const struct scenario_setting fits = {"/workload/allow_oversubscription=true"};
    /* No gradients: property inference has them. */
    static const char *const inference[] = {"/decode/", "/prefill/", NULL};
    static const struct play_options options = {
        .lower_only = true, .settings = &fits, .setting_count = 1};
    (void)state;
    walk_shipped(&options, inference, shipped_check);
    print_message("    %llu needs of data, %llu of order\n", (unsigned long long)shipped.data,
                  (unsigned long long)shipped.orders);
    assert_true(shipped.data > 0 && (shipped.exchanges > 0 || sampling_of() > 1));
}

#define PICK(...) CASE_PICK(state, __VA_ARGS__)

/* What does not go together is refused, and drawn again. */
static void scenario_draw(uint64_t *state, char text[TEXT_BYTES])
{
    const char *model = PICK("\"tests/property/dense.json\"", "\"tests/property/mtp.json\"",
                             "\"tests/property/experts.json\"", "\"megatron-1.7b\"",
                             "{\"kind\": \"mlp\", \"D\": 512, \"F\": 1024, \"layers\": 4, "
                             "\"matrices\": 2}",
                             "{\"kind\": \"mlp\", \"D\": 512, \"F\": 1024, \"layers\": 4, "
                             "\"matrices\": 3}");
    const char *machine =
        PICK("\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"", "\"chip\": \"h100-sxm\", \"nodes\": 4");
    bool const grid = strstr(machine, "tpu") != NULL;
    const char *axes[3] = {grid ? "\"x\"" : "\"node\"", grid ? "\"y\"" : "\"gpu:4\"",
                           grid ? "\"z\"" : "\"gpu:2\""};
    const char *first = PICK("fsdp", "dp", "cp", "pp", "ep");
    const char *second = PICK("tp", "ep", "dp", "fsdp");
    const char *third = PICK("dp", "fsdp", "tp", "cp");
    const char *remat = PICK("none", "norms", "big_matmuls", "block", "block", "layer");
    const char *gather = PICK("block", "tensor", "layer");
    const char *order = PICK("dw_first", "dx_first");
    const char *chunks = PICK("false", "true");
    const char *context = PICK("ring", "all_gather", "ulysses");
    const char *kernel = PICK("flash", "flash_padded", "unfused", "unfused_dropout");
    const char *activations = PICK("model", "tokens");
    const char *offload = PICK("none", "none", "none", "both");
    const char *schedule = PICK("1f1b", "zb-h1", "dualpipev", "interleaved");
    const char *zero = PICK("0", "1", "3");
    bool const stages = strcmp(first, "pp") == 0;
    bool const shares = strcmp(first, "cp") == 0 || strcmp(third, "cp") == 0;
    bool const shards =
        strcmp(first, "fsdp") == 0 || strcmp(second, "fsdp") == 0 || strcmp(third, "fsdp") == 0;
    char more[256] = "";
    if (stages)
        (void)snprintf(more, sizeof more, ", \"schedule\": \"%s\"", schedule);
    else
        (void)snprintf(more, sizeof more, ", \"offload\": \"%s\"", offload);
    if (shares)
        (void)snprintf(more + strlen(more), sizeof more - strlen(more), ", \"context\": \"%s\"",
                       context);
    if (!shards)
        (void)snprintf(more + strlen(more), sizeof more - strlen(more), ", \"zero\": %s", zero);
    if (strstr(model, "kind") == NULL)
        (void)snprintf(more + strlen(more), sizeof more - strlen(more),
                       ", \"activations\": \"%s\", \"attention_kernel\": \"%s\"", activations,
                       kernel);
    case_text(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"machine\": {%s}, \"mesh\": {\"%s\": [%s], \"%s\": [%s], \"%s\": [%s]}, "
        "\"workload\": {\"kind\": \"train_step\", \"model\": %s, \"batch_tokens\": 2097152, "
        "\"sequence_length\": 2048, \"accumulate\": %u, \"remat\": \"%s\", \"gather\": \"%s\", "
        "\"backward_order\": \"%s\", \"allow_oversubscription\": true%s}, \"run\": "
        "{\"collective_matmul\": %s, \"prefetch_layers\": %u}}",
        machine, first, axes[0], second, axes[1], third, axes[2], model, stages ? 8 : 2, remat,
        gather, order, more, chunks, (unsigned)(case_random(state) % 3));
}

static void drawn_steps_wait_for_what_they_read(void **unused)
{
    static const struct play_options options = {.lower_only = true};
    uint64_t state = 12;
    uint32_t walked = 0, drawn = 0;
    struct checked checked = {0};
    (void)unused;
    for (uint32_t taken = 0; taken < DRAWN; drawn++) {
        char text[TEXT_BYTES];
        struct play play;
        struct error error;
        scenario_draw(&state, text);
        assert_true(drawn < 40 * DRAWN);
        if (sampling_skips(&walked)) {
            taken++;
            continue;
        }
        if (play_try(&play, text, &options, &error) == STATUS_OK) {
            checked.program = &play.program;
            is_bare = play.scenario.workload.model.kind == MODEL_MLP;
            checked.remat = play.scenario.workload.remat;
            checked.text = text;
            program_check(&checked);
            taken++;
        }
        play_close(&play);
    }
    print_message("    of %u drawn; %llu needs of data, %llu of order\n", drawn,
                  (unsigned long long)checked.data, (unsigned long long)checked.orders);
    bool const few = sampling_of() > 8; /* Among a handful of steps none may exchange. */
    assert_true(checked.data > 0 && (few || checked.exchanges > 0));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shipped_scenario_waits_for_what_it_reads),
        cmocka_unit_test(drawn_steps_wait_for_what_they_read),
    };
    return cmocka_run_group_tests_name("needs", tests, NULL, NULL);
}
