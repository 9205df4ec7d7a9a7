/*
 * protobuf.h: the protobuf wire format, as much as a writer needs.
 * Source: protobuf.dev, "Encoding".
 */
#ifndef SIM_REPORT_PROTOBUF_H
#define SIM_REPORT_PROTOBUF_H

#include <stdint.h>

struct strbuf;

void protobuf_unsigned(struct strbuf *text, uint32_t field, uint64_t value);
void protobuf_fixed(struct strbuf *text, uint32_t field, uint64_t bits); /* fixed64 */
void protobuf_double(struct strbuf *text, uint32_t field, double value);
void protobuf_string(struct strbuf *text, uint32_t field, const char *string);

/* A message inside: what is added until the end belongs to it. They nest. */
uint64_t protobuf_begin(struct strbuf *text, uint32_t field);
void protobuf_end(struct strbuf *text, uint64_t begin);

#endif
