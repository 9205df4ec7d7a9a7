/*
 * Mixed steps, drawn: a step of decodes and prompts together does what a step of the decodes and a
 * step of the prompts do, one behind the other, and takes no longer. Weights lie in HBM once,
 * however many kernels of a step read them. And it takes no longer than one whose decodes all have
 * as many keys as its longest.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/property/experts_places.h"
#include "tests/support/case.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES, DRAWN = 150, UNEVEN_MAX = 24 };

static const char *const models[] = {"tests/property/mla.json", "tests/property/experts.json",
                                     "deepseek-v2-lite"};
enum { MIXED_MODELS = sizeof models / sizeof *models };

/* Collectives of decodes and of prompts may go over the same links at once, where each waits for a
 * part of the other. */
static const double SLACK = 1.01;
/* On GPUs "auto" takes for each size the algorithm that is fastest alone. A gather of a mixed step
 * may go by SHARP where a prompt's goes directly, and holds up the sum of logits that SHARP adds at
 * the same time: 1,120 tokens a prompt take 5.7 % longer than 1,108, with nothing but prompts. */
static const double CHOICE_SLACK = 1.07;
/* Cores share long sequences, and a short one has one core: 124 keys take as long as four times
 * that many in parts. */
static const double UNEVEN_SLACK = 1.05;

/* What was drawn last. */
static uint32_t place, model, answers, context, asking, prompt;

enum kind { DECODE, PREFILL, MIXED };

static void keys_write(enum kind kind, char text[TEXT_BYTES / 4])
{
    if (kind == DECODE)
        case_text(text, TEXT_BYTES / 4, "\"decode\", \"batch\": %u, \"context\": %u", answers,
                  context);
    else if (kind == PREFILL)
        case_text(text, TEXT_BYTES / 4, "\"prefill\", \"batch\": %u, \"prompt\": %u", asking,
                  prompt);
    else
        case_text(text, TEXT_BYTES / 4,
                  "\"mixed\", \"batch\": %u, \"context\": %u, \"prompts\": %u, \"prompt\": %u",
                  answers, context, asking, prompt);
}

static void step_write(enum kind kind, char text[TEXT_BYTES])
{
    char keys[TEXT_BYTES / 4];
    keys_write(kind, keys);
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {%s, \"profile\": \"ideal\"}, \"mesh\": %s, "
              "\"workload\": {\"kind\": %s, \"model\": \"%s\", \"allow_oversubscription\": true}}",
              expert_places[place].machine, expert_places[place].mesh, keys, models[model]);
}

/* Ranks of tp_d have a sequence of each kind at least. With fewer they keep parts of the rows of
 * each, and the steps' caches lie in different ways. */
static void draw(uint64_t *state, char text[TEXT_BYTES])
{
    place = case_draw(state, PLACES);
    model = case_draw(state, MIXED_MODELS);
    if (model == 1 && expert_places[place].ep > 16) model = 0; /* It has 16 experts. */
    uint32_t const wide = expert_places[place].tp_d;
    uint32_t const least = wide > 1 ? wide * expert_places[place].data : 1;
    answers = least + case_draw(state, 400);
    context = 1 + case_draw(state, 4000);
    asking = least + case_draw(state, 24);
    prompt = 1 + case_draw(state, 2000);
    step_write(MIXED, text);
}

/* Of all ranks, in all products and in attention. */
struct amounts {
    double useful_flop, attention_flop, hbm_bytes, parameter_bytes, time_s;
};

static struct amounts amounts_of(const struct play *play)
{
    return (struct amounts){
        .useful_flop = play->roofline.flop.useful,
        .attention_flop = play->roofline.flop.useful_attention,
        .hbm_bytes = play->roofline.counts.hbm_bytes,
        .parameter_bytes = (double)play->program.roles[0].resident_bytes[PROGRAM_MEMORY_PARAMETERS],
        .time_s = units_seconds(play->trace.step_ps)};
}

static struct amounts step_of(enum kind kind)
{
    char text[TEXT_BYTES];
    struct play play;
    step_write(kind, text);
    play_run(&play, text, NULL);
    struct amounts const amounts = amounts_of(&play);
    play_close(&play);
    return amounts;
}

static void mixed_check(struct play *play, const char *text)
{
    struct amounts const mixed = amounts_of(play);
    struct amounts const decode = step_of(DECODE), prefill = step_of(PREFILL);
    case_near(mixed.parameter_bytes, decode.parameter_bytes, 1e-9);
    case_near(mixed.parameter_bytes, prefill.parameter_bytes, 1e-9);
    case_near(mixed.useful_flop, decode.useful_flop + prefill.useful_flop, 1e-9);
    case_near(mixed.attention_flop, decode.attention_flop + prefill.attention_flop, 1e-9);
    case_that(mixed.hbm_bytes <= decode.hbm_bytes + prefill.hbm_bytes, text);
    double const slack = strstr(expert_places[place].machine, "100") ? CHOICE_SLACK : SLACK;
    case_that(mixed.time_s <= slack * (decode.time_s + prefill.time_s), text);
}

static void a_mixed_step_takes_no_longer_than_its_two_steps(void **state)
{
    (void)state;
    walk_drawn_all(DRAWN, draw, NULL, mixed_check);
}

/* Contexts of the decodes drawn last, one behind the other, or all as the longest. */
static uint32_t contexts[UNEVEN_MAX];

static void uneven_write(bool alike, char text[TEXT_BYTES])
{
    char list[UNEVEN_MAX * 8] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < answers; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%u", i == 0 ? "" : ", ",
                                 alike ? context : contexts[i]);
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {%s, \"profile\": \"ideal\"}, \"mesh\": %s, "
              "\"workload\": {\"kind\": \"mixed\", \"batch\": %u, \"context\": [%s], "
              "\"prompts\": %u, \"prompt\": %u, \"model\": \"%s\", "
              "\"allow_oversubscription\": true}}",
              expert_places[place].machine, expert_places[place].mesh, answers, list, asking,
              prompt, models[model]);
}

/* Some ranks have short decodes and a prompt, and others long ones and none. */
static void uneven_draw(uint64_t *state, char text[TEXT_BYTES])
{
    place = case_draw(state, PLACES);
    model = case_draw(state, MIXED_MODELS);
    if (model == 1 && expert_places[place].ep > 16) model = 0; /* It has 16 experts. */
    answers = 2 + case_draw(state, UNEVEN_MAX - 1);
    asking = 1 + case_draw(state, 3);
    prompt = 1 + case_draw(state, 1000);
    context = 0;
    for (uint32_t i = 0; i < answers; i++) {
        contexts[i] = 1 + (case_draw(state, 4000) >> case_draw(state, 12));
        context = contexts[i] > context ? contexts[i] : context;
    }
    uneven_write(/* alike= */ false, text);
}

static void uneven_check(struct play *play, const char *text)
{
    char alike[TEXT_BYTES];
    struct play longest;
    uneven_write(/* alike= */ true, alike);
    play_run(&longest, alike, NULL);
    case_that((double)play->trace.step_ps <= UNEVEN_SLACK * (double)longest.trace.step_ps, text);
    play_close(&longest);
}

static void a_step_takes_no_longer_than_with_all_decodes_as_the_longest(void **state)
{
    (void)state;
    walk_drawn_all(DRAWN, uneven_draw, NULL, uneven_check);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mixed_step_takes_no_longer_than_its_two_steps),
        cmocka_unit_test(a_step_takes_no_longer_than_with_all_decodes_as_the_longest),
    };
    walk_seed(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
