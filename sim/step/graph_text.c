/* What each pass derives of each part of a model, as text. */
#include "sim/base/counted.h"
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

static void part_title_add(const struct printer *printer, const struct step_part *which)
{
    const struct ranks *ranks = printer->ranks;
    bool const of_modules = ranks->mtp.modules != 0 && which->kind == ranks_last_kind(ranks);
    static const char *const names[] = {
        [BLOCK_EMBEDDING] = "embedding",
        [BLOCK_HEAD] = "head",
        [BLOCK_MTP] = "multi-token prediction: a module's own",
    };
    if (which->part == BLOCK_LAYER)
        title_add(printer, "==== %s%s%s, as layer %llu", counted(which->count, "layer").text,
                  layer_kind_text(ranks->kinds.kind[which->kind]).text,
                  of_modules ? ", modules' among them" : "",
                  (unsigned long long)ranks->kinds.first[which->kind]);
    else
        title_add(printer, "==== %s%s", names[which->part],
                  which->used_before ? ", gradients added to another use's" : "");
}

/* Each pass' product. */
static void part_add(const struct printer *printer, const struct step_part *which)
{
    const struct ranks *ranks = printer->ranks;
    struct graph_units const units = step_units(&ranks->machine->chip);
    struct step_graph room;
    const struct graph_derived *derived = step_graph(ranks, which, &room);
    const struct graph_terms *terms = derived->graph.terms;
    struct graph_count count;
    part_title_add(printer, which);
    title_add(printer, "tensors: on one chip, format, strongest remat that keeps them");
    graph_print_tensors(&derived->sharded, printer->text);
    title_add(printer, "ops, and their collectives over tp%s",
              terms->axis_w != 0 ? " and tp_d" : "");
    graph_print(&derived->sharded, printer->text);
    if (!ranks_serves(ranks)) {
        title_add(printer, "gradients, in their order");
        graph_print_backward(&derived->sharded, &derived->backward, printer->text);
        title_add(printer, "kept and repeated, with remat %s", graph_policy_name(&terms->policy));
        graph_print_kept(&derived->sharded, &derived->kept, printer->text);
    }
    pass_add(printer, derived, false);
    if (!ranks_serves(ranks)) pass_add(printer, derived, true);
    graph_count(&derived->sharded, &derived->backward, &derived->kept, &units, &count);
    title_add(printer, "sums%s, by kind of op", ranks_serves(ranks) ? "" : " over both passes");
    graph_print_count(&count, printer->text);
}

enum status workload_graphs(const struct workload_plan *plan, const struct machine *machine,
                            const struct mesh *mesh, bool colour, struct strbuf *text,
                            struct error *reterr)
{
    struct ranks ranks;
    STATUS_TRY(ranks_make(plan, machine, mesh, &ranks, reterr));
    struct printer const printer = {&ranks, text, colour};
    struct step_part parts[STEP_PARTS_MAX];
    uint32_t const count = step_parts(&ranks, parts);
    listing_heading(text, &ranks, LISTING_ALL_PARTS);
    for (uint32_t i = 0; i < count; i++) part_add(&printer, &parts[i]);
    return STATUS_OK;
}
