#include "tools/podsim/common/thread.h"

enum { STACK_BYTES = 8 << 20 }; /* Address space; memory is taken as the stack grows. */

bool thread_start(uv_thread_t *thread, uv_thread_cb work, void *owner)
{
    uv_thread_options_t const options = {.flags = UV_THREAD_HAS_STACK_SIZE,
                                         .stack_size = STACK_BYTES};
    return uv_thread_create_ex(thread, &options, work, owner) == 0;
}
