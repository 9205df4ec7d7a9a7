/*
 * recur_steps.h: steps that follow one another and are alike, of which few are simulated. Internal
 * to sim/replay.
 *
 * When. Each step has places: the first op that the first chip begins in some of its slots. There
 * the state is compared with that at the same place one and two steps ago. If it is the same but
 * for the clock, so is all that follows: each chip ends each further step as much later than one or
 * two steps before. From these ends follows the period, as it would have been found when the steps
 * had been simulated.
 *
 * What is compared. A step counts its slots, parts and messages anew, so that they are the same and
 * have not moved by a period, as layers have. Compared is what handlers read: not what a result is
 * made of, as the run of further steps gives instants and nothing else. Of the runs of a server
 * that have ended only the latest two are compared: a chip remembers those between the longest
 * breaks of all its steps, and messages rarely look so far back. If one has since the image was
 * taken, nothing is found.
 *
 * Epochs that meet. Two messages whose orders differ by their epochs alone go in the same order in
 * further steps, as long as the epochs of both wrap in the same steps. So the meetings since the
 * image are kept, and looked at for as many steps as are not simulated.
 *
 * Books. What results are made of is not counted where nothing else asks for it: no digest, and no
 * spans of the breakdown (breakdowns.is_off).
 *
 * Where states are compared at all is as recur.h says.
 */
#ifndef SIM_REPLAY_RECUR_STEPS_H
#define SIM_REPLAY_RECUR_STEPS_H

#include <stdbool.h>

#include "sim/base/status.h"

struct arena;
struct recur_steps;
struct replay;

/* Leaves the search's `steps` NULL where there is no memory for images, no search, or one step. */
void recur_steps_build(struct arena *arena, struct replay *replay);
/* Further steps go on from the first one, with its images; it takes no more. Its memory has to
 * last. False: their state is made of other arrays. */
bool recur_steps_share(struct replay *first, struct replay *further);

/* Whether the first chip, which begins an op, is at a place. */
bool recur_steps_ask(const struct replay *replay);
/* Compares, and takes an image. True: the period is known, and the run has to go on no more. */
bool recur_steps_look(struct replay *replay);

#endif
