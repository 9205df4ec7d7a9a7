#include "sim/base/name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Longer names are compared by their beginning: the names we know are short, and a hostile key of
 * megabytes must not cost anything. */
enum { NAME_COMPARED_BYTES = 64 };

/* From this length on, who wrote the beginning of a name meant it: "prefetch" is nearer to
 * "prefetch_layers" than to "seed". */
enum { NAME_BEGINNING_BYTES = 3 };

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* An edit costs 2. A letter in the other case costs 1, so that "gbit" is nearer to "Gbit" than to
 * "bit"; so does another digit, so that "llama3-7b" is nearer to "llama-3-8b" than to
 * "llama-3-70b". */
static uint32_t differs(char a, char b)
{
    if (a == b) return 0;
    return lower(a) == lower(b) || (is_digit(a) && is_digit(b)) ? 1 : 2;
}

/* Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours. */
static uint32_t distance(const char *a, uint32_t a_bytes, const char *b, uint32_t b_bytes)
{
    uint32_t rows[3][NAME_COMPARED_BYTES + 1];
    uint32_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (uint32_t j = 0; j <= b_bytes; j++) above[j] = before[j] = 2 * j;
    for (uint32_t i = 1; i <= a_bytes; i++) {
        row[0] = 2 * i;
        for (uint32_t j = 1; j <= b_bytes; j++) {
            row[j] =
                least(above[j - 1] + differs(a[i - 1], b[j - 1]), least(above[j], row[j - 1]) + 2);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 2);
        }
        uint32_t *const spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return above[b_bytes];
}

static bool ends_word(char c)
{
    return c == '\0' || c == '_' || c == '-' || c == '.' || c == '/' || c == ' ';
}

/* The letters of the longest whole word that two names have both: "nics" of "gpu_nics" and
 * "node_nics"; 0 if none is long enough to be meant. */
static uint32_t word_shared(const char *a, uint32_t a_bytes, const char *b, uint32_t b_bytes)
{
    uint32_t longest = 0;
    for (uint32_t i = 0; i < a_bytes; i++) {
        uint32_t length = 0;
        if (i > 0 && !ends_word(a[i - 1])) continue;
        while (i + length < a_bytes && !ends_word(a[i + length])) length++;
        if (length < NAME_BEGINNING_BYTES || length <= longest) continue;
        for (uint32_t k = 0; k + length <= b_bytes; k++)
            if ((k == 0 || ends_word(b[k - 1])) && ends_word(b[k + length]) &&
                memcmp(a + i, b + k, length) == 0)
                longest = length;
    }
    return longest;
}

/* The words that a name of several leaves out of another: 1 of "llama3-decode-v5e" and
 * "llama3-decode-int8-v5e"; UINT32_MAX if the other lacks a word of the name or has it elsewhere.
 */
static uint32_t words_left_out(const char *name, uint32_t name_bytes, const char *other,
                               uint32_t bytes)
{
    uint32_t words = 0, left_out = 0, at = 0;
    for (uint32_t i = 0; i < bytes;) {
        uint32_t end = i, name_end = at;
        while (end < bytes && !ends_word(other[end])) end++;
        while (name_end < name_bytes && !ends_word(name[name_end])) name_end++;
        if (at < name_bytes && end - i == name_end - at &&
            memcmp(other + i, name + at, end - i) == 0) {
            at = name_end + 1;
            words++;
        } else {
            left_out++;
        }
        i = end + 1;
    }
    return at > name_bytes && words > 1 ? left_out : UINT32_MAX;
}

uint32_t name_find(const char *name, const char *const *names)
{
    uint32_t at = 0;
    while (names[at] != NULL && (name == NULL || strcmp(names[at], name) != 0)) at++;
    return at;
}

uint32_t name_find_any_case(const char *name, const char *const *names)
{
    uint32_t at = 0;
    while (names[at] != NULL && (name == NULL || strcasecmp(names[at], name) != 0)) at++;
    return at;
}

bool name_same(const char *name, const char *other)
{
    return name == other || (name != NULL && other != NULL && strcmp(name, other) == 0);
}

const char *name_after(const char *name, const char *beginning)
{
    size_t const length = strlen(beginning);
    return strncmp(name, beginning, length) == 0 ? name + length : NULL;
}

bool name_is_near(const char *name, const char *other)
{
    uint32_t const a = (uint32_t)strnlen(name, NAME_COMPARED_BYTES);
    uint32_t const b = (uint32_t)strnlen(other, NAME_COMPARED_BYTES);
    return 2 * distance(name, a, other, b) <= least(a, b);
}

/* The letters that two names begin with, whatever their case. */
static uint32_t beginning_shared(const char *a, uint32_t a_bytes, const char *b, uint32_t b_bytes)
{
    uint32_t length = 0;
    while (length < a_bytes && length < b_bytes && lower(a[length]) == lower(b[length])) length++;
    return length;
}

/* Whether who wrote the name may have meant the other. What is nearest of all may be far. */
static bool may_mean(const char *name, uint32_t name_bytes, const char *other, uint32_t bytes)
{
    uint32_t const shorter = least(name_bytes, bytes);
    uint32_t const longer = name_bytes + bytes - shorter;
    uint32_t const shared = beginning_shared(name, name_bytes, other, bytes);
    uint32_t const word = word_shared(name, name_bytes, other, bytes);
    if (shorter == 0) return false;
    if (shared == name_bytes || (shared == bytes && shared > 1)) return true;
    if (shared >= NAME_BEGINNING_BYTES && 2 * shared >= shorter) return true;
    if (2 * word >= shorter) return true;
    return 3 * distance(name, name_bytes, other, bytes) <= 2 * longer;
}

/* From `at` on; false: no digit is there. Of many digits the first ones. */
static bool number_read(const char *text, uint32_t at, uint64_t *ret_number)
{
    enum { DIGITS_MAX = 18 };
    uint32_t digits = 0;
    for (*ret_number = 0; digits < DIGITS_MAX && is_digit(text[at + digits]); digits++)
        *ret_number = *ret_number * 10 + (uint64_t)(text[at + digits] - '0');
    return digits > 0;
}

/* How far the first numbers are apart in which two names differ: 32 of "fp64" and "fp32";
 * UINT64_MAX if they do not differ in a number first. */
static uint64_t number_apart(const char *a, uint32_t a_bytes, const char *b, uint32_t b_bytes)
{
    uint32_t at = beginning_shared(a, a_bytes, b, b_bytes);
    uint64_t numbers[2];
    while (at > 0 && is_digit(a[at - 1])) at--;
    if (!number_read(a, at, &numbers[0]) || !number_read(b, at, &numbers[1])) return UINT64_MAX;
    if (numbers[0] == numbers[1]) return UINT64_MAX;
    return numbers[0] > numbers[1] ? numbers[0] - numbers[1] : numbers[1] - numbers[0];
}

/* Of names that are as near, the one whose number is nearer. */
const char *name_nearest(const char *name, const char *const *names)
{
    const char *nearest = NULL;
    uint32_t nearest_distance = UINT32_MAX;
    uint64_t nearest_apart = UINT64_MAX;
    uint32_t const name_bytes = (uint32_t)strnlen(name, NAME_COMPARED_BYTES);
    for (; *names != NULL; names++) {
        uint32_t const bytes = (uint32_t)strnlen(*names, NAME_COMPARED_BYTES);
        if (!may_mean(name, name_bytes, *names, bytes)) continue;
        uint32_t const shared = least(name_bytes, bytes);
        bool const begins = shared >= NAME_BEGINNING_BYTES && memcmp(name, *names, shared) == 0;
        uint32_t const word = word_shared(name, name_bytes, *names, bytes);
        uint32_t d = begins ? name_bytes != bytes : distance(name, name_bytes, *names, bytes);
        /* A whole word of another name, or a word in common of those that are as near. */
        if (!begins && word == name_bytes && word > 0)
            d = least(d, 2);
        else if (!begins && word > 0 && d > 0)
            d--;
        d = least(d, words_left_out(name, name_bytes, *names, bytes));
        uint64_t const apart = number_apart(name, name_bytes, *names, bytes);
        if (d < nearest_distance || (d == nearest_distance && apart < nearest_apart)) {
            nearest = *names;
            nearest_distance = d;
            nearest_apart = apart;
        }
    }
    return nearest;
}

/* "; there are ring, line and tree": a name that does not fit is counted with those behind it. */
static void names_list(const char *const *names, char *text, size_t text_bytes)
{
    enum { REST_BYTES = 32 }; /* " and 4294967295 more" */
    const char *const begins =
        names[0] != NULL && names[1] == NULL ? "; there is " : "; there are ";
    size_t used = 0;
    for (uint32_t i = 0; names[i] != NULL; i++) {
        const char *const before = i == 0 ? begins : names[i + 1] == NULL ? " and " : ", ";
        if (used + strlen(before) + strlen(names[i]) + REST_BYTES > text_bytes) {
            uint32_t rest = 0;
            while (names[i + rest] != NULL) rest++;
            (void)snprintf(text + used, text_bytes - used, "%s%u more",
                           i == 0 ? "; there are " : " and ", rest);
            return;
        }
        used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", before, names[i]);
    }
}

struct name_offer name_list(const char *const *names)
{
    struct name_offer offer = {.text = ""};
    names_list(names, offer.text, sizeof offer.text);
    return offer;
}

struct name_offer name_offer(const char *name, const char *const *names, const char *before,
                             const char *after, const char *otherwise)
{
    struct name_offer offer = {.text = ""};
    const char *const nearest = name_nearest(name, names);
    if (nearest != NULL)
        (void)snprintf(offer.text, sizeof offer.text, "%s%s%s", before, nearest, after);
    else if (otherwise != NULL)
        (void)snprintf(offer.text, sizeof offer.text, "%s", otherwise);
    else
        names_list(names, offer.text, sizeof offer.text);
    return offer;
}
