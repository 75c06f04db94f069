#include "storage/known/memory.h"

void fold_memory_forget(struct fold_memory *memory)
{
    announced_forget(&memory->announced);
    known_users_forget_all(&memory->users);
    known_hashes_forget(&memory->expiries);
    known_hashes_forget(&memory->places);
    known_sketches_forget(&memory->sketches);
}

void fold_memory_release(struct fold_memory *memory)
{
    known_users_release(&memory->users);
    known_hashes_release(&memory->expiries);
    known_hashes_release(&memory->places);
    known_sketches_release(&memory->sketches);
}
