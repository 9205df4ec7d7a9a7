/*
 * Prints a timeline as lines of text, for cases of the command line:
 *
 *   show_timeline FILE
 *   track | slice | nanoseconds from | to | arguments        one a slice
 *   track: slice > track: slice                              one an arrow
 *
 * Status 1 and nothing else for a file that breaks the format.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/strbuf.h"
#include "tests/support/case.h"
#include "tests/support/perfetto.h"

static const char *file;

static void shows(void **state)
{
    (void)state;
    struct strbuf text = {0};
    char piece[4096];
    FILE *const from = fopen(file, "rb");
    assert_non_null(from);
    for (size_t count; (count = fread(piece, 1, sizeof piece, from)) > 0;)
        strbuf_add_bytes(&text, piece, count);
    (void)fclose(from);
    perfetto_read(&text);
    strbuf_free(&text);
    for (uint32_t i = 0; i < perfetto.slice_count; i++) {
        const struct perfetto_slice *slice = &perfetto.slice[i];
        (void)printf("%s | %s | %llu | %llu | %s\n", perfetto.track[slice->track].name, slice->name,
                     (unsigned long long)slice->begin_ns, (unsigned long long)slice->end_ns,
                     slice->said);
    }
    for (uint32_t i = 0; i < perfetto.flow_count; i++) {
        const struct perfetto_slice *out = &perfetto.slice[perfetto.flow[i].from];
        const struct perfetto_slice *in = &perfetto.slice[perfetto.flow[i].to];
        (void)printf("%s: %s > %s: %s\n", perfetto.track[out->track].name, out->name,
                     perfetto.track[in->track].name, in->name);
    }
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shows)};
    if (count != 2) return EXIT_FAILURE;
    file = arguments[1];
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
