#include <inttypes.h>
#include <stdio.h>

#include "sim/base/quantity.h"
#include "sim/base/strbuf.h"
#include "sim/machine/published.h"
#include "sim/report/show_levels.h"

enum { COLUMN_FIGURE = 24 };

static const char *figure_text(char *buffer, const struct published *figure, uint64_t value)
{
    if (figure->rate) return quantity_text_rate(buffer, (double)value, "B/s");
    (void)snprintf(buffer, QUANTITY_TEXT_BYTES, "%" PRIu64, value);
    return buffer;
}

static void add_figure(struct strbuf *text, const struct published *figure)
{
    char buffer[QUANTITY_TEXT_BYTES];
    uint64_t const published = figure->published, here = figure->here;
    strbuf_add(text, "  %s", figure->name);
    strbuf_pad(text, COLUMN_FIGURE);
    strbuf_add(text, "published %s (%s): ", figure_text(buffer, figure, published), figure->source);
    if (here == published) {
        strbuf_add(text, "equal\n");
        return;
    }
    strbuf_add(text, "here %s", figure_text(buffer, figure, here));
    if (published != 0)
        strbuf_add(text, ", %.1f %% %s",
                   100 * (double)(here < published ? published - here : here - published) /
                       (double)published,
                   here < published ? "less" : "more");
    strbuf_add(text, "\n");
}

void show_published(const struct machine *machine, struct strbuf *text)
{
    struct published figure;
    uint32_t index = 0, equal = 0, count = 0;
    while (published_next(machine, &index, &figure)) {
        count++;
        equal += figure.here == figure.published;
    }
    if (count == 0) return;
    strbuf_add(text, "\npublished totals, one way: %u of %u equal", equal, count);
    if (!machine->chip.is_ideal)
        strbuf_add(text, "; the profile %s scales rates", machine->chip.profile);
    strbuf_add(text, "\n");
    for (index = 0; published_next(machine, &index, &figure);) add_figure(text, &figure);
}
