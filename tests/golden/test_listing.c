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

#include "sim/base/text.h"
#include "tests/unit/workload_case.h"

enum { GOLDEN_BYTES_MAX = 1 << 16 };

static const struct listed {
    const char *name;
    bool llama;
    const char *shape, *dp, *fsdp, *tp;
    enum workload_remat remat;
    uint32_t zero;
    bool collective_matmul;
} listed[] = {
    {"mlp-dp", false, "16", "x", NULL, NULL, WORKLOAD_REMAT_NONE, 0, false},
    {"mlp-dp-zero-2", false, "16", "x", NULL, NULL, WORKLOAD_REMAT_NONE, 2, false},
    {"mlp-fsdp", false, "16", NULL, "x", NULL, WORKLOAD_REMAT_NONE, 0, false},
    {"mlp-tp", false, "16", NULL, NULL, "x", WORKLOAD_REMAT_NONE, 0, true},
    {"mlp-fsdp-tp", false, "4x4x4", NULL, "x y", "z", WORKLOAD_REMAT_NONE, 0, false},
    {"mlp-dp-fsdp-tp", false, "4x4x4", "y", "x", "z", WORKLOAD_REMAT_BIG_MATMULS, 0, false},
    {"llama-fsdp-tp", true, "16x16x16", NULL, "x y", "z", WORKLOAD_REMAT_BLOCK, 0, true},
};

static const char *listing_of(const struct listed *of, struct workload_case *made)
{
    struct workload_listing listing;
    enum status status = case_build(made, of->llama ? &case_llama_70b : &case_mlp, of->shape,
                                    of->dp, of->fsdp, of->tp);
    made->plan.batch_tokens = 1 << 19;
    made->plan.remat = of->remat;
    made->plan.zero = of->zero;
    made->plan.collective_matmul = of->collective_matmul;
    if (status == STATUS_OK) {
        status = workload_listing(made->arena, &made->plan, &made->machine, &made->mesh, &listing,
                                  &made->error);
    }
    if (status == STATUS_OK) return listing.text;
    (void)fprintf(stderr, "%s: %s: %s\n", of->name, made->error.where, made->error.message);
    return NULL;
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

int main(int argc, char **argv)
{
    int failures = 0;
    if (argc < 2) return EXIT_FAILURE;
    bool const write = argc > 2 && strcmp(argv[2], "--write") == 0;
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++) {
        struct workload_case made;
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s.txt", argv[1], listed[i].name);
        const char *ours = listing_of(&listed[i], &made);
        if (ours == NULL) {
            failures++;
        } else if (write) {
            struct text text = {0};
            text_add(&text, "%s", ours);
            if (text_write_file(&text, path, &made.error) != STATUS_OK) failures++;
            text_free(&text);
        } else {
            failures += compare(path, ours);
        }
        case_free(&made);
    }
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
