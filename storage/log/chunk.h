/* chunk.h - the events of one request as bytes: what the log keeps of them.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 *
 * A request is kept in the log before its events are counted, so that it can be acknowledged by
 * one short command.  Whoever counts it later, perhaps another process, makes the events again from
 * these bytes.  No address, no user agent and no anonymous id is among them: visitors without a
 * name, and addresses, are hashed before (schema/identity.h).
 *
 *     chunk    number of events, then the events
 *     event    flags
 *              time: seconds after the event before (the first one: after 1970), zigzag
 *              CHUNK_SITE     length and bytes; else the site of the event before
 *              CHUNK_PAGE     length and bytes, of a page or a named event (job/counted_name.h);
 *                             else the number of one that came before in the chunk, from 0
 *              CHUNK_NO_PAGE  neither of them; never with CHUNK_PAGE
 *              CHUNK_USER     length and bytes
 *              CHUNK_VISITOR  16 bytes; else the visitor, if there is one, is the user
 *              CHUNK_ADDRESS  8 bytes
 *              CHUNK_ACTIONS  how many (1 byte); each: length and bytes
 *              CHUNK_VALUES   how many (1 byte); each: the number of a value of the chunk, from 0.
 *                             The next number that was not there before is a new value: its name
 *                             (job/counted_name.h) follows, twice its length, and one more where
 *                             visitors count, and bytes
 *              CHUNK_FIRST    the request asks which actions were first (job/first_job.h): the
 *                             number of the event in its request; before it, in the first such
 *                             event of the chunk, 16 bytes: the request's ticket
 *
 * Numbers are LEB128: seven bits a byte, the lowest first, the highest bit set in all but the last.
 * Most single events take 30 to 60 bytes, events of an array some 25.  Values add some 60 bytes to
 * a single event, and a byte each to an event of an array.  An entry keeps them packed (packed.h).
 */
#ifndef STORAGE_LOG_CHUNK_H
#define STORAGE_LOG_CHUNK_H

#include "storage/base/arena.h"
#include "storage/base/buffer.h"
#include "storage/base/compiler.h"
#include "storage/job/config.h"
#include "storage/job/event.h"
#include "storage/job/first_job.h"
#include "storage/schema/identity.h"

/* What follows in an event: members that the event has, or that differ from the event before. */
enum chunk_flag {
    CHUNK_SITE = 1,
    CHUNK_PAGE = 2,
    CHUNK_USER = 4,
    CHUNK_VISITOR = 8,
    CHUNK_ADDRESS = 16,
    CHUNK_ACTIONS = 32,
    CHUNK_VALUES = 64,
    CHUNK_NO_PAGE = 128, /* the flags from here on are rare */
    CHUNK_FIRST = 256,
};
#define CHUNK_FLAGS 511u

/* Append the chunk of @n validated events to @out.  @ticket: that of a request which asks which
 * actions were first; else NULL.  False: out of memory; @out is then as it was. */
bool chunk_write(struct buffer *out, const struct event *events, size_t n,
    const struct identity_keys *keys, const struct key_digest *ticket) MUST_CHECK;

/* An event as it comes out of a chunk.  Slices point into the chunk. */
struct chunk_event {
    int64_t at_s;
    struct slice site, page;     /* page: see job/event.h */
    struct slice user;           /* empty: none */
    const struct slice *actions; /* n_actions of them, owned by the reader, until the next event */
    uint8_t n_actions;
    uint8_t n_values;
    const uint32_t *values; /* n_values numbers of reader->values, until the next event */
    bool has_visitor, has_address;
    struct visitor_id visitor; /* if has_visitor; else the visitor is the user */
    struct address_id address; /* if has_address */
    const uint8_t *ticket;     /* 16 bytes in the chunk; NULL: nobody asks about this event */
    uint32_t index;            /* with a ticket: event->index */
};

/* A value of the chunk at hand. */
struct chunk_value {
    struct slice name; /* in the chunk: see job/counted_name.h */
    bool with_visitors;
    uint32_t id; /* for the owner of the reader: UINT32_MAX at first */
};

/* Reads the chunks that lie one behind the other in some bytes. */
struct chunk_reader {
    struct slice left;
    uint64_t n_left;          /* events of the chunk at hand */
    struct chunk_event event; /* the event that was read last */
    struct slice *pages;      /* owned array: pages of the chunk at hand, by number */
    size_t n_pages, pages_capacity;
    struct chunk_value *values; /* owned array: values of the chunk at hand, by number */
    size_t n_values, values_capacity;
    uint32_t numbers[EVENT_VALUES_MAX];      /* event.values */
    struct slice actions[EVENT_ACTIONS_MAX]; /* event.actions */
    const uint8_t *ticket; /* the ticket of the chunk at hand; NULL: none so far */
    bool failed;           /* the bytes are no chunks, or memory is out */
    bool no_memory;        /* memory is out */
};

/* @bytes live until the reader is released. */
void chunk_reader_init(struct chunk_reader *reader, struct slice bytes);
void chunk_reader_release(struct chunk_reader *reader);

/* Begin the next chunk.  False: there is none, or reader->failed. */
bool chunk_next(struct chunk_reader *reader) MUST_CHECK;

/* The next event of the chunk, in reader->event.  False: there is none, or reader->failed. */
bool chunk_next_event(struct chunk_reader *reader) MUST_CHECK;

#endif
