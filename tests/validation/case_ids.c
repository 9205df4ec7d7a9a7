#include "tests/validation/case_ids.h"

#include <stdio.h>
#include <string.h>

static bool is_of(const struct case_outcome *outcome, const char *category, const char *id)
{
    return strcmp(outcome->category, category) == 0 && strcmp(outcome->id, id) == 0;
}

static uint32_t judged(const struct case_outcome *outcome, uint32_t count, const char *category,
                       const char *id, const char *answer)
{
    uint32_t times = 0;
    for (uint32_t i = 0; i < count; i++)
        times += is_of(&outcome[i], category, id) && strcmp(outcome[i].answer, answer) == 0;
    return times;
}

static uint32_t compare_case(const struct case_row *file, const char *category, const char *id,
                             struct json *answers, const struct case_outcome *outcome,
                             uint32_t count)
{
    uint32_t wrong = 0, answer_count = 0;
    struct error error = {0};
    for (uint32_t i = 0; i < count; i++) answer_count += is_of(&outcome[i], category, id);
    for (uint32_t i = 0; i < json_count(answers); i++) {
        const char *answer = NULL;
        row_check(file, json_as_string(json_at(answers, i), &answer, &error), &error);
        uint32_t const times = judged(outcome, count, category, id, answer);
        if (times != 1)
            (void)fprintf(stderr, "%s: %s %s: judged %u times\n", category, id, answer, times);
        wrong += times != 1;
    }
    if (wrong == 0 && answer_count != json_count(answers)) {
        (void)fprintf(stderr, "%s: %s: %u answers, of which %u are known\n", category, id,
                      answer_count, json_count(answers));
        wrong++;
    }
    return wrong;
}

uint32_t case_ids_compare(struct arena *arena, const char *path, const struct case_outcome *outcome,
                          uint32_t count)
{
    struct json *list = NULL;
    struct error error = {0};
    struct case_row const file = {.name = path, .arena = arena};
    uint32_t wrong = 0;
    row_check(&file, json_read_file(arena, path, &list, &error), &error);
    for (uint32_t c = 0; json_key_at(list, c) != NULL; c++) {
        const char *category = json_key_at(list, c);
        struct json *cases = json_take(list, category);
        uint32_t known = 0;
        for (; json_key_at(cases, known) != NULL; known++) {
            const char *id = json_key_at(cases, known);
            wrong += compare_case(&file, category, id, json_take(cases, id), outcome, count);
        }
        uint32_t const there = case_count(outcome, count, category).case_count;
        if (wrong == 0 && there != known) {
            (void)fprintf(stderr, "%s: %u cases, of which %u are known\n", category, there, known);
            wrong++;
        }
    }
    return wrong;
}
