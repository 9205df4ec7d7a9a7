#include "sim/report/inference_fit.h"

#include <math.h>

#include "sim/report/analysis.h"

/* As many on each rank in each batch. */
static uint64_t sequences_of(const struct workload_held_anyway *counts, double of_rank)
{
    return (uint64_t)(of_rank / (double)counts->batches) * counts->batches * counts->keepers;
}

static uint64_t room_of(const struct roofline *roofline, double peak_bytes, double capacity)
{
    const struct workload_held_anyway *held = &roofline->counts.held_anyway;
    double const cache = roofline->counts.memory.cache_bytes, others = peak_bytes - cache;
    double const each = cache / (double)held->kept_sequences;
    if (others >= capacity || each <= 0) return 0;
    return sequences_of(held, (capacity - others) / each);
}

/* Sequences for which the weights leave room. Buffers grow with the sequences, as the cache. */
static uint64_t room_of_all(const struct roofline *roofline, double weights, double peak_bytes,
                            double capacity)
{
    const struct workload_counts *counts = &roofline->counts;
    double const each = (peak_bytes - weights) / (double)counts->held_anyway.kept_sequences;
    if (weights >= capacity || each <= 0 || counts->memory.cache_bytes <= 0) return 0;
    return sequences_of(&counts->held_anyway, (capacity - weights) / each);
}

struct inference_room inference_room(const struct machine *machine, const struct roofline *roofline,
                                     double peak_bytes)
{
    double const capacity = (double)machine->chip.hbm_capacity_bytes;
    struct inference_room room = {.least = room_of(roofline, peak_bytes, capacity)};
    double const weights = roofline->counts.memory.parameter_bytes;
    uint64_t const shrunk = room_of_all(roofline, weights, peak_bytes, capacity);
    room.most = shrunk > room.least ? shrunk : room.least;
    return room;
}

/* Of the chip that holds most: ranks of pp may have unlike stages. */
static double weights_of(const struct report_input *input)
{
    uint32_t const role = analysis_role(input, input->trace->memory.peak_chip);
    return (double)input->program->roles[role].resident_bytes[PROGRAM_MEMORY_PARAMETERS];
}

uint64_t inference_batch_expected(const struct report_input *input, uint64_t hbm_bytes)
{
    return room_of_all(input->roofline, weights_of(input), (double)input->trace->memory.peak_bytes,
                       (double)hbm_bytes);
}

struct inference_fit inference_fit_of(const struct report_input *input,
                                      const struct inference_whole *whole, uint64_t hbm_bytes)
{
    const struct chip *chip = &input->machine->chip;
    const struct workload_held *held = &input->roofline->counts.memory;
    double const peak = (double)input->trace->memory.peak_bytes;
    double const buffers = fmax(peak - held->parameter_bytes - held->cache_bytes, 0);
    double const room = (double)hbm_bytes - buffers;
    struct inference_fit fit = {.of_gpus = chip->kind == CHIP_GPU,
                                .has_cache = held->cache_bytes > 0,
                                .is_estimate = true,
                                .max_batch = inference_batch_expected(input, hbm_bytes)};
    double const alone = whole->bytes(whole->owner, 1);
    if (room <= 0 || alone / room > MACHINE_CHIPS_MAX) return fit;
    uint64_t least = (uint64_t)ceil(fmax(alone / room, 1));
    do {
        fit.smallest = smallest_slice_of(chip, least);
        least = fit.smallest.chip_count + 1;
    } while (fit.smallest.chip_count > 0 && whole->bytes(whole->owner, fit.smallest.chip_count) >
                                                (double)fit.smallest.chip_count * room);
    return fit;
}

void inference_fit_found(const struct report_largest *largest, struct inference_fit *fit,
                         struct inference_fit *fit_of_gib)
{
    if (!largest->is) return;
    fit->max_batch = largest->batch;
    fit_of_gib->max_batch = largest->batch_of_gib;
    fit->refused = largest->refused;
    fit_of_gib->refused = largest->refused_of_gib;
    fit->is_estimate = fit_of_gib->is_estimate = largest->is_estimate;
}

void inference_fit_tried(const struct report_slice *slice, struct inference_fit *fit)
{
    if (!slice->is) return;
    fit->smallest = slice->smallest;
    fit->is_tried = slice->is_tried;
    fit->slice_is_estimate = slice->is_estimate;
}
