#include "storage/read/operation.h"

void reader_release(struct reader *reader)
{
    dispatcher_release(&reader->dispatcher);
    session_close(&reader->session);
    settled_release(&reader->settled);
    for (size_t op = 0; op < STORAGE_OPS; op++) {
        if (reader->scratch[op].p != NULL) {
            reader->scratch[op].free(reader->scratch[op].p);
        }
    }
}
