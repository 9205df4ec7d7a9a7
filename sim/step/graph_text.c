/* What each pass derives of each part of a model, as text. */
#include "sim/base/strbuf.h"
#include "sim/graph/derive.h"
#include "sim/graph/print.h"
#include "sim/step/graph_terms.h"
#include "sim/step/listing.h"

struct printer {
    const struct ranks *ranks;
    struct strbuf *text;
    bool colour;
};

static void title_add(const struct printer *printer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void title_add(const struct printer *printer, const char *format, ...)
{
    va_list arguments;
    strbuf_add(printer->text, "\n%s", printer->colour ? "\x1b[1m" : "");
    va_start(arguments, format);
    strbuf_add_list(printer->text, format, arguments);
    va_end(arguments);
    strbuf_add(printer->text, "%s\n", printer->colour ? "\x1b[0m" : "");
}

static void pass_add(const struct printer *printer, const struct graph_derived *derived,
                     bool backward)
{
    struct graph_request const request = {backward, GRAPH_WHOLE, .sums_partial = true};
    const char *name = backward ? "backward" : "forward";
    struct graph_steps steps;
    struct graph_live live;
    graph_steps(&derived->sharded, &derived->backward, &derived->kept, request, &steps);
    title_add(printer, "%s pass: steps", name);
    graph_print_steps(&derived->sharded, &steps, printer->text);
    graph_live(&derived->sharded, &derived->kept, &steps, NULL, &live);
    title_add(printer, "%s pass: what lies in memory", name);
    graph_print_live(&derived->sharded, &live, steps.count, printer->text);
}

/* Each pass' product. */
static void passes_add(const struct printer *printer, const struct graph_terms *terms,
                       enum block_part part, uint64_t layer)
{
    const struct chip *chip = &printer->ranks->machine->chip;
    struct graph_derived derived;
    struct graph_count count;
    graph_derive(terms, &printer->ranks->plan->model, part, layer, &derived);
    title_add(printer, "tensors: on one chip, format, strongest remat that keeps them");
    graph_print_tensors(&derived.sharded, printer->text);
    title_add(printer, "ops, and their collectives over tp");
    graph_print(&derived.sharded, printer->text);
    title_add(printer, "gradients, in their order");
    graph_print_backward(&derived.sharded, &derived.backward, printer->text);
    title_add(printer, "kept and repeated, with remat %s", graph_remat_name(terms->policy.remat));
    graph_print_kept(&derived.sharded, &derived.kept, printer->text);
    pass_add(printer, &derived, false);
    pass_add(printer, &derived, true);
    graph_count(&derived.sharded, &derived.backward, &derived.kept,
                (struct work_edges){WORK_EDGE_ROWS, chip->mxu.rows, chip->mxu.columns}, &count);
    title_add(printer, "sums over both passes, by kind of op");
    graph_print_count(&count, printer->text);
}

/* Layers that are written alike are printed once. */
static void layers_add(const struct printer *printer)
{
    const struct ranks *ranks = printer->ranks;
    const struct model *model = &ranks->plan->model;
    uint64_t const dense = model_dense_layers(model);
    for (uint32_t kind = 0; kind < 4; kind++) {
        uint64_t first = 0, count = 0;
        for (uint64_t layer = model->layers; layer-- > 0;) {
            bool const windowed = ranks_layer_is_windowed(ranks, layer);
            if ((2U * (layer >= dense) + windowed) != kind) continue;
            first = layer;
            count++;
        }
        if (count == 0) continue;
        struct graph_terms terms;
        graph_terms_of(ranks, first, &terms);
        title_add(printer, "==== %llu of %llu layers%s%s, as layer %llu", (unsigned long long)count,
                  (unsigned long long)model->layers, kind >= 2 ? ", with experts" : "",
                  kind % 2 != 0 ? ", with windows" : "", (unsigned long long)first);
        passes_add(printer, &terms, BLOCK_LAYER, first);
    }
}

static void end_add(const struct printer *printer, const char *name, enum block_part part,
                    bool used_before)
{
    struct graph_terms terms;
    graph_terms_of_end(printer->ranks, used_before, &terms);
    title_add(printer, "==== %s", name);
    passes_add(printer, &terms, part, printer->ranks->plan->model.layers - 1);
}

enum status workload_graphs(const struct workload_plan *plan, const struct machine *machine,
                            const struct mesh *mesh, bool colour, struct strbuf *text,
                            struct error *reterr)
{
    struct ranks ranks;
    STATUS_TRY(ranks_make(plan, machine, mesh, &ranks, reterr));
    struct printer const printer = {&ranks, text, colour};
    bool const ends = ranks_is_decoder(&ranks);
    listing_heading(text, &ranks);
    if (ends) end_add(&printer, "embedding", BLOCK_EMBEDDING, graph_terms_embedding_used(&ranks));
    layers_add(&printer);
    if (ends) end_add(&printer, "head", BLOCK_HEAD, false);
    if (ranks.mtp_modules != 0)
        end_add(&printer, "multi-token prediction: a module's own", BLOCK_MTP, false);
    return STATUS_OK;
}
