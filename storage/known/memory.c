#include "storage/known/memory.h"

void fold_memory_forget_keys(struct fold_memory *memory)
{
    known_hashes_forget(&memory->hashes);
    known_sketches_forget(&memory->sketches);
}

void fold_memory_forget(struct fold_memory *memory)
{
    fold_memory_forget_keys(memory);
    known_users_forget_all(&memory->users);
}

void fold_memory_release(struct fold_memory *memory)
{
    known_users_release(&memory->users);
    known_hashes_release(&memory->hashes);
    known_sketches_release(&memory->sketches);
}

void shared_memory_init(struct shared_memory *shared, unsigned n_partitions)
{
    known_visitors_init(&shared->visitors);
    known_counts_init(&shared->counts, n_partitions);
}

void shared_memory_forget(struct shared_memory *shared)
{
    known_visitors_forget(&shared->visitors);
    known_counts_release(&shared->counts);
}

void shared_memory_release(struct shared_memory *shared)
{
    known_visitors_release(&shared->visitors);
    known_counts_release(&shared->counts);
}
