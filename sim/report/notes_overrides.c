#include "sim/report/notes_overrides.h"

#include <stdio.h>

#include "sim/base/quantity.h"
#include "sim/base/units.h"

enum { AT_BYTES = 40 };

/* A slow link that is busy no longer than this, against the others, delays nobody. */
static const double busier = 1.1;

/* "(0,*,1)" */
static const char *at_text(char text[AT_BYTES], const struct machine *machine, const uint32_t *at)
{
    int used = 0;
    for (uint32_t i = 0; i < machine->axis_count; i++) {
        char const before = i == 0 ? '(' : ',';
        if (at[i] == machine_any)
            used += snprintf(text + used, (size_t)(AT_BYTES - used), "%c*", before);
        else
            used += snprintf(text + used, (size_t)(AT_BYTES - used), "%c%u", before, at[i]);
    }
    (void)snprintf(text + used, (size_t)(AT_BYTES - used), ")");
    return text;
}

const struct machine_link_override *notes_overrides_slow_link(const struct report_input *input,
                                                              uint32_t port)
{
    const struct machine *machine = input->machine;
    for (uint32_t i = 0; i < machine->link_override_count; i++) {
        const struct machine_link_override *link = &machine->links[i];
        bool const slow =
            link->bytes_per_s > 0 && link->bytes_per_s < machine->chip.ici_bytes_per_s;
        if (slow && machine_port_between(machine, link->from, link->to) == port &&
            machine_chip_at(machine, link->from) == input->trace->link[port].busiest_chip)
            return link;
    }
    return NULL;
}

static bool note_link(struct arena *arena, const struct report_input *input,
                      const struct analysis *analysis, uint32_t port, struct notes *notes)
{
    const struct trace_link *trace = &input->trace->link[port];
    const struct machine_link_override *link = notes_overrides_slow_link(input, port);
    if (link == NULL || trace->link_count < 2) return false;
    double const busy_s = units_seconds(trace->busy_ps);
    double const others_s =
        units_seconds(trace->sum_busy_ps - trace->busy_ps) / (double)(trace->link_count - 1);
    if (busy_s < busier * others_s) return false;
    char from[AT_BYTES], to[AT_BYTES], busy[QUANTITY_TEXT_BYTES], rate[QUANTITY_TEXT_BYTES],
        usual[QUANTITY_TEXT_BYTES];
    notes_add(arena, notes,
              "the link from %s to %s has %s instead of %s and is busy for %s (%.1f%% of the "
              "step), the other %s links for %.1f%% on average: the collectives on it go at its "
              "pace",
              at_text(from, input->machine, link->from), at_text(to, input->machine, link->to),
              quantity_text_rate(rate, (double)link->bytes_per_s, "B/s"),
              quantity_text_rate(usual, (double)input->machine->chip.ici_bytes_per_s, "B/s"),
              quantity_text_seconds(busy, busy_s), 100 * busy_s / analysis->step_s,
              machine_port_name(input->machine, port), 100 * others_s / analysis->step_s);
    return true;
}

/* The override of the slowest chips, among the MXUs or the HBMs. */
static const struct machine_chip_override *slowest(const struct machine *machine, bool hbm)
{
    const struct machine_chip_override *found = NULL;
    uint32_t least = PPM_ONE;
    for (uint32_t i = 0; i < machine->chip_override_count; i++) {
        const struct machine_chip_override *chip = &machine->chips[i];
        uint32_t const ppm = hbm ? chip->hbm_ppm : chip->math_ppm;
        if (ppm >= least) continue;
        least = ppm;
        found = chip;
    }
    return found;
}

/* What a slow chip has to do is not known where stages have layers of their own. */
static void note_stage(struct arena *arena, const struct report_input *input,
                       const struct machine_chip_override *chip, bool hbm, struct notes *notes)
{
    const struct roofline *roofline = input->roofline;
    double const share = (double)(hbm ? chip->hbm_ppm : chip->math_ppm) / PPM_ONE;
    double const whole_s =
        hbm ? roofline->counts.hbm_bytes / (double)input->machine->chip.hbm_bytes_per_s
            : roofline->counts.padded_flop / roofline->rates.mean_flop_per_s;
    char at[AT_BYTES], whole[QUANTITY_TEXT_BYTES], slow[QUANTITY_TEXT_BYTES];
    notes_add(arena, notes,
              "chips %s %s at %.1f%% of the rate: %s of a mean rank's ops would take %s there, "
              "where others take %s; a pipeline goes at the pace of the rank that takes longest, "
              "and \"layout\" gives a slow one fewer layers",
              at_text(at, input->machine, chip->at), hbm ? "load" : "compute", 100 * share,
              hbm ? "HBM traffic" : "the math", quantity_text_seconds(slow, whole_s / share),
              quantity_text_seconds(whole, whole_s));
}

/* All chips have the same work; the slow one's takes longer by formulas, and the next collective
 * of each of the others waits for it. */
static bool note_chip(struct arena *arena, const struct report_input *input, bool hbm,
                      struct notes *notes)
{
    const struct machine *machine = input->machine;
    const struct machine_chip_override *chip = slowest(machine, hbm);
    if (chip == NULL) return false;
    if (input->mesh->axis[MESH_PP].size > 1) {
        note_stage(arena, input, chip, hbm, notes);
        return true;
    }
    double const share = (double)(hbm ? chip->hbm_ppm : chip->math_ppm) / PPM_ONE;
    double const work_s = hbm ? input->roofline->hbm_s : input->roofline->math_s;
    char at[AT_BYTES], whole[QUANTITY_TEXT_BYTES], longer[QUANTITY_TEXT_BYTES];
    bool some = false, several = false;
    for (uint32_t i = 0; i < machine->axis_count; i++) {
        some = some || (chip->at[i] != machine_any && machine->shape[i] > 1);
        several = several || (chip->at[i] == machine_any && machine->shape[i] > 1);
    }
    notes_add(arena, notes,
              "chip%s %s %s%s at %.1f%% of the rate: its %s takes %s by formulas, %s longer than "
              "at the full rate%s",
              several ? "s" : "", at_text(at, machine, chip->at), hbm ? "load" : "compute",
              several ? "" : "s", 100 * share, hbm ? "HBM traffic" : "math",
              quantity_text_seconds(whole, work_s),
              quantity_text_seconds(longer, work_s * (1 - share)),
              some ? ", and every collective makes the other chips wait for it" : "");
    return some;
}

struct notes_overrides notes_overrides_build(struct arena *arena, const struct report_input *input,
                                             const struct analysis *analysis, struct notes *notes)
{
    struct notes_overrides overrides = {0};
    for (uint32_t port = 0; port < 2 * input->machine->axis_count; port++)
        if (note_link(arena, input, analysis, port, notes)) overrides.axis_bits |= 1u << port / 2;
    overrides.chip = note_chip(arena, input, false, notes);
    overrides.chip = note_chip(arena, input, true, notes) || overrides.chip;
    return overrides;
}
