/* Block remat repeats of a layer what is read again, which is known for each kind of layer. */
#include <stdio.h>
#include <string.h>

#include "tests/support/case.h"
#include "tests/support/play.h"

enum { TEXT_BYTES = 1400 };

/* Whether the backward template of a layer has an op. */
static bool backward_has(const struct program *program, uint32_t template_index, const char *name)
{
    const struct program_template *template = &program->templates[template_index];
    for (uint32_t i = 0; i < template->op_count; i++)
        if (strcmp(template->op[i].name, name) == 0) return true;
    return false;
}

/* What `layer` has and `block` has not, in all templates of layers; "" ends a list. */
static void left_out(const char *model, const char *axis, const char *const *wanted)
{
    static const struct play_options options = {.lower_only = true};
    static const char *const remats[] = {"layer", "block"};
    struct play play[2];
    for (uint32_t k = 0; k < 2; k++) {
        char text[TEXT_BYTES];
        (void)snprintf(text, sizeof text,
                       "{\"podsim\": 1, \"machine\": {\"chip\": \"tpu-v5p\", \"shape\": "
                       "\"4x4x4\"}, \"mesh\": {\"fsdp\": [\"x\"], \"%s\": [\"y\"], \"tp\": "
                       "[\"z\"]}, \"workload\": {\"kind\": \"train_step\", \"model\": %s, "
                       "\"batch_tokens\": 131072, \"sequence_length\": 2048, \"remat\": \"%s\", "
                       "\"gather\": \"tensor\", "
                       "\"allow_oversubscription\": true}}",
                       axis, model, remats[k]);
        play_run(&play[k], text, &options);
    }
    uint32_t missing = 0, count = 0;
    assert_int_equal(play[0].program.template_count, play[1].program.template_count);
    while (wanted[count][0] != '\0') count++;
    for (uint32_t t = 0; t < play[0].program.template_count; t++)
        for (uint32_t i = 0; i < play[0].program.templates[t].op_count; i++) {
            const char *name = play[0].program.templates[t].op[i].name;
            bool stands = false;
            if (backward_has(&play[1].program, t, name)) continue;
            for (uint32_t w = 0; w < count; w++) stands = stands || strcmp(name, wanted[w]) == 0;
            if (!stands) fail_msg("%s of %s is not repeated", name, model);
            missing++;
        }
    assert_int_equal(missing, count);
    for (uint32_t k = 0; k < 2; k++) play_close(&play[k]);
}

/* Both norms read what comes before them, so attention comes again whole; the MLP's or the experts'
 * result nobody reads. W_out stays gathered for the gradient of what it multiplies. */
static void block_remat_leaves_out_what_nothing_reads(void **state)
{
    static const char *const dense[] = {"mlp.Out again", "ReduceScatter mlp.Out", ""};
    static const char *const bare[] = {"mlp.Out again", "ReduceScatter mlp.Out", ""};
    static const char *const experts[] = {"mlp.Out again",
                                          "ReduceScatter mlp.Out",
                                          "experts.Out again",
                                          "moe.Sum again",
                                          "ReduceScatter moe.outputs",
                                          "AllToAll outputs",
                                          "moe.Merge again",
                                          "shared.Out again",
                                          "ReduceScatter shared.Out",
                                          ""};
    (void)state;
    left_out("\"tests/property/dense.json\"", "dp", dense);
    left_out("{\"kind\": \"mlp\", \"D\": 512, \"F\": 1024, \"layers\": 2, \"matrices\": 2}", "dp",
             bare);
    left_out("\"tests/property/mtp.json\", \"mtp\": false", "ep",
             experts); /* Its first layer is dense. */
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(block_remat_leaves_out_what_nothing_reads),
    };
    return cmocka_run_group_tests_name("block remat", tests, NULL, NULL);
}
