/*
 * Every exposed instant of a step is charged to one collective, so that rows add up to the total to
 * the picosecond; notes say what rows add up to and name the longest; what lies above the lower
 * bound is listed whole, and what is less says so. Of the shipped scenarios that are quick to play,
 * and of steps drawn from a seed that is printed (or given as the first argument).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/report/notes.h"
#include "sim/report/table.h"
#include "tests/support/above.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { STEPS = 120 };

static void rows_add_up(const struct trace *trace, const char *text)
{
    int64_t exposed_ps = 0;
    for (uint32_t i = 0; i < trace->class_count; i++) {
        const struct trace_class *class = &trace->classes[i];
        case_that(class->exposed_ps >= 0 && class->exposed_ps <= class->idle_ps, text);
        case_that(class->idle_ps <= class->busy_ps, text);
        exposed_ps += class->exposed_ps;
    }
    if (exposed_ps != trace->exposed_ps)
        fail_msg("collectives are charged %" PRId64 " ps of %" PRId64 " exposed\nin %s", exposed_ps,
                 trace->exposed_ps, text);
}

/* No queue is busier in a phase than the phase is long. */
static void phase_has_room(const struct analysis_phase *phase, uint32_t axis_count,
                           const char *text)
{
    double const whole_s = phase->compute_s + phase->exposed_s + phase->idle_s;
    for (uint32_t a = 0; a < axis_count; a++)
        if (phase->ici_s[a] > whole_s * (1 + 1e-9))
            fail_msg("axis %u is busy for %g s of %s, which takes %g s\nin %s", a, phase->ici_s[a],
                     phase->name, whole_s, text);
}

/* Whether a row is of weights, or of their gradients, that the ranks in its name hold alike: those
 * of dp and ep in "AllReduce dW_layer (dp,ep)". Experts' tokens are exchanged along ep too. */
static bool is_of_replicas(const struct analysis_class *row, const char *ranks, bool gathers)
{
    char ending[32];
    if (!row->collective || row->count == 0) return false;
    (void)snprintf(ending, sizeof ending, " (%s)", ranks);
    size_t const length = strlen(row->name), ending_length = strlen(ending);
    if (length < ending_length || strcmp(row->name + length - ending_length, ending) != 0)
        return false;
    if (gathers) return strcmp(row->kind, "AllGather") == 0;
    return strcmp(row->kind, "AllReduce") == 0 || strcmp(row->kind, "ReduceScatter") == 0;
}

/* What the rows of some ranks add up to, of gathers or of reductions, is what the note of them
 * says; without such rows there is no note. */
static void note_agrees(const struct analysis *analysis, const struct notes *notes,
                        const char *ranks, bool gathers, const char *text)
{
    char begin[64];
    double time_s = 0, exposed_s = 0;
    bool expected = false, found = false;
    (void)snprintf(begin, sizeof begin, "the %s %s ", ranks, gathers ? "gathers" : "reductions");
    for (uint32_t i = 0; i < analysis->class_count; i++) {
        const struct analysis_class *row = &analysis->classes[i];
        if (!is_of_replicas(row, ranks, gathers)) continue;
        expected = true;
        time_s += row->time_s;
        exposed_s += row->exposed_s;
    }
    char says[128];
    (void)snprintf(says, sizeof says, "; %s of their %s is exposed (",
                   table_seconds(exposed_s).text, table_seconds(time_s).text);
    for (uint32_t i = 0; i < notes->count; i++) {
        const char *note = notes->text[i];
        if (strncmp(note, begin, strlen(begin)) != 0) continue;
        found = true;
        if (strstr(note, says) == NULL) fail_msg("\"%s\" is not in: %s\nin %s", says, note, text);
        case_that(exposed_s > 0 || strstr(note, "at the latest") == NULL, text);
    }
    if (found != expected)
        fail_msg("%s note that begins \"%s\"\nin %s", found ? "no row for a" : "no", begin, text);
}

static void notes_agree(const struct analysis *analysis, const struct notes *notes,
                        const char *text)
{
    static const char *const ranks[] = {"dp", "ep", "cp", "dp,ep", "dp,cp", "ep,cp", "dp,ep,cp"};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        note_agrees(analysis, notes, ranks[i], true, text);
        note_agrees(analysis, notes, ranks[i], false, text);
    }
}

/* A note names what is exposed the longest, unless that is next to nothing. */
static void longest_is_named(const struct analysis *analysis, const struct notes *notes,
                             const char *text)
{
    double longest_s = 0.0051 * analysis->step_s;
    const char *name = NULL;
    for (uint32_t i = 0; i < analysis->class_count; i++) {
        const struct analysis_class *row = &analysis->classes[i];
        if (!row->collective || row->exposed_s <= longest_s) continue;
        longest_s = row->exposed_s;
        name = row->name;
    }
    for (uint32_t i = 0; name != NULL && i < notes->count; i++)
        if (strstr(notes->text[i], name) != NULL) return;
    if (name != NULL) fail_msg("no note names %s\nin %s", name, text);
}

static void parts_add_up(struct play *play, const char *text)
{
    struct report_input const input = play_report(play);
    struct analysis analysis;
    struct notes notes;
    struct error error = {0};
    if (analysis_build(play->arena, &input, &analysis, &error) != STATUS_OK ||
        notes_build(play->arena, &input, &analysis, &notes, &error) != STATUS_OK)
        fail_msg("%s: %s\nin %s", error.where, error.message, text);
    notes_agree(&analysis, &notes, text);
    longest_is_named(&analysis, &notes, text);
    for (uint32_t p = 0; p < analysis.phase_count; p++)
        phase_has_room(&analysis.phase[p], input.machine->axis_count, text);
    /* All that a model's use counts is executed, counted by other formulas. */
    case_that(analysis.mfu <= analysis.mfu_attention &&
                  analysis.mfu_attention <= analysis.hfu * (1 + 1e-9),
              text);
    above_check(&input, &analysis, &notes, text);
}

static void all_add_up(struct play *play, const char *text)
{
    rows_add_up(&play->trace, text);
    parts_add_up(play, text);
}

static void of_shipped_scenarios(void **unused)
{
    (void)unused;
    static const char *const slow[] = {"megatron", "16384", "2048", "3072", "-1024.", NULL};
    walk_shipped(NULL, slow, all_add_up);
}

#define PICK(...) CASE_PICK(state, __VA_ARGS__)

static void step_random(uint64_t *state, char text[WALK_TEXT_BYTES])
{
    const char *mesh =
        PICK("\"fsdp\":[\"node\"],\"tp\":[\"gpu\"]",
             "\"dp\":[\"node\"],\"fsdp\":[\"gpu:2\"],\"tp\":[\"gpu:2\"]",
             "\"pp\":[\"node\"],\"fsdp\":[\"gpu\"]",
             "\"pp\":[\"node:2\"],\"dp\":[\"node:2\"],\"tp\":[\"gpu\"]",
             "\"dp\":[\"node\"],\"cp\":[\"gpu\"]", "\"dp\":[\"node\",\"gpu\"]",
             "\"dp\":[\"node\"],\"tp\":[\"gpu\"]", "\"ep\":[\"gpu\"],\"dp\":[\"node\"]",
             "\"ep\":[\"gpu:2\"],\"tp\":[\"gpu:2\"],\"fsdp\":[\"node\"]",
             "\"ep\":[\"gpu:2\",\"tp\"],\"tp\":[\"gpu:2\"],\"dp\":[\"node\"]");
    static const char experts[] = "tests/property/experts.json";
    const char *model = strstr(mesh, "\"ep\"") != NULL ? experts
                        : strstr(mesh, "pp") != NULL   ? PICK("llama-3-8b", "megatron-1.7b")
                                                     : PICK("llama-3-8b", "megatron-1.7b", experts);
    const char *remat = PICK("none", "norms", "big_matmuls", "block", "layer");
    const char *gather = PICK("block", "tensor", "layer");
    const char *order = PICK("dw_first", "dx_first");
    const char *accumulate = strstr(mesh, "pp") != NULL ? "8" : PICK("1", "2");
    bool const stays = strstr(mesh, "pp") != NULL; /* Stages offload nothing. */
    const char *offload = stays ? "none" : PICK("none", "none", "optimizer", "both");
    bool const shards = strstr(mesh, "\"dp\"") != NULL && strstr(mesh, "fsdp") == NULL &&
                        strstr(mesh, "pp") == NULL;
    const char *zero = shards ? PICK("0", "1", "2", "3") : "0";
    const char *when = zero[0] == '1' || zero[0] == '2' ? PICK("end", "next_step") : "end";
    const char *prefetch = PICK("0", "1", "2"), *chunks = PICK("true", "false");
    const char *profile = PICK("ideal", "measured");
    const char *activations = strstr(mesh, "\"tp\"]") != NULL ? "tokens" : "model";
    unsigned const tokens = 131072u << case_random(state) % 2;
    case_text(
        text, WALK_TEXT_BYTES,
        "{\"podsim\":1,\"machine\":{\"chip\":\"h100-sxm\",\"nodes\":4,\"gpus\":4,"
        "\"profile\":\"%s\"},\"mesh\":{%s},\"workload\":{\"kind\":\"train_step\","
        "\"model\":\"%s\",\"batch_tokens\":%u,\"sequence_length\":1024,"
        "\"remat\":\"%s\",\"gather\":\"%s\",\"backward_order\":\"%s\","
        "\"accumulate\":%s,\"offload\":\"%s\",\"zero\":%s,\"activations\":\"%s\","
        "\"allow_oversubscription\":true},"
        "\"run\":{\"prefetch_layers\":%s,\"collective_matmul\":%s,\"parameter_gather\":\"%s\"}}",
        profile, mesh, model, tokens, remat, gather, order, accumulate, offload, zero, activations,
        prefetch, chunks, when);
}

static void of_drawn_steps(void **unused)
{
    (void)unused;
    uint32_t walked = 0, played = 0, refused = 0;
    for (uint32_t i = 0; i < STEPS; i++) {
        struct error error = {0};
        if (sampling_skips(&walked)) continue;
        bool const refuses = walk_drawn(i, step_random, NULL, all_add_up, &error) != STATUS_OK;
        if (refuses) print_message("%s: %s\n", error.where, error.message);
        *(refuses ? &refused : &played) += 1;
    }
    print_message("    %u steps, %u refused\n", played, refused);
    assert_true(played > 3 * refused);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_shipped_scenarios),
        cmocka_unit_test(of_drawn_steps),
    };
    walk_seed(argc, argv);
    return cmocka_run_group_tests_name("what is charged", tests, NULL, NULL);
}
