/* Drawings of machines: all words can be read, whatever the machine. */
#include <stdio.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/base/svg.h"
#include "sim/machine/chip.h"
#include "sim/report/machine_svg.h"
#include "sim/scenario/scenario.h"
#include "tests/support/case.h"
#include "tests/support/picture.h"
#include "tests/support/sampling.h"

static struct picture picture;

struct tally {
    uint32_t walked, drawn, faulty;
};

static void read_machine(const struct machine *machine)
{
    struct strbuf text = {0};
    machine_svg(machine, &text);
    assert_false(text.failed);
    picture_read(&picture, text.bytes);
    strbuf_free(&text);
}

/* Draws the machine unless it is refused: few chips have every size. */
static void check(const char *spec, struct tally *tally)
{
    struct machine_plan plan;
    struct machine machine = {0};
    struct error error = {0};
    if (sampling_skips(&tally->walked)) return;
    if (scenario_machine_parse(case_arena, spec, "--machine", &plan, &error) != STATUS_OK ||
        machine_build(case_arena, &plan, &machine, &error) != STATUS_OK)
        return;
    tally->drawn++;
    read_machine(&machine);
    bool const readable = picture_is_readable(&picture, spec);
    bool const open = picture_keeps_out(&picture, spec, "switch");
    tally->faulty += !readable || !open;
}

static void check_gpu(const char *chip, struct tally *tally)
{
    static const uint32_t nodes[] = {1, 2, 4, 8, 9, 12500};
    static const uint32_t gpus[] = {0, 1, 9, 80, 144, 576};
    static const char *const networks[] = {"",
                                           ",switch_ports=32",
                                           ",switch_ports=128",
                                           ",switch_ports=1024",
                                           ",leaf.oversubscription=4",
                                           ",node_nics=4,switch_ports=512",
                                           ",policy=hash,sharp=on"};
    for (size_t n = 0; n < sizeof nodes / sizeof *nodes; n++)
        for (size_t g = 0; g < sizeof gpus / sizeof *gpus; g++)
            for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
                char spec[128], count[32] = "", size[32] = "";
                if (nodes[n] != 1) (void)snprintf(count, sizeof count, ",nodes=%u", nodes[n]);
                if (gpus[g] != 0) (void)snprintf(size, sizeof size, ",gpus=%u", gpus[g]);
                case_text(spec, sizeof spec, "%s%s%s%s", chip, count, size, networks[i]);
                check(spec, tally);
            }
}

static void check_tpu(const char *chip, struct tally *tally)
{
    static const char *const shapes[] = {"4x4",
                                         "4x4x4",
                                         "1x1",
                                         "2x4",
                                         "8x16",
                                         "32x32",
                                         "2x2x1",
                                         "4x8x8",
                                         "16x16x16",
                                         "16x20x28",
                                         "4x4x8_twisted",
                                         "4x8x8_twisted",
                                         "8x8x16_twisted",
                                         "8x16x16_twisted"};
    static const uint32_t slices[] = {1, 2, 3, 4, 5, 8, 9, 64, 700};
    static const char *const networks[] = {"", ",leaf.oversubscription=4", ",switch_ports=16",
                                           ",switch_ports=512"};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t n = 0; n < sizeof slices / sizeof *slices; n++)
            for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
                char spec[128];
                case_text(spec, sizeof spec, "%s:%s,slices=%u%s", chip, shapes[s], slices[n],
                          networks[i]);
                check(spec, tally);
            }
}

static void all_words_can_be_read(void **state)
{
    (void)state;
    uint32_t faulty = 0;
    for (uint32_t i = 0; chip_name_at(i) != NULL; i++) {
        const char *chip = chip_name_at(i);
        struct tally tally = {0};
        case_arena_up(NULL);
        if (strncmp(chip, "tpu-", 4) == 0)
            check_tpu(chip, &tally);
        else
            check_gpu(chip, &tally);
        case_arena_down(NULL);
        print_message("    %-12s %u machines\n", chip, tally.drawn);
        assert_true(tally.drawn > 0);
        faulty += tally.faulty;
    }
    assert_int_equal(faulty, 0);
}

/* Pages of 200 x 100 pixels, drawn by hand, for each fault that the check is to find. */
enum fault {
    FAULT_NONE,
    FAULT_LINE,
    FAULT_PATH,
    FAULT_WIDE,
    FAULT_BESIDE,
    FAULT_TWO,
    FAULT_PAGE,
    FAULT_COUNT
};

static void faults_are_found(void **state)
{
    (void)state;
    for (uint32_t fault = 0; fault < FAULT_COUNT; fault++) {
        struct strbuf text = {0};
        svg_begin(&text, &(struct svg_page){.width = 200, .height = 100, .title = ""});
        svg_box(&text, 10, 10, 80, 40, "switch");
        svg_words(&text, 50, 27, "mid", fault == FAULT_WIDE ? "NVSwitch L2 1" : "leaf 1 & 2");
        svg_line(&text, 50, fault == FAULT_LINE ? 20 : 50, 50, 90, "cable");
        svg_path_begin(&text, "cable");
        svg_path_to(&text, 100, 90);
        svg_path_to(&text, 100, 20);
        svg_path_to(&text, fault == FAULT_PATH ? 70 : 95, 20);
        svg_path_end(&text);
        if (fault == FAULT_BESIDE) svg_words(&text, 95, 45, "head end", "1");
        if (fault == FAULT_TWO) svg_words(&text, 50, 33, "tiny mid", "2 switches");
        svg_words(&text, fault == FAULT_PAGE ? 190 : 180, 60, "small", "2 ");
        svg_end(&text);
        picture_read(&picture, text.bytes);
        assert_int_equal(picture.box_count, 1);
        assert_int_equal(picture.line_count, 3);
        assert_int_equal(picture_is_readable(&picture, "a page"), fault == FAULT_NONE);
        assert_int_equal(picture_keeps_out(&picture, "a page", "switch"),
                         fault != FAULT_LINE && fault != FAULT_PATH);
        strbuf_free(&text);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_words_can_be_read),
        cmocka_unit_test(faults_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
