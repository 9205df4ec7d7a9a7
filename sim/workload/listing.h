/*
 * listing.h: the parts of workload_listing(). Internal to sim/workload.
 */
#ifndef SIM_WORKLOAD_LISTING_H
#define SIM_WORKLOAD_LISTING_H

#include "sim/base/text.h"
#include "sim/program/program.h"
#include "sim/workload/layout.h"
#include "sim/workload/local.h"

struct listing {
    struct text *text;
    const struct local *local;
    uint32_t step;       /* The last number given in this section. */
    uint32_t in_step[2]; /* Of the forward pass: where the MLP's and attention's In is gathered, */
    uint32_t read_step;  /* and the last step whose result the backward pass reads, */
    uint32_t read_count; /* up to which this number of collectives is told. */
    struct workload_listing *made;
    enum workload_section section;
    uint32_t gathered, reduced; /* Of the layer's units those told in this section, a bit each. */
};

/* Notes a collective of the section. */
void listing_tell(struct listing *listing, enum collective_kind kind, const char *group,
                  uint64_t size_bytes);
/* The same for a gather or a reduction over `axes`, by the array's elements on a chip. */
void listing_tell_axes(struct listing *listing, enum collective_kind kind, uint32_t axes,
                       enum format format, uint64_t elements);

/* A step with what it makes on one chip: "3. Tmp[B_X, F] = ...   [512, 32768]   33.6 MB   (why)".
 * `array` NULL: nothing is made that is worth a size. */
void listing_step(struct listing *listing, const struct sharding *array, enum format format,
                  const char *remark, const char *what, ...) __attribute__((format(printf, 5, 6)));

/* `array` over `axes`; returns it gathered. No axes: no step. */
struct sharding listing_gather(struct listing *listing, const struct sharding *array, uint32_t axes,
                               enum format format, const char *remark);
/* left · right, and the reductions that the product needs; returns the reduced array. */
struct sharding listing_product(struct listing *listing, const struct sharding_product *product,
                                enum format format, const char *remark, const char *reduce_remark);
/* The AllReduce or ReduceScatter of a product that stands already. */
struct sharding listing_reduce(struct listing *listing, const struct sharding_product *product,
                               enum format format, const char *remark);

/* All ops of a template of that name, with their collectives; false: the program has none. */
bool listing_template(struct listing *listing, const struct program *program, const char *name);
/* A layer as the book lists it: an MLP, and attention of whole sequences. */
/* A gather of the unit that a matrix belongs to, once in a section. */
void listing_weight_tell(struct listing *listing, const struct layout_block *layout,
                         const struct layout_matrix *matrix, uint32_t axes);
void listing_mlp_forward(struct listing *listing, const struct layout_block *layout);
void listing_mlp_backward(struct listing *listing, const struct layout_block *layout);
void listing_attention_forward(struct listing *listing, const struct layout_block *layout);
void listing_attention_backward(struct listing *listing, const struct layout_block *layout);

/* The streams, and for every op of a template what it waits for. */
void listing_streams(struct text *text, const struct program *program);

#endif
