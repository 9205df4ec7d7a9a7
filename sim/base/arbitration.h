/* arbitration.h: which message a link takes first where those of several streams meet. */
#ifndef SIM_BASE_ARBITRATION_H
#define SIM_BASE_ARBITRATION_H

enum arbitration {
    ARBITRATION_FAIR,     /* Streams take turns of a segment each. */
    ARBITRATION_PRIORITY, /* The more urgent stream goes first, and its messages are cut at
                             segments. */
    ARBITRATION_FIFO,     /* Messages go as they come, each whole. */
};

#endif
