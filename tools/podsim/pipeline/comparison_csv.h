/*
 * comparison_csv.h: the rows of `podsim pipeline` as files in PyTorch's CSV, one a row.
 */
#ifndef TOOLS_PODSIM_PIPELINE_COMPARISON_CSV_H
#define TOOLS_PODSIM_PIPELINE_COMPARISON_CSV_H

#include <stdbool.h>

#include "sim/schedule/schedule_csv.h"
#include "tools/podsim/pipeline/comparison.h"

struct strbuf;

struct comparison_csv {
    const char *folder; /* NULL: no files are asked for. */
    bool is_new;        /* The folder was made for them. */
    enum schedule_dialect dialect;
};

/* Reads --csv-out and --dialect and makes the folder, before anything is simulated; so what cannot
 * be written is known by then: files that would have one name, or that of another output, or of
 * what the command line reads; schedules of which no file can say any. */
enum status comparison_csv_open(const struct comparison *comparison, struct comparison_csv *ret_csv,
                                struct error *reterr);

/* Writes rows that were simulated. What a file cannot say is passed over with a sentence in
 * `notes`.
 */
enum status comparison_csv_write(const struct comparison *comparison,
                                 const struct comparison_csv *csv, struct strbuf *notes,
                                 struct error *reterr);

/* A folder that was made and stayed empty goes; harmless otherwise. */
void comparison_csv_close(const struct comparison_csv *csv);

#endif
