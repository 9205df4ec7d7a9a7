/* Parts of work on several threads. */
#include "tools/podsim/common/pool.h"

#include <stdatomic.h>
#include <string.h>

#include "tests/support/case.h"
#include "tools/podsim/common/worker.h"

enum { PARTS = 200 };

/* What parts have come to, each in its own place. Threads of the pool only note: the test asserts.
 */
struct work {
    struct pool pool;
    uint32_t thread_count;
    const bool *fails; /* [part]; NULL: none. */
    atomic_uint begun[PARTS];
    atomic_uint inside[PARALLEL_THREADS_MAX]; /* Parts that a thread does at this moment. */
    atomic_bool overlaps;                     /* A thread did two parts at once. */
    atomic_bool stopped; /* A part was told to stop, or a thread was none of the pool's. */
};

static enum status part_do(void *owner, uint32_t part, uint32_t thread, struct error *reterr)
{
    struct work *work = owner;
    if (thread >= work->thread_count) atomic_store(&work->stopped, true);
    if (atomic_fetch_add(&work->inside[thread], 1) != 0) atomic_store(&work->overlaps, true);
    (void)atomic_fetch_add(&work->begun[part], 1);
    if (!pool_progress(&work->pool, thread, 0.5, 1000)) atomic_store(&work->stopped, true);
    (void)atomic_fetch_sub(&work->inside[thread], 1);
    if (work->fails == NULL || !work->fails[part]) return STATUS_OK;
    return error_set(reterr, STATUS_LIMIT, "/part", "part %u", part);
}

static enum status shell_work(void *owner, struct worker *worker, struct error *reterr)
{
    struct work *work = owner;
    pool_open(&work->pool, worker, work->thread_count);
    struct parallel const parallel = pool_parallel(&work->pool);
    struct parallel_work const parts = {
        .part = part_do, .owner = work, .part_count = PARTS, .share_end = 1};
    return parallel_run(&parallel, &parts, reterr);
}

static enum status run(struct work *work, struct error *reterr)
{
    return worker_run(shell_work, work, (struct progress_words){"parts", NULL}, reterr);
}

static const uint32_t thread_counts[] = {1, 2, 3, 8, PARALLEL_THREADS_MAX};
enum { THREAD_COUNTS = sizeof thread_counts / sizeof *thread_counts };

static void every_part_is_done_once(void **state)
{
    (void)state;
    static struct work work;
    for (size_t i = 0; i < THREAD_COUNTS; i++) {
        struct error error = {0};
        memset(&work, 0, sizeof work);
        work.thread_count = thread_counts[i];
        assert_int_equal(run(&work, &error), STATUS_OK);
        for (uint32_t part = 0; part < PARTS; part++)
            assert_int_equal(atomic_load(&work.begun[part]), 1);
        assert_false(atomic_load(&work.overlaps));
        assert_false(atomic_load(&work.stopped));
    }
}

/* Whatever the threads, the failure is that of the lowest part; the parts before it were done. */
static void the_lowest_failure_is_returned(void **state)
{
    (void)state;
    static struct work work;
    bool fails[PARTS] = {false};
    for (uint32_t part = 37; part < PARTS; part += 5) fails[part] = true;
    for (size_t i = 0; i < THREAD_COUNTS; i++) {
        for (uint32_t times = 0; times < 20; times++) {
            struct error error = {0};
            memset(&work, 0, sizeof work);
            work.thread_count = thread_counts[i];
            work.fails = fails;
            assert_int_equal(run(&work, &error), STATUS_LIMIT);
            assert_string_equal(error.message, "part 37");
            assert_false(atomic_load(&work.stopped));
            for (uint32_t part = 0; part <= 37; part++)
                assert_int_equal(atomic_load(&work.begun[part]), 1);
            if (work.thread_count == 1) assert_int_equal(atomic_load(&work.begun[38]), 0);
        }
    }
}

/* Without threads of a caller. */
static enum status part_count(void *owner, uint32_t part, uint32_t thread, struct error *reterr)
{
    uint32_t *next = owner;
    assert_int_equal(thread, 0);
    assert_int_equal(part, *next);
    (*next)++;
    return part == 3 ? error_set(reterr, STATUS_LIMIT, "", "three") : STATUS_OK;
}

static void without_threads_parts_follow_each_other(void **state)
{
    (void)state;
    uint32_t next = 0;
    struct error error = {0};
    struct parallel_work const work = {.part = part_count, .owner = &next, .part_count = 10};
    assert_int_equal(parallel_run(NULL, &work, &error), STATUS_LIMIT);
    assert_int_equal(next, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_is_done_once),
        cmocka_unit_test(the_lowest_failure_is_returned),
        cmocka_unit_test(without_threads_parts_follow_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
