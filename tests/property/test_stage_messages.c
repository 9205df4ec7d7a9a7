/*
 * What the roofline says of pipelines: of messages between stages by bytes and rates alone, where
 * they bind to the digit; no step is below its lower or above its upper bound, whatever the
 * schedule, the machine and how pipelines lie on it.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/schedule/schedule_csv.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1400, CSV_BYTES = 4096, WIDTH = 8192, MICROBATCHES = 16, TOKENS = 4096 };

/* A narrow MLP, so that messages take longer than math. */
static void scenario_write(char text[TEXT_BYTES], const char *machine, const char *mesh,
                           const char *schedule)
{
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"title\": \"messages\", \"machine\": {%s, \"profile\": "
              "\"ideal\"}, \"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": "
              "{\"kind\": \"mlp\", \"D\": %d, \"F\": 256, \"layers\": 16, \"matrices\": 2}, "
              "\"batch_tokens\": %d, \"accumulate\": %d, \"schedule\": \"%s\", "
              "\"allow_oversubscription\": true}}",
              machine, mesh, WIDTH, TOKENS * MICROBATCHES, MICROBATCHES, schedule);
}

static const char line[] = "\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"";
static const char torus[] = "\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"";
static const char nodes[] = "\"chip\": \"h100-sxm\", \"nodes\": 8";
static const char narrow[] = "\"chip\": \"h100-sxm\", \"nodes\": 64, \"network\": {\"leaf\": "
                             "{\"oversubscription\": 4}}";
static const char slices[] = "\"chip\": \"tpu-v5p\", \"shape\": \"2x2x2\", \"slices\": 4";

/* `share`: of the ranks that split tokens, how many a rank's message is one of; `bytes_per_s` of
 * what a rank's messages one way, times `ways`, go through. */
static const struct {
    const char *machine, *mesh;
    uint64_t share, ways;
    double bytes_per_s;
} rows[] = {
    {line, "{\"pp\": [\"x\"], \"dp\": [\"y\"]}", 4, 1, 45e9},
    {torus, "{\"pp\": [\"x\"], \"dp\": [\"y\"], \"tp\": [\"z\"]}", 16, 1, 90e9},
    {torus, "{\"dp\": [\"x:2\", \"y\"], \"pp\": [\"x:2\"], \"tp\": [\"z\"]}", 32, 2, 90e9},
    {nodes, "{\"tp\": [\"gpu\"], \"pp\": [\"node\"]}", 8, 2, 50e9},
    {nodes, "{\"tp\": [\"gpu\"], \"dp\": [\"node:4\"], \"pp\": [\"node:2\"]}", 32, 1, 50e9},
    {nodes,
     "{\"pp\": [\"gpu:4\"], \"tp\": [\"gpu:2\"], \"dp\": [\"node\"]"
     ", \"order\": [\"pp\", \"tp\", \"dp\"]}",
     16, 2, 450e9},
    {narrow,
     "{\"tp\": [\"gpu\"], \"pp\": [\"node:4\"], \"dp\": [\"node:16\"]"
     ", \"order\": [\"tp\", \"pp\", \"dp\"]}",
     128, 2, 50e9},
    {slices, "{\"pp\": [\"slice\"], \"dp\": [\"x\", \"y\", \"z\"]}", 8, 2, 6.25e9},
};

static const struct {
    const char *name;
    uint32_t borders;
} schedules[] = {{"1f1b", 1},  {"interleaved:2", 2}, {"zb-h1", 1},   {"zb-v", 2},
                 {"v-min", 2}, {"looped-bfs:2", 2},  {"dualpipe", 1}};

static void no_step_is_faster_than_its_messages(void **state)
{
    (void)state;
    uint32_t bound = 0;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t s = 0; s < sizeof schedules / sizeof *schedules; s++) {
            char text[TEXT_BYTES];
            struct play play;
            scenario_write(text, rows[i].machine, rows[i].mesh, schedules[s].name);
            play_run(&play, text, NULL);
            double const messages = (double)MICROBATCHES * schedules[s].borders;
            double const bytes = messages * TOKENS * WIDTH * 2 / (double)rows[i].share;
            double const time_s = bytes * (double)rows[i].ways / rows[i].bytes_per_s;
            case_near(time_s, play.roofline.stages.messages_s, 1e-9);
            assert_true(play.roofline.lower_s >= play.roofline.stages.messages_s);
            assert_true(units_seconds(play.trace.step_ps) >= play.roofline.lower_s);
            bound += play.roofline.lower_s == play.roofline.stages.messages_s;
            assert_true(units_seconds(play.trace.step_ps) <= play.roofline.upper_s);
            if (rows[i].machine == slices) /* Nothing else takes long there. */
                assert_true(units_seconds(play.trace.step_ps) < 1.4 * play.roofline.lower_s);
            play_close(&play);
        }
    assert_true(bound > 0);
}

/* Gradients that two copies of a model exchange: as many as the program's, and no step ends before
 * they have gone. */
static void no_step_is_faster_than_its_copies(void **state)
{
    (void)state;
    static const char llama[] =
        "{\"model_type\": \"llama\", \"hidden_size\": 256, \"num_attention_heads\": 4, "
        "\"intermediate_size\": 768, \"num_hidden_layers\": 8, \"vocab_size\": 32000}";
    static const char mixtral[] =
        "{\"model_type\": \"mixtral\", \"hidden_size\": 256, \"num_attention_heads\": 4, "
        "\"num_key_value_heads\": 4, \"intermediate_size\": 768, \"num_hidden_layers\": 8, "
        "\"vocab_size\": 32000, \"num_local_experts\": 8, \"num_experts_per_tok\": 2}";
    static const struct {
        const char *machine, *mesh, *model, *more, *bound;
    } steps[] = {
        {"\"chip\": \"tpu-v5p\", \"shape\": \"2x2x2\", \"slices\": 2",
         "{\"tp\": [\"x\"], \"dp\": [\"y\"], \"cp\": [\"z\"], \"pp\": [\"slice\"]}", llama, "",
         "DCN"},
        {slices, "{\"pp\": [\"slice\"], \"fsdp\": [\"x\", \"y\", \"z\"]}", mixtral, "", NULL},
        {nodes, "{\"pp\": [\"node:4\"], \"dp\": [\"gpu\", \"node:2\"]}", llama,
         ", \"zero\": 2, \"formats\": {\"gradients\": \"fp32\"}", NULL},
        {nodes, "{\"pp\": [\"node\"], \"ep\": [\"gpu\"]}", mixtral, "", NULL},
        {line, "{\"pp\": [\"x\"], \"dp\": [\"y\"]}", llama, "", NULL},
        {line, "{\"dp\": [\"x:2\", \"y\"], \"pp\": [\"x:2\"]}", llama, "", NULL},
        {torus, "{\"pp\": [\"x\"], \"dp\": [\"y\"], \"fsdp\": [\"z\"]}", llama, "", NULL},
    };
    for (uint32_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char text[TEXT_BYTES];
        struct play play;
        case_text(text, TEXT_BYTES,
                  "{\"podsim\": 1, \"machine\": {%s, \"profile\": \"ideal\"}, \"mesh\": %s, "
                  "\"workload\": {\"kind\": \"train_step\", \"model\": %s, \"sequence_length\": "
                  "256, \"batch_tokens\": 131072, \"accumulate\": %d, \"schedule\": \"dualpipe\", "
                  "\"allow_oversubscription\": true%s}}",
                  steps[i].machine, steps[i].mesh, steps[i].model, MICROBATCHES, steps[i].more);
        play_run(&play, text, NULL);
        double const step_s = units_seconds(play.trace.step_ps);
        print_message("    %u: copies %.4g of %.4g, upper %.4g, %s\n", i,
                      play.roofline.stages.copies_s, step_s, play.roofline.upper_s,
                      play.roofline.bound.by);
        assert_true(play.roofline.stages.copies_s > 0);
        assert_true(play.roofline.lower_s >= play.roofline.stages.copies_s);
        assert_true(step_s >= play.roofline.lower_s && step_s <= play.roofline.upper_s);
        if (steps[i].bound != NULL) assert_string_equal(play.roofline.bound.by, steps[i].bound);
        walk_copies_agree(&play, text);
        play_close(&play);
    }
}

/* A file whose stages lie on 0, 1, 0, 1, 0, 1, 2, 3: each rank does all forward passes of its first
 * stage, then of its next, and back. */
static void file_write(char csv[CSV_BYTES])
{
    static const struct {
        uint32_t count, stage[3];
    } ranks[] = {{3, {0, 2, 4}}, {3, {1, 3, 5}}, {1, {6}}, {1, {7}}};
    uint32_t length = 0;
    for (uint32_t r = 0; r < sizeof ranks / sizeof *ranks; r++)
        for (uint32_t i = 0; i < 2 * ranks[r].count; i++)
            for (uint32_t m = 0; m < MICROBATCHES; m++) {
                uint32_t const count = ranks[r].count;
                bool const last = i + 1 == 2 * count && m + 1 == MICROBATCHES;
                int const more = snprintf(csv + length, CSV_BYTES - length, "%u%c%u%c",
                                          ranks[r].stage[i < count ? i : 2 * count - 1 - i],
                                          i < count ? 'F' : 'B', m, last ? '\n' : ',');
                assert_true(more > 0 && length + (uint32_t)more < CSV_BYTES);
                length += (uint32_t)more;
            }
}

/* Of its seven borders five are between 0 and 1, and one between 1 and 2: on a level rank 1 sends
 * six, on the grid a link carries five each way. */
static void stages_of_a_file_may_lie_unevenly(void **state)
{
    (void)state;
    static const struct {
        const char *machine, *mesh;
        uint64_t share, borders;
        double bytes_per_s;
    } files[] = {
        {slices, "{\"pp\": [\"slice\"], \"dp\": [\"x\", \"y\", \"z\"]}", 8, 6, 6.25e9},
        {line, "{\"pp\": [\"x\"], \"dp\": [\"y\"]}", 4, 5, 45e9},
    };
    for (uint32_t i = 0; i < sizeof files / sizeof *files; i++) {
        char text[TEXT_BYTES], csv[CSV_BYTES];
        struct arena *arena = arena_create(0);
        struct schedule given;
        struct play play;
        file_write(csv);
        case_ok(schedule_csv_read(arena, csv, strlen(csv), "uneven.csv", &given, &case_error));
        struct play_options const options = {.schedule = &given};
        scenario_write(text, files[i].machine, files[i].mesh, "1f1b");
        play_run(&play, text, &options);
        double const messages = (double)MICROBATCHES * (double)files[i].borders;
        double const bytes = messages * TOKENS * WIDTH * 2 / (double)files[i].share;
        case_near(bytes / files[i].bytes_per_s, play.roofline.stages.messages_s, 1e-9);
        assert_true(units_seconds(play.trace.step_ps) >= play.roofline.lower_s);
        assert_true(units_seconds(play.trace.step_ps) <= play.roofline.upper_s);
        if (files[i].machine == slices) /* Less than as if rank 1 had five to either side. */
            assert_true(units_seconds(play.trace.step_ps) <
                        play.roofline.stages.messages_s * 10 / 6);
        play_close(&play);
        arena_destroy(arena);
    }
}

/* One rank works after the other. */
static void a_pipeline_in_turns_is_no_longer_than_the_upper_bound(void **state)
{
    (void)state;
    static const char *const turns[] = {"/workload/schedule=\"none\"",
                                        "/workload/schedule=\"gpipe\"",
                                        "/workload/schedule=\"1f1b\""};
    for (uint32_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        struct scenario_setting const setting = {turns[i]};
        struct play_options const options = {.settings = &setting, .setting_count = 1};
        struct play play;
        play_run_file(&play, "scenarios/pipeline/llama3-8b-pp4-h100-32-short.json", &options);
        double const step_s = units_seconds(play.trace.step_ps);
        assert_true(step_s >= play.roofline.lower_s && step_s <= play.roofline.upper_s);
        if (i == 0) assert_true(step_s > 0.6 * play.roofline.upper_s); /* All passes in turns. */
        play_close(&play);
    }
}

/* A layer each on half of the ranks: of the mean rank half a reduction, which is one. */
static void fewer_collectives_than_ranks_are_there(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    struct play play;
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"title\": \"few\", \"machine\": {%s, \"profile\": "
              "\"ideal\"}, \"mesh\": {\"pp\": [\"node:8\"], \"dp\": [\"gpu\"]}, "
              "\"workload\": {\"kind\": \"train_step\", \"model\": {\"kind\": \"mlp\", "
              "\"D\": 8192, \"F\": 32768, \"layers\": 4, \"matrices\": 2}, "
              "\"batch_tokens\": 65536, \"accumulate\": 8, \"layout\": \"t|t|t|t||||\"}}",
              nodes);
    play_run(&play, text, NULL);
    const struct roofline_group *dp = roofline_group_find(&play.roofline, MESH_DP);
    assert_non_null(dp);
    assert_int_equal(dp->count, 1);
    /* Twice the gradients of a layer's weights, of half of the ranks. */
    case_near(dp->array_bytes, 2.0 * 2 * 8192 * 32768 * 2 / 2, 1e-12);
    assert_true(units_seconds(play.trace.step_ps) <= play.roofline.upper_s);
    play_close(&play);
}

static void a_step_without_stages_has_no_messages(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    struct play play;
    static const struct play_options lower_only = {.lower_only = true};
    scenario_write(text, torus, "{\"dp\": [\"x\", \"y\"], \"tp\": [\"z\"]}", "1f1b");
    char *schedule = strstr(text, "\"schedule\"");
    memset(schedule, ' ', strlen("\"schedule\": \"1f1b\","));
    play_run(&play, text, &lower_only);
    assert_true(play.roofline.stages.messages_s == 0);
    play_close(&play);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_step_is_faster_than_its_messages),
        cmocka_unit_test(no_step_is_faster_than_its_copies),
        cmocka_unit_test(stages_of_a_file_may_lie_unevenly),
        cmocka_unit_test(a_pipeline_in_turns_is_no_longer_than_the_upper_bound),
        cmocka_unit_test(fewer_collectives_than_ranks_are_there),
        cmocka_unit_test(a_step_without_stages_has_no_messages),
    };
    return cmocka_run_group_tests_name("stage messages", tests, NULL, NULL);
}
