/* json_memory.h - did the JSON of an answer get all the memory that it asked for?
 *
 * Layer: handlers.  An object that is put together by a hundred json_object_set_new() and
 * json_array_append_new() lacks a member, and says nothing, if one of them got no memory.  So
 * jansson's allocator notes on the thread that it failed, and reply_json() makes a 503 of an answer
 * that may not be whole.
 *
 * Thread safety: watch before there are other threads; the note is each thread's own.
 */
#ifndef HANDLERS_REPLY_JSON_MEMORY_H
#define HANDLERS_REPLY_JSON_MEMORY_H

#include <stdbool.h>

/* Have jansson allocate so; once, before it is used.  Without, nothing is ever noted. */
void json_memory_watch(void);

/* A handler begins on this thread: what was noted before is of no interest, but that of its own
 * exchange, @failed. */
void json_memory_begin(bool failed);

/* Has jansson been refused memory on this thread since? */
bool json_memory_failed(void);

#endif
