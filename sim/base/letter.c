#include "sim/base/letter.h"

#include <string.h>

enum { LETTER_BYTES_MAX = 4 };

/* Letters that are not LETTER_SEEN, up to `last`, in order. */
static const struct range {
    uint32_t first, last;
    enum letter letter;
} ranges[] = {
    {0x01, 0x1f, LETTER_OBEYED},     {0x7f, 0x9f, LETTER_OBEYED},
    {0xad, 0xad, LETTER_UNSEEN},     {0x34f, 0x34f, LETTER_UNSEEN},
    {0x61c, 0x61c, LETTER_OBEYED},   {0x115f, 0x1160, LETTER_UNSEEN},
    {0x17b4, 0x17b5, LETTER_UNSEEN}, {0x180b, 0x180f, LETTER_UNSEEN},
    {0x200b, 0x200d, LETTER_UNSEEN}, {0x200e, 0x200f, LETTER_OBEYED},
    {0x2028, 0x202e, LETTER_OBEYED}, {0x2060, 0x2065, LETTER_UNSEEN},
    {0x2066, 0x2069, LETTER_OBEYED}, {0x206a, 0x206f, LETTER_UNSEEN},
    {0x3164, 0x3164, LETTER_UNSEEN}, {0xfeff, 0xfeff, LETTER_UNSEEN},
    {0xffa0, 0xffa0, LETTER_UNSEEN}, {0xfff0, 0xfffb, LETTER_UNSEEN},
    {0xfffe, 0xffff, LETTER_NONE},   {0xe0000, 0xe0fff, LETTER_UNSEEN},
};

uint32_t letter_bytes(const char *text, uint64_t text_bytes)
{
    const unsigned char *c = (const unsigned char *)text;
    if (text_bytes == 0) return 0;
    if (c[0] < 0x80) return 1;
    uint32_t const bytes = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
    if (c[0] < 0xc2 || c[0] > 0xf4 || text_bytes < bytes) return 0;
    for (uint32_t i = 1; i < bytes; i++)
        if ((c[i] & 0xc0) != 0x80) return 0;
    if (c[0] == 0xe0 && c[1] < 0xa0) return 0;
    if (c[0] == 0xed && c[1] > 0x9f) return 0;
    if (c[0] == 0xf0 && c[1] < 0x90) return 0;
    if (c[0] == 0xf4 && c[1] > 0x8f) return 0;
    return bytes;
}

uint32_t letter_number(const char *text, uint32_t bytes)
{
    uint32_t number = (unsigned char)text[0];
    if (bytes > 1) number &= 0xffu >> (bytes + 1);
    for (uint32_t i = 1; i < bytes; i++) number = number << 6 | ((unsigned char)text[i] & 0x3f);
    return number;
}

enum letter letter_at(const char *text, uint32_t *ret_bytes)
{
    *ret_bytes = 1;
    if (*text >= ' ' && *text < 0x7f) return LETTER_SEEN; /* ASCII, nearly every letter. */
    uint32_t const bytes = letter_bytes(text, strnlen(text, LETTER_BYTES_MAX));
    *ret_bytes = bytes == 0 ? 1 : bytes;
    if (bytes == 0) return LETTER_NONE;
    uint32_t const number = letter_number(text, bytes);
    for (uint32_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (number <= ranges[i].last)
            return number >= ranges[i].first ? ranges[i].letter : LETTER_SEEN;
    return LETTER_SEEN;
}

bool letters_are_plain(const char *text)
{
    for (uint32_t bytes = 0; *text != '\0'; text += bytes) {
        enum letter const letter = letter_at(text, &bytes);
        if (letter == LETTER_OBEYED || letter == LETTER_NONE) return false;
    }
    return true;
}

void letters_replace(char *text, char by)
{
    char *to = text;
    for (uint32_t bytes = 0; *text != '\0'; text += bytes) {
        bool const is_seen = letter_at(text, &bytes) == LETTER_SEEN;
        if (is_seen) memmove(to, text, bytes);
        if (!is_seen) *to = by;
        to += is_seen ? bytes : 1;
    }
    *to = '\0';
}
