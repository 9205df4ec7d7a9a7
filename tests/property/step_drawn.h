/*
 * step_drawn.h: a training step over a mesh, drawn: network, rates, arbitration, remat, and, where
 * the mesh has stages, their schedule. The test gives machine, mesh and sizes, and its own keys.
 */
#ifndef TESTS_PROPERTY_STEP_DRAWN_H
#define TESTS_PROPERTY_STEP_DRAWN_H

#include <string.h>

#include "tests/support/case.h"
#include "tests/support/walk.h"

/* Keys are JSON text. Keys that follow others begin with a comma. */
struct step_drawn {
    const char *machine;                /* Chip and sizes, first of the machine's keys. */
    const char *overrides;              /* Further keys of the machine. */
    const char *network;                /* Of nodes of GPUs: a key of the machine; NULL: drawn. */
    const char *arbitration, *schedule; /* NULL: drawn. */
    const char *mesh;
    const char *workload;  /* Further keys of the workload. */
    const char *run;       /* Further keys of the run. */
    uint32_t batch_tokens; /* Of one microbatch. */
    uint32_t microbatches; /* Where the mesh has stages. */
};

static inline void step_draw(uint64_t *state, const struct step_drawn *of,
                             char text[WALK_TEXT_BYTES])
{
    bool const gpu = strstr(of->machine, "h100") != NULL;
    bool const staged = strstr(of->mesh, "\"pp\"") != NULL;
    const char *model = strstr(of->mesh, "\"ep\"") != NULL ? "tests/property/experts.json"
                        : staged                           ? "tests/property/dense-8.json"
                                                           : "tests/property/dense.json";
    const char *network =
        CASE_PICK(state, "", "", ", \"network\": {\"leaf\": {\"oversubscription\": 4}}",
                  ", \"network\": {\"leaf\": {\"policy\": \"hash\"}}",
                  ", \"network\": {\"cable_latency\": \"1ps\", \"nvlink\": {\"latency\": \"1ps\"}}",
                  ", \"network\": {\"nic_rate\": \"2GB/s\"}", ", \"network\": {\"node_nics\": 1}");
    if (of->network != NULL) network = of->network;
    const char *profile =
        CASE_PICK(state, "ideal", "measured", gpu ? "measured\", \"stack\": \"te" : "measured");
    const char *arbitration = CASE_PICK(state, "fair", "fair", "priority", "fifo");
    const char *schedule = CASE_PICK(state, "1f1b", "gpipe", "interleaved:2", "zb-h1", "dualpipev");
    const char *remat =
        CASE_PICK(state, "\"none\"", "\"block\"", "\"layer\"",
                  "{\"save\": [\"Q\", \"A\", \"Out\"]}", "{\"repeat\": [\"In\", \"A\", \"Out\"]}");
    if (of->arbitration != NULL) arbitration = of->arbitration;
    if (of->schedule != NULL) schedule = of->schedule;
    uint32_t const microbatches = staged ? of->microbatches : 1;
    char stages[64] = "";
    if (staged)
        case_text(stages, sizeof stages, ", \"accumulate\": %u, \"schedule\": \"%s\"",
                  (unsigned)microbatches, schedule);
    case_text(text, WALK_TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {%s, \"profile\": \"%s\"%s%s}, \"mesh\": %s, "
              "\"workload\": {\"kind\": \"train_step\", \"model\": \"%s\", \"batch_tokens\": %u, "
              "\"sequence_length\": 1024, \"remat\": %s, \"allow_oversubscription\": true%s%s}, "
              "\"run\": {\"arbitration\": \"%s\"%s}}",
              of->machine, profile, gpu ? network : "", of->overrides, of->mesh, model,
              (unsigned)(of->batch_tokens * microbatches), remat, stages, of->workload, arbitration,
              of->run);
}

#endif
