/* Letters of a text: which a terminal shows, and what stands for the others. */
#include <stdio.h>
#include <string.h>

#include "sim/base/letter.h"
#include "sim/base/status.h"
#include "tests/support/case.h"

static const struct {
    const char *text;
    enum letter letter;
    uint32_t bytes;
} letters[] = {
    {"a", LETTER_SEEN, 1},
    {" ", LETTER_SEEN, 1},
    {"\xc3\xa9", LETTER_SEEN, 2},         /* U+00E9 */
    {"\xe2\x80\x93", LETTER_SEEN, 3},     /* U+2013 */
    {"\xf0\x9f\x98\x80", LETTER_SEEN, 4}, /* U+1F600 */
    {"\x01", LETTER_OBEYED, 1},
    {"\n", LETTER_OBEYED, 1},
    {"\x7f", LETTER_OBEYED, 1},
    {"\xc2\x9b", LETTER_OBEYED, 2},         /* U+009B, C1 */
    {"\xe2\x80\xa8", LETTER_OBEYED, 3},     /* U+2028, the end of a line */
    {"\xe2\x80\xae", LETTER_OBEYED, 3},     /* U+202E, right to left */
    {"\xe2\x81\xa6", LETTER_OBEYED, 3},     /* U+2066 */
    {"\xd8\x9c", LETTER_OBEYED, 2},         /* U+061C, a mark of direction */
    {"\xe2\x80\x8e", LETTER_OBEYED, 3},     /* U+200E, another */
    {"\xe2\x80\x8f", LETTER_OBEYED, 3},     /* U+200F */
    {"\xe2\x80\x8d", LETTER_UNSEEN, 3},     /* U+200D, a joiner */
    {"\xe2\x80\x8b", LETTER_UNSEEN, 3},     /* U+200B, a blank without width */
    {"\xef\xbb\xbf", LETTER_UNSEEN, 3},     /* U+FEFF */
    {"\xf3\xa0\x80\x81", LETTER_UNSEEN, 4}, /* U+E0001 */
    {"\xef\xbf\xbf", LETTER_NONE, 3},       /* U+FFFF */
    {"\x9b", LETTER_NONE, 1},
    {"\xff", LETTER_NONE, 1},
    {"\xe2\x80", LETTER_NONE, 1},         /* Cut. */
    {"\xc0\x8a", LETTER_NONE, 1},         /* U+000A, overlong. */
    {"\xed\xa0\x80", LETTER_NONE, 1},     /* A surrogate. */
    {"\xf4\x90\x80\x80", LETTER_NONE, 1}, /* Above U+10FFFF. */
};

static void test_each(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sizeof letters / sizeof *letters; i++) {
        uint32_t bytes = 0;
        enum letter const letter = letter_at(letters[i].text, &bytes);
        if (letter != letters[i].letter || bytes != letters[i].bytes)
            fail_msg("letter %u is %u of %u bytes", i, letter, bytes);
        assert_int_equal(letters_are_plain(letters[i].text),
                         letter == LETTER_SEEN || letter == LETTER_UNSEEN);
    }
}

static void test_replaced(void **state)
{
    (void)state;
    char text[64] = "a\x9b\xe2\x80\xae\xc3\xa9\xc2\x9b"
                    "b\xe2\x80\x8b\n\xe2\x80";
    letters_replace(text, '?');
    assert_string_equal(text, "a??\xc3\xa9?b????");
    char same[] = "caf\xc3\xa9 \xf0\x9f\x98\x80";
    letters_replace(same, '?');
    assert_string_equal(same, "caf\xc3\xa9 \xf0\x9f\x98\x80");
}

/* A letter that a sentence's end cuts is no letter. */
static void test_error(void **state)
{
    (void)state;
    struct error error;
    char name[sizeof error.message];
    memset(name, 'a', sizeof name);
    (void)snprintf(name + sizeof name - 3, 3, "%s", "\xc3\xa9");
    (void)error_set(&error, STATUS_INVALID, "/a\xe2\x80\xae", "b%s", name);
    assert_string_equal(error.where, "/a?");
    assert_string_equal(error.message + sizeof error.message - 3, "a?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
