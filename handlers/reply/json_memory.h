/* json_memory.h - did the JSON of an answer get all the memory that it asked for?
 *
 * Layer: handlers.  Thread safety: json_memory_watch() comes before there are other threads; the
 * note is each thread's own.
 *
 * An object is put together by many calls of json_object_set_new() and json_array_append_new().  If
 * one of these gets no memory the object lacks a member, and nothing says so.  Therefore jansson's
 * allocator notes on the thread that it failed.  reply_json() makes a 503 of an answer that may not
 * be whole.
 */
#ifndef HANDLERS_REPLY_JSON_MEMORY_H
#define HANDLERS_REPLY_JSON_MEMORY_H

#include <stdbool.h>

#include "storage/base/compiler.h"

/* Give jansson the allocator that notes.  Called once, before jansson is used.  Without this call
 * nothing is noted. */
void json_memory_watch(void);

/* A handler begins, or goes on, on this thread.  @failed is what was noted for its exchange so far.
 * It replaces the note of the thread, which is about another exchange. */
void json_memory_begin(bool failed);

/* Was jansson refused memory on this thread since json_memory_begin(), or for this exchange before?
 */
bool json_memory_failed(void) MUST_CHECK;

#endif
