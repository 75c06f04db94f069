#include "storage/job/error.h"

#include <stdatomic.h>

static atomic_bool disk_is_full;

const char *storage_err_text(enum storage_err err)
{
    if (err == STORAGE_DOWN && atomic_load_explicit(&disk_is_full, memory_order_relaxed)) {
        return "Redis cannot be reached: its disk is full";
    }
    switch (err) {
#define X(name, text)                                                                              \
    case name:                                                                                     \
        return text;
        STORAGE_ERRORS(X)
#undef X
    }
    return "unknown";
}

void storage_err_note_disk(bool disk_full)
{
    atomic_store_explicit(&disk_is_full, disk_full, memory_order_relaxed);
}
