/*
 * arena.h: memory by stage. A stage builds its product in an arena and never frees a part of it;
 * the owner frees the arena as a whole. What is returned is aligned for any type, and zeroed but by
 * arena_try_unset().
 *
 * Large blocks come from calloc, so pages that are never touched cost nothing: a bound that is
 * proved but rarely reached may be reserved in full. An arena belongs to one thread.
 */
#ifndef SIM_BASE_ARENA_H
#define SIM_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "sim/base/status.h"

struct arena;

/* At most `limit_bytes` are handed out in total; 0 means the default of 16 GiB. NULL: no memory. */
struct arena *arena_create(uint64_t limit_bytes);
void arena_destroy(struct arena *arena); /* NULL is allowed. */

/* Zeroed memory for `count` items of `size_bytes`, or NULL (overflow, limit, no memory). */
void *arena_take(struct arena *arena, uint64_t count, uint64_t size_bytes);

/* As arena_take(), with the failure said in `reterr`. */
enum status arena_try(struct arena *arena, uint64_t count, uint64_t size_bytes, void **ret_memory,
                      struct error *reterr);

/* As arena_try(), but what lies there is not set: for large arrays whose items are written before
 * they are read. calloc() writes zeros over memory that was in use before, so a process that runs
 * many short simulations would spend time on bounds that none of them reaches. Builds with
 * AddressSanitizer fill the memory with other bytes. */
enum status arena_try_unset(struct arena *arena, uint64_t count, uint64_t size_bytes,
                            void **ret_memory, struct error *reterr);

/* A copy of `text`, or NULL. */
char *arena_text(struct arena *arena, const char *text);
/* A formatted text, or NULL. */
char *arena_format(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

uint64_t arena_taken_bytes(const struct arena *arena);

#endif
