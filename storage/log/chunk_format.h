/* chunk_format.h - what stands in front of each event of a chunk.
 *
 * Layer: storage, private to chunk_write.c and chunk_read.c.  chunk.h shows a whole chunk.
 */
#ifndef STORAGE_LOG_CHUNK_FORMAT_H
#define STORAGE_LOG_CHUNK_FORMAT_H

/* What an event has, or has of its own and not of the event before. */
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

#endif
