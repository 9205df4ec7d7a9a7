/*
 * What a refusal offers is accepted: of drawn steps whose batch or whose sequences do not divide,
 * each value of batch_tokens that the sentence names makes the step one that is lowered, and each
 * sequence_length one that is refused for its batch at most, with one that fits. The environment
 * variable PODSIM_TEST_OFFERS says how many are drawn, from one seed that is printed (or given as
 * the first argument).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { STEPS = 1500, TEXT_BYTES = 1024, OFFERS_MAX = 2, HOPS_MAX = 2 };

static uint32_t offered;

#define PICK(...) CASE_PICK(state, __VA_ARGS__)

struct step {
    const char *model, *shape, *mesh, *activations, *context, *attention;
    unsigned accumulate;
    uint64_t batch_tokens, sequence_length;
};

static void step_random(uint64_t *state, struct step *step)
{
    step->model = PICK("\"tests/property/small.json\"", "\"tests/property/dense.json\"",
                       "\"tests/property/windows-dense.json\"", "\"deepseek-v2\"",
                       "{\"kind\":\"mlp\",\"D\":960,\"F\":1920,\"layers\":2}");
    step->shape = PICK("3x1", "4x2", "5x2", "6x4", "3x3");
    step->mesh = PICK("\"cp\":[\"x\"],\"dp\":[\"y\"]", "\"fsdp\":[\"x\"],\"tp\":[\"y\"]",
                      "\"dp\":[\"x\"],\"cp\":[\"y\"]", "\"cp\":[\"x\"],\"tp\":[\"y\"]",
                      "\"fsdp\":[\"x\",\"y\"]", "\"dp\":[\"x\"],\"fsdp\":[\"y\"]",
                      "\"tp\":[\"x\"],\"dp\":[\"y\"]");
    step->activations = PICK("width", "tokens");
    step->context = PICK("all_gather", "ring", "ulysses");
    step->attention = PICK("full", "causal");
    step->accumulate = 1 + (unsigned)(case_random(state) % 3);
    step->batch_tokens = 1 + case_random(state) % 40000;
    step->sequence_length = 1 + case_random(state) % 3000;
    if (case_random(state) % 2 == 0) step->sequence_length = UINT64_C(64) << case_random(state) % 6;
    if (case_random(state) % 2 == 0) step->batch_tokens = UINT64_C(512) << case_random(state) % 7;
}

static enum status step_try(const struct step *step, char text[TEXT_BYTES], struct error *error)
{
    struct play play;
    char length[64] = "", context[64] = "", attention[64] = "";
    if (strstr(step->model, "mlp") == NULL)
        (void)snprintf(length, sizeof length, ",\"sequence_length\":%" PRIu64,
                       step->sequence_length);
    if (strstr(step->model, "mlp") == NULL)
        (void)snprintf(attention, sizeof attention, ",\"attention\":\"%s\"", step->attention);
    if (strstr(step->mesh, "cp") != NULL)
        (void)snprintf(context, sizeof context, ",\"context\":\"%s\"", step->context);
    int const size =
        snprintf(text, TEXT_BYTES,
                 "{\"podsim\":1,\"machine\":{\"chip\":\"tpu-v5e\",\"shape\":\"%s\","
                 "\"unrealisable\":true},\"mesh\":{%s},\"workload\":{\"kind\":\"train_step\","
                 "\"model\":%s,\"batch_tokens\":%" PRIu64 "%s%s%s,\"activations\":\"%s\","
                 "\"accumulate\":%u,\"allow_oversubscription\":true}}",
                 step->shape, step->mesh, step->model, step->batch_tokens, length, context,
                 attention, step->activations, step->accumulate);
    assert_in_range(size, 1, TEXT_BYTES - 1);
    *error = (struct error){.status = STATUS_OK};
    enum status const status =
        play_try(&play, text, &(struct play_options){.lower_only = true}, error);
    play_close(&play);
    return status;
}

/* Numbers behind the words: "8192 and 16384". */
static uint32_t offers_read(const char *message, const char *words, uint64_t offer[OFFERS_MAX])
{
    const char *at = strstr(message, words);
    uint32_t count = 0;
    if (at == NULL) return 0;
    for (at += strlen(words); count < OFFERS_MAX; at += strlen(" and ")) {
        char *end = NULL;
        offer[count++] = strtoull(at, &end, 10);
        at = end;
        if (strncmp(at, " and ", strlen(" and ")) != 0) break;
    }
    return count;
}

/* `hops`: offers that may still be followed. */
static void check_offers(const struct step *step, uint32_t hops)
{
    char text[TEXT_BYTES];
    struct error error;
    uint64_t offer[OFFERS_MAX];
    if (step_try(step, text, &error) == STATUS_OK) return;
    uint32_t const batches =
        offers_read(error.message, "the nearest batch_tokens that fit: ", offer);
    uint32_t const lengths =
        batches != 0 ? 0 : offers_read(error.message, "the nearest that can: ", offer);
    for (uint32_t i = 0; i < batches + lengths; i++) {
        struct step next = *step;
        struct error why;
        offered++;
        if (hops == 0)
            fail_msg("%s: %s: what was offered before does not fit", text, error.message);
        if (batches == 0) {
            next.sequence_length = offer[i];
            check_offers(&next, hops - 1);
            continue;
        }
        next.batch_tokens = offer[i];
        char again[TEXT_BYTES];
        if (step_try(&next, again, &why) != STATUS_OK &&
            (why.status == STATUS_INVALID || strcmp(why.where, error.where) == 0))
            fail_msg("%s: %s; and then %s: %s", text, error.message, why.where, why.message);
    }
}

static void what_is_offered_is_accepted(void **unused)
{
    (void)unused;
    const char *const asked = getenv("PODSIM_TEST_OFFERS");
    uint32_t const steps = asked == NULL ? STEPS : (uint32_t)strtoul(asked, NULL, 10);
    uint32_t walked = 0, tried = 0;
    for (uint32_t i = 0; i < steps; i++) {
        if (sampling_skips(&walked)) continue;
        uint64_t state = walk_draw(i);
        struct step step;
        step_random(&state, &step);
        tried++;
        check_offers(&step, HOPS_MAX);
    }
    print_message("    %u values offered to %u drawn steps\n", offered, tried);
    assert_true(offered > tried / 3);
}

int main(int argc, char **argv)
{
    walk_seed(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_offered_is_accepted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
