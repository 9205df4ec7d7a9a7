/* Parameters of the built-in models, as published. */
#include "sim/graph/parameters.h"
#include "tests/support/case.h"
#include "tests/support/catalogue.h"

/* Published: the sums of the tensors of each model's checkpoint on Hugging Face, as the index of
 * its safetensors gives them: 15,231,233,024 bytes of bf16 for Qwen2.5-7B, 65,527,752,704 for
 * Qwen2.5-32B, 16,381,470,720 for Qwen3-8B, 28,631,568,384 for Qwen1.5-MoE-A2.7B, 7,642,159,104
 * for Phi-3-mini; Kimi-K2's without the scales of its fp8. */
static void parameters_equal_the_published_counts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t parameters;
    } rows[] = {
        {"apertus-8b", 8053338176}, /* Without beta and epsilon of xIELU, which are no weights. */
        {"bitnet-b1.58-2b", 2412820480},
        {"bloom-176b", 176247271424}, /* The model card. */
        {"book-18b", 18385735680},
        {"command-r-35b", 34980831232},
        {"deepseek-v2", 235741434880},
        {"deepseek-v2-lite", 15706484224},
        {"deepseek-v3", 671026419200},
        {"falcon-rw-1b", 1311625216},
        {"gemma-2-9b", 9241705984},
        {"gemma-3-12b", 11766034176},
        {"gemma-7b", 8537680896},
        {"glm-4-9b", 9400279040},
        {"gpt-neox-20b", 20554567680},
        {"gpt-oss-20b", 20914757184},
        {"gpt-oss-120b", 116829156672},
        {"granite-3.1-8b", 8170848256},
        {"internlm2-7b", 7737708544},
        {"kimi-k2", 1026408232448},
        {"llama-2-13b", 13015864320},
        {"llama-3-8b", 8030261248},
        {"llama-3-70b", 70553706496},
        {"llama-3-405b", 405853388800},
        {"megatron-1.7b", 1652230656},
        {"megatron-3.6b", 3562168320},
        {"megatron-7.5b", 7467786240},
        {"megatron-18.4b", 18449756160},
        {"megatron-39.1b", 39096041472},
        {"megatron-76.1b", 76050739200},
        {"megatron-145.6b", 145622261760},
        {"megatron-174.6b", 174615846912},
        {"megatron-310.1b", 310130540544},
        {"megatron-529.6b", 529600819200},
        {"megatron-1008b", 1008038758400},
        {"mistral-7b", 7248023552},
        {"mixtral-8x7b", 46702792704},
        {"olmo-2-32b", 32234279936},
        {"olmo-3-7b", 7298011136},
        {"phi-3-mini", 3821079552},
        {"phi-4", 14659507200},
        {"qwen1.5-moe-14b", 14315784192},
        {"qwen2.5-7b", 7615616512},
        {"qwen2.5-32b", 32763876352},
        {"qwen2.5-72b", 72706203648},
        {"qwen3-8b", 8190735360},
        {"qwen3-30b-a3b", 30532122624},
        {"qwen3-32b", 32762123264},
        {"qwen3-235b-a22b", 235093634560},
        {"starcoder2-3b", 3030371328},
        {"starcoder2-15b", 15957889024},
        {"starcoder-15b", 15517456384},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct model const model = catalogue_model(rows[i].name);
        assert_int_equal(model_count(&model).total, rows[i].parameters);
        assert_string_equal(model.name, rows[i].name);
        assert_string_equal(model_name_at(i), rows[i].name);
    }
    assert_null(model_name_at(sizeof rows / sizeof rows[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_equal_the_published_counts),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
