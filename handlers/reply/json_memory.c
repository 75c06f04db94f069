#include "handlers/reply/json_memory.h"

#include <jansson.h>
#include <stdlib.h>

/* The note of the thread.  It is global, because jansson passes no argument of the caller to its
 * allocator. */
static _Thread_local bool noted;

static void *allocate(size_t n)
{
    void *p = malloc(n);
    if (p == NULL) {
        noted = true;
    }
    return p;
}

void json_memory_watch(void)
{
    json_set_alloc_funcs(allocate, free);
}

void json_memory_begin(bool failed)
{
    noted = failed;
}

bool json_memory_failed(void)
{
    return noted;
}
