/* Schedules as PyTorch writes them: both dialects there and back, and what is refused where. */
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "sim/schedule/schedule_csv.h"
#include "tests/support/case.h"
#include "tests/support/refusals.h"

static struct schedule built(struct arena *arena, const struct schedule_form *form)
{
    struct schedule schedule;
    struct error error = {0};
    struct schedule_request const request = {.rank_count = 4,
                                             .microbatch_count = 8,
                                             .chunk_count = form->chunks,
                                             .times = {.forward = 1, .input = 1, .weight = 1}};
    if (schedule_build(arena, form, &request, "/test", &schedule, &error) != STATUS_OK)
        fail_msg("%s", error.message);
    return schedule;
}

static void same(const struct schedule *a, const struct schedule *b)
{
    assert_int_equal(a->rank_count, b->rank_count);
    assert_int_equal(a->stage_count, b->stage_count);
    assert_int_equal(a->microbatch_count, b->microbatch_count);
    assert_int_equal(a->chunk_count, b->chunk_count);
    for (uint32_t s = 0; s < a->stage_count; s++) assert_int_equal(a->rank_of[s], b->rank_of[s]);
    for (uint32_t r = 0; r < a->rank_count; r++) {
        assert_int_equal(a->rank[r].count, b->rank[r].count);
        for (uint32_t i = 0; i < a->rank[r].count; i++) {
            const struct schedule_pass *one = &a->rank[r].pass[i], *other = &b->rank[r].pass[i];
            assert_true(one->kind == other->kind && one->stage == other->stage &&
                        one->microbatch == other->microbatch && one->paired == other->paired);
        }
    }
}

static void schedules_come_back_as_they_were(void **state)
{
    (void)state;
    uint32_t written = 0;
    for (uint32_t i = 0; i < schedule_form_count; i++)
        for (uint32_t dialect = 0; dialect < 2; dialect++) {
            struct arena *arena = arena_create(0);
            struct schedule const schedule = built(arena, schedule_form_table[i]);
            struct schedule back;
            struct error error = {0};
            struct strbuf text = {0};
            enum status const status =
                schedule_csv_write(arena, &schedule, (enum schedule_dialect)dialect, &text, &error);
            if (schedule.copy_count > 1) {
                assert_int_equal(status, STATUS_UNSUPPORTED);
                assert_non_null(strstr(error.message, "dualpipev"));
            } else {
                assert_int_equal(status, STATUS_OK);
                if (schedule_csv_read(arena, text.bytes, text.size_bytes, "file.csv", &back,
                                      &error) != STATUS_OK)
                    fail_msg("%s: %s", schedule.name, error.message);
                same(&schedule, &back);
                written++;
            }
            strbuf_free(&text);
            arena_destroy(arena);
        }
    assert_int_equal(written, 2 * (schedule_form_count - 1));
}

/* The two ranks of the format's own example. */
static void the_text_is_pytorchs(void **state)
{
    (void)state;
    struct arena *arena = arena_create(0);
    struct error error = {0};
    struct schedule schedule;
    struct strbuf text = {0};
    static const char alone[] = "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n";
    static const char with_comms[] =
        "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD,0RESHARD\n"
        "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,1REDUCE_GRAD,1RESHARD\n";
    assert_int_equal(schedule_csv_read(arena, alone, strlen(alone), "file.csv", &schedule, &error),
                     STATUS_OK);
    assert_int_equal(schedule_csv_write(arena, &schedule, SCHEDULE_COMPUTE_ONLY, &text, &error),
                     STATUS_OK);
    assert_string_equal(text.bytes, alone);
    strbuf_free(&text);
    assert_int_equal(schedule_csv_write(arena, &schedule, SCHEDULE_COMPUTE_COMMS, &text, &error),
                     STATUS_OK);
    assert_string_equal(text.bytes, with_comms);
    strbuf_free(&text);
    arena_destroy(arena);
}

static const struct {
    const char *text, *words;
} wrong[] = {
    {"", "no line"},
    {"\n\n", "no line"},
    {"0F0,0B0\n\n1F0,1B0\n", "line 2: there is no pass in it"},
    {"0F0,0B0\n0F1,0B1\n", "line 2, cell 1, \"0F1\": stage 0 is in line 1 already"},
    {"0F0,0F0,0B0\n", "line 1, cell 2, 0F0: it has been done"},
    {"0F0,0B0,0B0\n", "line 1, cell 3, 0B0: it has been done"},
    {"0F0,0B0,0W0\n",
     "line 1, cell 3, 0W0: it has been done (B is both gradients; I and W are one each)"},
    {"0F0,0B0,0B1\n", "line 1, cell 3, 0B1: its forward pass is not before it"},
    {"0B0,0F0\n", "line 1, cell 1, 0B0: its forward pass is not before it"},
    {"0F0,0W0,0I0\n", "line 1, cell 2, 0W0: its input gradient is not before it"},
    {"0F0,0I0\n", "line 1: stage 0 never does the weight gradient of microbatch 0"},
    {"0F0,0F1,0B0\n", "line 1: stage 0 never does the backward pass of microbatch 1"},
    {"0F0,0B0\n2F0,2B0\n", "stage 1 is in no line"},
    {"0F0,1F0,2F0,3F0,4F1048575\n", "need at least 10485760 passes; there are 5"},
    {"0F0, ,0BW0\n", "line 1, cell 3, \"0BW0\": \"BW\" is an older letter"},
    {"0F0,0B\n", "line 1, cell 2, \"0B\": needs the number of a microbatch"},
    {"0F0,B0\n", "line 1, cell 2, \"B0\": does not begin with the number of a stage"},
    {"0F0,0B0x\n", "text after"},
    {"0F0,0F00,0B0\n",
     "line 1, cell 2, \"0F00\": the number of its microbatch begins with a needless 0"},
    {"0F0,00B0\n", "line 1, cell 2, \"00B0\": the number of its stage begins with a needless 0"},
    {"0F0,\"0B0\n", "line 1, cell 2, \"\"0B0\": does not begin with the number of a stage"},
    {"0F0,0\"B0\"\n", "line 1, cell 2, \"0\"B0\"\": no action"},
    {"0F0,0G0\n", "line 1, cell 2, \"0G0\": no action; these are F B I W UNSHARD RESHARD "
                  "REDUCE_GRAD SEND_F SEND_B RECV_F RECV_B"},
    {"0F0,32768F0\n",
     "line 1, cell 2, \"32768F0\": the number of its stage is more than the limit of 32767"},
    {"99999999999999999999F0\n", "cell 1, \"99999999999999999999F0\": the number of its stage"},
    {"0F0,0F1048576\n", "line 1, cell 2, \"0F1048576\": the number of its microbatch is more "
                        "than the limit of 1048575"},
    {"(0F0;0B0)OVERLAP_F_B\n", "line 1, cell 1, 0F0: only a forward pass and a backward pass"},
    {"(0F0,0B0\n", "two passes overlap as in"},
    {"(0F0;0SEND_F0)OVERLAP_F_B\n", "only passes overlap"},
    {"0F0,0B0,0F1,0B1\n1F0,,1F1,1B0,1B1\n",
     "rank 0 at 0B0 (line 1, cell 2) for 1B0, rank 1 at 1F1 (line 2, cell 3) for 0F1"},
    {"0F0,0SEND_F0,0B0\n1F0,1B0\n", "line 1, cell 2, 0SEND_F0: line 2 has no 1RECV_F0 for it"},
    {"0F0,0B0\n1F0,1B0,1SEND_B0\n", "line 2, cell 3, 1SEND_B0: line 1 has no 0RECV_B0 for it"},
    {"0F0,0RECV_B0,0B0\n1F0,1B0\n", "line 1, cell 2, 0RECV_B0: line 2 has no 1SEND_B0 for it"},
    {"0F0,0SEND_F7,0RECV_B9,0B0\n1RECV_F3,1F0,1B0,1SEND_B5\n",
     "line 1, cell 2, 0SEND_F7: no line has a pass of microbatch 7"},
    {"0F0,3SEND_F0,0B0\n1F0,1B0\n", "line 1, cell 2, 3SEND_F0: no line has a pass of stage 3"},
    {"0F0,0SEND_B0,0RECV_F0,0B0\n1RECV_B0,1F0,1B0,1SEND_F0\n",
     "line 1, cell 2, 0SEND_B0: stage 0 is the first and has none to send to"},
    {"0RECV_F0,0F0,0B0\n", "0RECV_F0: stage 0 is the first and has none to receive from"},
    {"0F0,0SEND_F0,0B0\n", "0SEND_F0: stage 0 is the last and has none to send to"},
    {"0F0,0RECV_B0,0B0\n", "0RECV_B0: stage 0 is the last and has none to receive from"},
    {"1SEND_F0,0F0,0B0\n1F0,1B0,0RECV_F0\n", "line 1, cell 1, 1SEND_F0: stage 1 is in line 2"},
    {"0SEND_F0,0F0,0B0\n1RECV_F0,1F0,1B0\n",
     "line 1, cell 1, 0SEND_F0: 0F0, whose result it sends, comes later"},
    {"0F0,0SEND_F0,0B0\n1F0,1RECV_F0,1B0\n",
     "line 2, cell 2, 1RECV_F0: 1F0, which needs it, comes before it"},
    {"0F0,0SEND_F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0\n",
     "line 1, cell 3, 0SEND_F0: comes for the second time"},
    {"0F0,0SEND_F0,1F0,1B0,0B0\n",
     "line 1, cell 2, 0SEND_F0: stage 1 is in this line too, and a rank "
     "sends no message to itself"},
    {"0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0\n",
     "line 1, cell 3, 0B0: needs a 0RECV_B0 before it, and a 1SEND_B0 in line 2"},
};

static void what_is_wrong_is_said_with_line_and_cell(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct arena *arena = arena_create(0);
        struct schedule schedule = {.name = wrong[i].text};
        struct error error = {0};
        assert_int_not_equal(schedule_csv_read(arena, wrong[i].text, strlen(wrong[i].text),
                                               "file.csv", &schedule, &error),
                             STATUS_OK);
        assert_string_equal(error.where, "file.csv");
        if (strstr(error.message, wrong[i].words) == NULL)
            fail_msg("%s: %s", wrong[i].text, error.message);
        refusals_hold(&error, __FILE__);
        assert_ptr_equal(schedule.name, wrong[i].text); /* Untouched. */
        assert_int_equal(schedule.rank_count, 0);
        arena_destroy(arena);
    }
}

static struct schedule read_well(struct arena *arena, const char *text)
{
    struct schedule schedule;
    struct error error = {0};
    if (schedule_csv_read(arena, text, strlen(text), "file.csv", &schedule, &error) != STATUS_OK)
        fail_msg("%s", error.message);
    return schedule;
}

static void cells_may_be_in_quotation_marks(void **state)
{
    (void)state;
    struct arena *arena = arena_create(0);
    struct schedule const plain = read_well(arena, "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n");
    struct schedule const quoted = read_well(arena, "\"0F0\",0F1, \"\" ,\" 0B0 \",\"\",\"0B1\"\r\n"
                                                    "\"\",\"1F0\",\"1B0\",\"1F1\",1B1\r\n");
    struct schedule const pair = read_well(arena, "0F0,\"(0F1;0B0)OVERLAP_F_B\",\"0B1\"\n");
    same(&plain, &quoted);
    assert_true(pair.rank[0].pass[1].paired && pair.rank[0].count == 4);
    arena_destroy(arena);
}

/* Receives block nothing: with each rank waiting for the other's first, the passes are the same. */
static void receives_may_stand_anywhere_before_their_pass(void **state)
{
    (void)state;
    struct arena *arena = arena_create(0);
    struct schedule const late = read_well(arena, "0F0,0SEND_F0,0RECV_B0,0B0\n"
                                                  "1RECV_F0,1F0,1B0,1SEND_B0\n");
    struct schedule const early = read_well(arena, "0RECV_B0,0F0,0B0,0SEND_F0\n"
                                                   "1RECV_F0,1F0,1B0,1SEND_B0\n");
    same(&late, &early);
    arena_destroy(arena);
}

/* Idle slots cost nothing, and what could not be a schedule is refused before it costs. */
static void memory_is_for_cells_that_say_something(void **state)
{
    (void)state;
    enum { IDLE = 1 << 20, TOO_MANY = (1 << 26) + 1 };
    static const char passes[] = "0F0,0B0";
    struct error error = {0};
    struct schedule schedule;
    struct arena *arena = arena_create(1 << 18);
    char *text = malloc(2 * TOO_MANY);
    assert_non_null(text);
    memset(text, ',', IDLE);
    assert_int_equal(schedule_csv_read(arena, text, IDLE, "file.csv", &schedule, &error),
                     STATUS_INVALID);
    assert_non_null(strstr(error.message, "line 1: there is no pass in it"));
    refusals_hold(&error, __FILE__);
    memcpy(text + IDLE, passes, sizeof passes - 1);
    assert_int_equal(
        schedule_csv_read(arena, text, IDLE + sizeof passes - 1, "file.csv", &schedule, &error),
        STATUS_OK);
    assert_int_equal(schedule.rank[0].cell[1], IDLE + 1);
    for (uint32_t i = 0; i < TOO_MANY; i++) memcpy(text + 2 * (size_t)i, "0,", 2);
    assert_int_equal(schedule_csv_read(arena, text, 2 * TOO_MANY, "file.csv", &schedule, &error),
                     STATUS_LIMIT);
    assert_non_null(strstr(error.message, "67108865 cells are more than 67108864 passes"));
    refusals_hold(&error, __FILE__);
    free(text);
    arena_destroy(arena);
}

/* More than 2^22 pairs of a stage and a microbatch are looked up only for a file with two passes
 * for each of them: then it is the passes that are judged. */
static void a_large_table_is_for_as_many_passes(void **state)
{
    (void)state;
    enum { MICROBATCHES = 838861, PASSES = 2 * 5 * MICROBATCHES, CELL = 4 };
    static const char first[] = "0F0,1F0,2F0,3F0,4F838860";
    static const char *const words[] = {
        "5 stages with 838861 microbatches need at least 8388610 passes; there are 8388609",
        "line 1, cell 6, 0F0: it has been done"};
    size_t const length = sizeof first - 1;
    char *text = malloc(length + (size_t)CELL * PASSES);
    assert_non_null(text);
    memcpy(text, first, length);
    for (size_t i = 0; i < PASSES; i++) memcpy(text + length + CELL * i, ",0F0", CELL);
    for (uint32_t i = 0; i < 2; i++) {
        struct arena *arena = arena_create(0);
        struct schedule schedule;
        size_t const others = PASSES - 6 + i;
        case_refused(schedule_csv_read(arena, text, length + CELL * others, "file.csv", &schedule,
                                       &case_error),
                     i == 0 ? STATUS_LIMIT : STATUS_INVALID, "file.csv", words[i]);
        arena_destroy(arena);
    }
    free(text);
}

/* Whether a file is read; its refusal has line and cell. */
static bool is_read(const struct strbuf *text)
{
    struct arena *arena = arena_create(0);
    struct schedule schedule;
    struct error error = {0};
    bool const read = schedule_csv_read(arena, text->bytes, text->size_bytes, "file.csv", &schedule,
                                        &error) == STATUS_OK;
    if (!read &&
        (strstr(error.message, "line ") == NULL || strstr(error.message, ", cell ") == NULL))
        fail_msg("%s", error.message);
    arena_destroy(arena);
    return read;
}

/* Takes each message out of the file, or has it twice. */
static uint32_t each_message_is_missed(const struct strbuf *text)
{
    uint32_t messages = 0;
    for (const char *cell = text->bytes; cell != NULL && *cell != '\0';) {
        const char *next = strpbrk(cell, ",\n");
        size_t const length = (size_t)(next - cell);
        size_t const before = (size_t)(cell - text->bytes);
        char word[64] = "";
        assert_true(length < sizeof word);
        memcpy(word, cell, length);
        if (strstr(word, "SEND") != NULL || strstr(word, "RECV") != NULL) {
            struct strbuf without = {0}, twice = {0};
            strbuf_add_bytes(&without, text->bytes, before);
            strbuf_add(&without, "%s", next);
            strbuf_add_bytes(&twice, text->bytes, before);
            strbuf_add(&twice, "%s,%s", word, cell);
            if (is_read(&without) || is_read(&twice)) fail_msg("%s", word);
            messages++;
            strbuf_free(&without);
            strbuf_free(&twice);
        }
        cell = next + 1;
    }
    return messages;
}

static void no_message_may_be_missing_or_twice(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < schedule_form_count; i++) {
        struct arena *arena = arena_create(0);
        struct schedule const schedule = built(arena, schedule_form_table[i]);
        struct error error = {0};
        struct strbuf text = {0};
        if (schedule.copy_count == 1) {
            assert_int_equal(
                schedule_csv_write(arena, &schedule, SCHEDULE_COMPUTE_COMMS, &text, &error),
                STATUS_OK);
            assert_true(is_read(&text));
            /* Forth and back, at each step between ranks of each microbatch, both ends. */
            uint32_t steps = 0;
            for (uint32_t s = 1; s < schedule.stage_count; s++)
                steps += schedule.rank_of[s] != schedule.rank_of[s - 1];
            assert_int_equal(each_message_is_missed(&text), 4 * 8 * steps);
        }
        strbuf_free(&text);
        arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_come_back_as_they_were),
        cmocka_unit_test(the_text_is_pytorchs),
        cmocka_unit_test(what_is_wrong_is_said_with_line_and_cell),
        cmocka_unit_test(cells_may_be_in_quotation_marks),
        cmocka_unit_test(receives_may_stand_anywhere_before_their_pass),
        cmocka_unit_test(memory_is_for_cells_that_say_something),
        cmocka_unit_test(a_large_table_is_for_as_many_passes),
        cmocka_unit_test(no_message_may_be_missing_or_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
