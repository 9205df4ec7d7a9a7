/* Quantities: text with units to exact integers and back. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "sim/base/quantity.h"
#include "tests/support/case.h"

static uint64_t amount_of(enum quantity what, const char *text)
{
    uint64_t value = 0;
    case_ok(quantity_read(what, text, "/here", &value, &case_error));
    return value;
}

static uint64_t rate(const char *text)
{
    return amount_of(QUANTITY_RATE, text);
}

static uint64_t bytes(const char *text)
{
    return amount_of(QUANTITY_BYTES, text);
}

static int64_t duration(const char *text)
{
    return (int64_t)amount_of(QUANTITY_DURATION, text);
}

static void rates_are_exact(void **state)
{
    (void)state;
    assert_int_equal(rate("900GB/s"), UINT64_C(900000000000));
    assert_int_equal(rate("45e9B/s"), UINT64_C(45000000000));
    assert_int_equal(rate("4.5e+10 B/s"), UINT64_C(45000000000));
    assert_int_equal(rate("450000000000e-1B/s"), UINT64_C(45000000000));
    assert_int_equal(rate("200Gbit/s"), UINT64_C(25000000000));
    assert_int_equal(rate("6.25GB/s"), UINT64_C(6250000000));
    assert_int_equal(rate("2.765TB/s"), UINT64_C(2765000000000));
    assert_int_equal(rate("8bit/s"), 1);
    assert_int_equal(rate("1KB/s"), rate("1kB/s"));
    assert_int_equal(rate("18446744073709551615B/s"), UINT64_MAX);
    assert_int_equal(rate("18446744.073709551615TB/s"), UINT64_MAX);
}

static void sizes_tell_decimal_from_binary(void **state)
{
    (void)state;
    assert_int_equal(bytes("96GB"), UINT64_C(96000000000));
    assert_int_equal(bytes("80GiB"), UINT64_C(80) << 30);
    assert_int_equal(bytes("0.5KiB"), 512);
    assert_int_equal(bytes("1PB"), UINT64_C(1000000000000000));
    assert_int_equal(bytes("16777215.5TiB"), UINT64_MAX - (UINT64_C(1) << 39) + 1);
    assert_int_equal(bytes("0B"), 0);
    assert_int_equal(bytes("000.000e999999999999GB"), 0);
}

static void durations_are_exact(void **state)
{
    (void)state;
    assert_int_equal(duration("1.5us"), 1500000);
    assert_int_equal(duration("0.000001us"), 1);
    assert_int_equal(duration("0.1s"), INT64_C(100000000000));
    assert_int_equal(duration("1.2300000000000000000000000000000000000000000000000us"), 1230000);
    assert_int_equal(duration("9223372036854775807ps"), INT64_MAX);
}

static void prices_are_exact(void **state)
{
    (void)state;
    assert_int_equal(amount_of(QUANTITY_PRICE, "1.2USD/h"), 1200000);
    assert_int_equal(amount_of(QUANTITY_PRICE, "10.8 USD/h"), 10800000);
    assert_int_equal(amount_of(QUANTITY_PRICE, "1uUSD/h"), 1);
    assert_int_equal(amount_of(QUANTITY_POWER, "500W"), 500);
    assert_int_equal(amount_of(QUANTITY_POWER, "1.2 kW"), 1200);
    uint64_t amount = 0;
    case_refused(quantity_read(QUANTITY_PRICE, "1.2", "/x", &amount, &case_error), STATUS_INVALID,
                 "/x", "\"1.2\" has no unit; a price is written like \"1.2USD/h\"");
    case_refused(quantity_read(QUANTITY_PRICE, "1GBP/h", "/x", &amount, &case_error),
                 STATUS_INVALID, "/x", "unknown unit \"GBP/h\" for a price");
}

static void refused(const char *text, const char *why)
{
    uint64_t amount = 77;
    bool const is_duration = text[0] == '@';
    case_refused(quantity_read(is_duration ? QUANTITY_DURATION : QUANTITY_RATE, text + is_duration,
                               "/here", &amount, &case_error),
                 STATUS_INVALID, "/here", why);
    assert_true(amount == 77);
}

static void what_is_not_a_quantity_is_refused_with_an_example(void **state)
{
    (void)state;
    refused("90", "has no unit");
    refused("90", "90GB/s");
    refused("", "is not a number with a unit");
    refused("GB/s", "is not a number");
    refused("-1GB/s", "is not a number");
    refused("+1GB/s", "is not a number");
    refused(" 1GB/s", "is not a number");
    refused("nanGB/s", "is not a number");
    refused("0x10GB/s", "unknown unit");
    refused("1.GB/s", "is not a number");
    refused(".5GB/s", "is not a number");
    refused("1,5GB/s", "unknown unit");
    refused("1eGB/s", "is not a number");
    refused("1GB", "\"GB/s\"");
    refused("1Gb/s", "\"GB/s\"");
    refused("1gbit/s", "\"Gbit/s\"");
    refused("1GB/s ", "unknown unit");
    refused("1GB/s\n", "unknown unit");
    refused("@1", "1.5us");
    refused("@1m", "nearest");
    refused("@1min", "unknown unit");
}

static void what_is_not_whole_or_too_large_is_refused_not_rounded(void **state)
{
    (void)state;
    refused("1.5B/s", "not a whole number of bytes per second");
    refused("1bit/s", "not a whole number");
    refused("0.1KiB/s", "not a whole number");
    refused("1e-400B/s", "not a whole number");
    refused("1.00000000000000000000000000000000000000000000000000001B/s", "not a whole number");
    refused("18446744073709551616B/s", "above the maximum");
    refused("1e20B/s", "above the maximum");
    refused("1e400B/s", "above the maximum");
    refused("1e99999999999999999999B/s", "above the maximum");
    refused("999999999999999999999999999999999999999999999999999GB/s", "above the maximum");
    refused("@9223372036854775808ps", "above the maximum");
    refused("@0.1ps", "not a whole number of picoseconds");
}

static void a_long_text_is_cut_in_the_sentence(void **state)
{
    (void)state;
    static char text[1 << 16];
    memset(text, '9', sizeof text - 1);
    uint64_t value = 0;
    case_refused(quantity_read(QUANTITY_BYTES, text, "/x", &value, &case_error), STATUS_INVALID,
                 NULL, "");
    assert_true(strlen(case_error.message) < 200);
}

static void people_read_three_digits_and_a_unit(void **state)
{
    (void)state;
    char buffer[QUANTITY_TEXT_BYTES];
    assert_string_equal(quantity_text_bytes(buffer, 16777216), "16.8 MB");
    assert_string_equal(quantity_text_bytes(buffer, 0), "0 B");
    assert_string_equal(quantity_text_bytes(buffer, 999.6), "1.00 kB");
    assert_string_equal(quantity_text_bytes(buffer, 9.996e6), "10.0 MB");
    assert_string_equal(quantity_text_bytes(buffer, 99.96e6), "100 MB");
    assert_string_equal(quantity_text_seconds(buffer, 1.36), "1.36 s");
    assert_string_equal(quantity_text_seconds(buffer, 1e-6), "1.00 us");
    assert_string_equal(quantity_text_seconds(buffer, 0.0123), "12.3 ms");
    assert_string_equal(quantity_text_seconds(buffer, 86400), "86400 s");
    assert_string_equal(quantity_text_seconds(buffer, 4206805.876), "4.21e+06 s");
    assert_string_equal(quantity_text_seconds(buffer, 9.999e6), "1.00e+07 s");
    assert_string_equal(quantity_text_seconds(buffer, -0.5), "-500 ms");
    assert_string_equal(quantity_text_rate(buffer, 459e12, "FLOP/s"), "459 TFLOP/s");
    assert_string_equal(quantity_text_rate(buffer, 9e10, "B/s"), "90.0 GB/s");
    assert_string_equal(quantity_text_count(buffer, 70.6e9), "70.6 B");
    assert_string_equal(quantity_text_count(buffer, 80), "80");
    assert_string_equal(quantity_text_count(buffer, 4096), "4.10 K");
}

static void no_number_overflows_the_buffer(void **state)
{
    (void)state;
    double const odd[] = {__DBL_MAX__, -__DBL_MAX__, __DBL_MIN__, 4.9e-324,
                          INFINITY,    -INFINITY,    NAN,         1e21};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        char buffer[QUANTITY_TEXT_BYTES + 1];
        buffer[QUANTITY_TEXT_BYTES] = '#';
        assert_true(strlen(quantity_text_bytes(buffer, odd[i])) < QUANTITY_TEXT_BYTES);
        assert_true(strlen(quantity_text_seconds(buffer, odd[i])) < QUANTITY_TEXT_BYTES);
        assert_true(strlen(quantity_text_rate(buffer, odd[i], "FLOP/s")) < QUANTITY_TEXT_BYTES);
        assert_true(strlen(quantity_text_count(buffer, odd[i])) < QUANTITY_TEXT_BYTES);
        assert_int_equal(buffer[QUANTITY_TEXT_BYTES], '#');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_exact),
        cmocka_unit_test(sizes_tell_decimal_from_binary),
        cmocka_unit_test(durations_are_exact),
        cmocka_unit_test(prices_are_exact),
        cmocka_unit_test(what_is_not_a_quantity_is_refused_with_an_example),
        cmocka_unit_test(what_is_not_whole_or_too_large_is_refused_not_rounded),
        cmocka_unit_test(a_long_text_is_cut_in_the_sentence),
        cmocka_unit_test(people_read_three_digits_and_a_unit),
        cmocka_unit_test(no_number_overflows_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
