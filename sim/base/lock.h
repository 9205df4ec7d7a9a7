/*
 * lock.h: one thread at a time, for what takes less than a microsecond: others wait without sleep.
 */
#ifndef SIM_BASE_LOCK_H
#define SIM_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

static inline void lock_take(atomic_bool *lock)
{
    while (atomic_exchange_explicit(lock, true, memory_order_acquire)) continue;
}

static inline void lock_give(atomic_bool *lock)
{
    atomic_store_explicit(lock, false, memory_order_release);
}

#endif
