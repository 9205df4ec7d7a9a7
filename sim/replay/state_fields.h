/*
 * state_fields.h: every field of the state of a run, once, for the two searches for what comes
 * again: layers that recur (recur_state.h) and stretches of a chip (stretch_key.h,
 * stretch_record.h). Both are made from these lists. tests/unit/test_state_fields.c fails where a
 * struct has a field that its list does not name, or where one of the searches does not do what a
 * list says.
 *
 * STRUCT_FIELDS(X, user, at): X(user, at member, again, name, keeping) of each member. `at`: how
 * the struct is reached from the one that has it, with its dot; or nothing.
 *
 * again: enum recur_kind. name: enum stretch_naming. keeping: enum stretch_keeping.
 */
#ifndef SIM_REPLAY_STATE_FIELDS_H
#define SIM_REPLAY_STATE_FIELDS_H

/* How a field moves from a period to the next. */
enum recur_kind {
    RECUR_SAME,    /* A value that is the same again. */
    RECUR_INSTANT, /* An instant: later by the period; or in the past, and nothing moves it. */
    RECUR_SUM,     /* A count that has grown, and will grow by as much again. */
    RECUR_LEFT,    /* Whatever recur.c and replay.c write there. */
};

/* What of a field is in the name of a quiet state of a chip, from which a stretch follows. */
enum stretch_naming {
    NAMED_VALUE,  /* The value, as it is. */
    NAMED_AGO,    /* How long before now it is, or behind. */
    NAMED_COUNT,  /* A count of parts, from those before the slot of the compute stream. */
    NAMED_WANTED, /* Such a count that others wait for, as far as a stretch comes to it. */
    NAMED_OWN,    /* What stretch_key.c makes of it together with others. */
    /* Nothing of it, since: */
    NAMED_QUIET,  /* A chip that is quiet has one value there, or now. */
    NAMED_FIXED,  /* No stretch of the chip changes the field. */
    NAMED_UNREAD, /* No handler reads the field in a stretch before one has written it. */
    NAMED_ASKED,  /* Who records or repeats a stretch looks at the field each time. */
    NAMED_APART,  /* Only what is in no stretch changes the field, or reads it: messages that are
                     simulated one by one, ops of other kinds, links of the grid. */
    NAMED_ADDS,   /* No handler reads the sum. */
};

/* What is kept of a field when a stretch is recorded, and written when the stretch is repeated. */
enum stretch_keeping {
    KEPT_NOT,   /* Nothing: the field stays, or a recorded stretch has fixed it by itself. */
    KEPT_VALUE, /* The value at the end. */
    KEPT_LATER, /* An instant: how long after the begin it is. */
    KEPT_ADDED, /* A count or a sum: what has been added. */
    KEPT_OWN,   /* What stretch_make.c and stretch_close.c make of it together with others. */
};

#define CHIP_STATE_FIELDS(X, user, at)                                                             \
    X(user, at part_begin_ps, INSTANT, QUIET, LATER)                                               \
    X(user, at part_end_ps, INSTANT, AGO, LATER)                                                   \
    X(user, at breakdown_ps, INSTANT, AGO, LATER)                                                  \
    X(user, at first_begin_ps, SAME, FIXED, NOT)                                                   \
    X(user, at last_end_ps, INSTANT, UNREAD, LATER)                                                \
    X(user, at start_ps, SAME, FIXED, NOT)                                                         \
    X(user, at exposed_ps, SUM, ADDS, ADDED)                                                       \
    X(user, at exposed_last_ps, SUM, UNREAD, OWN)                                                  \
    X(user, at exposed_first_ps, SAME, FIXED, NOT)                                                 \
    X(user, at running, SAME, QUIET, NOT)                                                          \
    X(user, at sends, SAME, QUIET, NOT)                                                            \
    X(user, at chip_class, SAME, VALUE, NOT)                                                       \
    X(user, at role, SAME, FIXED, NOT)                                                             \
    X(user, at block_phase, SAME, VALUE, NOT)                                                      \
    X(user, at last_phase, SAME, VALUE, VALUE)                                                     \
    X(user, at computes, SAME, QUIET, NOT)                                                         \
    X(user, at shown, SAME, FIXED, NOT)

/* recur.c holds the counts of a stream against its program. */
#define STREAM_STATE_FIELDS(X, user, at)                                                           \
    X(user, at done, SUM, COUNT, ADDED)                                                            \
    X(user, at begun, SUM, COUNT, ADDED)                                                           \
    X(user, at op_first, SUM, UNREAD, OWN)                                                         \
    X(user, at slot, SUM, OWN, ADDED)                                                              \
    X(user, at position, SAME, OWN, VALUE)                                                         \
    X(user, at phase, SAME, VALUE, VALUE)                                                          \
    X(user, at lanes_left, SAME, QUIET, VALUE)                                                     \
    X(user, at waiters, SAME, VALUE, OWN)                                                          \
    X(user, at wake_done, SUM, WANTED, OWN)                                                        \
    X(user, at wake_begun, SUM, WANTED, OWN)                                                       \
    X(user, at part, SAME, QUIET, VALUE)                                                           \
    X(user, at part_runs, SAME, QUIET, VALUE)                                                      \
    X(user, at epoch, SUM, ADDS, OWN)                                                              \
    X(user, at operand_first, SUM, UNREAD, OWN)                                                    \
    X(user, at operand_parts, SAME, UNREAD, OWN)                                                   \
    X(user, at wants, SUM, OWN, OWN)                                                               \
    X(user, at begin_ps, INSTANT, UNREAD, OWN)

#define LANE_STATE_FIELDS(X, user, at)                                                             \
    X(user, at free_ps, INSTANT, QUIET, OWN)                                                       \
    X(user, at ahead, SAME, APART, OWN)                                                            \
    X(user, at sent, SAME, UNREAD, OWN)                                                            \
    X(user, at counted, SAME, UNREAD, OWN)                                                         \
    X(user, at sends, SAME, UNREAD, OWN)                                                           \
    X(user, at arrivals, SAME, UNREAD, OWN)                                                        \
    X(user, at waiting, SAME, QUIET, OWN)                                                          \
    X(user, at finished, SAME, UNREAD, OWN)                                                        \
    X(user, at alone_before, SAME, UNREAD, OWN)                                                    \
    X(user, at alone_behind, SAME, UNREAD, OWN)

/* recur.c compares what is settled with what was granted, and the breaks between runs; so does the
 * name of a quiet state. Where flights are, messages never ask for more than a server has. */
#define SERVER_STATE_FIELDS(X, user, at)                                                           \
    X(user, at dma_ps, SUM, OWN, ADDED)                                                            \
    X(user, at edge_ps, INSTANT, AGO, OWN)                                                         \
    X(user, at settled_ps, SUM, OWN, ADDED)                                                        \
    X(user, at debt_ps, SAME, OWN, VALUE)

/* Of the runs that have ended, a stretch knows none: server_notes says if one was asked for. */
#define SERVER_PAST_FIELDS(X, user, at)                                                            \
    X(user, at run_begin_ps, INSTANT, OWN, OWN)                                                    \
    X(user, at spared_ps, SAME, UNREAD, OWN)                                                       \
    X(user, at free_ps, INSTANT, APART, NOT)                                                       \
    X(user, at earlier_ps, INSTANT, ASKED, OWN)                                                    \
    X(user, at needed, SAME, VALUE, OWN)                                                           \
    X(user, at run_count, SAME, ASKED, OWN)                                                        \
    X(user, at run, INSTANT, ASKED, OWN)                                                           \
    X(user, at room_ps, SAME, OWN, OWN)

#define CORES_STATE_FIELDS(X, user, at)                                                            \
    X(user, at edge_ps, INSTANT, AGO, LATER)                                                       \
    X(user, at lost_ps, SAME, VALUE, VALUE)                                                        \
    X(user, at held, SAME, VALUE, VALUE)

/* Of reads that go on. */
#define SERVER_READS_FIELDS(X, user, at)                                                           \
    X(user, at work_ps, SAME, VALUE, VALUE)                                                        \
    X(user, at since_ps, INSTANT, AGO, LATER)                                                      \
    X(user, at until_ps, INSTANT, AGO, LATER)

#define LINK_STATE_FIELDS(X, user, at)                                                             \
    X(user, at free_ps, INSTANT, ASKED, OWN)                                                       \
    X(user, at busy_ps, SUM, ADDS, ADDED)                                                          \
    X(user, at bytes, SUM, ADDS, ADDED)                                                            \
    X(user, at queue, SAME, APART, NOT)                                                            \
    X(user, at lane, SAME, UNREAD, OWN)                                                            \
    X(user, at stream, SAME, UNREAD, OWN)                                                          \
    X(user, at flown, SAME, ASKED, OWN)

#define GRID_PORT_FIELDS(X, user, at)                                                              \
    LINK_STATE_FIELDS(X, user, at link.)                                                           \
    SERVER_READS_FIELDS(X, user, at reads.)

#define LINK_WAITS_FIELDS(X, user, at)                                                             \
    X(user, at waited_ps, SUM, ADDS, ADDED)                                                        \
    X(user, at messages, SUM, ADDS, ADDED)

#define BREAKDOWN_FIELDS(X, user, at)                                                              \
    X(user, at compute_ps, SUM, ADDS, ADDED)                                                       \
    X(user, at exposed_ps, SUM, ADDS, ADDED)                                                       \
    X(user, at idle_ps, SUM, ADDS, ADDED)                                                          \
    X(user, at waiting_ps, SUM, APART, NOT)

#define PHASE_SPAN_FIELDS(X, user, at)                                                             \
    X(user, at begin_ps, SAME, FIXED, NOT)                                                         \
    X(user, at end_ps, INSTANT, UNREAD, OWN)

#define CLASS_TOTAL_FIELDS(X, user, at)                                                            \
    X(user, at count, SUM, ADDS, ADDED)                                                            \
    X(user, at busy_ps, SUM, ADDS, ADDED)                                                          \
    X(user, at exposed_ps, SUM, ADDS, ADDED)                                                       \
    X(user, at idle_ps, SUM, ADDS, ADDED)

#define TALLY_FIELDS(X, user, at)                                                                  \
    X(user, at transfers, SUM, ADDS, OWN)                                                          \
    X(user, at digest, LEFT, ADDS, OWN)                                                            \
    X(user, at bound_checks, SUM, ADDS, NOT)                                                       \
    X(user, at parts_done, SUM, ADDS, OWN)                                                         \
    X(user, at parts_total, SAME, FIXED, NOT)                                                      \
    X(user, at flown, SUM, ADDS, OWN)                                                              \
    X(user, at recurred, LEFT, ADDS, NOT)                                                          \
    X(user, at recorded, SUM, ADDS, NOT)                                                           \
    X(user, at posted, SUM, ADDS, OWN)                                                             \
    X(user, at landed, SUM, ADDS, NOT)                                                             \
    X(user, at landed_off, SUM, ADDS, NOT)                                                         \
    X(user, at simulated, SUM, ADDS, NOT)                                                          \
    X(user, at stretches, SUM, ADDS, OWN)                                                          \
    X(user, at repeated, SUM, ADDS, OWN)                                                           \
    X(user, at broken, SUM, ADDS, NOT)                                                             \
    X(user, at prefix_chips, SAME, FIXED, NOT)                                                     \
    X(user, at prefix_ps, SAME, FIXED, NOT)                                                        \
    X(user, at queued_ps, SAME, APART, NOT)

/* recur.c holds what is held at the most against what is held; a stretch looks for peaks. */
#define MEMORY_STATE_FIELDS(X, user, at)                                                           \
    X(user, at held_bytes, SUM, ASKED, OWN)                                                        \
    X(user, at each_peak_bytes, SUM, ASKED, OWN)                                                   \
    X(user, at at_peak_bytes, SUM, ASKED, OWN)                                                     \
    X(user, at total_bytes, SUM, ASKED, OWN)                                                       \
    X(user, at peak_bytes, SUM, ASKED, OWN)                                                        \
    X(user, at peak_at_ps, SUM, ASKED, OWN)                                                        \
    X(user, at peak_slot, SUM, ASKED, OWN)                                                         \
    X(user, at peak_op, SAME, ASKED, OWN)

#define P2P_WAIT_FIELDS(X, user, at)                                                               \
    X(user, at idle_ps, SAME, QUIET, NOT)                                                          \
    X(user, at phase_ps, SAME, APART, NOT)                                                         \
    X(user, at transfer_ps, SAME, APART, NOT)                                                      \
    X(user, at ended, SAME, QUIET, NOT)                                                            \
    X(user, at received, SAME, APART, NOT)                                                         \
    X(user, at waiting_ps, SUM, APART, NOT)                                                        \
    X(user, at sent_bytes, SUM, APART, NOT)

#define FLIGHT_FIELDS(X, user, at)                                                                 \
    X(user, at log, SAME, QUIET, NOT)                                                              \
    X(user, at begin_ps, INSTANT, UNREAD, NOT)                                                     \
    X(user, at void_ps, INSTANT, QUIET, NOT)                                                       \
    X(user, at arrived, SAME, UNREAD, NOT)                                                         \
    X(user, at left, SAME, UNREAD, NOT)                                                            \
    X(user, at is_off, SAME, UNREAD, NOT)

#define CHAIN_FIELDS(X, user, at)                                                                  \
    X(user, at end_ps, INSTANT, QUIET, NOT)                                                        \
    X(user, at left, SAME, UNREAD, NOT)                                                            \
    X(user, at runs, SAME, QUIET, NOT)

#define STRETCH_RUN_FIELDS(X, user, at)                                                            \
    X(user, at of, SAME, QUIET, NOT)                                                               \
    X(user, at begin_ps, INSTANT, UNREAD, NOT)                                                     \
    X(user, at end_ps, INSTANT, QUIET, NOT)

/* X(struct, list) of each. */
#define STATE_STRUCTS(X)                                                                           \
    X(chip_state, CHIP_STATE_FIELDS)                                                               \
    X(stream_state, STREAM_STATE_FIELDS)                                                           \
    X(lane_state, LANE_STATE_FIELDS)                                                               \
    X(server_state, SERVER_STATE_FIELDS)                                                           \
    X(server_past, SERVER_PAST_FIELDS)                                                             \
    X(cores_state, CORES_STATE_FIELDS)                                                             \
    X(server_reads, SERVER_READS_FIELDS)                                                           \
    X(link_state, LINK_STATE_FIELDS)                                                               \
    X(grid_port, GRID_PORT_FIELDS)                                                                 \
    X(link_waits, LINK_WAITS_FIELDS)                                                               \
    X(breakdown, BREAKDOWN_FIELDS)                                                                 \
    X(phase_span, PHASE_SPAN_FIELDS)                                                               \
    X(class_total, CLASS_TOTAL_FIELDS)                                                             \
    X(tally, TALLY_FIELDS)                                                                         \
    X(memory_state, MEMORY_STATE_FIELDS)                                                           \
    X(p2p_wait, P2P_WAIT_FIELDS)                                                                   \
    X(flight, FLIGHT_FIELDS)                                                                       \
    X(chain, CHAIN_FIELDS)                                                                         \
    X(stretch_run, STRETCH_RUN_FIELDS)

#endif
