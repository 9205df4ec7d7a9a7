/*
 * model_read.h: models from the catalogue, from a user's Hugging Face config.json, or spelt out
 * as a bare MLP.
 *
 * A config.json has many keys that do not matter here, and they are passed over. What would change
 * the computation and is not modelled is refused: layers that alternate, local attention,
 * quantised weights, biases, and model types whose layers are not known.
 */
#ifndef SIM_MODEL_MODEL_READ_H
#define SIM_MODEL_MODEL_READ_H

#include <stdint.h>

#include "sim/base/key.h"
#include "sim/base/status.h"
#include "sim/model/model.h"

struct arena;
struct json;

/* A name of the catalogue, else a path: a file that ends in .json, or a folder that holds a
 * config.json; looked for beside the scenario (`base_folder`, or NULL), then in the working
 * directory. `where` is the place of the name in the scenario. */
enum status model_read_name_or_path(struct arena *arena, const char *name_or_path,
                                    const char *base_folder, const char *where,
                                    struct model *ret_model, struct error *reterr);

/* {"kind": "mlp", "D": .., "F": .., "layers": .., "matrices": 2 or 3}, by rows of struct model. */
extern const struct key model_mlp_keys[];
/* Such an object, or a whole config.json, which has a "model_type"; its "_name_or_path" is what
 * reports call the model. */
enum status model_read_object(struct arena *arena, struct json *object, struct model *ret_model,
                              struct error *reterr);

/* A config.json that has been parsed; `name` is what reports call the model. */
enum status model_read_config(struct arena *arena, struct json *document, const char *name,
                              struct model *ret_model, struct error *reterr);

/* Names of the catalogue, in its order; NULL past the end. */
const char *model_name_at(uint32_t index);

/* The embedded config.json of a model, or NULL. */
const char *model_json(const char *name, uint32_t *ret_size_bytes);

#endif
