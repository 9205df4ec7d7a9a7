/* ZeRO-2 over slow links: gradients that wait for their reduction do not fill HBM. */
#include <stdio.h>
#include <string.h>

#include "sim/step/workload.h"
#include "tests/support/case.h"
#include "tests/support/play.h"

enum { TEXT_BYTES = 1024, LAYERS = 16, WIDTH = 8192, MLP_WIDTH = 32768 };
static const uint64_t layer_bytes = UINT64_C(2) * 2 * WIDTH * MLP_WIDTH; /* Of gradients, bf16. */

static struct play play;

/* 64 tokens a chip and microbatch: a layer is reduced for longer than it is computed. */
static void run_scheduled(const char *mesh, uint32_t data, uint32_t zero, uint32_t microbatches,
                          const char *more)
{
    char text[TEXT_BYTES];
    (void)snprintf(text, sizeof text,
                   "{\"podsim\":1,\"machine\":{\"chip\":\"h100-sxm\",\"nodes\":2},\"mesh\":{%s},"
                   "\"workload\":{\"kind\":\"train_step\",\"model\":{\"kind\":\"mlp\",\"D\":%d,"
                   "\"F\":%d,\"layers\":%d},\"batch_tokens\":%u,\"accumulate\":%u,\"zero\":%u%s,"
                   "\"allow_oversubscription\":true},\"run\":{\"steps\":1}}",
                   mesh, WIDTH, MLP_WIDTH, LAYERS, data * microbatches * 64, microbatches, zero,
                   more);
    play_run(&play, text, NULL);
}

static void run(const char *mesh, uint32_t data, uint32_t zero, uint32_t microbatches)
{
    run_scheduled(mesh, data, zero, microbatches, "");
}

static const char flat[] = "\"dp\":[\"node\",\"gpu\"]";
static const char staged[] = "\"dp\":[\"gpu\"],\"pp\":[\"node\"]";
/* Passes whose ops wait for collectives run as pairs. */
static const char waiting[] =
    "\"tp\":[\"gpu:4\"],\"dp\":[\"gpu:2\"],\"pp\":[\"node\"],\"order\":[\"tp\",\"dp\",\"pp\"]";

/* Gradients of the layer that is computed and of the one before; all else is less than a layer. */
static void at_most_two_layers_wait(const char *mesh, uint32_t data, uint32_t microbatches)
{
    run(mesh, data, 2, microbatches);
    uint64_t const held = play.trace.memory.at_peak_bytes[PROGRAM_MEMORY_BUFFERS];
    if (held > 3 * layer_bytes || held < layer_bytes)
        fail_msg("%s, %u microbatches: buffers of %llu bytes, %llu a layer", mesh, microbatches,
                 (unsigned long long)held, (unsigned long long)layer_bytes);
    play_close(&play);
}

static void gradients_of_at_most_two_layers_wait_for_slow_links(void **state)
{
    (void)state;
    at_most_two_layers_wait(flat, 16, 1);
    at_most_two_layers_wait(flat, 16, 4);
    at_most_two_layers_wait(staged, 8, 8);
}

static uint32_t windows(void)
{
    uint32_t count = 0;
    for (uint32_t t = 0; t < play.program.template_count; t++) {
        const struct program_template *template = &play.program.templates[t];
        for (uint32_t i = 0; i < template->op_count; i++)
            for (uint32_t n = 0; n < template->op[i].need_count; n++)
                if (template->op[i].need[n].reason == PROGRAM_REASON_WINDOW) count++;
    }
    return count;
}

/* One a template that reduces: the backward pass of a layer. ZeRO-0 and 1 have a whole buffer. */
static void only_reductions_of_every_microbatch_have_a_window(void **state)
{
    (void)state;
    for (uint32_t zero = 0; zero <= 2; zero++) {
        run(flat, 16, zero, 4);
        assert_int_equal(windows(), zero == 2);
        play_close(&play);
    }
}

/* A pair has the forward pass of another microbatch in it, before the backward pass or after it,
 * and that has no gradients to wait for. */
static void forward_passes_of_pairs_have_no_window(void **state)
{
    (void)state;
    static const char *const schedules[] = {",\"schedule\":\"dualpipe\"",
                                            ",\"schedule\":\"dualpipev\""};
    for (uint32_t s = 0; s < 2; s++) {
        uint32_t pairs = 0;
        run_scheduled(waiting, 2, 2, 8, schedules[s]);
        assert_true(windows() > 0);
        for (uint32_t t = 0; t < play.program.template_count; t++) {
            const struct program_template *template = &play.program.templates[t];
            pairs += strchr(template->name, ',') != NULL;
            for (uint32_t i = 0; i < template->op_count; i++)
                for (uint32_t n = 0; n < template->op[i].need_count; n++)
                    if (template->op[i].need[n].reason == PROGRAM_REASON_WINDOW &&
                        strncmp(template->op[i].name, "mlp.d", 5) != 0)
                        fail_msg("%s: %s has a window", template->name, template->op[i].name);
        }
        assert_true(pairs > 0);
        play_close(&play);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_at_most_two_layers_wait_for_slow_links),
        cmocka_unit_test(only_reductions_of_every_microbatch_have_a_window),
        cmocka_unit_test(forward_passes_of_pairs_have_no_window),
    };
    return cmocka_run_group_tests_name("reduction window", tests, NULL, NULL);
}
