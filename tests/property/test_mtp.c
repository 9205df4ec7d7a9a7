/*
 * Modules that predict further tokens (MTP), in steps: all ranks together do what the closed
 * formulas count and hold what the model has; however they are played, instants are the same; the
 * module waits for what the model's last layer gives, and the model's last layer for the module.
 */
#include <stdio.h>
#include <string.h>

#include "sim/graph/parameters.h"
#include "sim/model/model_read.h"
#include "sim/step/counts.h"
#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1400, RANKS = 4 };

/* A small DeepSeek's shape, one layer with an MLP and five with experts; one module, and two. */
static const char *const models[] = {"tests/property/mtp.json", "tests/property/mtp-2.json"};

struct place {
    const char *machine, *mesh, *more;
};

/* The first four have four ranks of pp. */
static const struct place places[] = {
    {"\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"pp\": [\"node\"], \"ep\": [\"gpu:4\"], \"tp\": [\"gpu:2\"]"
     ", \"order\": [\"pp\", \"ep\", \"tp\"]}",
     ""},
    {"\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"pp\": [\"node\"], \"ep\": [\"gpu:4\"], \"fsdp\": [\"gpu:2\"]}", ""},
    {"\"chip\": \"h100-sxm\", \"nodes\": 8",
     "{\"pp\": [\"node:4\"], \"dp\": [\"node:2\"], \"ep\": [\"gpu\"]"
     ", \"order\": [\"pp\", \"dp\", \"ep\"]}",
     ", \"zero\": 1"},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
     "{\"pp\": [\"x\"], \"dp\": [\"y\"], \"tp\": [\"z\"]}", ", \"activations\": \"tokens\""},
    {"\"chip\": \"h100-sxm\", \"nodes\": 4", "{\"fsdp\": [\"node\"], \"ep\": [\"gpu\"]}", ""},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"", "{\"fsdp\": [\"x\", \"y\"], \"tp\": [\"z\"]}",
     ", \"activations\": \"tokens\""},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"dp\": [\"node\"], \"ep\": [\"gpu\"]}",
     ", \"zero\": 2"},
};
enum { PLACES = sizeof places / sizeof *places, STAGED = 4 };

struct schedule_case {
    const char *name, *layout; /* "%s" for the modules. */
    uint32_t rank;             /* Which has them: not the first, that has the embedding itself. */
    bool apart;                /* The head is on the next stage, of the next rank. */
};
static const struct schedule_case schedules[] = {
    {"1f1b", "Ett|tt|t|t%sL", 3, false},
    {"gpipe", "Et|tt|ttt|%sL", 3, false},
    {"interleaved:2", "E|t|t|t|t|t|t|%sL", 3, false},
    {"looped-bfs:2", "E|t|t|t|t|t||t%sL", 3, false},
    {"1f1b", "Ett|ttt|t%s|L", 2, true},
    {"interleaved:2", "E|t|t|t|t|tt|%s|L", 2, true},
    {"zb-h1", "Et|t|t|ttt%sL", 3, false},
    {"zb-v", "E|t|t|t|t|t|t|%sL", 0, false},
    {"dualpipev", "E|t|t|t|t|t||t%sL", 0, false},
    {"v-half", "Et|t|t|t|t|t||%sL", 0, false},
    {"dualpipev", "E|t|t|t|t|t|t%s|L", 1, true},
    {"dualpipe", "Ett|tt|t|t%sL", 0, false},
};
/* Passes are halved from the seventh on; the eighth has two ends on a rank. */
enum { SCHEDULES = sizeof schedules / sizeof *schedules, HALVES = 6, BENT = 7, COPIES = 11 };

struct step {
    uint32_t place, schedule, modules, accumulate;
    const char *remat, *more;
    bool without;
};

static void text_write(char text[TEXT_BYTES], const struct step *step)
{
    const struct place *place = &places[step->place];
    const struct schedule_case *schedule = &schedules[step->schedule];
    char layout[64], staged[192] = "";
    bool const keeps = step->schedule % 2 == 1 && strcmp(step->remat, "none") == 0 &&
                       strstr(place->mesh, "\"tp\"") != NULL;
    (void)snprintf(layout, sizeof layout, schedule->layout,
                   step->without        ? ""
                   : step->modules == 2 ? "mm"
                                        : "m");
    if (step->place < STAGED)
        (void)snprintf(staged, sizeof staged, ", \"schedule\": \"%s\", \"layout\": \"%s\"",
                       schedule->name, layout);
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"title\": \"mtp\", \"machine\": {%s, \"profile\": \"ideal\"}, "
              "\"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": \"%s\", "
              "\"batch_tokens\": 262144, \"sequence_length\": 1024, \"accumulate\": %u, \"remat\": "
              "\"%s\", \"tp_inputs\": \"%s\", \"mtp\": %s%s%s%s}}",
              place->machine, place->mesh, models[step->modules - 1], step->accumulate, step->remat,
              keeps ? "whole" : "shards", step->without ? "false" : "true", staged, place->more,
              step->more);
}

enum { GROUP_FSDP, GROUP_TP, GROUP_REPLICAS, GROUPS }; /* The last: who holds the same weights. */

/* By the name of a stream; GROUPS: of another. */
static uint32_t group_of(const char *stream)
{
    static const char *const names[] = {"gather fsdp", "reduce fsdp", "gather tp", "reduce tp",
                                        "sum tp"};
    static const char *const others[] = {"gather experts", "reduce experts", "dispatch", "combine",
                                         "kv"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(stream, names[i]) == 0) return i < 2 ? GROUP_FSDP : GROUP_TP;
    for (uint32_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(stream, others[i], strlen(others[i])) == 0) return GROUPS;
    return GROUP_REPLICAS;
}

struct sums {
    double matmul_flop, vector_flop, hbm_bytes, useful_flop, compute_count;
    double bytes[GROUPS][COLLECTIVE_KIND_COUNT];
    double resident[PROGRAM_MEMORY_COUNT];
};

static void op_sum(const struct program *program, const struct program_op *op, double times,
                   struct sums *sums)
{
    const char *stream = program->stream[op->stream].name;
    if (op->kind == PROGRAM_OP_COLLECTIVE) {
        const struct plan *plan = &program->plans[op->index];
        uint32_t const group = group_of(stream);
        if (group < GROUPS) sums->bytes[group][plan->kind] += times * (double)plan->size_bytes;
    }
    if (op->kind != PROGRAM_OP_COMPUTE) return;
    const struct work *work = &program->works[op->index];
    sums->compute_count += times;
    sums->matmul_flop += times * (double)work_matmul_flop(work);
    sums->vector_flop += times * (double)work->vector_flop;
    sums->hbm_bytes += times * (double)(work->hbm_read_bytes + work->hbm_write_bytes);
    sums->useful_flop += times * (double)work->useful_flop;
}

/* Over all ranks of pp; what an op takes some op gives back. */
static struct sums sums_of(const struct program *program)
{
    struct sums sums = {0};
    for (uint32_t r = 0; r < program->role_count; r++) {
        int64_t held[PROGRAM_MEMORY_COUNT] = {0};
        for (uint32_t b = 0; b < program->roles[r].block_count; b++) {
            const struct program_block *block = &program->roles[r].block[b];
            const struct program_template *template = &program->templates[block->template_index];
            for (uint32_t i = 0; i < template->op_count; i++) {
                const struct program_op *op = &template->op[i];
                op_sum(program, op, block->repeat, &sums);
                for (uint32_t e = 0; e < op->effect_count; e++)
                    held[op->effect[e].memory] += block->repeat * op->effect[e].bytes;
            }
        }
        for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++) {
            assert_int_equal(held[m], 0);
            sums.resident[m] += (double)program->roles[r].resident_bytes[m];
        }
    }
    return sums;
}

static void all_ranks_together_do_what_the_formulas_count(void **state)
{
    (void)state;
    static const char *const remats[] = {"none", "norms", "big_matmuls", "block", "layer"};
    static const struct play_options lower_only = {.lower_only = true, .engine = "fast"};
    uint32_t walked = 0;
    for (uint32_t p = 0; p < PLACES; p++)
        for (uint32_t k = 0; k < SCHEDULES * 4; k++) {
            if (sampling_skips(&walked)) continue;
            struct step const step = {p,
                                      k % SCHEDULES,
                                      1 + k % 2,
                                      k % 4 < 3 && k % SCHEDULES < BENT ? 4 : 8,
                                      remats[(k + k / SCHEDULES) % 5],
                                      k % 7 < 3 ? "" : ", \"backward_order\": \"dx_first\"",
                                      false};
            char text[TEXT_BYTES];
            struct play play;
            struct workload_counts counts;
            text_write(text, &step);
            play_run(&play, text, &lower_only);
            counts_make(&play.scenario.workload, &play.machine, &play.mesh, &counts);
            struct sums const sums = sums_of(&play.program);
            double const ranks = p < STAGED ? RANKS : 1;
            bool const halves =
                p < STAGED && step.schedule >= HALVES; /* Of a router's gradients. */
            case_near(counts.matmul_flop * ranks, sums.matmul_flop, 1e-12);
            case_near(counts.matmul_useful * ranks, sums.useful_flop, 1e-9);
            case_near(counts.vector_flop * ranks, sums.vector_flop, 1e-9);
            case_near(counts.hbm_bytes * ranks, sums.hbm_bytes, halves ? 3e-3 : 1e-9);
            case_near(counts.ops.count * ranks, sums.compute_count, halves ? 0.06 : 1e-12);
            case_near(counts.memory.parameter_bytes * ranks,
                      sums.resident[PROGRAM_MEMORY_PARAMETERS], 1e-9);
            case_near(counts.memory.optimizer_bytes * ranks,
                      sums.resident[PROGRAM_MEMORY_OPTIMIZER], 1e-9);
            case_near(counts.memory.gradient_bytes * ranks, sums.resident[PROGRAM_MEMORY_GRADIENTS],
                      1e-9);
            const struct workload_traffic *traffic[GROUPS] = {
                &counts.role[MESH_FSDP], &counts.role[MESH_TP], &counts.role[MESH_DP]};
            for (uint32_t t = 0; t < GROUPS; t++) {
                case_near(traffic[t]->all_reduce_bytes * ranks,
                          sums.bytes[t][COLLECTIVE_ALL_REDUCE], 1e-9);
                case_near(traffic[t]->gather_bytes * ranks, sums.bytes[t][COLLECTIVE_ALL_GATHER],
                          1e-9);
                case_near(traffic[t]->scatter_bytes * ranks,
                          sums.bytes[t][COLLECTIVE_REDUCE_SCATTER], 1e-9);
            }
            play_close(&play);
        }
}

static void it_is_the_same_however_it_is_played(void **state)
{
    (void)state;
    uint32_t walked = 0;
    for (uint32_t p = 0; p < PLACES; p++)
        for (uint32_t s = 0; s < (p < STAGED ? (uint32_t)SCHEDULES : 2); s++) {
            struct step const step = {
                p, s, 1 + s % 2, s < BENT ? 4 : 8, p % 2 == 0 ? "none" : "block", "", false};
            char text[TEXT_BYTES];
            struct play folded;
            if (sampling_skips(&walked)) continue;
            text_write(text, &step);
            play_run(&folded, text, NULL);
            walk_alike(&folded, text, "reference");
            play_close(&folded);
        }
}

/* Stages of a bent schedule lie on ranks up and down. */
static uint32_t head_rank(uint32_t schedule)
{
    return schedule < BENT ? RANKS - 1 : 0;
}

/* Each rank sends the activations and gradients that it sent without; to a head on another stage
 * also what each module gives, and back its gradient. Ranks of two copies send each other all
 * gradients. The first rank and that with the modules send
 * their gradients of the embedding, if it lies on both. */
static void ranks_send_what_it_takes(void **state)
{
    (void)state;
    for (uint32_t s = 0; s < SCHEDULES; s++) {
        struct step step = {0, s, 2, 8, "none", "", false};
        char text[TEXT_BYTES];
        struct play with, without;
        text_write(text, &step);
        play_run(&with, text, NULL);
        step.without = true;
        text_write(text, &step);
        play_run(&without, text, NULL);
        /* 8192 x 512 over two ranks of tp, two bytes each. */
        uint64_t const gradients = UINT64_C(2) * 8192 * 512 / 2;
        uint64_t const array = UINT64_C(2) * 262144 / 8 / 4 * 512 / 2;
        for (uint32_t r = 0; r < RANKS; r++) {
            uint32_t const has = schedules[s].rank;
            bool const end = has != 0 && (r == 0 || r == has);
            bool const overlap = schedules[s].apart && (r == has || r == head_rank(s));
            bool const holds = s == COPIES ? r == 0 || r + 1 == RANKS : r == has;
            uint64_t const held =
                with.program.roles[r].resident_bytes[PROGRAM_MEMORY_PARAMETERS] -
                without.program.roles[r].resident_bytes[PROGRAM_MEMORY_PARAMETERS];
            /* Gradients have as many bytes as parameters. */
            uint64_t const more = (end ? gradients : 0) + (s == COPIES ? held : 0) +
                                  (overlap ? UINT64_C(8) * step.modules * array : 0);
            assert_int_equal(with.trace.roles[r].sent_bytes,
                             without.trace.roles[r].sent_bytes + more);
            assert_int_equal(held != 0, holds);
        }
        assert_true(with.trace.step_ps > without.trace.step_ps);
        play_close(&with);
        play_close(&without);
    }
}

/* Slots of a role that have an op of which this is part of the name: how many, and the last. */
struct found {
    uint32_t count;
    uint32_t last_slot;
};

static struct found slots_find(const struct program *program, const struct program_role *role,
                               const char *words)
{
    struct found found = {0};
    for (uint32_t b = 0; b < role->block_count; b++) {
        const struct program_block *block = &role->block[b];
        const struct program_template *template = &program->templates[block->template_index];
        bool has = false;
        for (uint32_t i = 0; i < template->op_count; i++)
            has = has || strstr(template->op[i].name, words) != NULL;
        if (!has) continue;
        found.count += block->repeat;
        found.last_slot = block->slot_first + block->repeat - 1;
    }
    return found;
}

/* Where gradients are accumulated whole, a rank reduces the embedding's once, behind all that adds
 * to it, and gives it to another rank behind that. */
static void embeddings_are_reduced_when_they_are_whole(void **state)
{
    (void)state;
    for (uint32_t s = 0; s < SCHEDULES; s++) {
        static const struct play_options lower_only = {.lower_only = true, .engine = "fast"};
        struct step const step = {2, s, 2, 8, "none", "", false};
        char text[TEXT_BYTES];
        struct play play;
        text_write(text, &step);
        play_run(&play, text, &lower_only);
        uint32_t holders = 0;
        for (uint32_t r = 0; r < RANKS; r++) {
            const struct program_role *role = &play.program.roles[r];
            struct found const adds = slots_find(&play.program, role, "embedding.dW");
            struct found const sums = slots_find(&play.program, role, "ReduceScatter dW_embedding");
            struct found const tied = slots_find(&play.program, role, "tied gradients.sum");
            if (adds.count == 0) continue;
            holders++;
            assert_int_equal(sums.count, 1);
            assert_true(sums.last_slot >= adds.last_slot);
            assert_int_equal(tied.count, schedules[s].rank != 0);
            assert_true(tied.count == 0 || tied.last_slot > sums.last_slot);
            for (uint32_t b = 0; b < role->block_count; b++) {
                const struct program_block *block = &role->block[b];
                const char *name = play.program.templates[block->template_index].name;
                if (strcmp(name, "send embedding") == 0)
                    assert_true(block->slot_first > sums.last_slot);
            }
        }
        assert_int_equal(holders, schedules[s].rank != 0 || s == COPIES ? 2 : 1);
        play_close(&play);
    }
}

/* The published model, in stages and not: 671,026,419,200 parameters, and the module's own; a
 * pipeline's last stage has the embedding once more. */
static void deepseek_v3_has_its_parameters_and_the_modules(void **state)
{
    (void)state;
    static const char *const meshes[] = {
        "{\"ep\": [\"node\", \"gpu\"]}",
        "{\"pp\": [\"node:4\"], \"ep\": [\"node:2\", \"gpu\"], \"order\": [\"pp\", \"ep\"]}",
    };
    static const struct play_options lower_only = {.lower_only = true, .engine = "fast"};
    struct model model;
    case_ok(model_read_name_or_path(case_arena, "deepseek-v3", "", "", &model, &case_error));
    struct model_counts const counts = model_count(&model);
    uint64_t const experts =
        (counts.experts_layer) * (counts.expert_layers + 1); /* Split over ep; the rest is not. */
    for (uint32_t m = 0; m < 2; m++) {
        char text[TEXT_BYTES];
        struct play play;
        uint64_t const ep = m == 0 ? 64 : 16, copy = m == 0 ? 0 : UINT64_C(129280) * 7168;
        case_text(
            text, TEXT_BYTES,
            "{\"podsim\": 1, \"title\": \"mtp\", \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": "
            "8}, \"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": "
            "\"deepseek-v3\", \"batch_tokens\": 1048576, \"sequence_length\": 4096, "
            "\"accumulate\": "
            "4%s}}",
            meshes[m], m == 0 ? "" : ", \"layout\": \"Et*15|t*16|t*16|t*14mL\"");
        play_run(&play, text, &lower_only);
        uint64_t held = 0;
        for (uint32_t r = 0; r < play.program.role_count; r++)
            held += play.program.roles[r].resident_bytes[PROGRAM_MEMORY_PARAMETERS];
        assert_int_equal(counts.total, UINT64_C(671026419200));
        assert_int_equal(held,
                         2 * (counts.total + counts.mtp_modules + copy - experts + experts / ep));
        play_close(&play);
    }
}

static void what_cannot_be_predicted_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *mesh, *more, *where, *words;
        enum status status;
    } rows[] = {
        {"{\"cp\": [\"node\"], \"ep\": [\"gpu\"]}", "", "/mesh/cp", "MLA", STATUS_UNSUPPORTED},
        {"{\"pp\": [\"node\"], \"ep\": [\"gpu\"]}", ", \"layout\": \"Et|tt|tt|tL\"",
         "/workload/layout", "0 modules for multi-token prediction", STATUS_INVALID},
        {"{\"pp\": [\"node\"], \"ep\": [\"gpu\"]}", ", \"layout\": \"Et|tt|tt|tmmL\"",
         "/workload/layout", "2 modules", STATUS_INVALID},
        {"{\"pp\": [\"node\"], \"ep\": [\"gpu\"]}",
         ", \"mtp\": false, \"layout\": \"Et|tt|tt|tmL\"", "/workload/layout", "trains 0",
         STATUS_INVALID},
        {"{\"pp\": [\"node\"], \"ep\": [\"gpu\"]}", ", \"layout\": \"Ett|tt|tm|tL\"",
         "/workload/layout", "after all layers", STATUS_UNSUPPORTED},
        {"{\"pp\": [\"node\"], \"ep\": [\"gpu\"]}", ", \"layout\": \"Ett|tt|t|mtL\"",
         "/workload/layout", "after all layers", STATUS_UNSUPPORTED},
        {"{\"pp\": [\"node\"], \"ep\": [\"gpu\"]}",
         ", \"schedule\": \"interleaved:2\", \"layout\": \"E|tt|tt|tt|m|||L\"", "/workload/mtp",
         "on the first rank and \"m\" on another", STATUS_UNSUPPORTED},
        {"{\"pp\": [\"node\"], \"ep\": [\"gpu\"]}",
         ", \"schedule\": \"zb-v\", \"accumulate\": 1, \"layout\": \"E|t|t|t|t|t|t|mL\"",
         "/workload/accumulate", "one microbatch", STATUS_UNSUPPORTED},
        {"{\"pp\": [\"node\"], \"ep\": [\"gpu:4\"], \"fsdp\": [\"gpu:2\"]}",
         ", \"regather\": \"step\", \"layout\": \"Ett|tt|t|tmL\"", "/workload/mtp", "regather",
         STATUS_UNSUPPORTED},
        {"{\"dp\": [\"node\"], \"ep\": [\"gpu\"]}", ", \"offload\": \"optimizer\"",
         "/workload/offload", "multi-token", STATUS_UNSUPPORTED},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[TEXT_BYTES];
        struct play play;
        case_text(
            text, TEXT_BYTES,
            "{\"podsim\": 1, \"title\": \"mtp\", \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": "
            "4}, \"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": \"%s\", "
            "\"batch_tokens\": 131072, \"sequence_length\": 1024%s%s}}",
            rows[i].mesh, models[0],
            strstr(rows[i].more, "accumulate") != NULL ? "" : ", \"accumulate\": 4", rows[i].more);
        case_refused(play_try(&play, text, NULL, &case_error), rows[i].status, rows[i].where,
                     rows[i].words);
        play_close(&play);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_together_do_what_the_formulas_count),
        cmocka_unit_test(it_is_the_same_however_it_is_played),
        cmocka_unit_test(ranks_send_what_it_takes),
        cmocka_unit_test(embeddings_are_reduced_when_they_are_whole),
        cmocka_unit_test_setup_teardown(deepseek_v3_has_its_parameters_and_the_modules,
                                        case_arena_up, case_arena_down),
        cmocka_unit_test(what_cannot_be_predicted_is_refused),
    };
    return cmocka_run_group_tests_name("predictors", tests, NULL, NULL);
}
