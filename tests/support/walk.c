#include "tests/support/walk.h"

#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/resource/compute.h"
#include "tests/support/case.h"
#include "tests/support/sampling.h"

void walk_shipped(const struct play_options *options, const char *const *without,
                  void (*check)(struct play *play, const char *path))
{
    glob_t found;
    uint32_t walked = 0;
    assert_int_equal(glob("scenarios/*/*.json", 0, NULL, &found), 0);
    assert_true(found.gl_pathc > 40);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i];
        struct play play;
        bool skipped = sampling_skips(&walked);
        for (const char *const *part = without; part != NULL && *part != NULL; part++)
            skipped = skipped || strstr(path, *part) != NULL;
        if (skipped) continue;
        play_run_file(&play, path, options);
        check(&play, path);
        play_close(&play);
    }
    globfree(&found);
}

static uint64_t seed = 1;

void walk_seed(int argc, char **argv)
{
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    print_message("seed %" PRIu64 "\n", seed);
}

uint64_t walk_draw(uint32_t n)
{
    return seed + n * UINT64_C(0x51ed270b);
}

enum status walk_drawn(uint32_t n, void (*draw)(uint64_t *state, char text[WALK_TEXT_BYTES]),
                       const struct play_options *options,
                       void (*check)(struct play *play, const char *text), struct error *reterr)
{
    uint64_t state = walk_draw(n);
    char text[WALK_TEXT_BYTES];
    struct play play;
    draw(&state, text);
    enum status const status = play_try(&play, text, options, reterr);
    if (status == STATUS_OK) check(&play, text);
    play_close(&play);
    return status;
}

void walk_drawn_all(uint32_t count, void (*draw)(uint64_t *state, char text[WALK_TEXT_BYTES]),
                    const struct play_options *options,
                    void (*check)(struct play *play, const char *text))
{
    uint32_t walked = 0;
    for (uint32_t n = 0; n < count; n++) {
        struct error error = {0};
        if (sampling_skips(&walked)) continue;
        if (walk_drawn(n, draw, options, check, &error) != STATUS_OK)
            fail_msg("%s: %s", error.where, error.message);
    }
}

bool walk_next(struct walk_op *walk)
{
    const struct program *program = walk->program;
    for (; walk->role < program->role_count; walk->role++, walk->block = 0) {
        const struct program_role *role = &program->roles[walk->role];
        for (; walk->block < role->block_count; walk->block++, walk->index = 0) {
            const struct program_block *block = &role->block[walk->block];
            const struct program_template *template = &program->templates[block->template_index];
            if (walk->index == template->op_count) continue;
            walk->op = &template->op[walk->index++];
            walk->times = block->repeat;
            return true;
        }
    }
    return false;
}

static void same_role(const struct trace_role *role, const struct trace_role *wanted, uint32_t rank,
                      const char *text)
{
    if (role->first_begin_ps != wanted->first_begin_ps || role->last_end_ps != wanted->last_end_ps)
        fail_msg("rank %u: from %" PRId64 " to %" PRId64 " ps and not from %" PRId64 " to %" PRId64
                 "\nin %s",
                 rank, role->first_begin_ps, role->last_end_ps, wanted->first_begin_ps,
                 wanted->last_end_ps, text);
    if (role->compute_ps != wanted->compute_ps || role->exposed_ps != wanted->exposed_ps ||
        role->waiting_ps != wanted->waiting_ps || role->bubble_ps != wanted->bubble_ps)
        fail_msg("rank %u: %" PRId64 " ps of compute, %" PRId64 " exposed, %" PRId64
                 " waiting and %" PRId64 " of bubble, and not %" PRId64 ", %" PRId64 ", %" PRId64
                 " and %" PRId64 "\nin %s",
                 rank, role->compute_ps, role->exposed_ps, role->waiting_ps, role->bubble_ps,
                 wanted->compute_ps, wanted->exposed_ps, wanted->waiting_ps, wanted->bubble_ps,
                 text);
    if (role->sent_bytes != wanted->sent_bytes ||
        role->memory.peak_bytes != wanted->memory.peak_bytes)
        fail_msg("rank %u: %" PRIu64 " bytes sent and %" PRIu64 " in memory, and not %" PRIu64
                 " and %" PRIu64 "\nin %s",
                 rank, role->sent_bytes, role->memory.peak_bytes, wanted->sent_bytes,
                 wanted->memory.peak_bytes, text);
}

static void same(const struct trace *trace, const struct trace *wanted, const char *text)
{
    if (trace->step_ps != wanted->step_ps)
        fail_msg("%" PRId64 " ps and not %" PRId64 "\nin %s", trace->step_ps, wanted->step_ps,
                 text);
    if (trace->compute_ps != wanted->compute_ps || trace->exposed_ps != wanted->exposed_ps ||
        trace->idle_ps != wanted->idle_ps)
        fail_msg("%" PRId64 " ps of compute, %" PRId64 " exposed and %" PRId64 " idle, and not "
                 "%" PRId64 ", %" PRId64 " and %" PRId64 "\nin %s",
                 trace->compute_ps, trace->exposed_ps, trace->idle_ps, wanted->compute_ps,
                 wanted->exposed_ps, wanted->idle_ps, text);
    for (uint32_t c = 0; c < wanted->class_count; c++)
        if (trace->classes[c].exposed_ps != wanted->classes[c].exposed_ps)
            fail_msg("class %u: %" PRId64 " ps exposed and not %" PRId64 "\nin %s", c,
                     trace->classes[c].exposed_ps, wanted->classes[c].exposed_ps, text);
    for (uint32_t port = 0; port < TRACE_PORTS_MAX; port++)
        if (trace->link[port].busy_ps != wanted->link[port].busy_ps ||
            trace->link[port].bytes != wanted->link[port].bytes)
            fail_msg("port %u: busy %" PRId64 " ps with %" PRIu64 " bytes and not %" PRId64
                     " with %" PRIu64 "\nin %s",
                     port, trace->link[port].busy_ps, trace->link[port].bytes,
                     wanted->link[port].busy_ps, wanted->link[port].bytes, text);
    assert_int_equal(trace->role_count, wanted->role_count);
    for (uint32_t r = 0; r < wanted->role_count; r++)
        same_role(&trace->roles[r], &wanted->roles[r], r, text);
}

double walk_moved_bytes(const struct program *program, enum stream_of ranks,
                        enum collective_kind kind)
{
    struct walk_op walk = {.program = program};
    double bytes = 0;
    while (walk_next(&walk)) {
        if (walk.op->kind != PROGRAM_OP_COLLECTIVE) continue;
        const struct plan *plan = &program->plans[walk.op->index];
        if (plan->kind == kind && program->stream[walk.op->stream].use.of == (uint32_t)ranks)
            bytes += (double)walk.times * (double)plan->size_bytes;
    }
    return bytes;
}

double walk_sent_bytes(const struct program *program)
{
    struct walk_op walk = {.program = program};
    double bytes = 0;
    while (walk_next(&walk))
        if (walk.op->kind == PROGRAM_OP_SEND)
            bytes += (double)walk.times * (double)program->plans[walk.op->index].size_bytes;
    return bytes;
}

void walk_copies_agree(const struct play *play, const char *text)
{
    struct walk_op walk = {.program = &play->program};
    const struct workload_messages *said = &play->roofline.counts.stage;
    double const said_bytes = said->copy_bytes * play->mesh.axis[MESH_PP].size;
    double bytes = 0, count = 0;
    while (walk_next(&walk)) {
        if (walk.op->kind != PROGRAM_OP_SEND) continue;
        const struct plan *plan = &play->program.plans[walk.op->index];
        count += plan->permute.mirrors * walk.times;
        bytes += plan->permute.mirrors * (double)walk.times * (double)plan->size_bytes;
    }
    if (count != said->copy_count || fabs(bytes - said_bytes) > 1e-9 * bytes)
        fail_msg("copies exchange %g messages of %.9g bytes, and %g of %.9g in the roofline\nin %s",
                 count, bytes, said->copy_count, said_bytes, text);
}

void walk_alike(const struct play *folded, const char *text, const char *engine)
{
    struct play_options options = {.full = true, .engine = "fast"};
    struct play whole, other;
    case_that(folded->roofline.lower_s * 1e12 <= (double)folded->trace.step_ps * (1 + 1e-9), text);
    play_run(&whole, text, &options);
    assert_int_equal(whole.trace.fold.replayed, whole.machine.chip_count);
    same(&whole.trace, &folded->trace, text);
    if (engine != NULL) {
        options.engine = engine;
        play_run(&other, text, &options);
        same(&other.trace, &folded->trace, text);
        if (whole.trace.digest != other.trace.digest) fail_msg("digests differ\nin %s", text);
        play_close(&other);
    }
    play_close(&whole);
}

double walk_attention_s(const struct play *play)
{
    int64_t sum_ps = 0;
    for (uint32_t t = 0; t < play->program.template_count; t++)
        for (uint32_t i = 0; i < play->program.templates[t].op_count; i++) {
            const struct program_op *op = &play->program.templates[t].op[i];
            if (op->kind != PROGRAM_OP_COMPUTE || op->purpose != PROGRAM_PURPOSE_ATTENTION)
                continue;
            sum_ps +=
                compute_time(&play->machine.chip, &play->program.works[op->index], PPM_ONE, PPM_ONE)
                    .duration_ps;
        }
    return units_seconds(sum_ps);
}

struct walk_collectives walk_collectives(const struct program *program)
{
    struct walk_collectives all = {0};
    struct walk_op walk = {.program = program};
    while (walk_next(&walk)) {
        if (walk.op->kind != PROGRAM_OP_COLLECTIVE) continue;
        all.count += walk.times;
        all.bytes += walk.times * program->plans[walk.op->index].size_bytes;
    }
    return all;
}
