#include "sim/base/scaled.h"

#include <stddef.h>
#include <string.h>

#include "sim/base/parse_uint.h"
#include "sim/base/units.h"

enum { FRACTION_DIGITS_MAX = 18 };

/* The power of 2 that a letter stands for; 0: it is none. */
static uint32_t letter_shift(char letter)
{
    static const char letters[] = "kKmMgGtTpP";
    const char *const found = letter == '\0' ? NULL : strchr(letters, letter);
    return found == NULL ? 0 : 10 * ((uint32_t)(found - letters) / 2 + 1);
}

enum scaled scaled_read(const char *text, uint64_t most, uint64_t *ret_number,
                        const char **ret_unit)
{
    uint64_t whole = 0, fraction = 0;
    units_wide scale = 1;
    const char *at = parse_uint(text, most, &whole);
    if (at == text) return SCALED_NO_NUMBER;
    if (*at == '.') {
        const char *const digits = at + 1;
        at = parse_uint(digits, most, &fraction);
        if (at == digits || at - digits > FRACTION_DIGITS_MAX) return SCALED_NO_NUMBER;
        for (ptrdiff_t i = 0; i < at - digits; i++) scale *= 10;
    }
    uint32_t const shift = letter_shift(*at);
    if (shift == 0 && *at != '\0') return SCALED_NO_NUMBER;
    *ret_unit = shift == 0 ? at : at + 1;
    if (whole > most >> shift) return SCALED_TOO_LARGE;
    units_wide const part = (units_wide)fraction << shift;
    if (part % scale != 0) return SCALED_NOT_WHOLE;
    units_wide const number = ((units_wide)whole << shift) + part / scale;
    if (number > most) return SCALED_TOO_LARGE;
    *ret_number = (uint64_t)number;
    return SCALED_READ;
}
