/*
 * A library that is loaded before a program and lets one allocation fail: the one whose number
 * SCARCE_MEMORY_AT says, counted from 1 in the order in which they are asked for. Where
 * SCARCE_MEMORY_OF is "growing", only those are counted that make a piece of memory larger, as
 * texts ask for. How many were counted is written to the file SCARCE_MEMORY_COUNT, if that is set.
 * libuv is spared: it aborts where its own few allocations fail.
 *
 * Where SCARCE_MEMORY_OF is "threads", no allocation fails: from the one with that number on, no
 * thread starts.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 24 };

/* What malloc and the others are in glibc. */
extern void *__libc_malloc(size_t size_bytes);
extern void *__libc_calloc(size_t count, size_t size_bytes);
extern void *__libc_realloc(void *memory, size_t size_bytes);

void *malloc(size_t size_bytes);
void *calloc(size_t count, size_t size_bytes);
void *realloc(void *memory, size_t size_bytes);

typedef int thread_start_fn(pthread_t *thread, const pthread_attr_t *attributes,
                            void *(*work)(void *), void *owner);

static unsigned long fails_at, asked;
static int only_growing, only_threads;

static int is_of_libuv(void)
{
    void *frame[FRAMES];
    int const count = backtrace(frame, FRAMES);
    for (int i = 0; i < count; i++) {
        Dl_info from;
        if (dladdr(frame[i], &from) != 0 && strstr(from.dli_fname, "libuv") != NULL) return 1;
    }
    return 0;
}

static int is_scarce(int grows)
{
    if (only_threads || (only_growing && !grows)) return 0;
    unsigned long const number = __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
    if (number != fails_at || is_of_libuv()) return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size_bytes)
{
    return is_scarce(0) ? NULL : __libc_malloc(size_bytes);
}

void *calloc(size_t count, size_t size_bytes)
{
    return is_scarce(0) ? NULL : __libc_calloc(count, size_bytes);
}

void *realloc(void *memory, size_t size_bytes)
{
    return is_scarce(1) ? NULL : __libc_realloc(memory, size_bytes);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *),
                   void *owner)
{
    thread_start_fn *start = NULL;
    unsigned long const number = only_threads ? __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) : 0;
    if (only_threads && fails_at != 0 && number >= fails_at) return EAGAIN;
    *(void **)&start = dlsym(RTLD_NEXT, "pthread_create");
    return start(thread, attributes, work, owner);
}

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("SCARCE_MEMORY_AT");
    const char *of = getenv("SCARCE_MEMORY_OF");
    only_growing = of != NULL && strcmp(of, "growing") == 0;
    only_threads = of != NULL && strcmp(of, "threads") == 0;
    asked = 0;
    fails_at = at == NULL ? 0 : strtoul(at, NULL, 10);
}

__attribute__((destructor)) static void end(void)
{
    unsigned long const count = asked;
    const char *path = getenv("SCARCE_MEMORY_COUNT");
    FILE *file = path == NULL ? NULL : fopen(path, "w");
    if (file == NULL) return;
    (void)fprintf(file, "%lu\n", count);
    (void)fclose(file);
}
