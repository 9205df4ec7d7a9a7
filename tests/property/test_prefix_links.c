/*
 * Links in use when pipelines are told apart. Fewer chips replay a drawn step up to that instant
 * and then hand on what is at their links: a message in service, and messages of other streams that
 * take turns with it. The step has the same digest when all chips of the fold replay it from the
 * start on, and the same instants with all chips of the machine. A timeline says what was at the
 * links at that instant.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"

enum { TEXT_BYTES = 1400, CASES = 72, STEPS = 3, SHOWN_MAX = 16 };

static uint64_t random_state;

static const char leaves[] =
    "\"chip\": \"h100-sxm\", \"nodes\": 32, \"gpus\": 2, \"network\": {\"switch_ports\": 8}";
static const char thin_leaves[] =
    "\"chip\": \"h100-sxm\", \"nodes\": 64, \"gpus\": 1, \"network\": "
    "{\"switch_ports\": 8, \"leaf\": {\"oversubscription\": 4}}";
static const char pairs[] =
    "\"chip\": \"mi300x\", \"nodes\": 8, \"gpus\": 4, \"network\": {\"switch_ports\": 8}";
static const char slices[] = "\"chip\": \"tpu-v5p\", \"shape\": \"8x4x4\", \"slices\": 4";

/* Weights are gathered over links that stages send by; or stages of a leaf share its cables; or
 * gathers and reductions meet at a link of two GPUs. `dp` tells pipelines apart at the end. */
static const struct {
    const char *machine, *mesh;
    uint32_t microbatches;
} sites[] = {
    {leaves,
     "{\"fsdp\": [\"gpu\", \"node:2\"], \"pp\": [\"node:2\"], \"dp\": [\"node:8\"], "
     "\"order\": [\"fsdp\", \"pp\", \"dp\"]}",
     8},
    {leaves,
     "{\"tp\": [\"gpu\"], \"fsdp\": [\"node:2\"], \"pp\": [\"node:2\"], \"dp\": "
     "[\"node:8\"], \"order\": [\"tp\", \"fsdp\", \"pp\", \"dp\"]}",
     8},
    {leaves,
     "{\"fsdp\": [\"gpu\"], \"tp\": [\"node:2\"], \"pp\": [\"node:2\"], \"dp\": "
     "[\"node:8\"], \"order\": [\"fsdp\", \"tp\", \"pp\", \"dp\"]}",
     8},
    {slices,
     "{\"tp\": [\"x:2\"], \"fsdp\": [\"y\"], \"pp\": [\"x:4\"], \"dp\": [\"z\", "
     "\"slice\"], \"order\": [\"tp\", \"pp\", \"fsdp\", \"dp\"]}",
     8},
    {thin_leaves, "{\"pp\": [\"node:8\"], \"dp\": [\"node:8\"], \"order\": [\"pp\", \"dp\"]}", 16},
    {pairs,
     "{\"fsdp\": [\"gpu\"], \"pp\": [\"node:2\"], \"dp\": [\"node:4\"], "
     "\"order\": [\"fsdp\", \"pp\", \"dp\"]}",
     8},
};
enum { SITES = sizeof sites / sizeof *sites };

static void scenario_write(char text[TEXT_BYTES], uint32_t site, const char *arbitration)
{
    uint32_t const count = sites[site].microbatches; /* And layers. */
    const char *schedule =
        CASE_PICK(&random_state, "gpipe", "1f1b", "interleaved:2", "zb-h1", "dualpipe");
    const char *width = CASE_PICK(&random_state, "2048", "8192");
    const char *inner = CASE_PICK(&random_state, "1024", "4096");
    const char *tokens = CASE_PICK(&random_state, "131072", "1048576");
    case_text(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"title\": \"links\", \"machine\": {%s, \"profile\": \"ideal\"}, "
        "\"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": {\"kind\": \"mlp\", "
        "\"D\": %s, \"F\": %s, \"layers\": %u, \"matrices\": 2}, \"batch_tokens\": %s, "
        "\"accumulate\": %u, \"schedule\": \"%s\", \"allow_oversubscription\": true}, "
        "\"run\": {\"arbitration\": \"%s\"}}",
        sites[site].machine, sites[site].mesh, width, inner, count, tokens, count, schedule,
        arbitration);
}

/* With all chips of the fold from the start on. */
static void late_run(struct play *play, uint64_t segment_bytes, struct trace *ret_trace)
{
    uint32_t shown[SHOWN_MAX];
    struct fold fold = play->fold;
    fold.prefix = NULL;
    assert_true(fold.chip_count <= SHOWN_MAX);
    for (uint32_t chip = 0; chip < fold.chip_count; chip++)
        shown[chip] = fold_machine_chip(&fold, &play->machine, chip);
    struct replay_options const options = {.engine = "fast",
                                           .arbitration = play->scenario.run.arbitration,
                                           .segment_bytes = segment_bytes,
                                           .record = true,
                                           .shown_chips = shown,
                                           .shown_count = fold.chip_count,
                                           .steps_max = STEPS};
    case_ok(replay_run(play->arena, &options, &play->machine, &play->program, &fold, ret_trace,
                       &case_error));
}

static bool is_at_its_link(const struct trace_record *record, int64_t at_ps)
{
    return record->kind == TRACE_TRANSFER && record->begin_ps - record->wait_ps < at_ps &&
           record->end_ps > at_ps;
}

/* Whether messages of two streams are at a chip's link at that instant, one of them in service. */
static bool streams_meet_at(const struct trace *trace, int64_t at_ps)
{
    for (uint64_t i = 0; i < trace->records.count; i++) {
        const struct trace_record *one = &trace->records.record[i];
        if (!is_at_its_link(one, at_ps) || one->begin_ps >= at_ps) continue;
        for (uint64_t k = 0; k < trace->records.count; k++) {
            const struct trace_record *other = &trace->records.record[k];
            if (other->chip == one->chip && other->port == one->port &&
                other->stream != one->stream && is_at_its_link(other, at_ps))
                return true;
        }
    }
    return false;
}

static bool instants_agree(const struct trace *one, const struct trace *other)
{
    bool same = one->step_ps == other->step_ps && one->exposed_ps == other->exposed_ps &&
                one->waiting_ps == other->waiting_ps && one->role_count == other->role_count &&
                memcmp(&one->period, &other->period, sizeof one->period) == 0;
    for (uint32_t r = 0; same && r < one->role_count; r++)
        same = one->roles[r].last_end_ps == other->roles[r].last_end_ps &&
               one->roles[r].exposed_ps == other->roles[r].exposed_ps &&
               one->roles[r].sent_bytes == other->roles[r].sent_bytes;
    for (uint32_t i = 0; same && i < one->class_count; i++)
        same = one->classes[i].end_ps == other->classes[i].end_ps;
    for (uint32_t port = 0; same && port < TRACE_PORTS_MAX; port++)
        same = one->link[port].busy_ps == other->link[port].busy_ps;
    return same;
}

/* Returns whether streams met at a link when pipelines were told apart. */
static bool compare(const char *text, uint64_t segment_bytes)
{
    struct play_options const plain = {.segment_bytes = segment_bytes, .steps_max = STEPS};
    struct play_options full = plain, reference = plain;
    full.full = true;
    reference.engine = "reference";
    struct play folded, whole, slow;
    struct trace late;
    play_run(&folded, text, &plain);
    play_run(&whole, text, &full);
    play_run(&slow, text, &reference);
    late_run(&folded, segment_bytes, &late);
    assert_true(folded.trace.fold.prefix > 0 && late.fold.prefix == 0);
    if (folded.trace.digest != late.digest || folded.trace.digest != slow.trace.digest ||
        folded.trace.work.events != late.work.events ||
        folded.trace.work.transfers != late.work.transfers ||
        !instants_agree(&folded.trace, &late) || !instants_agree(&folded.trace, &whole.trace))
        fail_msg("%lld ps folded early, at %lld, %lld folded, %lld full: %s",
                 (long long)folded.trace.step_ps, (long long)folded.trace.fold.prefix_ps,
                 (long long)late.step_ps, (long long)whole.trace.step_ps, text);
    bool const meet = streams_meet_at(&late, folded.trace.fold.prefix_ps);
    play_close(&folded);
    play_close(&whole);
    play_close(&slow);
    return meet;
}

static void what_is_at_links_is_handed_on(void **state)
{
    (void)state;
    static const char *const arbitrations[] = {"fair", "priority", "fifo"};
    uint32_t walked = 0, taken[3] = {0}, meet[3] = {0};
    for (uint32_t i = 0; i < CASES; i++) {
        char text[TEXT_BYTES];
        if (sampling_skips(&walked)) continue;
        random_state = i * 7919ull + 3;
        uint32_t const drawn = (uint32_t)(case_random(&random_state) % 4);
        uint32_t const site = (uint32_t)(case_random(&random_state) % SITES);
        /* The first case is always taken, and streams meet in it. */
        uint32_t const a = i == 0 || drawn == 3 ? 0 : drawn;
        scenario_write(text, i == 0 ? 0 : site, arbitrations[a]);
        meet[a] += compare(text, i % 2 == 0 ? 0 : 1 << 20);
        taken[a]++;
    }
    for (uint32_t a = 0; a < 3; a++)
        print_message("    %s: of %u steps, streams met at a link in %u\n", arbitrations[a],
                      taken[a], meet[a]);
    assert_true(5 * meet[0] >= taken[0] && meet[0] > 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_at_links_is_handed_on),
    };
    return cmocka_run_group_tests_name("early links", tests, NULL, NULL);
}
