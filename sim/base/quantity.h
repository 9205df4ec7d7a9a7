/*
 * quantity.h: numbers with units in the text, to exact integers and back.
 *
 * "900GB/s", "200Gbit/s", "80GiB", "1.5us", "45e9B/s", "459TFLOP/s", "1.2USD/h", "500W". k M G T P
 * are decimal, Ki Mi Gi Ti binary. A number without a unit is refused where a unit is needed, with
 * an example of one.
 */
#ifndef SIM_BASE_QUANTITY_H
#define SIM_BASE_QUANTITY_H

#include <stdint.h>

#include "sim/base/status.h"

/* What an amount is of, and the unit that it is returned in. */
enum quantity {
    QUANTITY_BYTES,
    QUANTITY_RATE,      /* Bytes a second. */
    QUANTITY_FLOP_RATE, /* FLOP a second. */
    QUANTITY_DURATION,  /* Picoseconds, at most INT64_MAX. */
    QUANTITY_PRICE,     /* Millionths of a US dollar an hour. */
    QUANTITY_POWER,     /* Watts. */
};

enum status quantity_read(enum quantity what, const char *text, const char *where,
                          uint64_t *ret_amount, struct error *reterr);
/* "a rate with its unit, like "90GB/s"" is `before`, "a rate", and `example`. */
const char *quantity_name(enum quantity what);
const char *quantity_example(enum quantity what);

/* For people: three or four significant digits and a unit, always the same width class:
 * "16.8 MB", "1.36 s", "459 TFLOP/s". Return `buffer`. 32 bytes are enough. */
enum { QUANTITY_TEXT_BYTES = 32 };
const char *quantity_text_bytes(char *buffer, double bytes);
const char *quantity_text_seconds(char *buffer, double seconds);
const char *quantity_text_rate(char *buffer, double per_s, const char *unit); /* "B/s", "FLOP/s" */
const char *quantity_text_count(char *buffer, double count);                  /* "70.6 B" */

#endif
