/*
 * thread.h: threads whose stack does not depend on the limit of the first thread's (`ulimit -s`).
 */
#ifndef TOOLS_PODSIM_COMMON_THREAD_H
#define TOOLS_PODSIM_COMMON_THREAD_H

#include <stdbool.h>

#include <uv.h>

/* The error where thread_start() returns false. */
#define THREAD_NONE "no thread can be started: a limit on memory or on threads is reached"

/* Starts a thread, which uv_thread_join() ends. Returns false if none can be started. It is not one
 * of libuv's pool, which aborts the process where a thread cannot start. */
bool thread_start(uv_thread_t *thread, uv_thread_cb work, void *owner);

#endif
