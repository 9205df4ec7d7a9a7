/*
 * builder.h: a program put together: works, plans and copies, each there once; ops on streams with
 * their needs and effects, a template at a time. The one way to make a program: of a step of a
 * model, of collectives alone, of tests.
 *
 * What is not there costs nothing: a collective over a group of one rank is BUILDER_NONE, as is all
 * that is built of it, and a need of it is no need. After the first failure nothing is done any
 * more; whoever builds asks for `status` at the end.
 */
#ifndef SIM_PROGRAM_BUILDER_H
#define SIM_PROGRAM_BUILDER_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/program/program.h"

struct arena;
struct machine;

static const uint32_t BUILDER_NONE = UINT32_MAX;

/* The most of each kind; at most the limits of program.h. */
struct builder_room {
    uint32_t templates, ops, works, plans, copies; /* Ops: of one template. */
};
extern const struct builder_room builder_room_most;

enum { BUILDER_MORE_MAX = 64 };

struct builder {
    struct arena *arena;
    const struct machine *machine; /* The machine whose links plans are built for. */
    struct program *program;
    enum status status; /* The first failure. */
    struct error *error;
    struct builder_room room;
    struct plan_request *requests; /* [plan] */
    uint32_t *work_parts;          /* [work]: parts of the ops that a work is of. */

    /* The template under construction. */
    const char *template_name;
    struct program_op *op;
    uint32_t op_count;
    struct builder_more {
        uint32_t op;
        struct program_need need;
    } more[BUILDER_MORE_MAX]; /* Needs that an op has no room for, unless others imply some. */
    uint32_t more_count;
    uint32_t stream_parts[PROGRAM_STREAMS_MAX];
};

/* Empties the program. It and all names live as long as the arena. */
void builder_begin(struct builder *builder, struct arena *arena, const struct machine *machine,
                   struct builder_room room, struct program *program, struct error *reterr);

/* Keeps the first failure; returns what is kept. */
enum status builder_fail(struct builder *builder, enum status status, const char *where,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A name in the arena, of at most 127 bytes; NULL where there is no memory. */
const char *builder_format(struct builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds a stream and returns its number; PROGRAM_STREAMS_MAX if a program can have no more streams,
 * which is for the caller to refuse. */
uint8_t builder_stream(struct builder *builder, struct program_stream stream);

void builder_template_begin(struct builder *builder, const char *name);
/* Leaves out needs that others imply, and puts the rest in order (builder_needs.c). An op may state
 * more than a program can say: what is left is refused if it is too many, or, without a reduction,
 * all of it at the template's end. */
void builder_needs_reduce(struct builder *builder);
/* Adds a need that stays. */
enum status builder_need_keep(struct builder *builder, struct program_op *op,
                              const struct program_need *need);
/* Ends the template and returns its index in the program; 0 after a failure. */
uint16_t builder_template_end(struct builder *builder);

/* Works and plans that are alike are there once; parts are of the ops that a work is of. The plan
 * is built for the machine's links where `on_links`, or where switches serve its group. A refusal
 * is of `where`. */
uint32_t builder_work(struct builder *builder, const struct work *work, uint32_t parts,
                      const char *where);
uint32_t builder_plan(struct builder *builder, const struct plan_request *request, bool on_links,
                      const char *where);
/* A work or plan of its own, though another may be like it. */
uint32_t builder_work_add(struct builder *builder, const struct work *work, uint32_t parts,
                          const char *where);
uint32_t builder_plan_add(struct builder *builder, const struct plan_request *request,
                          bool on_links, const char *where);
uint32_t builder_copy(struct builder *builder, bool to_host, uint64_t size_bytes);

/* Adds an op, of which all is set but what follows from the template, and whose `index` is what one
 * of the functions above gave. Without `class_name` its class is its name. */
uint32_t builder_op(struct builder *builder, struct program_op op);

/* A need; and the need of the end of another op of the template, which is none where both lie on
 * one stream. */
void builder_need(struct builder *builder, uint32_t op, struct program_need need);
struct program_need builder_end_of(const struct builder *builder, uint32_t op);

/* All roles of the program, each with room for that number of blocks; NULL after a failure. */
struct program_role *builder_roles(struct builder *builder, uint32_t count, uint64_t blocks);
void builder_block(struct program_role *role, struct program_block block);

/* Bytes of one memory at one end of an op are one effect, and none no effect. */
void builder_effect(struct builder *builder, uint32_t op, struct program_effect effect);

#endif
