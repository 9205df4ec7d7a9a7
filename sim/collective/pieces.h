/*
 * pieces.h: into how many pieces the shares of a plan over several dimensions are cut.
 */
#ifndef SIM_COLLECTIVE_PIECES_H
#define SIM_COLLECTIVE_PIECES_H

#include <stdint.h>

#include "sim/collective/collective.h"
#include "sim/collective/group.h"

uint32_t pieces_choose(const struct group *group, enum collective_kind kind, uint64_t size_bytes);

#endif
