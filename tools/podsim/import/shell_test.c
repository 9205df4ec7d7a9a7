/* shell_test.c: conditions and arithmetic of a shell script. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "tools/podsim/import/shell.h"

enum { DIGITS_MAX = 15, NAME_BYTES = 64 };

static bool number_of(const char *text, int64_t *ret_value)
{
    const char *digits = text + (*text == '-');
    size_t const length = strspn(digits, "0123456789");
    if (length == 0 || length > DIGITS_MAX || digits[length] != '\0') return false;
    if (length > 1 && digits[0] == '0') return false; /* In octal, or not. */
    *ret_value = strtoll(text, NULL, 10);
    return true;
}

static enum shell_truth truth(bool is_true)
{
    return is_true ? SHELL_YES : SHELL_NO;
}

static enum shell_truth order_test(int64_t a, const char *how, int64_t b)
{
    static const char *const orders[] = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge", NULL};
    bool const is_true[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
    uint32_t const order = name_find(how, orders);
    return orders[order] == NULL ? SHELL_MAYBE : truth(is_true[order]);
}

static enum shell_truth compare(const char *left, const char *how, const char *right)
{
    int64_t a = 0, b = 0;
    if (name_same(how, "=") || name_same(how, "==") || name_same(how, "!=")) {
        if (strpbrk(right, "*?[\\") != NULL) return SHELL_MAYBE;
        return truth(name_same(left, right) == (how[0] == '='));
    }
    if (!number_of(left, &a) || !number_of(right, &b)) return SHELL_MAYBE;
    return order_test(a, how, b);
}

enum shell_truth shell_contrary(enum shell_truth of)
{
    return of == SHELL_MAYBE || of == SHELL_LIKELY ? SHELL_MAYBE : truth(of == SHELL_NO);
}

static enum shell_truth test_simple(const struct shell_word *word, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (word[i].is_open) return SHELL_MAYBE;
    if (count > 0 && name_same(word[0].text, "!"))
        return shell_contrary(test_simple(word + 1, count - 1));
    if (count == 1) return truth(word[0].length > 0);
    if (count == 2 && name_same(word[0].text, "-n")) return truth(word[1].length > 0);
    if (count == 2 && name_same(word[0].text, "-z")) return truth(word[1].length == 0);
    if (count == 3) return compare(word[0].text, word[1].text, word[2].text);
    return SHELL_MAYBE;
}

enum shell_truth shell_test(const struct shell_words *words)
{
    enum shell_truth any = SHELL_NO, all = SHELL_YES;
    uint32_t start = 0;
    for (uint32_t i = 0; i < words->count; i++)
        if (name_same(words->word[i].text, "(")) return SHELL_MAYBE;
    if (words->count == 0) return SHELL_NO;
    for (uint32_t i = 0; i <= words->count; i++) {
        const char *const text = i < words->count ? words->word[i].text : "||";
        bool const is_or = name_same(text, "||") || name_same(text, "-o");
        if (!is_or && !name_same(text, "&&") && !name_same(text, "-a")) continue;
        enum shell_truth const one =
            i > start ? test_simple(&words->word[start], i - start) : SHELL_MAYBE;
        if (one == SHELL_NO || (one == SHELL_MAYBE && all == SHELL_YES)) all = one;
        start = i + 1;
        if (!is_or) continue;
        if (all == SHELL_YES || (all == SHELL_MAYBE && any == SHELL_NO)) any = all;
        all = SHELL_YES;
    }
    return any;
}

/* --- Arithmetic --- */

struct reckoning {
    const struct shell *shell;
    const char *at;
    uint32_t depth;
    bool failed;
};

static int64_t sum_of(struct reckoning *reckoning);

static void skip(struct reckoning *reckoning)
{
    while (isspace((unsigned char)*reckoning->at)) reckoning->at++;
}

/* "8", "TP", "$TP", "${TP}" */
static int64_t value_of(struct reckoning *reckoning)
{
    char name[NAME_BYTES];
    int64_t value = 0;
    reckoning->at += *reckoning->at == '$';
    bool const is_braced = *reckoning->at == '{';
    reckoning->at += is_braced;
    size_t length = 0;
    while (isalnum((unsigned char)reckoning->at[length]) || reckoning->at[length] == '_') length++;
    reckoning->failed |= length == 0 || length >= sizeof name;
    if (reckoning->failed) return 0;
    memcpy(name, reckoning->at, length);
    name[length] = '\0';
    reckoning->at += length;
    reckoning->failed |= is_braced && *reckoning->at != '}';
    reckoning->at += is_braced && *reckoning->at == '}';
    if (number_of(name, &value)) return value;
    const char *text = NULL;
    const struct shell_variable *variable = shell_variable_find(reckoning->shell, name);
    if (variable != NULL && variable->words.count > 0) text = variable->words.word[0].text;
    struct import_file *file = reckoning->shell->file;
    for (uint32_t i = 0; variable == NULL && i < file->given_count; i++) {
        if (!name_same(file->given[i].key, name)) continue;
        text = file->given[i].value;
        file->given[i].is_taken = true;
    }
    reckoning->failed |= text == NULL || !number_of(text, &value);
    return value;
}

static int64_t factor_of(struct reckoning *reckoning)
{
    skip(reckoning);
    if (*reckoning->at != '(') return value_of(reckoning);
    if (++reckoning->depth > IMPORT_DEPTH_MAX) reckoning->failed = true;
    if (reckoning->failed) return 0;
    reckoning->at++;
    int64_t const value = sum_of(reckoning);
    skip(reckoning);
    reckoning->failed |= *reckoning->at != ')';
    reckoning->at += *reckoning->at == ')';
    reckoning->depth--;
    return value;
}

/* Numbers have 15 digits, so a product of two that are short enough does not overflow. */
static int64_t times(struct reckoning *reckoning, int64_t a, int64_t b)
{
    int64_t const most = INT32_MAX;
    if (a > most || a < -most || b > most || b < -most) reckoning->failed = true;
    return reckoning->failed ? 0 : a * b;
}

static int64_t product_of(struct reckoning *reckoning)
{
    int64_t value = factor_of(reckoning);
    for (skip(reckoning);
         !reckoning->failed && *reckoning->at != '\0' && strchr("*/%", *reckoning->at) != NULL;
         skip(reckoning)) {
        char const sign = *reckoning->at++;
        int64_t const by = factor_of(reckoning);
        if (sign != '*' && by == 0) reckoning->failed = true;
        if (reckoning->failed) return 0;
        value = sign == '*' ? times(reckoning, value, by) : sign == '/' ? value / by : value % by;
    }
    return value;
}

static int64_t sum_of(struct reckoning *reckoning)
{
    int64_t value = product_of(reckoning);
    for (skip(reckoning); !reckoning->failed && (*reckoning->at == '+' || *reckoning->at == '-');
         skip(reckoning)) {
        int64_t const sign = *reckoning->at++ == '+' ? 1 : -1;
        value += sign * product_of(reckoning);
        if (value > INT64_MAX / 4 || value < INT64_MIN / 4) reckoning->failed = true;
    }
    return value;
}

bool shell_arithmetic(const struct shell *shell, const char *text, int64_t *ret_value)
{
    struct reckoning reckoning = {.shell = shell, .at = text};
    *ret_value = sum_of(&reckoning);
    skip(&reckoning);
    return !reckoning.failed && *reckoning.at == '\0';
}

enum shell_truth shell_test_arithmetic(const struct shell *shell, const char *text)
{
    static const char *const signs[] = {"==", "!=", "<=", ">=", "<", ">"};
    static const char *const words[] = {"-eq", "-ne", "-le", "-ge", "-lt", "-gt"};
    int64_t value[2] = {0};
    if (shell_arithmetic(shell, text, &value[0])) return truth(value[0] != 0);
    for (uint32_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const char *const found = strstr(text, signs[i]);
        if (found == NULL) continue;
        const char *const left =
            arena_format(shell->file->arena, "%.*s", (int)(found - text), text);
        if (left == NULL || !shell_arithmetic(shell, left, &value[0]) ||
            !shell_arithmetic(shell, found + strlen(signs[i]), &value[1]))
            return SHELL_MAYBE;
        return order_test(value[0], words[i], value[1]);
    }
    return SHELL_MAYBE;
}

bool shell_arithmetic_changes(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        char const before = at > text ? at[-1] : ' ';
        bool const is_order =
            before == '!' || before == '=' ||
            ((before == '<' || before == '>') && (at < text + 2 || at[-2] != before));
        if (*at == '=' && at[1] != '=' && !is_order) return true;
        if ((*at == '+' || *at == '-') && at[1] == *at) return true;
    }
    return false;
}
