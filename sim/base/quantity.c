#include "sim/base/quantity.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/name.h"
#include "sim/base/units.h"

/* One of the unit is `times / over` of the base unit (bytes, bytes/s or picoseconds). */
struct unit {
    const char *name;
    uint64_t times;
    uint32_t over;
};

#define DECIMAL_UNITS(X, end)                                                                      \
    X("B" end, 1, 1)                                                                               \
    X("kB" end, 1000, 1)                                                                           \
    X("KB" end, 1000, 1)                                                                           \
    X("MB" end, 1000000, 1)                                                                        \
    X("GB" end, 1000000000, 1)                                                                     \
    X("TB" end, 1000000000000, 1)                                                                  \
    X("PB" end, 1000000000000000, 1)                                                               \
    X("KiB" end, UINT64_C(1) << 10, 1)                                                             \
    X("MiB" end, UINT64_C(1) << 20, 1)                                                             \
    X("GiB" end, UINT64_C(1) << 30, 1)                                                             \
    X("TiB" end, UINT64_C(1) << 40, 1)                                                             \
    X("bit" end, 1, 8)                                                                             \
    X("kbit" end, 1000, 8)                                                                         \
    X("Mbit" end, 1000000, 8)                                                                      \
    X("Gbit" end, 1000000000, 8)                                                                   \
    X("Tbit" end, 1000000000000, 8)
#define X(name, times, over) {name, times, over},
static const struct unit byte_units[] = {DECIMAL_UNITS(X, ""){NULL, 0, 0}};
static const struct unit rate_units[] = {DECIMAL_UNITS(X, "/s"){NULL, 0, 0}};
#undef X
static const struct unit flop_units[] = {
    {"FLOP/s", 1, 1},
    {"kFLOP/s", 1000, 1},
    {"MFLOP/s", 1000000, 1},
    {"GFLOP/s", 1000000000, 1},
    {"TFLOP/s", 1000000000000, 1},
    {"PFLOP/s", 1000000000000000, 1},
    {NULL, 0, 0},
};
static const struct unit duration_units[] = {
    {"ps", 1, 1},          {"ns", 1000, 1},         {"us", 1000000, 1},
    {"ms", 1000000000, 1}, {"s", 1000000000000, 1}, {NULL, 0, 0},
};

static const struct unit price_units[] = {{"uUSD/h", 1, 1}, {"USD/h", 1000000, 1}, {NULL, 0, 0}};
static const struct unit power_units[] = {{"W", 1, 1}, {"kW", 1000, 1}, {NULL, 0, 0}};

enum { UNITS_MAX = 20, EXPONENT_MAX = 100000 };

static const struct dimension {
    const char *kind;    /* "a rate" */
    const char *example; /* "90GB/s" */
    const char *base;    /* "bytes per second" */
    const struct unit *units;
    uint64_t most;
} dimensions[] = {
    [QUANTITY_BYTES] = {"a size", "80GiB", "bytes", byte_units, UINT64_MAX},
    [QUANTITY_RATE] = {"a rate", "90GB/s", "bytes per second", rate_units, UINT64_MAX},
    [QUANTITY_FLOP_RATE] = {"a rate of FLOP", "459TFLOP/s", "FLOP per second", flop_units,
                            UINT64_MAX},
    [QUANTITY_DURATION] = {"a duration", "1.5us", "picoseconds", duration_units, INT64_MAX},
    [QUANTITY_PRICE] = {"a price", "1.2USD/h", "millionths of a dollar an hour", price_units,
                        UINT64_MAX},
    [QUANTITY_POWER] = {"a power", "500W", "watts", power_units, UINT64_MAX},
};

/* A decimal number, exactly: digits · 10^exponent. */
struct decimal {
    units_wide digits;
    int32_t exponent;
    bool too_long; /* More significant digits than 128 bits hold. */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void decimal_add_digit(struct decimal *decimal, char digit, bool fraction)
{
    units_wide next = 0;
    if (__builtin_mul_overflow(decimal->digits, (units_wide)10, &next) ||
        __builtin_add_overflow(next, (units_wide)(digit - '0'), &next)) {
        decimal->too_long = true;
        return;
    }
    decimal->digits = next;
    if (fraction && decimal->exponent > -EXPONENT_MAX) decimal->exponent--;
}

/* Reads "12", "1.5", "45e9"; returns what follows, or NULL where there is no number. */
static const char *decimal_read(const char *text, struct decimal *ret_decimal)
{
    struct decimal decimal = {0};
    if (!is_digit(*text)) return NULL;
    for (; is_digit(*text); text++) decimal_add_digit(&decimal, *text, false);
    if (*text == '.') {
        text++;
        if (!is_digit(*text)) return NULL;
        const char *end = text; /* After the last digit that is not 0. */
        for (const char *c = text; is_digit(*c); c++)
            if (*c != '0') end = c + 1;
        for (; text < end; text++) decimal_add_digit(&decimal, *text, true);
        while (is_digit(*text)) text++;
    }
    if (*text == 'e' || *text == 'E') {
        const char *c = text + 1;
        bool const minus = *c == '-';
        if (*c == '-' || *c == '+') c++;
        if (!is_digit(*c)) return NULL;
        int32_t exponent = 0;
        for (; is_digit(*c); c++)
            if (exponent < EXPONENT_MAX) exponent = exponent * 10 + (*c - '0');
        decimal.exponent += minus ? -exponent : exponent;
        text = c;
    }
    *ret_decimal = decimal;
    return text;
}

enum scaled { SCALED_OK, SCALED_NOT_WHOLE, SCALED_TOO_LARGE };

/* decimal · times / over, if it is a whole number of 64 bits. */
static enum scaled decimal_scale(struct decimal decimal, const struct unit *unit, uint64_t most,
                                 uint64_t *ret_amount)
{
    units_wide amount = decimal.digits, by = unit->over;
    if (amount == 0 && !decimal.too_long) {
        *ret_amount = 0;
        return SCALED_OK;
    }
    if (decimal.too_long) return decimal.exponent < 0 ? SCALED_NOT_WHOLE : SCALED_TOO_LARGE;
    for (; decimal.exponent < 0 && amount % 10 == 0; decimal.exponent++) amount /= 10;
    for (; decimal.exponent < 0; decimal.exponent++)
        if (__builtin_mul_overflow(by, (units_wide)10, &by)) return SCALED_NOT_WHOLE;
    for (; decimal.exponent > 0; decimal.exponent--)
        if (__builtin_mul_overflow(amount, (units_wide)10, &amount)) return SCALED_TOO_LARGE;
    /* 128 bits hold any amount that fits once both sides are reduced by what they share. */
    units_wide times = unit->times;
    while (by % 10 == 0 && times % 10 == 0) {
        by /= 10;
        times /= 10;
    }
    if (__builtin_mul_overflow(amount, times, &amount))
        return by == 1 ? SCALED_TOO_LARGE : SCALED_NOT_WHOLE;
    if (amount % by != 0) return SCALED_NOT_WHOLE;
    if (amount / by > most) return SCALED_TOO_LARGE;
    *ret_amount = (uint64_t)(amount / by);
    return SCALED_OK;
}

static const struct unit *unit_find(const struct unit *units, const char *name)
{
    for (; units->name != NULL; units++)
        if (strcmp(units->name, name) == 0) return units;
    return NULL;
}

static enum status unit_refuse(const struct dimension *dimension, const char *text,
                               const char *name, const char *where, struct error *reterr)
{
    const char *names[UNITS_MAX] = {NULL};
    for (uint32_t i = 0; dimension->units[i].name != NULL; i++) names[i] = dimension->units[i].name;
    if (*name == '\0')
        return error_set(reterr, STATUS_INVALID, where,
                         "\"%.64s\" has no unit; %s is written like \"%s\"", text, dimension->kind,
                         dimension->example);
    return error_set(reterr, STATUS_INVALID, where, "unknown unit \"%.64s\" for %s%s", name,
                     dimension->kind,
                     name_offer(name, names, "; the nearest known is \"", "\"", NULL).text);
}

enum status quantity_read(enum quantity what, const char *text, const char *where,
                          uint64_t *ret_amount, struct error *reterr)
{
    const struct dimension *const dimension = &dimensions[what];
    struct decimal decimal = {0};
    const char *name = decimal_read(text, &decimal);
    if (name == NULL)
        return error_set(reterr, STATUS_INVALID, where,
                         "\"%.64s\" is not a number with a unit; %s is written like \"%s\"", text,
                         dimension->kind, dimension->example);
    while (*name == ' ') name++;
    const struct unit *unit = unit_find(dimension->units, name);
    if (unit == NULL) return unit_refuse(dimension, text, name, where, reterr);
    switch (decimal_scale(decimal, unit, dimension->most, ret_amount)) {
    case SCALED_NOT_WHOLE:
        return error_set(reterr, STATUS_INVALID, where, "\"%.64s\" is not a whole number of %s",
                         text, dimension->base);
    case SCALED_TOO_LARGE:
        return error_set(reterr, STATUS_INVALID, where, "\"%.64s\" is above the maximum of %llu %s",
                         text, (unsigned long long)dimension->most, dimension->base);
    case SCALED_OK:
        break;
    }
    return STATUS_OK;
}

const char *quantity_name(enum quantity what)
{
    return dimensions[what].kind;
}

const char *quantity_example(enum quantity what)
{
    return dimensions[what].example;
}

/* Three significant digits below 1000, from integers: printf's point depends on the locale. */
static const char *write_short(char *buffer, double number, const char *prefix, const char *unit)
{
    const char *sign = signbit(number) ? "-" : "";
    double const size = fabs(number);
    if (!isfinite(size)) {
        (void)snprintf(buffer, QUANTITY_TEXT_BYTES, "%s%s %s", sign, isnan(size) ? "nan" : "inf",
                       unit);
    } else if (size < 99.95) {
        unsigned const scale = size < 9.995 ? 100 : 10;
        unsigned const scaled = (unsigned)lround(size * scale);
        (void)snprintf(buffer, QUANTITY_TEXT_BYTES, "%s%u.%0*u %s%s", sign, scaled / scale,
                       scale == 100 ? 2 : 1, scaled % scale, prefix, unit);
    } else if (size < 1e6) {
        (void)snprintf(buffer, QUANTITY_TEXT_BYTES, "%s%ld %s%s", sign, lround(size), prefix, unit);
    } else {
        int exponent = (int)floor(log10(size));
        long digits = lround(size / pow(10, exponent) * 100);
        if (digits >= 1000) {
            digits = 100;
            exponent++;
        }
        (void)snprintf(buffer, QUANTITY_TEXT_BYTES, "%s%ld.%02lde+%02d %s%s", sign, digits / 100,
                       digits % 100, exponent, prefix, unit);
    }
    return buffer;
}

/* The largest prefix that leaves at least 1, after rounding to three digits. */
static const char *write_scaled(char *buffer, double number, const char *const *prefixes,
                                const char *unit)
{
    if (!isfinite(number) || number == 0) {
        if (number == 0) (void)snprintf(buffer, QUANTITY_TEXT_BYTES, "0 %s", unit);
        return number == 0 ? buffer : write_short(buffer, number, "", unit);
    }
    for (; fabs(number) >= 999.5 && prefixes[1] != NULL; prefixes++) number /= 1000;
    return write_short(buffer, number, *prefixes, unit);
}

const char *quantity_text_bytes(char *buffer, double bytes)
{
    return quantity_text_rate(buffer, bytes, "B");
}

const char *quantity_text_seconds(char *buffer, double seconds)
{
    static const char *const prefixes[] = {"p", "n", "u", "m", "", NULL};
    if (!isfinite(seconds) || seconds == 0) return write_scaled(buffer, seconds, prefixes, "s");
    return write_scaled(buffer, seconds * 1e12, prefixes, "s");
}

const char *quantity_text_rate(char *buffer, double per_s, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E", NULL};
    return write_scaled(buffer, per_s, prefixes, unit);
}

const char *quantity_text_count(char *buffer, double count)
{
    static const char *const prefixes[] = {"", "K", "M", "B", "T", NULL};
    if (fabs(count) < 999.5 && count == nearbyint(count)) {
        (void)snprintf(buffer, QUANTITY_TEXT_BYTES, "%ld", lround(count));
        return buffer;
    }
    return write_scaled(buffer, count, prefixes, "");
}
