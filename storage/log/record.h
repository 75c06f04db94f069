/* record.h - what Redis remembers of an Idempotency-Key: who used it, for which body, with which
 * answer.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 *
 *     16 hex digits   the log of the entry that the request is in
 *     16 hex digits   the entry's number
 *      4 hex digits   the request's place among those with a key in the entry
 *     16 bytes        digest of the body
 *     the rest        the answer
 *
 * Log, number and place name one attempt, by which a writer knows its own record again when an
 * answer was lost.  A record takes 52 bytes and the answer.
 */
#ifndef STORAGE_LOG_RECORD_H
#define STORAGE_LOG_RECORD_H

#include "storage/job/request_key.h"
#include "storage/log/entry.h"

/* 24 hours, and an hour more for clocks that go apart.  The record of a request that asks which
 * actions were first lives for FIRST_NOTE_KEYED_MS. */
#define RECORD_TTL_MS INT64_C(90000000)

/* Append to @out, as a word of a command, the record of request @i with a key of @entry.  If memory
 * is out, out->failed is set. */
void record_put(struct buffer *out, const struct log_entry *entry, size_t i);

/* What does @record, which append.lua found, say of request @i with a key of @entry?  An empty one
 * says that there was no record, and that of the request was written: KEY_MINE. */
enum key_outcome record_judge(struct slice record, const struct log_entry *entry, size_t i);

/* What does @record say of a request with @body that is not written yet?  An empty one: KEY_FREE.
 */
enum key_outcome record_look(struct slice record, const struct key_digest *body);

/* Put @outcome into @ret, and with KEY_REPLAY a copy of the record's answer, which @ret then owns.
 * False: out of memory. */
bool record_tell(struct slice record, enum key_outcome outcome, struct request_key *ret) MUST_CHECK;

#endif
