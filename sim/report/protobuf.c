#include "sim/report/protobuf.h"

#include <string.h>

#include "sim/base/strbuf.h"

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, VARINT_BYTES_MAX = 10 };

static uint32_t varint_encode(uint64_t value, uint8_t bytes[VARINT_BYTES_MAX])
{
    uint32_t count = 0;
    for (; value >= 0x80; value >>= 7) bytes[count++] = (uint8_t)(value | 0x80);
    bytes[count++] = (uint8_t)value;
    return count;
}

static void varint_add(struct strbuf *text, uint64_t value)
{
    uint8_t bytes[VARINT_BYTES_MAX];
    strbuf_add_bytes(text, bytes, varint_encode(value, bytes));
}

static void tag_add(struct strbuf *text, uint32_t field, enum wire wire)
{
    varint_add(text, (uint64_t)field << 3 | wire);
}

void protobuf_unsigned(struct strbuf *text, uint32_t field, uint64_t value)
{
    tag_add(text, field, WIRE_VARINT);
    varint_add(text, value);
}

void protobuf_fixed(struct strbuf *text, uint32_t field, uint64_t bits)
{
    uint8_t bytes[8];
    for (uint32_t i = 0; i < 8; i++) bytes[i] = (uint8_t)(bits >> 8 * i);
    tag_add(text, field, WIRE_FIXED64);
    strbuf_add_bytes(text, bytes, sizeof bytes);
}

void protobuf_double(struct strbuf *text, uint32_t field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    protobuf_fixed(text, field, bits);
}

void protobuf_string(struct strbuf *text, uint32_t field, const char *string)
{
    uint64_t const length = strlen(string);
    tag_add(text, field, WIRE_BYTES);
    varint_add(text, length);
    strbuf_add_bytes(text, string, length);
}

uint64_t protobuf_begin(struct strbuf *text, uint32_t field)
{
    tag_add(text, field, WIRE_BYTES);
    strbuf_add_bytes(text, "", 1); /* Room for a length below 128, as nearly all are. */
    return text->size_bytes;
}

void protobuf_end(struct strbuf *text, uint64_t begin)
{
    uint8_t bytes[VARINT_BYTES_MAX];
    if (text->failed) return;
    uint64_t const length = text->size_bytes - begin;
    uint32_t const count = varint_encode(length, bytes);
    if (count > 1) {
        strbuf_add_bytes(text, bytes, count - 1); /* The room; what lies there is moved over it. */
        if (text->failed) return;
        memmove(text->bytes + begin + count - 1, text->bytes + begin, (size_t)length);
    }
    memcpy(text->bytes + begin - 1, bytes, count);
}
