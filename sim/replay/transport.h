/*
 * transport.h: collectives as they travel: the lanes of a plan, and how a collective begins and
 * ends on a chip.
 */
#ifndef SIM_REPLAY_TRANSPORT_H
#define SIM_REPLAY_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

struct lane_table;
struct replay;

/* Messages arrive by one port of the grid, each at its instant. */
void transport_window(struct replay *replay, uint64_t key, const uint32_t *chips,
                      const int64_t *at_ps, uint32_t count);
/* Fetches what such messages will touch first. */
void transport_ahead(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count);
void transport_begin(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
/* The first step of transport_begin(): lanes start anew, and count what has come early. */
void transport_open(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
void transport_operand(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
void transport_arrive(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count,
                      int64_t now_ps);
void transport_land(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count,
                    int64_t now_ps);
/* A message has landed on its chip, and has been charged there. */
void transport_message_land(struct replay *replay, struct lane_table *lane, uint32_t chip,
                            uint32_t units, int64_t now_ps);
void transport_hop(struct replay *replay, uint64_t key, const uint32_t *chips, uint32_t count,
                   int64_t now_ps);
void transport_lane_ready(struct replay *replay, uint32_t stream, uint32_t number, uint32_t chip,
                          int64_t now_ps);
/* Posts the end of the running collective if all its messages are done. */
void transport_check_end(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
/* Whether the collective that was to end now still has a message to leave, and ends with it. */
bool transport_leaves(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);
/* The lane is tried again at `at_ps`, when its last message has left. */
void transport_ready_post(struct replay *replay, const struct lane_table *lane, uint32_t chip,
                          int64_t at_ps);
/* Sends what the lane may send now. */
void transport_lane_try(struct replay *replay, struct lane_table *lane, uint32_t chip,
                        int64_t now_ps);
/* Whether what a message needs of the items before has arrived here. */
bool transport_before_arrived(const struct lane_table *lane, uint32_t chip, uint32_t portion,
                              uint32_t number);
/* The lane's last message has left, after others that it shared its link with. */
void transport_left(struct replay *replay, struct lane_table *lane, uint32_t chip, int64_t now_ps);
/* Tries lanes that waited for a piece of this lane. */
void transport_followers_try(struct replay *replay, const struct lane_table *lane, uint32_t chip,
                             int64_t now_ps);
/* Pieces that the plan has completed on the chip, without the ones that already count as done. */
uint32_t transport_parts_new(struct replay *replay, const struct lane_table *lane, uint32_t chip);
/* Ends the collective's accounts, and checks that no port was faster than its link. */
void transport_end(struct replay *replay, uint32_t stream, uint32_t chip, int64_t now_ps);

#endif
