/* record.h - what Redis remembers of an Idempotency-Key: who used it, for which body, with which
 * answer.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 *     16 hex digits   the log of the entry that the request is in
 *     16 hex digits   the entry's number
 *      4 hex digits   the request's place among those with a key in the entry
 *     16 bytes        digest of the body
 *     the rest        the answer
 *
 * Log, number and place name one attempt: by them a writer knows its own record again when an
 * answer was lost.  A record takes 52 bytes and the answer.
 */
#ifndef STORAGE_LOG_RECORD_H
#define STORAGE_LOG_RECORD_H

#include "storage/job/request_key.h"
#include "storage/log/entry.h"

/* 24 hours, and an hour more for clocks that go apart.  The record of a request that asks which
 * actions were first lives for FIRST_NOTE_KEYED_MS. */
#define RECORD_TTL_MS INT64_C(90000000)

/* Append the record of request @i of @entry, as a word of a command. */
void record_put(struct buffer *out, const struct log_entry *entry, size_t i);

/* Whose is @record?  Empty: that of request @i of @entry, just written. */
enum key_outcome record_judge(struct slice record, const struct log_entry *entry, size_t i);

/* The same for somebody who has not written: KEY_FREE for an empty one. */
enum key_outcome record_look(struct slice record, const struct key_digest *body);

/* Write the outcome, and a copy of the answer for KEY_REPLAY.  False: out of memory. */
bool record_tell(struct slice record, enum key_outcome outcome, struct request_key *ret) MUST_CHECK;

#endif
