/*
 * The listings of `podsim show program` against texts that were compared with the book's (chapter
 * 5: data parallelism, FSDP, tensor parallelism, both), line by line.
 *
 *   test_listing FOLDER          compares with FOLDER/NAME.txt
 *   test_listing FOLDER --write  writes them: look at the difference before you keep it
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "tests/support/play.h"
#include "tests/unit/workload_case.h"

enum { GOLDEN_BYTES_MAX = 1 << 16, SCENARIO_BYTES_MAX = 1024 };

static const struct listed {
    const char *name;
    bool llama;
    const char *shape, *dp, *fsdp, *tp;
    enum graph_remat remat;
    uint32_t zero;
    bool collective_matmul;
} listed[] = {
    {"mlp-dp", false, "16", "x", NULL, NULL, GRAPH_REMAT_NONE, 0, false},
    {"mlp-dp-zero-2", false, "16", "x", NULL, NULL, GRAPH_REMAT_NONE, 2, false},
    {"mlp-fsdp", false, "16", NULL, "x", NULL, GRAPH_REMAT_NONE, 0, false},
    {"mlp-tp", false, "16", NULL, NULL, "x", GRAPH_REMAT_NONE, 0, true},
    {"mlp-fsdp-tp", false, "4x4x4", NULL, "x y", "z", GRAPH_REMAT_NONE, 0, false},
    {"mlp-dp-fsdp-tp", false, "4x4x4", "y", "x", "z", GRAPH_REMAT_BIG_MATMULS, 0, false},
    {"llama-fsdp-tp", true, "16x16x16", NULL, "x y", "z", GRAPH_REMAT_BLOCK, 0, true},
};

#define NODES "{\"chip\":\"h100-sxm\",\"nodes\":4,\"gpus\":8}"

/* Layers that the book does not list, up to their streams; read line by line against its notation,
 * and against the collectives of the program (tests/property/test_told.c). */
static const struct scenario_listed {
    const char *name, *machine, *mesh, *model, *policies;
} scenarios[] = {
    {"experts-ep", NODES, "\"dp\":[\"node\"],\"ep\":[\"gpu\"]", "qwen3-30b-a3b",
     "\"remat\":\"block\",\"zero\":1"},
    {"experts-fsdp-tp", NODES, "\"fsdp\":[\"node\"],\"tp\":[\"gpu\"]", "mixtral-8x7b",
     "\"remat\":\"none\""},
    {"experts-tokens", NODES, "\"fsdp\":[\"node\"],\"tp\":[\"gpu\"]", "mixtral-8x7b",
     "\"remat\":\"big_matmuls\",\"activations\":\"tokens\",\"backward_order\":\"dx_first\""},
    {"latent-fsdp-tp", NODES, "\"fsdp\":[\"node\"],\"tp\":[\"gpu\"]", "deepseek-v3",
     "\"remat\":\"norms\",\"formats\":{\"matmuls\":\"fp8\"}"},
    {"shared-ep", NODES, "\"ep\":[\"node\",\"gpu\"]", "deepseek-v3",
     "\"remat\":\"layer\",\"formats\":{\"dispatch\":\"fp8\"}"},
    {"gathers-by-tensor", NODES, "\"fsdp\":[\"node\"],\"tp\":[\"gpu\"]", "llama-3-8b",
     "\"remat\":\"block\",\"gather\":\"tensor\""},
    {"windows-dp", NODES, "\"dp\":[\"node\",\"gpu\"]", "gpt-oss-20b", "\"remat\":\"none\""},
    {"pipeline", NODES, "\"pp\":[\"node\"],\"tp\":[\"gpu\"]", "llama-3-8b",
     "\"remat\":\"norms\",\"schedule\":\"zb-h1\",\"accumulate\":8"},
    {"context-ring", NODES, "\"cp\":[\"node\"],\"tp\":[\"gpu\"]", "llama-3-8b",
     "\"remat\":\"none\",\"context\":\"ring\",\"attention\":\"causal\""},
    {"context-gather", NODES, "\"cp\":[\"node\"],\"fsdp\":[\"gpu\"]", "llama-3-8b",
     "\"remat\":\"big_matmuls\",\"context\":\"all_gather\""},
    {"context-ulysses", NODES, "\"dp\":[\"node\"],\"cp\":[\"gpu\"]", "llama-3-8b",
     "\"remat\":\"norms\",\"context\":\"ulysses\""},
    {"scores", NODES, "\"dp\":[\"node\"],\"tp\":[\"gpu\"]", "llama-3-8b",
     "\"remat\":\"big_matmuls\",\"attention_kernel\":\"unfused_dropout\""},
    {"offload", NODES, "\"fsdp\":[\"node\",\"gpu\"]", "llama-3-8b",
     "\"remat\":\"block\",\"offload\":\"both\""},
};

/* The listing up to the streams, which other tests hold. */
static struct strbuf scenario_listing(const struct scenario_listed *of)
{
    char scenario[SCENARIO_BYTES_MAX];
    struct play play;
    struct strbuf text = {0};
    struct error error = {0};
    static const struct play_options lower_only = {.lower_only = true, .engine = "fast"};
    (void)snprintf(
        scenario, sizeof scenario,
        "{\"podsim\":1,\"machine\":%s,\"mesh\":{%s},\"workload\":{\"kind\":\"train_step\","
        "\"model\":\"%s\",\"batch_tokens\":131072,\"sequence_length\":4096,%s,"
        "\"allow_oversubscription\":true}}",
        of->machine, of->mesh, of->model, of->policies);
    enum status status = play_try(&play, scenario, &lower_only, &error);
    if (status == STATUS_OK)
        status = workload_listing(&play.scenario.workload, &play.machine, &play.mesh, &play.program,
                                  &text, &error);
    if (status == STATUS_OK) {
        text.size_bytes = (uint64_t)(strstr(text.bytes, "\nStreams:") - text.bytes);
        text.bytes[text.size_bytes] = '\0';
    } else {
        (void)fprintf(stderr, "%s: %s: %s\n", of->name, error.where, error.message);
    }
    play_close(&play);
    return text;
}

static struct strbuf listing_of(const struct listed *of)
{
    struct workload_case made;
    struct strbuf text = {0};
    enum status status = case_build(&made, of->llama ? &case_llama_70b : &case_mlp, of->shape,
                                    of->dp, of->fsdp, of->tp);
    made.plan.batch_tokens = 1 << 19;
    made.plan.remat = of->remat;
    made.plan.zero = of->zero;
    made.plan.collective_matmul = of->collective_matmul;
    if (status == STATUS_OK)
        status = workload_lower(made.arena, &made.plan, &made.machine, &made.mesh, &made.program,
                                &made.error);
    if (status == STATUS_OK)
        status = workload_listing(&made.plan, &made.machine, &made.mesh, &made.program, &text,
                                  &made.error);
    if (status != STATUS_OK)
        (void)fprintf(stderr, "%s: %s: %s\n", of->name, made.error.where, made.error.message);
    case_free(&made);
    return text;
}

/* Says where two texts part; 0 if nowhere. */
static int compare(const char *path, const char *ours)
{
    static char golden[GOLDEN_BYTES_MAX];
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        (void)fprintf(stderr, "%s: cannot be read\n", path);
        return 1;
    }
    size_t const size = fread(golden, 1, sizeof golden - 1, file);
    golden[size] = '\0';
    (void)fclose(file);
    unsigned line = 1;
    size_t begin = 0;
    for (size_t i = 0;; i++) {
        if (golden[i] != ours[i]) {
            (void)fprintf(stderr, "%s:%u:\n  golden: %.*s\n  ours:   %.*s\n", path, line,
                          (int)strcspn(golden + begin, "\n"), golden + begin,
                          (int)strcspn(ours + begin, "\n"), ours + begin);
            return 1;
        }
        if (ours[i] == '\0') return 0;
        if (ours[i] != '\n') continue;
        line++;
        begin = i + 1;
    }
}

/* Compares, or writes; frees the text. Returns how many failures. */
static int hold(const char *folder, const char *name, struct strbuf text, bool write)
{
    char path[512];
    struct error error = {0};
    int failures = 1;
    (void)snprintf(path, sizeof path, "%s/%s.txt", folder, name);
    if (text.bytes != NULL && !write) failures = compare(path, text.bytes);
    if (text.bytes != NULL && write) failures = strbuf_write_file(&text, path, &error) != STATUS_OK;
    strbuf_free(&text);
    return failures;
}

int main(int argc, char **argv)
{
    int failures = 0;
    if (argc < 2) return EXIT_FAILURE;
    bool const write = argc > 2 && strcmp(argv[2], "--write") == 0;
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++)
        failures += hold(argv[1], listed[i].name, listing_of(&listed[i]), write);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        failures += hold(argv[1], scenarios[i].name, scenario_listing(&scenarios[i]), write);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
