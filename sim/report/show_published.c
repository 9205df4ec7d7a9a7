#include <inttypes.h>
#include <stdio.h>

#include "sim/base/strbuf.h"
#include "sim/machine/published.h"
#include "sim/report/show_levels.h"
#include "sim/report/table.h"

static struct table_figure figure_text(const struct published *figure, uint64_t value)
{
    struct table_figure count;
    if (figure->rate) return table_rate((double)value);
    (void)snprintf(count.text, sizeof count.text, "%" PRIu64, value);
    return count;
}

static void add_figure(struct strbuf *text, const struct published *figure)
{
    uint64_t const published = figure->published, here = figure->here;
    table_label(text, figure->name);
    strbuf_add(text, "published %s (%s): ", figure_text(figure, published).text, figure->source);
    if (here == published) {
        strbuf_add(text, "equal\n");
        return;
    }
    strbuf_add(text, "here %s", figure_text(figure, here).text);
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
