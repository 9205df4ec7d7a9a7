/* Scenarios: every refusal, with its place and what would be valid. */
#include "tests/support/refusals.h"
#include "tests/unit/scenario_case.h"

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
    {"/title=\"a\\u202eb\"", "/title", "control character"},
    {"/question=[]", "/question", "must be a string"},
    {"/machine=3", "/machine", "must be an object"},
    {"/machine/chp=x", "/machine/chp", "nearest known is \"chip\""},
    {"/machine/speed=1GB/s", "/machine/speed", "\"speed\"; there are chip, "},
    {"/machine/nic_rate=1GB/s", "/machine/nic_rate", "; there is /machine/network/nic_rate"},
    {"/machine/nics=4", "/machine/nics", "; the nearest known is /machine/network/node_nics"},
    {"/workload/seed=4", "/workload/seed", "; there is /run/seed"},
    {"/run/remat=block", "/run/remat", "; there is /workload/remat"},
    {"/tp=4", "/tp", "; there is /mesh/tp"},
    {"/machine/network/shape=4x4", "/machine/network/shape", "; there is /machine/shape"},
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
    {"/workload/remat=true", "/workload/remat", "must be the name of a policy, or an object"},
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
    {"/run/seed=9223372036854775808", "/run/seed", "9223372036854775808 is too large"},
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
        refusals_hold(&error, __FILE__);
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
        refusals_hold(&error, __FILE__);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_refused_with_its_place),
        cmocka_unit_test(what_is_missing_is_named),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
