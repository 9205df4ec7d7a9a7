/*
 * graph_ends.h: what graphs of a model's ends, and of modules that predict further tokens, derive
 * held against the templates that workload_lower() makes, as graph_case.h does with layers'. A
 * module's template is its own part, a layer and, where that lies on the same stage, the head.
 */
#ifndef TESTS_UNIT_GRAPH_ENDS_H
#define TESTS_UNIT_GRAPH_ENDS_H

#include "tests/unit/graph_case.h"

/* [used before] */
struct graph_ends {
    struct graph_cases layers;
    struct graph_case embedding, head[2], mtp[2];
};

static inline void graph_end_build(const struct graph_ends *ends, enum block_part part, bool used,
                                   struct graph_case *made)
{
    const struct ranks *ranks = &ends->layers.ranks;
    const struct model *model = &ranks->plan->model;
    struct step_part const which = {.part = part, .used_before = used};
    graph_terms_of_part(ranks, &which, &made->terms);
    block_write_part(&made->terms, model, part, model->layers - 1, &made->graph);
    graph_case_pass(made);
}

static inline void graph_ends_build(const struct ranks *ranks, struct graph_ends *ret_ends)
{
    graph_cases_build(ranks, &ret_ends->layers);
    ret_ends->layers.ranks = *ranks;
    if (!ranks_is_decoder(ranks)) return;
    graph_end_build(ret_ends, BLOCK_EMBEDDING, step_embedding_used(ranks), &ret_ends->embedding);
    for (uint32_t used = 0; used < 2; used++) {
        graph_end_build(ret_ends, BLOCK_HEAD, used, &ret_ends->head[used]);
        if (ranks->mtp_modules != 0)
            graph_end_build(ret_ends, BLOCK_MTP, used, &ret_ends->mtp[used]);
    }
}

/* --- A template in parts --- */

enum { GRAPH_PARTS_MAX = 3 };

struct graph_parts {
    struct graph_case *part[GRAPH_PARTS_MAX]; /* In the order of the forward pass. */
    uint32_t count;
};

/* What steps wait for if they wait for what they read alone, by way of others if need be. */
static inline void graph_waits_derive(const struct graph_matched *matched,
                                      struct graph_waits *ret_waits)
{
    const struct program_template *template = matched->template;
    memset(ret_waits, 0, sizeof *ret_waits);
    for (uint32_t at = 0; at < matched->steps->count; at++) {
        const struct graph_step *step = &matched->steps->step[at];
        uint32_t const op = matched->op_of[at];
        bool behind = false, found[GRAPH_VALUES_MAX] = {false};
        for (uint32_t before = at; before-- > 0;) {
            uint32_t const other = matched->op_of[before];
            bool const same = template->op[other].stream == template->op[op].stream;
            bool wanted = same && !behind; /* A stream is in order. */
            behind = behind || same;
            for (uint8_t k = 0; k < step->read_count; k++) {
                if (found[k] || !graph_step_writes(&matched->steps->step[before], step->read[k]))
                    continue;
                wanted = found[k] = true;
            }
            if (wanted) graph_wait_add(ret_waits, op, other);
        }
    }
}

/* Steps of an end wait for what they read, and in its part of a template for nothing else. */
static inline void graph_waits_hold(const struct graph_matched *matched)
{
    static struct graph_waits lowered, derived;
    const struct program_template *template = matched->template;
    graph_waits_fill(template, &lowered);
    graph_waits_derive(matched, &derived);
    for (uint32_t at = 0; at < matched->steps->count; at++)
        for (uint32_t before = 0; before < at; before++) {
            uint32_t const op = matched->op_of[at], other = matched->op_of[before];
            if (lowered.of[op][other] != derived.of[op][other])
                fail_msg("%s, %s: %s waits for %s: %d, derived %d", matched->name, template->name,
                         template->op[op].name, template->op[other].name, lowered.of[op][other],
                         derived.of[op][other]);
        }
}

/* Ops of the template up to the last that a part derives, from `*op` on; false: they differ. */
static inline bool graph_part_is(const struct graph_ends *ends, const struct program *program,
                                 struct graph_matched *matched, uint32_t *op, char ret_why[1200])
{
    const struct program_template *template = matched->template;
    uint32_t at = 0;
    for (uint32_t i = 0; i < template->op_count; i++) matched->step_of[i] = GRAPH_NEEDS_NONE;
    for (; at < matched->steps->count && *op < template->op_count; ++*op) {
        if (!graph_op_is_ours(program, &template->op[*op])) continue;
        matched->step_of[*op] = at;
        matched->op_of[at] = *op;
        if (!graph_step_is(&ends->layers, program, &matched->steps->step[at++], &template->op[*op],
                           ret_why))
            return false;
    }
    (void)snprintf(ret_why, 1200, "%u steps of %u are lowered", at, matched->steps->count);
    return at == matched->steps->count;
}

static inline bool graph_rest_is_others(const struct program *program,
                                        const struct program_template *template, uint32_t op,
                                        char ret_why[1200])
{
    for (; op < template->op_count; op++)
        if (graph_op_is_ours(program, &template->op[op])) {
            (void)snprintf(ret_why, 1200, "%s is not derived", template->op[op].name);
            return false;
        }
    return true;
}

static inline bool graph_parts_are(const char *name, const struct graph_ends *ends,
                                   const struct program *program,
                                   const struct program_template *template,
                                   const struct graph_parts *parts, struct graph_request request,
                                   char ret_why[1200])
{
    static struct graph_steps steps;
    static struct graph_matched matched;
    uint32_t op = 0;
    matched.name = name;
    matched.template = template;
    matched.steps = &steps;
    for (uint32_t i = 0; i < parts->count; i++) {
        const struct graph_case *part = parts->part[request.backward ? parts->count - 1 - i : i];
        graph_steps(&part->sharded, &part->backward, &part->kept, request, &steps);
        if (!graph_part_is(ends, program, &matched, &op, ret_why)) return false;
        graph_needs_hold(&matched);
        if (part->graph.block[0].block->place == BLOCK_LOOKS_UP ||
            part->graph.block[0].block->place == BLOCK_GIVES_LOSS)
            graph_waits_hold(&matched);
        graph_compared.ops += steps.count;
    }
    return graph_rest_is_others(program, template, op, ret_why);
}

/* --- What is kept --- */

/* What ops of a template leave of a memory. */
static inline int64_t graph_template_left(const struct program_template *template,
                                          enum program_memory memory)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < template->op_count; i++)
        for (uint32_t e = 0; e < template->op[i].effect_count; e++)
            if (template->op[i].effect[e].memory == memory)
                bytes += template->op[i].effect[e].bytes;
    return bytes;
}

/* Of the head buffers are kept, as its backward pass follows at once. Its input may be kept by
 * another, as the model's last layer and a module read the same. */
static inline void graph_parts_kept(const char *name, const struct graph_ends *ends,
                                    const struct program_template *template,
                                    const struct graph_parts *parts)
{
    int64_t const buffers = graph_template_left(template, PROGRAM_MEMORY_BUFFERS);
    int64_t const input = (int64_t)format_bytes(ends->layers.ranks.plan->formats.activations,
                                                ends->layers.ranks.block_shard);
    int64_t kept = 0, of_head = 0;
    for (uint32_t i = 0; i < parts->count; i++) {
        const struct graph_case *part = parts->part[i];
        bool const head = part == &ends->head[0] || part == &ends->head[1];
        *(head ? &of_head : &kept) += (int64_t)graph_kept_bytes(&part->sharded, &part->kept);
    }
    if (graph_template_left(template, PROGRAM_MEMORY_ACTIVATIONS) != kept)
        fail_msg("%s, %s keeps %lld bytes, derived %lld", name, template->name,
                 (long long)graph_template_left(template, PROGRAM_MEMORY_ACTIVATIONS),
                 (long long)kept);
    bool const others = ends->layers.ranks.mtp_modules != 0;
    if (buffers != of_head && !(others && of_head != 0 && buffers == of_head - input))
        fail_msg("%s, %s keeps %lld bytes of buffers, derived %lld", name, template->name,
                 (long long)buffers, (long long)of_head);
}

/* --- Templates --- */

/* What a template is. */
struct graph_end {
    enum block_part part;
    bool may_be_first, may_be_used; /* Uses of its matrix in a backward pass. */
    struct graph_request request;
};

/* By its name; false: it is no end's, or passes of two stages in one. */
static inline bool graph_end_of(const struct program_template *template, struct graph_end *ret_end)
{
    static const struct {
        const char *name;
        struct graph_end end;
    } parts[] = {{"embedding", {BLOCK_EMBEDDING, true, false, {.backward = false}}},
                 {"mtp head", {BLOCK_HEAD, false, true, {.backward = false}}},
                 {"head", {BLOCK_HEAD, true, false, {.backward = false}}},
                 {"mtp", {BLOCK_MTP, true, true, {.backward = false}}}};
    static const struct {
        const char *name;
        struct graph_request request;
    } passes[] = {{"forward", {false, GRAPH_WHOLE, false}},
                  {"backward", {true, GRAPH_WHOLE, false}},
                  {"input gradient", {true, GRAPH_INPUT_HALF, false}},
                  {"weight gradient", {true, GRAPH_WEIGHT_HALF, false}}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (size_t k = 0; k < sizeof passes / sizeof *passes; k++) {
            char name[64];
            (void)snprintf(name, sizeof name, "%s %s", parts[i].name, passes[k].name);
            if (strcmp(template->name, name) != 0) continue;
            *ret_end = parts[i].end;
            ret_end->request = passes[k].request;
            return true;
        }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strncmp(template->name, parts[i].name, strlen(parts[i].name)) == 0 &&
            strchr(template->name, ',') == NULL)
            fail_msg("%s is no pass of an end", template->name);
    return false;
}

/* A module's with a layer of a kind; else `layer` is of no meaning. */
static inline struct graph_parts graph_parts_of(struct graph_ends *ends, enum block_part part,
                                                bool used, uint32_t layer)
{
    bool const apart = ends->layers.ranks.mtp_apart;
    switch (part) {
    case BLOCK_EMBEDDING:
        return (struct graph_parts){.part = {&ends->embedding}, .count = 1};
    case BLOCK_HEAD:
        return (struct graph_parts){.part = {&ends->head[used]}, .count = 1};
    case BLOCK_MTP:
        return (struct graph_parts){
            .part = {&ends->mtp[used], &ends->layers.layer[layer], &ends->head[true]},
            .count = apart ? 2 : 3};
    case BLOCK_LAYER:
        break;
    }
    return (struct graph_parts){.count = 0};
}

static inline void graph_end_hold(const char *name, struct graph_ends *ends,
                                  const struct program *program,
                                  const struct program_template *template)
{
    struct graph_end end;
    char why[1200] = "no layer of this kind";
    if (!graph_end_of(template, &end)) return;
    uint32_t const layers = end.part == BLOCK_MTP ? ends->layers.count : 1;
    if (layers == 0) return; /* No block describes the module's. */
    for (uint32_t i = 0; i < template->op_count; i++)
        if (graph_sums_parts(program, &template->op[i])) end.request.sums_partial = true;
    for (uint32_t used = !end.may_be_first; used < 1U + end.may_be_used; used++)
        for (uint32_t layer = 0; layer < layers; layer++) {
            struct graph_parts const parts = graph_parts_of(ends, end.part, used, layer);
            if (!graph_parts_are(name, ends, program, template, &parts, end.request, why)) continue;
            if (!end.request.backward) graph_parts_kept(name, ends, template, &parts);
            for (uint32_t i = 0; i < parts.count; i++)
                *(end.request.backward ? &parts.part[i]->backward_matched
                                       : &parts.part[i]->forward_matched) += 1;
            graph_compared.templates++;
            return;
        }
    fail_msg("%s, %s: %s", name, template->name, why);
}

/* Every template of an end is what its graph derives, every end has templates, and steps read what
 * was written before. */
static inline void graph_ends_hold(const char *name, const struct ranks *ranks,
                                   const struct program *program)
{
    static struct graph_ends ends;
    bool whole = true; /* No template has passes of two stages. */
    for (uint32_t t = 0; t < program->template_count; t++)
        whole = whole && strchr(program->templates[t].name, ',') == NULL;
    if (!ranks_is_decoder(ranks)) return;
    graph_ends_build(ranks, &ends);
    for (uint32_t t = 0; t < program->template_count; t++)
        graph_end_hold(name, &ends, program, &program->templates[t]);
    struct graph_case *const parts[] = {&ends.embedding, &ends.head[0], &ends.mtp[0], &ends.mtp[1]};
    bool const described = ends.layers.count != 0;
    for (uint32_t i = 0; i < (ranks->mtp_modules != 0 ? 4u : 2u); i++) {
        graph_values_hold(name, parts[i]);
        graph_steps_are_read(name, parts[i]);
        graph_lives_hold(name, parts[i]);
        /* A later module's differs from the last one's where it adds to its gradient. */
        bool const other =
            parts[i] == &ends.mtp[1] && (ranks->mtp_modules == 1 || ends.mtp[0].terms.policy.adds);
        if (!whole || other || (i >= 2 && !described)) continue;
        if (parts[i]->backward_matched == 0 || (i < 3 && parts[i]->forward_matched == 0))
            fail_msg("%s: %s has no templates", name, parts[i]->graph.block[0].block->name);
    }
    graph_compared.steps++;
}

#endif
