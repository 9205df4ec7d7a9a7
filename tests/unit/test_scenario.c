/* Scenarios: what is read, every default, every refusal, and text that reads back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/embed.h"
#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"
#include "sim/scenario/scenario.h"
#include "tests/support/case.h"

static const char minimal[] =
    "{\"podsim\": 1, \"title\": \"t\", \"machine\": {\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"},"
    "\"mesh\": {\"fsdp\": [\"x\", \"y\"], \"tp\": [\"z\"]},"
    "\"workload\": {\"kind\": \"train_step\", \"model\": \"llama-2-13b\","
    "\"batch_tokens\": 1048576, \"sequence_length\": 4096}}";

static const char full[] =
    "{\"podsim\": 1, \"title\": \"all\", \"question\": \"Does it?\","
    "\"machine\": {\"chip\": \"tpu-v5e\", \"shape\": \"8x16\", \"profile\": \"measured\","
    "  \"unrealisable\": true, \"wrap\": {\"y\": true, \"x\": false},"
    "  \"links\": [{\"from\": [0, 0], \"to\": [1, 0], \"rate\": \"22.5GB/s\"},"
    "              {\"from\": [1, 0], \"to\": [0, 0], \"latency\": \"1.5us\"}],"
    "  \"chips\": [{\"at\": [3, \"*\"], \"math\": 0.5}, {\"at\": [\"*\", 2], \"hbm\": 0.333333}]},"
    "\"mesh\": {\"tp\": [\"x:4\"], \"dp\": [\"y\"], \"fsdp\": [\"x:2\"]},"
    "\"workload\": {\"kind\": \"train_step\","
    "  \"model\": {\"kind\": \"mlp\", \"D\": 1024, \"F\": 4096, \"layers\": 3, \"matrices\": 3},"
    "  \"batch_tokens\": 65536, \"remat\": \"big_matmuls\", \"tp_inputs\": \"whole\","
    "  \"memory\": \"book\","
    "  \"zero\": 2, \"accumulate\": 4,"
    "  \"attention\": \"causal\", \"formats\": {\"weights\": \"int8\", \"activations\": \"fp8\","
    "  \"gradients\": \"fp32\", \"optimizer\": \"bf16\", \"main_gradients\": \"fp16\"},"
    "  \"gather\": \"tensor\","
    "  \"backward_order\": \"dx_first\", \"activations\": \"tokens\","
    "  \"allow_oversubscription\": true},"
    "\"run\": {\"prefetch_layers\": 2, \"collective_matmul\": true, \"seed\": 7,"
    "  \"algorithm\": \"ring\", \"engine\": \"reference\"}}";

extern const struct embed_file embed_scenarios[];
extern const unsigned embed_scenarios_count;

static struct error error;
static struct scenario scenario;

static enum status read_with(const char *text, const struct scenario_setting *settings,
                             uint32_t setting_count)
{
    memset(&error, 0, sizeof error);
    memset(&scenario, 0, sizeof scenario);
    return scenario_read_text(case_arena, "s.json", text, strlen(text), settings, setting_count,
                              &scenario, &error);
}

static void accept(const char *text, const char *setting)
{
    struct scenario_setting const settings[] = {{setting}};
    if (read_with(text, settings, setting != NULL) != STATUS_OK)
        fail_msg("%s: %s: %s", setting == NULL ? "" : setting, error.where, error.message);
}

static void defaults_are_filled(void **state)
{
    (void)state;
    accept(minimal, NULL);
    assert_string_equal(scenario.question, "");
    assert_string_equal(scenario.machine.chip, "tpu-v5p");
    assert_string_equal(scenario.machine.profile, "ideal");
    assert_false(scenario.machine.unrealisable);
    for (int axis = 0; axis < 3; axis++) assert_int_equal(scenario.machine.wrap[axis], -1);
    assert_int_equal(scenario.machine.link_count + scenario.machine.chip_count, 0);
    assert_int_equal(scenario.mesh.axis_count, 2);
    assert_int_equal(scenario.mesh.axis[0].role, MESH_FSDP);
    assert_int_equal(scenario.mesh.axis[0].part_count, 2);
    assert_string_equal(scenario.mesh.axis[0].part[1], "y");
    const struct workload_plan *plan = &scenario.workload;
    assert_int_equal(plan->model.layers, 40);
    assert_int_equal(plan->batch_tokens, 1048576);
    assert_int_equal(plan->remat, GRAPH_REMAT_NONE);
    assert_int_equal(plan->tp_inputs, WORKLOAD_TP_INPUTS_SHARDS);
    assert_int_equal(plan->software.memory, WORKLOAD_MEMORY_BOOK);
    assert_int_equal(plan->zero, 0);
    assert_int_equal(plan->accumulate, 1);
    assert_int_equal(plan->attention.mask, WORKLOAD_ATTENTION_FULL);
    assert_int_equal(plan->formats.weights, FORMAT_BF16);
    assert_int_equal(plan->formats.activations, FORMAT_BF16);
    assert_int_equal(plan->formats.gradients, FORMAT_BF16);
    assert_int_equal(plan->formats.optimizer, FORMAT_FP32);
    assert_int_equal(plan->formats.main_gradients, FORMAT_FP32);
    assert_int_equal(plan->gather, WORKLOAD_GATHER_BLOCK);
    assert_int_equal(plan->backward_order, WORKLOAD_BACKWARD_DW_FIRST);
    assert_int_equal(plan->activations, WORKLOAD_ACTIVATIONS_MODEL);
    assert_false(plan->allow_oversubscription);
    assert_int_equal(plan->prefetch_layers, 1);
    assert_false(plan->collective_matmul);
    assert_string_equal(plan->algorithm, "auto");
    assert_string_equal(scenario.run.engine, "fast");
    assert_int_equal(scenario.run.seed, 0);
}

static void expect_full(void)
{
    const struct machine_plan *machine = &scenario.machine;
    assert_string_equal(scenario.question, "Does it?");
    assert_string_equal(machine->profile, "measured");
    assert_true(machine->unrealisable);
    assert_int_equal(machine->wrap[0], 0);
    assert_int_equal(machine->wrap[1], 1);
    assert_int_equal(machine->wrap[2], -1);
    assert_int_equal(machine->link_count, 2);
    assert_int_equal(machine->links[0].to[0], 1);
    assert_int_equal(machine->links[0].bytes_per_s, UINT64_C(22500000000));
    assert_int_equal(machine->links[0].latency_ps, 0);
    assert_int_equal(machine->links[1].latency_ps, 1500000);
    assert_int_equal(machine->chip_count, 2);
    assert_int_equal(machine->chips[0].at[0], 3);
    assert_int_equal(machine->chips[0].at[1], machine_any);
    assert_int_equal(machine->chips[0].math_ppm, 500000);
    assert_int_equal(machine->chips[0].hbm_ppm, 1000000);
    assert_int_equal(machine->chips[1].hbm_ppm, 333333);
    assert_int_equal(scenario.mesh.axis_count, 3);
    assert_int_equal(scenario.mesh.axis[0].role, MESH_TP); /* In the order of the file. */
    assert_int_equal(scenario.mesh.axis[1].role, MESH_DP);
    const struct workload_plan *plan = &scenario.workload;
    assert_int_equal(plan->model.kind, MODEL_MLP);
    assert_int_equal(plan->model.mlp_width, 4096);
    assert_int_equal(plan->model.matrices, 3);
    assert_int_equal(plan->remat, GRAPH_REMAT_BIG_MATMULS);
    assert_int_equal(plan->tp_inputs, WORKLOAD_TP_INPUTS_WHOLE);
    assert_int_equal(plan->software.memory, WORKLOAD_MEMORY_BOOK);
    assert_int_equal(plan->zero, 2);
    assert_int_equal(plan->accumulate, 4);
    assert_int_equal(plan->attention.mask, WORKLOAD_ATTENTION_CAUSAL);
    assert_int_equal(plan->formats.weights, FORMAT_INT8);
    assert_int_equal(plan->formats.activations, FORMAT_FP8);
    assert_int_equal(plan->formats.gradients, FORMAT_FP32);
    assert_int_equal(plan->formats.optimizer, FORMAT_BF16);
    assert_int_equal(plan->formats.main_gradients, FORMAT_FP16);
    assert_int_equal(plan->gather, WORKLOAD_GATHER_TENSOR);
    assert_int_equal(plan->backward_order, WORKLOAD_BACKWARD_DX_FIRST);
    assert_int_equal(plan->activations, WORKLOAD_ACTIVATIONS_TOKENS);
    assert_true(plan->allow_oversubscription);
    assert_int_equal(plan->prefetch_layers, 2);
    assert_true(plan->collective_matmul);
    assert_string_equal(plan->algorithm, "ring");
    assert_string_equal(scenario.run.engine, "reference");
    assert_int_equal(scenario.run.seed, 7);
}

static void every_key_reaches_its_field(void **state)
{
    (void)state;
    accept(full, NULL);
    expect_full();
}

static void the_text_shows_all_and_reads_back_to_the_same(void **state)
{
    (void)state;
    static const char *const texts[] = {minimal, full};
    for (size_t i = 0; i < 2; i++) {
        accept(texts[i], NULL);
        const char *first = scenario_text(case_arena, &scenario);
        assert_non_null(first);
        accept(first, NULL);
        assert_string_equal(scenario_text(case_arena, &scenario), first);
    }
    accept(minimal, NULL);
    const char *text = scenario_text(case_arena, &scenario);
    static const char *const visible[] = {"\"profile\": \"ideal\"",
                                          "\"prefetch_layers\": 1",
                                          "\"formats\": {\"weights\": \"bf16\"",
                                          "\"zero\": 0",
                                          "\"gather\": \"block\"",
                                          "\"algorithm\": \"auto\"",
                                          "\"links\": []",
                                          "\"engine\": \"fast\"",
                                          "\"model\": \"llama-2-13b\"",
                                          "\"question\": \"\"",
                                          "\"accumulate\": 1",
                                          "\"unrealisable\": false"};
    for (size_t i = 0; i < sizeof visible / sizeof visible[0]; i++)
        if (strstr(text, visible[i]) == NULL) fail_msg("%s is not in %s", visible[i], text);
}

/* Between slices, where no tier is there but one that is named. */
static void a_tier_with_a_policy_alone_reads_back(void **state)
{
    (void)state;
    accept(minimal,
           "/machine={\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\", \"slices\": 2, \"network\": "
           "{\"leaf\": {\"policy\": \"hash\"}}}");
    const char *first = scenario_text(case_arena, &scenario);
    assert_non_null(strstr(first, "\"leaf\": {\"policy\": \"hash\"}"));
    accept(first, NULL);
    assert_string_equal(scenario_text(case_arena, &scenario), first);
}

static void the_text_keeps_what_full_says(void **state)
{
    (void)state;
    accept(full, NULL);
    accept(scenario_text(case_arena, &scenario), NULL);
    expect_full();
    assert_non_null(strstr(scenario_text(case_arena, &scenario), "\"rate\": \"22500MB/s\""));
}

/* A setting on the minimal scenario, where it is refused, and a part of the sentence. */
static const struct {
    const char *setting, *where, *why;
} refusals[] = {
    {"/podsim=0", "/podsim", "below the minimum 1"},
    {"/podsim=2", "/podsim", "above the maximum 1"},
    {"/podsim=\"1\"", "/podsim", "must be an integer, but is a string"},
    {"/titel=x", "/titel", "nearest known is \"title\""},
    {"/title=3", "/title", "must be a string"},
    {"/title=\"a\\u001b[2J\"", "/title", "control character"},
    {"/question=[]", "/question", "must be a string"},
    {"/machine=3", "/machine", "must be an object"},
    {"/machine/chp=x", "/machine/chp", "nearest known is \"chip\""},
    {"/machine/nic_rate=1GB/s", "/machine/nic_rate", "\"nic_rate\"; there are chip, "},
    {"/machine/chip=5", "/machine/chip", "must be a chip's name"},
    {"/machine/shape=[4,4,4]", "/machine/shape", "must be a string such as \"16x16x16\""},
    {"/machine/profile=null", "/machine/profile", "must be a string, but is null"},
    {"/machine/unrealisable=1", "/machine/unrealisable", "must be true or false"},
    {"/machine/wrap=true", "/machine/wrap", "must be an object"},
    {"/machine/wrap/x=1", "/machine/wrap/x", "must be true or false"},
    {"/machine/wrap/w=true", "/machine/wrap/w", "unknown key \"w\""},
    {"/machine/links={}", "/machine/links", "must be an array such as [{\"from\": [0,0,0]"},
    {"/machine/links=[1]", "/machine/links/0", "must be an object"},
    {"/machine/links=[{\"from\":[0,0,0]}]", "/machine/links/0", "\"to\" is missing"},
    {"/machine/links=[{\"from\":[0,0,0],\"to\":[1,0,0]}]", "/machine/links/0", "changes nothing"},
    {"/machine/links=[{\"from\":[0,0],\"to\":[1,0,0],\"rate\":\"1GB/s\"}]", "/machine/links/0/from",
     "has 2 elements; the minimum is 3"},
    {"/machine/links=[{\"from\":[0,0,0,0],\"to\":[1,0,0],\"rate\":\"1GB/s\"}]",
     "/machine/links/0/from", "the maximum is 3"},
    {"/machine/links=[{\"from\":[0,0,-1],\"to\":[1,0,0],\"rate\":\"1GB/s\"}]",
     "/machine/links/0/from/2", "-1 is below the minimum 0"},
    {"/machine/links=[{\"from\":[0,0,0],\"to\":[1,0,-1],\"rate\":\"1GB/s\"}]",
     "/machine/links/0/to/2", "-1 is below the minimum 0"},
    {"/machine/links=[{\"from\":[0,0,0],\"to\":[1,0],\"rate\":\"1GB/s\"}]", "/machine/links/0/to",
     "has 2 elements; the minimum is 3"},
    {"/machine/links=[{\"from\":[0,0,\"*\"],\"to\":[1,0,0],\"rate\":\"1GB/s\"}]",
     "/machine/links/0/from/2", "must be an integer"},
    {"/machine/links=[{\"from\":[0,0,0],\"to\":[1,0,0],\"rate\":\"1GB\"}]", "/machine/links/0/rate",
     "nearest known is \"GB/s\""},
    {"/machine/links=[{\"from\":[0,0,0],\"to\":[1,0,0],\"rate\":90}]", "/machine/links/0/rate",
     "90GB/s"},
    {"/machine/links=[{\"from\":[0,0,0],\"to\":[1,0,0],\"rate\":\"0GB/s\"}]",
     "/machine/links/0/rate", "between 1B/s and 1PB/s"},
    {"/machine/links=[{\"from\":[0,0,0],\"to\":[1,0,0],\"latency\":\"0us\"}]",
     "/machine/links/0/latency", "between 1ps and 1s"},
    {"/machine/links=[{\"from\":[0,0,0],\"to\":[1,0,0],\"latency\":\"2s\"}]",
     "/machine/links/0/latency", "between 1ps and 1s"},
    {"/machine/links=[{\"from\":[0,0,0],\"to\":[1,0,0],\"rat\":\"1GB/s\"}]", "/machine/links/0/rat",
     "nearest known is \"rate\""},
    {"/machine/chips=[{\"math\":0.5}]", "/machine/chips/0", "\"at\" is missing"},
    {"/machine/chips=[{\"at\":[0,0,0]}]", "/machine/chips/0", "changes nothing"},
    {"/machine/chips=[{\"at\":[0,\"?\",0],\"math\":0.5}]", "/machine/chips/0/at/1", "\"*\""},
    {"/machine/chips=[{\"at\":[0,\"*\"],\"math\":0.5}]", "/machine/chips/0/at", "minimum is 3"},
    {"/machine/chips=[{\"at\":[0,0,0],\"math\":0}]", "/machine/chips/0/math", "below"},
    {"/machine/chips=[{\"at\":[0,0,0],\"math\":100.1}]", "/machine/chips/0/math", "above"},
    {"/machine/chips=[{\"at\":[0,0,0],\"hbm\":\"half\"}]", "/machine/chips/0/hbm",
     "must be a number"},
    {"/machine/chips=[{\"at\":[0,0,0],\"maths\":1}]", "/machine/chips/0/maths", "\"math\""},
    {"/mesh=[]", "/mesh", "must be an object such as {\"fsdp\": [\"x\", \"y\"]}"},
    {"/mesh/sp=[\"x\"]", "/mesh/sp", "unknown key \"sp\""},
    {"/mesh/tp=z", "/mesh/tp", "must be an array"},
    {"/mesh/tp=[]", "/mesh/tp", "the minimum is 1"},
    {"/mesh/tp=[\"x\",\"y\",\"z\",\"x\",\"y\"]", "/mesh/tp", "the maximum is 4"},
    {"/mesh/tp=[3]", "/mesh/tp/0", "must be a string"},
    {"/workload=null", "", "\"workload\" is missing"},
    {"/workload=3", "/workload", "must be an object"},
    {"/workload/kind=training", "/workload/kind", "nearest is \"train_step\""},
    {"/workload/modle=x", "/workload/modle", "nearest known is \"model\""},
    {"/workload/model=llama-2-13", "/workload/model", "llama-2-13b"},
    {"/workload/model=7", "/workload/model", "must be a model's name"},
    {"/workload/model={\"kind\":\"mpl\"}", "/workload/model/kind", "\"mlp\" is a bare MLP"},
    {"/workload/model={\"kind\":\"mlp\",\"D\":8,\"F\":8,\"layers\":1,\"matrixes\":2}",
     "/workload/model/matrixes", "nearest known is \"matrices\""},
    {"/workload/batch_tokens=0", "/workload/batch_tokens", "below the minimum 1"},
    {"/workload/batch_tokens=17179869185", "/workload/batch_tokens", "above the maximum"},
    {"/workload/batch_tokens=1048575.5", "/workload/batch_tokens",
     "1048575.5 is not a whole number"},
    {"/workload/sequence_length=0", "/workload/sequence_length", "below the minimum 1"},
    {"/workload/sequence_length=17179869185", "/workload/sequence_length", "above the maximum"},
    {"/workload/sequence_length=true", "/workload/sequence_length", "must be an integer"},
    {"/workload/remat=blocks", "/workload/remat", "nearest is \"block\""},
    {"/workload/remat=true", "/workload/remat", "must be one of \"none\""},
    {"/workload/tp_inputs=shard", "/workload/tp_inputs", "nearest is \"shards\""},
    {"/workload/memory=default", "/workload/memory", "is not one of \"book\""},
    {"/workload/memory=frameworks", "/workload/memory", "nearest is \"framework\""},
    {"/workload/zero=-1", "/workload/zero", "below the minimum 0"},
    {"/workload/zero=4", "/workload/zero", "above the maximum 3"},
    {"/workload/zero=2.5", "/workload/zero", "2.5 is not a whole number"},
    {"/workload/accumulate=0", "/workload/accumulate", "below the minimum 1"},
    {"/workload/accumulate=65537", "/workload/accumulate", "above the maximum 65536"},
    {"/workload/accumulate=[]", "/workload/accumulate", "must be an integer"},
    {"/workload/attention=casual", "/workload/attention", "nearest is \"causal\""},
    {"/workload/formats=bf16", "/workload/formats", "must be an object"},
    {"/workload/formats/weights=bf61", "/workload/formats/weights", "nearest is \"bf16\""},
    {"/workload/formats/optimizer=32", "/workload/formats/optimizer", "must be one of"},
    {"/workload/formats/main_gradients=fp8", "/workload/formats/main_gradients", "\"fp16\""},
    {"/workload/formats/gradient=bf16", "/workload/formats/gradient", "\"gradients\""},
    {"/workload/gather=tensors", "/workload/gather", "nearest is \"tensor\""},
    {"/workload/backward_order=dx", "/workload/backward_order", "nearest is \"dx_first\""},
    {"/workload/activations=token", "/workload/activations", "nearest is \"tokens\""},
    {"/workload/allow_oversubscription=yes", "/workload/allow_oversubscription",
     "must be true or false"},
    {"/run=[]", "/run", "must be an object"},
    {"/workload/offload=optimiser", "/workload/offload", "optimizer"},
    {"/run/prefetch=1", "/run/prefetch", "nearest known is \"prefetch_layers\""},
    {"/run/prefetch_layers=-1", "/run/prefetch_layers", "below the minimum 0"},
    {"/run/prefetch_layers=1025", "/run/prefetch_layers", "above the maximum 1024"},
    {"/run/prefetch_layers=one", "/run/prefetch_layers", "must be an integer"},
    {"/run/collective_matmul=0", "/run/collective_matmul", "must be true or false"},
    {"/run/seed=-1", "/run/seed", "below the minimum 0"},
    {"/run/seed=9223372036854775808", "/run/seed", "a number is too large"},
    {"/run/algorithm=0", "/run/algorithm", "must be a string"},
    {"/run/engine=slow", "/run/engine", "is not one of \"fast\", \"reference\""},
    {"/run/engine=null", "/run/engine", "must be one of"},
};

static void what_is_wrong_is_refused_with_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct scenario_setting const setting = {refusals[i].setting};
        if (read_with(minimal, &setting, 1) == STATUS_OK)
            fail_msg("%s was taken", refusals[i].setting);
        if (strcmp(error.where, refusals[i].where) != 0 ||
            strstr(error.message, refusals[i].why) == NULL)
            fail_msg("%s: %s: %s", refusals[i].setting, error.where, error.message);
    }
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *where, *why;
    } cases[] = {
        {"{}", "", "\"podsim\" is missing"},
        {"[]", "", "must be an object"},
        {"{\"podsim\": 1}", "", "\"machine\" is missing"},
        {"{\"podsim\": 1, \"machine\": {}}", "", "\"workload\" is missing"},
        {"{\"podsim\": 1, \"machine\": {}, \"workload\": {}}", "/machine", "\"chip\" is missing"},
        {"{\"podsim\": 1, \"machine\": {\"chip\": \"v5p-8\"}, \"workload\": {}}", "/workload",
         "\"kind\" is missing"},
        {"{\"podsim\": 1, \"machine\": {\"chip\": \"v5p-8\"}, \"workload\": {\"kind\": "
         "\"train_step\", \"batch_tokens\": 1}}",
         "/workload", "\"model\" is missing"},
        {"{\"podsim\": 1, \"machine\": {\"chip\": \"v5p-8\"}, \"workload\": {\"kind\": "
         "\"train_step\", \"model\": \"gemma-7b\"}}",
         "/workload", "\"batch_tokens\" is missing"},
        {"{\"podsim\": 1, \"machine\": {\"chip\": \"v5p-8\"}, \"workload\": {\"kind\": "
         "\"train_step\", \"model\": \"gemma-7b\", \"batch_tokens\": 4096}}",
         "/workload", "\"sequence_length\" is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (read_with(cases[i].text, NULL, 0) == STATUS_OK) fail_msg("%s", cases[i].text);
        if (strcmp(error.where, cases[i].where) != 0 || !strstr(error.message, cases[i].why))
            fail_msg("%s: %s: %s", cases[i].text, error.where, error.message);
    }
}

static void settings_may_replace_and_add_anything_known(void **state)
{
    (void)state;
    accept(minimal, "/run/seed=9");
    assert_int_equal(scenario.run.seed, 9);
    accept(minimal, "/machine/chip=v5e-256");
    accept(minimal, "/workload/model={\"kind\":\"mlp\",\"D\":8,\"F\":8,\"layers\":1}");
    assert_int_equal(scenario.workload.model.matrices, 2);
    accept(full, "/workload/model/F=512");
    assert_int_equal(scenario.workload.model.mlp_width, 512);
    accept(full, "/machine/links/1/latency=3us");
    assert_int_equal(scenario.machine.links[1].latency_ps, 3000000);
    accept(minimal, "/title=4x4x4, smaller");
    assert_string_equal(scenario.title, "4x4x4, smaller");
    accept(minimal, "/mesh={}"); /* Only one chip may have none; the mesh says so. */
    assert_int_equal(scenario.mesh.axis_count, 0);
}

static void a_product_name_says_how_many_coordinates_a_chip_has(void **state)
{
    (void)state;
    static const char text[] =
        "{\"podsim\": 1, \"machine\": {\"chip\": \"%s\", \"chips\": [{\"at\": %s, \"math\": 0.5}]},"
        "\"workload\": {\"kind\": \"train_step\", \"model\": {\"kind\": \"mlp\", \"D\": 8, \"F\": "
        "8,"
        "\"layers\": 1}, \"batch_tokens\": 64}}";
    static const struct {
        const char *chip, *at;
        bool good;
    } cases[] = {
        {"v5p-8192", "[1, \"*\", \"*\"]", true}, {"v5p-8192", "[1, \"*\"]", false},
        {"v5e-256", "[1, \"*\"]", true},         {"v5e-256", "[1, \"*\", 0]", false},
        {"tpu-v6e-256", "[1, 1]", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char filled[512];
        (void)snprintf(filled, sizeof filled, text, cases[i].chip, cases[i].at);
        enum status const status = read_with(filled, NULL, 0);
        if ((status == STATUS_OK) != cases[i].good)
            fail_msg("%s %s: %s", cases[i].chip, cases[i].at, error.message);
        if (!cases[i].good) assert_string_equal(error.where, "/machine/chips/0/at");
        if (cases[i].good) accept(scenario_text(case_arena, &scenario), NULL);
    }
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void a_model_beside_the_scenario_is_found_and_so_it_is_from_the_text(void **state)
{
    (void)state;
    char folder[] = "podsim-scenario-XXXXXX", path[64], model[64];
    struct scenario_setting const settings[] = {{"/workload/model=mine.json"}};
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/s.json", folder);
    (void)snprintf(model, sizeof model, "%s/mine.json", folder);
    write_file(path, minimal);
    write_file(model, "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 256,"
                      "\"intermediate_size\": 512, \"num_attention_heads\": 4,"
                      "\"vocab_size\": 1000}");
    enum status status = scenario_read(case_arena, path, settings, 1, &scenario, &error);
    if (status != STATUS_OK) fail_msg("%s: %s", error.where, error.message);
    assert_int_equal(scenario.workload.model.layers, 2);
    accept(scenario_text(case_arena, &scenario), NULL);
    assert_int_equal(scenario.workload.model.layers, 2);
    assert_int_equal(scenario_read(case_arena, path, NULL, 0, &scenario, &error), STATUS_OK);
    (void)unlink(path);
    (void)unlink(model);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(scenario_read(case_arena, path, NULL, 0, &scenario, &error), STATUS_IO);
    assert_string_equal(error.where, path);
}

static void every_shipped_scenario_asks_a_question_and_lies_on_its_machine(void **state)
{
    (void)state;
    assert_true(embed_scenarios_count >= 12);
    for (unsigned i = 0; i < embed_scenarios_count; i++) {
        struct machine machine;
        struct mesh mesh;
        accept(embed_scenarios[i].bytes, NULL);
        const char *question = scenario.question;
        if (strlen(question) < 20 || question[strlen(question) - 1] != '?')
            fail_msg("%s asks \"%s\"", embed_scenarios[i].name, question);
        if (machine_build(case_arena, &scenario.machine, &machine, &error) != STATUS_OK ||
            mesh_build(case_arena, &scenario.mesh, &machine, &mesh, &error) != STATUS_OK)
            fail_msg("%s: %s: %s", embed_scenarios[i].name, error.where, error.message);
        const char *text = scenario_text(case_arena, &scenario);
        accept(text, NULL);
        assert_string_equal(scenario_text(case_arena, &scenario), text);
    }
}

static void too_little_memory_is_said_never_a_crash(void **state)
{
    (void)state;
    enum status status = STATUS_NO_MEMORY;
    uint64_t limit = 1;
    for (; status == STATUS_NO_MEMORY && limit < 1000000; limit += 256) {
        struct arena *small = arena_create(limit);
        status = scenario_read_text(small, "s", full, sizeof full - 1, NULL, 0, &scenario, &error);
        if (status == STATUS_OK) {
            const char *text = scenario_text(small, &scenario);
            if (text == NULL) status = STATUS_NO_MEMORY;
        }
        arena_destroy(small);
    }
    assert_int_equal(status, STATUS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_filled),
        cmocka_unit_test(every_key_reaches_its_field),
        cmocka_unit_test(the_text_shows_all_and_reads_back_to_the_same),
        cmocka_unit_test(a_tier_with_a_policy_alone_reads_back),
        cmocka_unit_test(the_text_keeps_what_full_says),
        cmocka_unit_test(what_is_wrong_is_refused_with_its_place),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(settings_may_replace_and_add_anything_known),
        cmocka_unit_test(a_product_name_says_how_many_coordinates_a_chip_has),
        cmocka_unit_test(a_model_beside_the_scenario_is_found_and_so_it_is_from_the_text),
        cmocka_unit_test(every_shipped_scenario_asks_a_question_and_lies_on_its_machine),
        cmocka_unit_test(too_little_memory_is_said_never_a_crash),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
