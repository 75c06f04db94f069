/* merge_writer.h - the commands of a bucket, while they are written.
 *
 * Layer: storage, private to merge_counts_write.c (counters and expiries) and
 * merge_sketches_write.c.
 */
#ifndef STORAGE_MERGE_MERGE_WRITER_H
#define STORAGE_MERGE_MERGE_WRITER_H

#include "storage/merge/merge_counts.h"
#include "storage/merge/merge_counts_state.h"

/* A bucket as it is written. */
struct bucket_writer {
    struct merge_counts *merge;
    struct site_bucket *bucket;
    const char *tag;
    const struct known_keys *known;
    uint64_t state_hash;
    struct buffer *out;
    size_t n; /* commands so far, of all buckets */
};

/* Have @key expire with its bucket.  A key that has an expiry keeps that: see retention_keep_s().
 */
void merge_write_expiry(struct bucket_writer *w, const struct key *key);

/* Note that @key gets its expiry, for merge_counts_learn().  False: that it has one was known. */
bool merge_note_expiry(struct bucket_writer *w, const struct key *key);

/* Append what adds elements to the sketches of the bucket's pages.  New sketches may be put aside.
 */
void merge_write_sketches(struct bucket_writer *w);

/* Append the MSET of the new sketches, of all buckets, that were put aside. */
void merge_write_fresh(struct bucket_writer *w);

#endif
