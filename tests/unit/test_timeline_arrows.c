/*
 * What a timeline says of who waited for whom and who sent to whom, of real runs: each wait of the
 * compute has an arrow from what ended then, each message that came one from its SEND, and a chip
 * that was folded away is shown with the peers it has when it is replayed itself.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/report/timeline.h"
#include "tests/support/case.h"
#include "tests/support/perfetto.h"
#include "tests/support/play.h"

#define HEAD "{\"podsim\": 1, \"title\": \"arrows\", \"machine\": {"
#define MLP(tokens)                                                                                \
    "\"workload\": {\"kind\": \"train_step\", \"model\": {\"kind\": \"mlp\", \"D\": 2048, \"F\": " \
    "8192, \"layers\": 4, \"matrices\": 2}, \"batch_tokens\": " tokens

/* Torus and switches, single links, routes and messages by name, tensor and pipeline parallel. */
static const struct {
    const char *text;
    bool sends;
    uint32_t shown[6], shown_count;
} cases[] = {
    {HEAD "\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"}, \"mesh\": {\"fsdp\": [\"x\", \"y\"], "
          "\"tp\": [\"z\"]}, " MLP("65536") "}}",
     false,
     {0, 54, 63, 1},
     4},
    {HEAD "\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"}, \"mesh\": {\"tp\": [\"z:2\"], \"fsdp\": "
          "[\"x\", \"y\", \"z:2\"]}, " MLP("65536") ", \"gather\": \"layer\"}}",
     false,
     {0, 54, 63, 2},
     4},
    {HEAD "\"chip\": \"h100-sxm\", \"nodes\": 4}, \"mesh\": {\"tp\": [\"gpu\"], \"dp\": "
          "[\"node\"]}, " MLP("4096") ", \"accumulate\": 2}}",
     false,
     {0, 13, 31},
     3},
    {HEAD "\"chip\": \"h100-sxm\", \"nodes\": 4}, \"mesh\": {\"tp\": [\"gpu:4\"], \"dp\": "
          "[\"gpu:2\", \"node\"]}, " MLP("4096") ", \"accumulate\": 2}}",
     false,
     {0, 13, 31, 6},
     4},
    {HEAD "\"chip\": \"h100-sxm\", \"nodes\": 4}, \"mesh\": {\"tp\": [\"gpu\"], \"pp\": "
          "[\"node\"]}, " MLP("32768") ", \"accumulate\": 8, \"schedule\": \"1f1b\"}}",
     true,
     {4, 5, 6, 7, 21, 22},
     6},
    {HEAD "\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"}, \"mesh\": {\"pp\": [\"x\"], \"fsdp\": "
          "[\"y\", \"z\"]}, " MLP("65536") ", \"accumulate\": 4, \"schedule\": \"zb-h1\"}}",
     true,
     {0, 16, 32, 48, 23, 39},
     6},
};

enum { CASES = sizeof cases / sizeof *cases, SEEN = PERFETTO_SLICES };

static void show(uint32_t which, bool full)
{
    struct play play;
    struct strbuf text = {0};
    struct play_options const options = {.full = full,
                                         .record = true,
                                         .shown = cases[which].shown,
                                         .shown_count = cases[which].shown_count};
    play_run(&play, cases[which].text, &options);
    struct report_input const input = {.title = "arrows",
                                       .question = "",
                                       .version = "1.2.3",
                                       .scenario = "arrows.json",
                                       .settings = "/run/full=true",
                                       .machine = &play.machine,
                                       .program = &play.program,
                                       .trace = &play.trace};
    case_ok(timeline_write(play.arena, &input, &text, &case_error));
    perfetto_read(&text);
    strbuf_free(&text);
    play_close(&play);
}

static uint32_t arrows_to(uint32_t slice, const struct perfetto_flow **ret_last)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < perfetto.flow_count; i++) {
        if (perfetto.flow[i].to != slice) continue;
        *ret_last = &perfetto.flow[i];
        count++;
    }
    return count;
}

/* Checks the waits of a chip's compute; returns how many there are. */
static uint32_t waits_check(uint64_t chip)
{
    const struct perfetto_track *track = perfetto_track(chip, "compute");
    uint64_t end_ns = 0;
    uint32_t waits = 0, at = 0;
    for (const struct perfetto_slice *slice; (slice = perfetto_next(track, &at)) != NULL;) {
        const struct perfetto_flow *arrow = NULL;
        uint32_t const arrows = arrows_to(at - 1, &arrow);
        assert_true(arrows <= 1);
        /* A slice of chunks begins with its first chunk, which has the arrow. */
        bool const holds = at < perfetto.slice_count && perfetto.slice[at].track == slice->track &&
                           perfetto.slice[at].begin_ns == slice->begin_ns;
        if (holds) {
            assert_int_equal(arrows, 0);
            continue;
        }
        if (slice->begin_ns > end_ns + 1) {
            assert_int_equal(arrows, 1);
            const struct perfetto_slice *from = &perfetto.slice[arrow->from];
            assert_int_equal(arrow->to_ns, slice->begin_ns);
            assert_true(from->end_ns >= slice->begin_ns);
            assert_true(from->track != slice->track && from->track / 256 == chip + 1);
            assert_true(from->begin_ns >= end_ns || from->end_ns > end_ns);
            waits++;
        }
        if (slice->end_ns > end_ns) end_ns = slice->end_ns;
    }
    return waits;
}

static void each_wait_of_the_compute_has_an_arrow_from_what_it_waited_for(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < CASES; i++) {
        uint32_t waits = 0;
        show(i, false);
        for (uint32_t chip = 0; chip < cases[i].shown_count; chip++) waits += waits_check(chip);
        assert_true(waits > 0);
    }
}

/* On tracks of a chip whose names begin so. */
static uint32_t slices_on(uint64_t chip, const char *begin)
{
    uint32_t count = 0;
    for (uint64_t t = 256 * (chip + 1); t < 256 * (chip + 2); t++)
        if (strncmp(perfetto.track[t].name, begin, strlen(begin)) == 0)
            count += perfetto.track[t].slices;
    return count;
}

/* Stages that follow each other are shown: each message between them has its arrow, and reaches the
 * RECEIVE that ends no sooner than a link's latency behind the last of the message. */
static void each_send_has_an_arrow_to_its_receive(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < CASES; i++) {
        if (!cases[i].sends) continue;
        for (int full = 0; full < 2; full++) {
            uint32_t arrows = 0, received = 0;
            show(i, full == 1);
            for (uint32_t f = 0; f < perfetto.flow_count; f++) {
                const struct perfetto_slice *from = &perfetto.slice[perfetto.flow[f].from];
                const struct perfetto_slice *to = &perfetto.slice[perfetto.flow[f].to];
                if (strncmp(to->name, "receive ", 8) != 0) continue;
                arrows++;
                assert_memory_equal(from->name, "send ", 5);
                assert_string_equal(from->name + 5, to->name + 8); /* "activations" */
                assert_int_equal(to->end_ns, perfetto.flow[f].to_ns);
                assert_true(to->end_ns >= from->end_ns);
                assert_true(from->track / 256 != to->track / 256);
            }
            /* The first four are a whole pipeline, of which each message is received once; the
             * last two are neighbours in another one, and have half of a pair each besides. */
            for (uint32_t chip = 0; chip < 4; chip++) received += slices_on(chip, "receive");
            received += slices_on(4, "receive next") + slices_on(5, "receive previous");
            assert_true(received > 4);
            assert_int_equal(arrows, received);
        }
    }
}

/* Shown chips say the same of themselves, whether they are replayed or others in their place. */
static void a_folded_chip_is_shown_with_its_own_peers(void **state)
{
    (void)state;
    static struct perfetto_slice folded[SEEN];
    static char name[SEEN][PERFETTO_NAME_BYTES];
    for (uint32_t i = 0; i < CASES; i++) {
        show(i, false);
        uint32_t const count = perfetto.slice_count, flows = perfetto.flow_count;
        uint32_t peers = 0;
        memcpy(folded, perfetto.slice, sizeof folded);
        for (uint32_t s = 0; s < count; s++)
            (void)snprintf(name[s], sizeof name[s], "%s", perfetto.slice[s].name);
        show(i, true);
        assert_int_equal(perfetto.slice_count, count);
        assert_int_equal(perfetto.flow_count, flows);
        for (uint32_t s = 0; s < count; s++) {
            assert_string_equal(perfetto.slice[s].name, name[s]);
            assert_int_equal(perfetto.slice[s].begin_ns, folded[s].begin_ns);
            assert_int_equal(perfetto.slice[s].end_ns, folded[s].end_ns);
            assert_string_equal(perfetto.slice[s].said, folded[s].said);
            peers += strstr(folded[s].said, "to=chip ") != NULL;
        }
        assert_true(peers > 10);
    }
}

static void the_first_track_says_what_was_simulated(void **state)
{
    (void)state;
    show(0, false);
    const struct perfetto_slice *slice = &perfetto.slice[0];
    assert_string_equal(perfetto.track[1].name, "podsim 1.2.3");
    assert_int_equal(slice->track, 2);
    assert_string_equal(slice->name, "arrows");
    assert_string_equal(slice->said, "title=arrows; version=1.2.3; scenario=arrows.json; "
                                     "set=/run/full=true; chips=64; ");
    for (uint32_t i = 1; i < perfetto.slice_count; i++)
        assert_true(perfetto.slice[i].end_ns <= slice->end_ns);
    assert_true(slice->begin_ns == 0 && slice->end_ns > 0);
}

static void collectives_say_their_layer_and_messages_their_chunk_and_wait(void **state)
{
    (void)state;
    show(1, false);
    uint32_t collectives = 0, messages = 0, at = 0, last = 0;
    for (const struct perfetto_slice *slice;
         (slice = perfetto_next(perfetto_track(0, "gather fsdp"), &at)) != NULL; collectives++)
        assert_non_null(strstr(slice->said, "layer=layer "));
    at = 0;
    for (const struct perfetto_slice *slice;
         (slice = perfetto_next(perfetto_track(0, "ICI x+"), &at)) != NULL; messages++) {
        const char *const chunk = strstr(slice->said, "chunk=");
        assert_non_null(strstr(slice->said, "to=chip 16 (1,0,0); "));
        assert_non_null(strstr(slice->said, "waited for the link, ps="));
        assert_non_null(chunk);
        uint32_t number = 0;
        assert_int_equal(sscanf(chunk, "chunk=%u", &number), 1);
        last = number > last ? number : last;
    }
    assert_true(collectives > 4 && messages > 8 && last > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_wait_of_the_compute_has_an_arrow_from_what_it_waited_for),
        cmocka_unit_test(each_send_has_an_arrow_to_its_receive),
        cmocka_unit_test(a_folded_chip_is_shown_with_its_own_peers),
        cmocka_unit_test(the_first_track_says_what_was_simulated),
        cmocka_unit_test(collectives_say_their_layer_and_messages_their_chunk_and_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
