/* What frameworks hold beside the book's bytes, row by row, against sums by hand. */
#include <stdio.h>
#include <string.h>

#include "sim/step/overheads.h"
#include "sim/step/workload.h"
#include "tests/support/case.h"
#include "tests/support/play.h"

enum { TEXT_BYTES = 1024, ROWS = 4096, WIDTH = 4096, COLUMNS = 14336, VOCABULARY = 128256 };
static const double parameters = 8030261248.0;                    /* Of LLaMA 3 8B, */
static const double layer_parameters = 218112000.0;               /* of a layer with its norms, */
static const double channel_bytes = 524288 + 4915200 + 4194304.0; /* and of a channel of NCCL. */

static struct play play;

/* Microbatches of a sequence a GPU. `more` are members of the workload, each behind a comma. */
static void build_microbatches(const char *machine, const char *mesh, uint32_t ranks,
                               uint32_t microbatches, const char *more)
{
    char text[TEXT_BYTES];
    struct play_options const options = {.lower_only = true};
    (void)snprintf(text, sizeof text,
                   "{\"podsim\":1,\"machine\":{%s},\"mesh\":{%s},\"workload\":{\"kind\":"
                   "\"train_step\",\"model\":\"llama-3-8b\",\"batch_tokens\":%u,"
                   "\"sequence_length\":4096,\"allow_oversubscription\":true,\"accumulate\":%u%s}}",
                   machine, mesh, ranks * microbatches * ROWS, microbatches, more);
    play_run(&play, text, &options);
}

static void build(const char *machine, const char *mesh, uint32_t ranks, const char *more)
{
    build_microbatches(machine, mesh, ranks, 2, more);
}

static const char h100[] = "\"chip\":\"h100-sxm\",\"profile\":\"measured\"";
static const char dp[] = "\"dp\":[\"gpu\"]", fsdp[] = "\"fsdp\":[\"gpu\"]";

static uint64_t resident(enum program_memory memory)
{
    return play.program.roles[0].resident_bytes[memory];
}

static bool is_template(const char *name, const struct program_template *template)
{
    return strcmp(template->name, name) == 0;
}

/* Bytes that ops of a template take. */
static uint64_t taken(const char *template, enum program_memory memory)
{
    uint64_t bytes = 0;
    for (uint32_t t = 0; t < play.program.template_count; t++) {
        const struct program_template *of = &play.program.templates[t];
        if (!is_template(template, of)) continue;
        for (uint32_t i = 0; i < of->op_count; i++)
            for (uint32_t e = 0; e < of->op[i].effect_count; e++)
                if (of->op[i].effect[e].memory == memory && of->op[i].effect[e].bytes > 0)
                    bytes += (uint64_t)of->op[i].effect[e].bytes;
        break;
    }
    return bytes;
}

static uint64_t overheads(void)
{
    uint64_t bytes = 0;
    for (uint32_t m = PROGRAM_OVERHEAD_FIRST; m < PROGRAM_MEMORY_CACHE; m++) {
        bytes += resident((enum program_memory)m);
        for (uint32_t t = 0; t < play.program.template_count; t++)
            bytes += taken(play.program.templates[t].name, (enum program_memory)m);
    }
    return bytes;
}

static void measured_gpus_count_what_frameworks_hold_and_others_the_book(void **state)
{
    (void)state;
    static const struct {
        const char *machine, *more;
        bool counted;
    } rows[] = {
        {"\"chip\":\"h100-sxm\"", "", false},
        {"\"chip\":\"h100-sxm\",\"profile\":\"measured\"", "", true},
        {"\"chip\":\"mi300x\",\"profile\":\"measured\"", "", true},
        {"\"chip\":\"h100-sxm\"", ",\"memory\":\"framework\"", true},
        {"\"chip\":\"h100-sxm\",\"profile\":\"measured\"", ",\"memory\":\"book\"", false},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        build(rows[i].machine, dp, 8, rows[i].more);
        assert_int_equal(overheads() > 0, rows[i].counted);
        assert_int_equal(resident(PROGRAM_MEMORY_GRADIENTS) == 0, rows[i].counted);
        play_close(&play);
    }
    build("\"chip\":\"tpu-v5p\",\"shape\":\"2x2x2\",\"profile\":\"measured\"",
          "\"fsdp\":[\"x\",\"y\",\"z\"]", 8, "");
    assert_int_equal(overheads(), 0);
    play_close(&play);
}

static void megatron_holds_masters_of_its_share_and_whole_gradients_in_fp32(void **state)
{
    (void)state;
    build(h100, dp, 8, ",\"zero\":1");
    case_near((double)resident(PROGRAM_MEMORY_MASTER), 4 * parameters / 8, 1e-6);
    case_near((double)resident(PROGRAM_MEMORY_MAIN_GRADIENTS), 4 * parameters, 1e-6);
    assert_true((double)resident(PROGRAM_MEMORY_AUTOGRAD) == 2 * layer_parameters);
    assert_int_equal(taken("layer forward", PROGRAM_MEMORY_COPIES), 0);
    play_close(&play);
    build(h100, dp, 8, ",\"zero\":0");
    case_near((double)resident(PROGRAM_MEMORY_MASTER), 4 * parameters, 1e-6);
    play_close(&play);
    /* There from the start, however many microbatches. */
    build_microbatches(h100, dp, 8, 1, "");
    case_near((double)resident(PROGRAM_MEMORY_MAIN_GRADIENTS), 4 * parameters, 1e-6);
    play_close(&play);
    /* No master of what is fp32 itself. */
    build(h100, dp, 8, ",\"formats\":{\"weights\":\"fp32\"}");
    assert_int_equal(resident(PROGRAM_MEMORY_MASTER), 0);
    play_close(&play);
    /* Shards go over cp too. */
    build(h100, "\"cp\":[\"gpu:2\"],\"dp\":[\"gpu:4\"]", 8, ",\"zero\":1");
    case_near((double)resident(PROGRAM_MEMORY_MASTER), 4 * parameters / 8, 1e-6);
    play_close(&play);
}

static void fsdp_holds_fp32_parameters_and_copies_of_what_it_moves(void **state)
{
    (void)state;
    build(h100, fsdp, 8, "");
    case_near((double)(resident(PROGRAM_MEMORY_MASTER) + resident(PROGRAM_MEMORY_PARAMETERS)),
              4 * parameters / 8, 1e-6);
    case_near((double)resident(PROGRAM_MEMORY_MAIN_GRADIENTS), 4 * parameters / 8, 1e-6);
    assert_int_equal(resident(PROGRAM_MEMORY_AUTOGRAD), 0);
    /* Gathered in bf16, both ways; reduced in what is sent. */
    assert_true((double)taken("layer forward", PROGRAM_MEMORY_COPIES) == 2 * layer_parameters);
    assert_true((double)taken("layer backward", PROGRAM_MEMORY_COPIES) ==
                (2 + 2) * layer_parameters);
    play_close(&play);
    /* Of one microbatch only from the reduction to the update. */
    build_microbatches(h100, fsdp, 8, 1, "");
    assert_int_equal(resident(PROGRAM_MEMORY_MAIN_GRADIENTS), 0);
    assert_true((double)taken("layer backward", PROGRAM_MEMORY_MAIN_GRADIENTS) ==
                4 * layer_parameters / 8);
    play_close(&play);
}

/* FSDP1 gathers to where weights lie, from a cast shard, and reduces gradients where they lie,
 * unless it casts them. DeepSpeed joins weights that are gathered together. Megatron-LM copies
 * nothing. */
static void copies_are_those_of_the_framework(void **state)
{
    (void)state;
    static const struct {
        const char *kernels, *more;
        double gathered, reduced, held; /* Bytes of a weight; held all the time: of a shard. */
    } rows[] = {
        {"fsdp2", "", 2, 2, 4},
        {"fsdp1", "", 2.0 / 8, 0, 4},
        {"fsdp1", ",\"formats\":{\"gradients\":\"fp32\"}", 2.0 / 8, 4, 4},
        {"fsdp1", ",\"formats\":{\"weights\":\"fp32\",\"gradients\":\"fp32\"}", 0, 0, 4},
        {"fsdp2", ",\"formats\":{\"weights\":\"fp32\",\"gradients\":\"fp32\"}", 4, 4, 4},
        {"deepspeed", "", 2, 2, 6},
        {"deepspeed", ",\"gather\":\"tensor\"", 0, 2, 6},
        {"none", "", 0, 0, 6},
    };
    static const char *const stacks[] = {"", ",\"stack\":\"torch-eager\""};
    for (uint32_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        char machine[128], more[256];
        (void)snprintf(machine, sizeof machine, "%s%s", h100, stacks[i % 2]);
        (void)snprintf(more, sizeof more, ",\"shard_kernels\":\"%s\"%s", rows[i / 2].kernels,
                       rows[i / 2].more);
        build(machine, fsdp, 8, more);
        case_near((double)taken("layer forward", PROGRAM_MEMORY_COPIES),
                  rows[i / 2].gathered * layer_parameters, 1e-6);
        case_near((double)taken("layer backward", PROGRAM_MEMORY_COPIES),
                  (rows[i / 2].gathered + rows[i / 2].reduced) * layer_parameters, 1e-6);
        case_near((double)(resident(PROGRAM_MEMORY_MASTER) + resident(PROGRAM_MEMORY_PARAMETERS)),
                  rows[i / 2].held * parameters / 8, 1e-6);
        play_close(&play);
    }
    /* Without either, they are FSDP2's; Transformer Engine's stack has none. */
    build(h100, fsdp, 8, "");
    assert_true((double)taken("layer forward", PROGRAM_MEMORY_COPIES) == 2 * layer_parameters);
    play_close(&play);
    build("\"chip\":\"h100-sxm\",\"profile\":\"measured\",\"stack\":\"te\"", fsdp, 8, "");
    assert_int_equal(taken("layer forward", PROGRAM_MEMORY_COPIES), 0);
    play_close(&play);
}

static void main_gradients_have_their_own_format_but_in_shards_of_fsdp(void **state)
{
    (void)state;
    static const char narrow[] = ",\"formats\":{\"main_gradients\":\"bf16\"}";
    build(h100, dp, 8, narrow);
    case_near((double)resident(PROGRAM_MEMORY_MAIN_GRADIENTS), 2 * parameters, 1e-6);
    case_near((double)resident(PROGRAM_MEMORY_MASTER), 4 * parameters, 1e-6);
    play_close(&play);
    /* FSDP keeps fp32, and reduces from what it sends, whose format is that of gradients. */
    char text[TEXT_BYTES];
    struct play_options const options = {.lower_only = true};
    (void)snprintf(text, sizeof text,
                   "{\"podsim\":1,\"machine\":{%s},\"mesh\":{%s},\"workload\":{\"kind\":"
                   "\"train_step\",\"model\":\"llama-3-8b\",\"batch_tokens\":65536,"
                   "\"sequence_length\":4096%s}}",
                   h100, fsdp, narrow);
    case_refused(play_try(&play, text, &options, &case_error), STATUS_INVALID,
                 "/workload/formats/main_gradients", "FSDP keeps gradients");
    play_close(&play);
    build(h100, fsdp, 8, ",\"formats\":{\"gradients\":\"fp32\"}");
    case_near((double)resident(PROGRAM_MEMORY_MAIN_GRADIENTS), 4 * parameters / 8, 1e-6);
    assert_true((double)taken("layer backward", PROGRAM_MEMORY_COPIES) ==
                (2 + 4) * layer_parameters);
    play_close(&play);
}

static void the_book_has_no_main_gradients(void **state)
{
    (void)state;
    static const char text[] =
        "{\"podsim\":1,\"machine\":{\"chip\":\"h100-sxm\"},\"mesh\":{\"dp\":[\"gpu\"]},"
        "\"workload\":{\"kind\":\"train_step\",\"model\":\"llama-3-8b\",\"batch_tokens\":65536,"
        "\"sequence_length\":4096,\"formats\":{\"main_gradients\":\"%s\"}}}";
    struct play_options const options = {.lower_only = true};
    char made[TEXT_BYTES];
    (void)snprintf(made, sizeof made, text, "bf16");
    case_refused(play_try(&play, made, &options, &case_error), STATUS_INVALID,
                 "/workload/formats/main_gradients", "has no main gradients");
    play_close(&play);
    (void)snprintf(made, sizeof made, text, "fp32");
    assert_int_equal(play_try(&play, made, &options, &case_error), STATUS_OK);
    play_close(&play);
}

static void what_swiglu_gives_is_kept_unless_remat_makes_it_again(void **state)
{
    (void)state;
    static const struct {
        const char *remat;
        uint32_t forward, backward; /* Times that it is taken. */
    } rows[] = {
        {"none", 1, 0}, {"norms", 1, 1}, {"big_matmuls", 1, 1}, {"block", 1, 1}, {"layer", 1, 1}};
    uint64_t const bytes = 2ull * ROWS * COLUMNS;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char more[64];
        (void)snprintf(more, sizeof more, ",\"remat\":\"%s\"", rows[i].remat);
        build(h100, dp, 8, more);
        assert_int_equal(taken("layer forward", PROGRAM_MEMORY_ACTIVATED), rows[i].forward * bytes);
        assert_int_equal(taken("layer backward", PROGRAM_MEMORY_ACTIVATED),
                         rows[i].backward * bytes);
        play_close(&play);
    }
}

/* Experts, with shared ones. */
static void what_experts_functions_give_is_kept_too(void **state)
{
    (void)state;
    static const char text[] =
        "{\"podsim\":1,\"machine\":{\"chip\":\"h100-sxm\",\"profile\":\"measured\"},"
        "\"mesh\":{\"ep\":[\"gpu\"]},\"workload\":{\"kind\":\"train_step\",\"model\":"
        "\"deepseek-v3\",\"batch_tokens\":32768,\"sequence_length\":4096,\"mtp\":false,"
        "\"allow_oversubscription\":true}}";
    struct play_options const options = {.lower_only = true};
    play_run(&play, text, &options);
    uint32_t const last = play.program.roles[0].block_count;
    uint64_t most = 0;
    for (uint32_t b = 0; b < last; b++) {
        const char *name =
            play.program.templates[play.program.roles[0].block[b].template_index].name;
        uint64_t const bytes = taken(name, PROGRAM_MEMORY_ACTIVATED);
        if (strstr(name, "backward") == NULL && bytes > most) most = bytes;
    }
    assert_int_equal(most, 2ull * ROWS * (8 + 1) * 2048);
    play_close(&play);
}

static void the_loss_reads_logits_in_fp32(void **state)
{
    (void)state;
    build(h100, dp, 8, "");
    assert_int_equal(taken("head forward", PROGRAM_MEMORY_LOSS), 4ull * ROWS * VOCABULARY);
    play_close(&play);
    build(h100, fsdp, 8, "");
    assert_int_equal(taken("head forward", PROGRAM_MEMORY_LOSS), 4ull * ROWS * VOCABULARY);
    play_close(&play);
}

/* Compiled kernels keep the softmax in fp32, Transformer Engine's the gradient where logits lay. */
static void fused_losses_keep_what_they_write(void **state)
{
    (void)state;
    static const struct {
        const char *fusion;
        uint64_t bytes;
    } rows[] = {{"none", 4}, {"native", 4}, {"te", 0}, {"flash_attn", 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char more[64];
        (void)snprintf(more, sizeof more, ",\"loss_fusion\":\"%s\"", rows[i].fusion);
        build(h100, dp, 8, more);
        assert_int_equal(taken("head forward", PROGRAM_MEMORY_LOSS),
                         rows[i].bytes * ROWS * VOCABULARY);
        play_close(&play);
    }
}

static void masks_are_kept_where_scores_are_dropped_out(void **state)
{
    (void)state;
    build(h100, dp, 8, ",\"attention_kernel\":\"unfused_dropout\"");
    assert_int_equal(taken("layer forward", PROGRAM_MEMORY_MASKS), 2ull * ROWS * WIDTH);
    play_close(&play);
    build(h100, dp, 8, ",\"attention_kernel\":\"unfused\"");
    assert_int_equal(taken("layer forward", PROGRAM_MEMORY_MASKS), 0);
    play_close(&play);
}

static void each_communicator_has_its_channels(void **state)
{
    (void)state;
    static const char nodes[] = "\"chip\":\"h100-sxm\",\"profile\":\"measured\",\"nodes\":2";
    static const struct {
        const char *machine, *mesh;
        uint32_t ranks, channels;
    } rows[] = {
        {h100, dp, 8, 24},
        {h100, "\"tp\":[\"gpu:2\"],\"dp\":[\"gpu:4\"]", 4, 24 + 24},
        {nodes, "\"tp\":[\"gpu\"],\"dp\":[\"node\"]", 2, 24 + 16},
        {nodes, "\"cp\":[\"gpu\"],\"dp\":[\"node\"]", 16, 24 + 16}, /* Gradients over both. */
        {nodes, "\"fsdp\":[\"gpu\"],\"dp\":[\"node\"]", 16, 24 + 16},
        {h100, "\"cp\":[\"gpu\"]", 8, 24},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        build(rows[i].machine, rows[i].mesh, rows[i].ranks, "");
        assert_true((double)resident(PROGRAM_MEMORY_NCCL) == rows[i].channels * channel_bytes);
        play_close(&play);
    }
}

static void workspaces_are_those_of_the_generation(void **state)
{
    (void)state;
    enum { MIB = 1 << 20 };
    static const struct {
        const char *machine;
        uint32_t kib;
    } rows[] = {
        {"\"chip\":\"a100-sxm\",\"profile\":\"measured\"", (8 * 1024 + 128) + 4 * 1024},
        {"\"chip\":\"h100-sxm\",\"profile\":\"measured\"", (32 + 32) * 1024},
        {"\"chip\":\"b200\",\"profile\":\"measured\"", (32 + 32) * 1024},
        {"\"chip\":\"mi300x\",\"profile\":\"measured\"", (128 + 32) * 1024},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        build(rows[i].machine, dp, 8, "");
        assert_int_equal(resident(PROGRAM_MEMORY_CUBLAS), rows[i].kib * 1024ull);
        assert_int_equal(resident(PROGRAM_MEMORY_CONTEXT), 481ull * MIB);
        play_close(&play);
    }
}

/* Of every remat, in pipelines that split backward passes too: what is taken is given back, and no
 * instant moves. */
static void all_is_given_back_and_takes_no_time(void **state)
{
    (void)state;
    static const char *const remats[] = {"none", "norms", "big_matmuls", "block", "layer"};
    static const char *const schedules[] = {"1f1b", "zb-h1"};
    static const char *const memories[] = {"book", "framework"};
    for (uint32_t i = 0; i < 20; i++) {
        uint64_t digest[2];
        for (uint32_t m = 0; m < 2; m++) {
            char text[TEXT_BYTES];
            (void)snprintf(
                text, sizeof text,
                "{\"podsim\":1,\"machine\":{\"chip\":\"h100-sxm\"},\"mesh\":{\"pp\":[\"gpu:2\"],"
                "\"%s\":[\"gpu:4\"]},\"workload\":{\"kind\":\"train_step\",\"model\":"
                "\"llama-3-8b\",\"batch_tokens\":65536,\"sequence_length\":4096,\"accumulate\":4,"
                "\"attention_kernel\":\"unfused_dropout\",\"allow_oversubscription\":true,"
                "\"remat\":\"%s\",\"schedule\":\"%s\",\"memory\":\"%s\"},\"run\":{\"steps\":1}}",
                i >= 10 ? "fsdp" : "dp", remats[i % 5], schedules[i / 5 % 2], memories[m]);
            play_run(&play, text, NULL);
            digest[m] = play.trace.digest;
            for (uint32_t r = 0; r < play.program.role_count; r++) {
                int64_t left[PROGRAM_MEMORY_COUNT] = {0};
                const struct program_role *role = &play.program.roles[r];
                for (uint32_t b = 0; b < role->block_count; b++) {
                    const struct program_template *template =
                        &play.program.templates[role->block[b].template_index];
                    for (uint32_t o = 0; o < template->op_count; o++)
                        for (uint32_t e = 0; e < template->op[o].effect_count; e++)
                            left[template->op[o].effect[e].memory] +=
                                (int64_t)role->block[b].repeat * template->op[o].effect[e].bytes;
                }
                for (uint32_t kind = 0; kind < PROGRAM_MEMORY_COUNT; kind++)
                    assert_int_equal(left[kind], 0);
            }
            play_close(&play);
        }
        assert_int_equal(digest[0], digest[1]);
    }
}

static void a_machine_without_gpus_has_no_framework(void **state)
{
    (void)state;
    static const char text[] =
        "{\"podsim\":1,\"machine\":{\"chip\":\"tpu-v5e\",\"shape\":\"4x4\"},\"mesh\":{\"fsdp\":"
        "[\"x\",\"y\"]},\"workload\":{\"kind\":\"train_step\",\"model\":\"llama-3-8b\","
        "\"batch_tokens\":65536,\"sequence_length\":4096,\"memory\":\"framework\"}}";
    struct play_options const options = {.lower_only = true};
    case_refused(play_try(&play, text, &options, &case_error), STATUS_UNSUPPORTED,
                 "/workload/memory", "for TPU v5e there is \"book\"");
    play_close(&play);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(measured_gpus_count_what_frameworks_hold_and_others_the_book),
        cmocka_unit_test(megatron_holds_masters_of_its_share_and_whole_gradients_in_fp32),
        cmocka_unit_test(fsdp_holds_fp32_parameters_and_copies_of_what_it_moves),
        cmocka_unit_test(copies_are_those_of_the_framework),
        cmocka_unit_test(main_gradients_have_their_own_format_but_in_shards_of_fsdp),
        cmocka_unit_test(the_book_has_no_main_gradients),
        cmocka_unit_test(what_swiglu_gives_is_kept_unless_remat_makes_it_again),
        cmocka_unit_test(what_experts_functions_give_is_kept_too),
        cmocka_unit_test(the_loss_reads_logits_in_fp32),
        cmocka_unit_test(fused_losses_keep_what_they_write),
        cmocka_unit_test(masks_are_kept_where_scores_are_dropped_out),
        cmocka_unit_test(each_communicator_has_its_channels),
        cmocka_unit_test(workspaces_are_those_of_the_generation),
        cmocka_unit_test(all_is_given_back_and_takes_no_time),
        cmocka_unit_test(a_machine_without_gpus_has_no_framework),
    };
    return cmocka_run_group_tests_name("overheads", tests, NULL, NULL);
}
