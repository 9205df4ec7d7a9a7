/* Layers that attend to a window of keys: which they are by config.json, as transformers reads it;
 * and what tiles of the MXU they take, tile by tile. */
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/units.h"
#include "sim/model/model_read.h"
#include "sim/resource/compute.h"
#include "tests/support/case.h"
#include "tests/support/refusals.h"
#include "tests/unit/workload_case.h"

static const char experts[] =
    "\"model_type\": \"gpt_oss\", \"num_local_experts\": 8, \"num_experts_per_tok\": 2";
static const char mixtral[] =
    "\"model_type\": \"mixtral\", \"num_local_experts\": 8, \"num_experts_per_tok\": 2";
static const char qwen_experts[] =
    "\"model_type\": \"qwen3_moe\", \"num_experts\": 8, \"num_experts_per_tok\": 2, "
    "\"moe_intermediate_size\": 64";
static const char mistral[] = "\"model_type\": \"mistral\"";
static const char qwen[] = "\"model_type\": \"qwen3\"";
static const char gemma3[] = "\"model_type\": \"gemma3_text\"";
static const char olmo3[] = "\"model_type\": \"olmo3\"";
static const char llama[] = "\"model_type\": \"llama\"";

static enum status read_model(const char *type, const char *more, struct model *model,
                              struct error *error)
{
    struct json *document = NULL;
    const char *text = arena_format(case_arena,
                                    "{%s%s, \"hidden_size\": 512, \"intermediate_size\": 1024, "
                                    "\"num_hidden_layers\": 4, \"num_attention_heads\": 8, "
                                    "\"vocab_size\": 1000}",
                                    type, more);
    if (json_read_text(case_arena, "text", text, strlen(text), &document, error) != STATUS_OK)
        fail_msg("%s: %s", error->where, error->message);
    enum status const status = model_read_config(case_arena, document, "small", model, error);
    json_free(document);
    return status;
}

#define FULL "\"full_attention\""
#define SLIDING "\"sliding_attention\""

static void windows_are_those_of_transformers(void **state)
{
    (void)state;
    static const struct {
        const char *type, *more;
        uint64_t window;
        const char *layers; /* "s" for a window, "f" for none. */
    } rows[] = {
        {experts, "", 128, "sfsf"},
        {experts, ", \"sliding_window\": 64", 64, "sfsf"},
        {experts,
         ", \"layer_types\": [" FULL ", " FULL ", " SLIDING ", " SLIDING "], "
         "\"sliding_window\": 32",
         32, "ffss"},
        {experts, ", \"sliding_window\": null", 0, "ffff"},
        {gemma3, "", 4096, "ssss"},
        {gemma3, ", \"sliding_window\": 512, \"sliding_window_pattern\": 2", 512, "sfsf"},
        {gemma3, ", \"sliding_window_pattern\": 1", 4096, "ffff"},
        {gemma3,
         ", \"sliding_window_pattern\": 3, \"layer_types\": [" FULL ", " FULL ", " SLIDING
         ", " SLIDING "]",
         4096, "ffss"},
        {olmo3, "", 4096, "sssf"},
        {mistral, "", 4096, "ssss"},
        {mistral, ", \"sliding_window\": null", 0, "ffff"},
        {mistral, ", \"sliding_window\": 1024", 1024, "ssss"},
        {mistral, ", \"sliding_window\": 1024, \"use_sliding_window\": false", 0, "ffff"},
        {mixtral, "", 0, "ffff"},
        {mixtral, ", \"sliding_window\": 4096", 4096, "ssss"},
        {qwen_experts, ", \"sliding_window\": 4096", 0, "ffff"},
        {qwen_experts, ", \"use_sliding_window\": true, \"sliding_window\": 99", 99, "ssss"},
        {qwen_experts, ", \"use_sliding_window\": true", 4096, "ssss"},
        {qwen, ", \"sliding_window\": 4096", 0, "ffff"},
        {qwen, ", \"use_sliding_window\": true, \"sliding_window\": 99", 99, "ffff"},
        {qwen, ", \"use_sliding_window\": true, \"max_window_layers\": 3", 4096, "fffs"},
        {qwen, ", \"use_sliding_window\": true, \"max_window_layers\": 0", 4096, "ssss"},
        {qwen,
         ", \"use_sliding_window\": true, \"layer_types\": [" SLIDING ", " FULL ", " SLIDING
         ", " FULL "], \"max_window_layers\": 1",
         4096, "sfsf"},
        {qwen, ", \"layer_types\": [" FULL ", " FULL ", " FULL ", " FULL "]", 0, "ffff"},
        {mistral, ", \"layer_types\": [" SLIDING ", " SLIDING ", " SLIDING ", " SLIDING "]", 4096,
         "ssss"},
        {mistral,
         ", \"sliding_window\": null, \"layer_types\": [" FULL ", " FULL ", " FULL ", " FULL "]", 0,
         "ffff"},
        {mistral,
         ", \"sliding_window\": 1, \"layer_types\": [" SLIDING ", " SLIDING ", " SLIDING
         ", " SLIDING "]",
         1, "ssss"},
        {llama, ", \"sliding_window\": null", 0, "ffff"},
        {llama, ", \"layer_types\": [" FULL ", " FULL ", " FULL ", " FULL "]", 0, "ffff"},
        {llama, ", \"sliding_window\": 4096, \"use_sliding_window\": false", 0, "ffff"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model model = {0};
        struct error error = {0};
        if (read_model(rows[i].type, rows[i].more, &model, &error) != STATUS_OK)
            fail_msg("%s: %s: %s", rows[i].more, error.where, error.message);
        assert_int_equal(model.attends.window, rows[i].window);
        uint64_t windowed = 0;
        for (uint64_t layer = 0; layer < 4; layer++) {
            bool const slides = rows[i].layers[layer] == 's';
            assert_int_equal(model_layer_kind(&model, layer, UINT64_MAX).windowed, slides);
            windowed += slides;
        }
        assert_int_equal(model_window_layers(&model, UINT64_MAX), windowed);
        assert_int_equal(model_window_layers(&model, rows[i].window), 0);
        assert_int_equal(model_window_layers(&model, rows[i].window + 1), windowed);
    }
}

static void what_windows_cannot_be_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *type, *more, *where, *words;
    } rows[] = {
        {llama, ", \"sliding_window\": 4096", "/sliding_window",
         "not modelled in models of type llama; it is in those of mistral"},
        {mistral, ", \"sliding_window\": 0", "/sliding_window", "0"},
        {mistral, ", \"layer_types\": [" SLIDING ", " FULL ", " SLIDING ", " SLIDING "]",
         "/layer_types/1", "differs by layer is not modelled in models of type mistral"},
        {mistral, ", \"layer_types\": [" FULL ", " SLIDING ", " SLIDING ", " SLIDING "]",
         "/layer_types/0", "differs by layer is not modelled in models of type mistral"},
        {mistral,
         ", \"sliding_window\": null, \"layer_types\": [" FULL ", " SLIDING ", " FULL ", " FULL "]",
         "/layer_types/1", "differs by layer is not modelled in models of type mistral"},
        {qwen, ", \"layer_types\": [" FULL ", " FULL ", " FULL ", " SLIDING "]", "/layer_types/3",
         "use_sliding_window does not switch it on"},
        {experts,
         ", \"sliding_window\": null, \"layer_types\": [" FULL ", " SLIDING ", " FULL ", " FULL "]",
         "/layer_types/1", "gives it no size"},
        {experts, ", \"layer_types\": [" FULL ", \"chunked_attention\", " FULL ", " FULL "]",
         "/layer_types/1", "\"chunked_attention\" is not modelled"},
        {experts, ", \"layer_types\": [" FULL "]", "/layer_types", "1 type for 4 layers"},
        {gemma3, ", \"sliding_window_pattern\": 0", "/sliding_window_pattern", "0"},
        {qwen, ", \"use_sliding_window\": true, \"max_window_layers\": -1", "/max_window_layers",
         "-1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model model = {0};
        struct error error = {0};
        assert_int_not_equal(read_model(rows[i].type, rows[i].more, &model, &error), STATUS_OK);
        if (strcmp(error.where, rows[i].where) != 0 || strstr(error.message, rows[i].words) == NULL)
            fail_msg("%s: %s: %s", rows[i].more, error.where, error.message);
        refusals_hold(&error, __FILE__);
    }
}

/* The tiles of a sequence's scores that have one that no mask hides. */
static uint64_t tiles_counted(uint64_t length, uint64_t window, uint64_t edge)
{
    uint64_t const blocks = (length + edge - 1) / edge;
    uint64_t count = 0;
    for (uint64_t row = 0; row < blocks; row++)
        for (uint64_t column = 0; column <= row; column++) {
            /* The first query of the block and the last key of the tile lie nearest. */
            uint64_t const last_key = column * edge + edge - 1;
            count += column == row || row * edge - last_key < window;
        }
    return count;
}

/* The MXU multiplies the tiles that a window touches, and not many more: a few rows to the next 8;
 * what it is said to do is the sum of all queries' own keys. */
static void a_window_takes_the_tiles_that_it_touches(void **state)
{
    (void)state;
    static const uint64_t windows[] = {1,   2,   64,  100, 127,  128, 129,
                                       200, 256, 384, 512, 1000, 2048};
    static bool windowed[2] = {false, true};
    for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
        uint64_t const length = 4096, window = windows[w];
        struct workload_case made;
        const char *const parts[MESH_ROLE_COUNT] = {[MESH_FSDP] = "x y z"};
        uint32_t found = 0;
        assert_int_equal(case_build_roles(&made, &case_llama_70b, "4x4x4", parts), STATUS_OK);
        made.plan.attention.mask = WORKLOAD_ATTENTION_CAUSAL;
        made.plan.batch_tokens = 64 * length;
        made.plan.model.layers = 2;
        made.plan.model.attends.window = window;
        made.plan.model.by_layer.windowed = windowed;
        assert_int_equal(case_lower(&made), STATUS_OK);
        uint64_t keys = 0;
        for (uint64_t query = 0; query < length; query++)
            keys += query + 1 < window ? query + 1 : window;
        double const tiles = 128.0 * 128 * (double)tiles_counted(length, window, 128);
        for (uint32_t i = 0; i < made.program.work_count; i++) {
            const struct work *work = &made.program.works[i];
            uint64_t const flop = 2 * keys * 64 * 128 * work->matmul_count;
            if (work->matmul_count < 2 || work_matmul_flop(work) != flop) continue;
            double const padded =
                (double)compute_time(&made.machine.chip, work, PPM_ONE, PPM_ONE).padded_flop /
                (2.0 * 64 * 128 * work->matmul_count);
            assert_true(padded >= tiles);
            assert_true(padded <= tiles + 8 * 2048);
            /* Backward without the scores again. */
            assert_int_equal(work->useful_flop, work->matmul_count == 2 ? flop : flop / 5 * 4);
            found++;
        }
        assert_int_equal(found, 2); /* Forward and backward. */
        case_free(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(windows_are_those_of_transformers, case_arena_up,
                                        case_arena_down),
        cmocka_unit_test_setup_teardown(what_windows_cannot_be_is_refused, case_arena_up,
                                        case_arena_down),
        cmocka_unit_test(a_window_takes_the_tiles_that_it_touches),
    };
    return cmocka_run_group_tests_name("windows", tests, NULL, NULL);
}
