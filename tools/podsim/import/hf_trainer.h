/* hf_trainer.h: the tables of Hugging Face's trainers. */
#ifndef TOOLS_PODSIM_IMPORT_HF_TRAINER_H
#define TOOLS_PODSIM_IMPORT_HF_TRAINER_H

#include "tools/podsim/import/import.h"

extern const struct import_row hf_trainer_facts[];
extern const struct import_row hf_trainer_plain[];
extern const struct import_row hf_trainer_lacks[];

#endif
