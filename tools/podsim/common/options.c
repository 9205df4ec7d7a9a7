#include "tools/podsim/common/options.h"

#include <string.h>

#include "sim/base/name.h"

enum { OPTIONS_KNOWN_MAX = 32 };

static const struct option *option_find(const struct option *known, const char *name, size_t length)
{
    for (; known->name != NULL; known++)
        if (strlen(known->name) == length && strncmp(known->name, name, length) == 0) return known;
    return NULL;
}

static const char *without_dashes(const char *name)
{
    return name + strspn(name, "-");
}

/* Every option begins with dashes, so these make none near. */
static enum status option_unknown(const struct option *known, const char *name, size_t length,
                                  struct error *reterr)
{
    const char *names[OPTIONS_KNOWN_MAX + 1] = {"--help"};
    const char *bare[OPTIONS_KNOWN_MAX + 1] = {"help"};
    for (uint32_t i = 0; known[i].name != NULL && i + 1 < OPTIONS_KNOWN_MAX; i++) {
        names[i + 1] = known[i].name;
        bare[i + 1] = without_dashes(known[i].name);
    }
    char text[64];
    size_t const kept = length < sizeof text ? length : sizeof text - 1;
    memcpy(text, name, kept);
    text[kept] = '\0';
    const char *const nearest = name_nearest(without_dashes(text), bare);
    if (nearest != NULL)
        return error_set(reterr, STATUS_INVALID, "",
                         "unknown option %s; the nearest known one is %s", text,
                         names[name_find(nearest, bare)]);
    return error_set(reterr, STATUS_INVALID, "", "unknown option %s%s", text,
                     name_list(names).text);
}

/* Reads the option at `arguments[0]`; adds 1 to `*used`, or 2 with the value that follows. */
static enum status option_read(struct options *options, uint32_t count,
                               const char *const *arguments, uint32_t *used, struct error *reterr)
{
    const char *name = arguments[0];
    size_t const length = strcspn(name, "=");
    const struct option *option = option_find(options->known, name, length);
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    /* A number may follow a single letter at once: -j4. */
    if (option == NULL && name[1] != '-' && name[2] >= '0' && name[2] <= '9') {
        option = option_find(options->known, name, 2);
        value = name + 2;
    }
    if (option == NULL) return option_unknown(options->known, name, length, reterr);
    *used += 1;
    if (option->value == NULL && value != NULL)
        return error_set(reterr, STATUS_INVALID, "", "%s takes no value", option->name);
    if (option->value != NULL && value == NULL) {
        if (count < 2)
            return error_set(reterr, STATUS_INVALID, "", "%s needs a value: %s %s", option->name,
                             option->name, option->value);
        value = arguments[1];
        *used += 1;
    }
    if (option->value != NULL && value[0] == '\0')
        return error_set(reterr, STATUS_INVALID, "", "%s is given nothing: %s %s", option->name,
                         option->name, option->value);
    if (!option->repeats && options_has(options, option->name))
        return error_set(reterr, STATUS_INVALID, "", "%s is given twice", option->name);
    if (options->given_count == OPTIONS_GIVEN_MAX)
        return error_set(reterr, STATUS_LIMIT, "", "more than %d options", OPTIONS_GIVEN_MAX);
    options->given[options->given_count].option = option;
    options->given[options->given_count].value = value;
    options->given_count++;
    return STATUS_OK;
}

enum status options_read(struct options *options, const struct option *known, uint32_t count,
                         const char *const *arguments, struct error *reterr)
{
    *options = (struct options){.known = known};
    bool ended = false;
    for (uint32_t i = 0; i < count;) {
        bool const is_option = !ended && arguments[i][0] == '-' && arguments[i][1] != '\0';
        if (is_option && strcmp(arguments[i], "--") == 0) {
            ended = true;
            i++;
        } else if (is_option) {
            STATUS_TRY(option_read(options, count - i, arguments + i, &i, reterr));
        } else if (arguments[i][0] == '\0') {
            return error_set(reterr, STATUS_INVALID, "", "an empty name is given");
        } else if (options->operand_count == OPTIONS_GIVEN_MAX) {
            return error_set(reterr, STATUS_LIMIT, "", "more than %d files", OPTIONS_GIVEN_MAX);
        } else {
            options->operand[options->operand_count++] = arguments[i++];
        }
    }
    return STATUS_OK;
}

const char *options_value_at(const struct options *options, const char *name, uint32_t index)
{
    for (uint32_t i = 0; i < options->given_count; i++)
        if (strcmp(options->given[i].option->name, name) == 0 && index-- == 0)
            return options->given[i].value;
    return NULL;
}

const char *options_value(const struct options *options, const char *name)
{
    return options_value_at(options, name, 0);
}

bool options_has(const struct options *options, const char *name)
{
    for (uint32_t i = 0; i < options->given_count; i++)
        if (strcmp(options->given[i].option->name, name) == 0) return true;
    return false;
}
