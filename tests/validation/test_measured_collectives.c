/*
 * Collectives as the measured profile plays them, beside what was measured.
 *
 *   test_measured_collectives [--markdown FILE | --check FILE]
 *
 * --markdown writes docs/measured-collectives.md; --check fails if that file is not what it would
 * write. Errors are stated, not judged; the page says which rows a parameter was learned from.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/choose/choose.h"
#include "sim/measure/measure.h"
#include "sim/measure/measure_group.h"
#include "sim/measure/measure_row.h"
#include "tests/validation/document.h"
#include "tests/validation/measured_rows.h"

enum { ROWS_MAX = 256 };

struct played {
    double time_s, busbw;
    struct choose_candidate candidate;
};

static _Noreturn void stop(const struct measured_row *row, const struct error *error)
{
    (void)fprintf(stderr, "%s %s %llu: %s: %s\n", row->chip, measure_op_name(row->operation),
                  (unsigned long long)row->size_bytes, error->where, error->message);
    exit(1);
}

static void take_candidate(struct arena *arena, const struct measured_row *row,
                           const struct choose_args *args, struct choose_candidate *ret)
{
    struct error error = {0};
    void *memory = NULL;
    if (arena_try(arena, 1, sizeof(struct choose_ranking), &memory, &error) != STATUS_OK ||
        choose_rank(arena, args, "/row", memory, &error) != STATUS_OK)
        stop(row, &error);
    const struct choose_ranking *ranking = memory;
    for (uint32_t i = 0; i < ranking->count; i++) {
        *ret = ranking->candidate[i];
        if (row->algorithm == NULL ||
            strcmp(algorithm_text(&ret->algorithm).text, row->algorithm) == 0)
            return;
    }
    error_set(&error, STATUS_NOT_FOUND, "/row", "%s does not run here", row->algorithm);
    stop(row, &error);
}

static struct played play(const struct measured_row *row)
{
    struct arena *arena = arena_create(0);
    struct machine_plan const plan = {.chip = row->chip,
                                      .shape = row->shape,
                                      .gpus = row->gpus,
                                      .profile = "measured",
                                      .unrealisable = row->shape != NULL,
                                      .wrap = {-1, -1, -1}};
    struct measure_options const options = {.engine = "fast"};
    struct machine machine;
    struct error error = {0};
    struct measure_row_args args = {.machine = &machine, .operation = row->operation};
    if (machine_build(arena, &plan, &machine, &error) != STATUS_OK ||
        measure_group(&machine, row->axes, "/row", &args.group, &error) != STATUS_OK)
        stop(row, &error);
    struct choose_args choice = {.machine = &machine,
                                 .protocols = choose_by_protocols(&machine),
                                 .registered = row->registered};
    struct plan_request request;
    struct measured measured;
    struct played played = {0};
    if (measure_row_request(&args, row->size_bytes, "/row", &choice.request, &error) != STATUS_OK)
        stop(row, &error);
    take_candidate(arena, row, &choice, &played.candidate);
    if (choose_apply(&choice, &played.candidate, "/row", &request, &error) != STATUS_OK ||
        measure_run(arena, &machine, &request, 1, "/row", &options, &measured, &error) != STATUS_OK)
        stop(row, &error);
    struct collective_factor const factor =
        collective_bus_factor(measure_op_kind(row->operation), group_rank_count(&args.group));
    played.time_s = units_seconds(measured.time_ps[0]);
    played.busbw = (double)row->size_bytes / played.time_s * (double)factor.numerator /
                   (double)factor.denominator;
    arena_destroy(arena);
    return played;
}

static const char *chosen(const struct played *played, char buffer[64])
{
    bool const plain = played->candidate.protocol == PROTOCOL_NONE;
    (void)snprintf(buffer, 64, "%.40s%s%s", algorithm_text(&played->candidate.algorithm).text,
                   plain ? "" : ", ", plain ? "" : protocol_name(played->candidate.protocol));
    return buffer;
}

static void add_figures(struct strbuf *text)
{
    char buffer[64];
    strbuf_add(text, "| what | measured | podsim | error | algorithm | source |\n"
                     "|---|---|---|---|---|---|\n");
    for (uint32_t i = 0; i < measured_figure_count; i++) {
        const struct measured_row *row = &measured_figures[i];
        struct played const played = play(row);
        strbuf_add(text, "| %s | ", row->what);
        if (row->busbw_bytes_per_s > 0)
            strbuf_add(text, "%.0f GB/s | %.1f GB/s | %+.1f %% | ",
                       (double)row->busbw_bytes_per_s * 1e-9, played.busbw * 1e-9,
                       100 * (played.busbw / (double)row->busbw_bytes_per_s - 1));
        else
            strbuf_add(text, "%.1f us | %.1f us | %+.1f %% | ", (double)row->time_ns * 1e-3,
                       played.time_s * 1e6, 100 * (played.time_s * 1e9 / (double)row->time_ns - 1));
        strbuf_add(text, "%s | %s |\n", chosen(&played, buffer), row->source);
    }
}

/* Keeps `count` numbers in order. */
static void insert(double *sorted, uint32_t count, double number)
{
    for (; count > 0 && sorted[count - 1] > number; count--) sorted[count] = sorted[count - 1];
    sorted[count] = number;
}

static void add_summary(struct strbuf *text, const char *chip, enum measure_op operation,
                        const double *off)
{
    double sorted[ROWS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < measured_node_count; i++)
        if (strcmp(measured_nodes[i].chip, chip) == 0 && measured_nodes[i].operation == operation)
            insert(sorted, count++, fabs(off[i]));
    if (count == 0) return;
    double const middle = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
    strbuf_add(text, "| %s | %s | %u | %.0f %% | %.0f %% |\n", chip, measure_op_name(operation),
               count, 100 * middle, 100 * sorted[count - 1]);
}

static void add_nodes(struct strbuf *text)
{
    static const char *const chips[] = {"h100-sxm", "h200-sxm", "a100-sxm", "b200"};
    static double off[ROWS_MAX];
    struct strbuf table = {0};
    char buffer[64];
    for (uint32_t i = 0; i < measured_node_count; i++) {
        const struct measured_row *row = &measured_nodes[i];
        struct played const played = play(row);
        off[i] = played.time_s * 1e9 / (double)row->time_ns - 1;
        strbuf_add(&table, "| %s | %s | %u | %llu | %.2f | %.2f | %+.0f %% | %s |\n", row->chip,
                   measure_op_name(row->operation), row->gpus, (unsigned long long)row->size_bytes,
                   (double)row->time_ns * 1e-3, played.time_s * 1e6, 100 * off[i],
                   chosen(&played, buffer));
    }
    strbuf_add(text, "| chip | collective | rows | median error | largest error |\n"
                     "|---|---|---|---|---|\n");
    for (uint32_t c = 0; c < sizeof chips / sizeof *chips; c++)
        for (uint32_t o = 0; o < MEASURE_COUNT; o++)
            add_summary(text, chips[c], (enum measure_op)o, off);
    strbuf_add(text, "\n| chip | collective | GPUs | bytes | measured, us | podsim, us | error | "
                     "algorithm |\n"
                     "|---|---|---|---|---|---|---|---|\n");
    strbuf_add_bytes(text, table.bytes, table.size_bytes);
    strbuf_free(&table);
}

static const char head[] =
    "# Measured collectives compared with podsim's\n"
    "\n"
    "This page compares measured times of single collectives with simulated ones.\n"
    "`tests/validation/test_measured_collectives --markdown` writes it.\n"
    "\n"
    "Every time is simulated in the profile `measured`. On GPUs podsim takes the algorithm and\n"
    "protocol of NCCL with the smallest estimated time. Parameters are learned from nine rows\n"
    "below: the overhead of a TPU's message from the last row of the next section; latencies, and\n"
    "the time of a byte, from the AllReduces of 64 KiB and of 128 MiB on eight GPUs of each chip.\n"
    "\n"
    "| part | value | source |\n"
    "|---|---|---|\n"
    "| NVLink, a link | 20.6 of 25 GB/s on Hopper, 20.0 of 25 on Ampere, 40.1 of 50 on "
    "Blackwell | NCCL's own model (NVIDIA/nccl `src/graph/topo.h`, `src/graph/tuning.cc` at "
    "5067397c) |\n"
    "| LL, LL128, Simple, NVLS | latencies, overheads and shares | the same |\n"
    "| latencies in a node | 1.78 times NCCL's on Ampere, 1.23 times on Hopper, 1.91 times on "
    "Blackwell; NCCL's in a graph | AllReduce of 65,536 bytes below, by a ring of LL |\n"
    "| time of a byte in a node | 1.06 times NCCL's on Ampere (not LL), 1.27 times in "
    "Hopper's NVLS, 1.40 times in Blackwell's | AllReduce of 134,217,728 bytes below |\n"
    "| a channel's copies | 38.7 GB/s on Hopper, 24.0 on Ampere, 70.0 on Blackwell in Simple; "
    "36.7, "
    "20.0, 40.0 in LL128 ([how](algorithm-choice.md#copies)) | NCCL's own model |\n"
    "| links of TPUs | 95 % of their rate | book ch. 3, Figure 3.2 |\n"
    "| message of a TPU | 0.9 us | the 8 us of Pop Quiz 2 |\n"
    "\n"
    "## Single figures\n"
    "\n"
    "GB/s are bus bandwidth.\n"
    "\n";

static const char reasons[] =
    "\n"
    "| difference | reason |\n"
    "|---|---|\n"
    "| 58.7 MB: twice the book's \"about 150 GB/s\" | At tens of megabytes NCCL's constants "
    "have no loss except the start of each step. The nccl-tests below, in which switches may "
    "add, have 241 GB/s for 16.8 MB and 406 GB/s for 134 MB. |\n"
    "| NVLS | NCCL assumes 85 % of NVLink on Hopper and 74 % on Blackwell "
    "(`nvlsEfficiency`). AllReduces of 128 MiB measure 67 % and 53 %. podsim takes these "
    "shares, by which a ring on B200 is faster than NVLS beyond 300 MiB. Larger arrays are faster, "
    "and with two GPUs twice as fast. |\n"
    "| v5e | One efficiency of a link cannot give both figures: 95 % on 8x16, and 82 % on "
    "8x4, where an axis is a line. Latency also keeps an array of 10 MB below the rate of a "
    "large one. |\n"
    "| v5e, algorithm | The table has the algorithm of the book. `auto` may be faster: for "
    "131 kB on the line of 4 `auto` takes `direct`, which needs a fifth less time. |\n"
    "| small messages | One factor stands for all latencies of a generation. It is that of 64 KiB; "
    "from 1 MiB on Hopper's messages are quicker. In a "
    "graph (`run.launch`), latencies are NCCL's: eight A100 decode a token of Mixtral 8x7B in "
    "4.6 ms (gpt-fast, int8), and 64 AllReduces of 27 us each would leave too little of it to read "
    "the weights. |\n"
    "| rings of NCCL issue 1455 | In September 2024 NCCL wrote to the arrays of its own process "
    "directly: these rows have `--registered`. Since 2.24 a ring copies what comes last out of a "
    "buffer. |\n"
    "| AllToAll | The copy of the last chunk explains 16 MiB. From 128 to 512 MiB, eight H100 send "
    "at 87 % of the wire's rate, four at 79 %: 11 GB/s a channel on 28 channels, 12 on 24. B200 "
    "has 20 on either. NCCL reckons the half of a channel's threads that sends with 19 and 35 GB/s "
    "(`perChMaxTreeBws`), and chunks, buffers, a rank's part for itself (`src/enqueue.cc`, "
    "`src/device/sendrecv.h`) have no limit of that size: podsim has none. |\n"
    "| gathers of 16 MiB on B200 | They take 104 us; 1 MiB takes 19 us and 128 MiB 207 us. No "
    "protocol's latency and rate are so. |\n"
    "\n"
    "## nccl-tests on one node\n"
    "\n"
    "The measurements are from ai-dynamo/aiconfigurator at 095f58a51c4c, `nccl_perf.parquet` "
    "of\n"
    "each chip: NCCL 2.29.2, on A100 2.27.3; half precision, one process, out of place. They "
    "do\n"
    "not record NCCL's choice of algorithm. `error` is podsim's time over the measured one.\n"
    "\n";

static void add_document(struct strbuf *text)
{
    strbuf_add_bytes(text, head, sizeof head - 1);
    add_figures(text);
    strbuf_add_bytes(text, reasons, sizeof reasons - 1);
    add_nodes(text);
}

int main(int argc, char **argv)
{
    struct strbuf text = {0};
    if (argc != 1 && argc != 3) {
        (void)fprintf(stderr, "test_measured_collectives [--markdown FILE | --check FILE]\n");
        return 2;
    }
    add_document(&text);
    return document_end(&text, argc == 3 ? argv[1] : NULL, argc == 3 ? argv[2] : NULL);
}
