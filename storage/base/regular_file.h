/* regular_file.h - opens a file that can be read as often as one likes.
 *
 * Layer: storage, thread-safe.
 *
 * A pipe or a FIFO cannot be read again: its text is there once.  The second reader finds nothing,
 * or waits for a writer for ever.
 */
#ifndef STORAGE_BASE_REGULAR_FILE_H
#define STORAGE_BASE_REGULAR_FILE_H

#include "storage/base/compiler.h"

/* Open the file at @path for reading.  Never waits.  The result is a descriptor, to be closed by
 * the caller; -1: *ret_error says why, a text that lasts until the thread's next error, and so does
 * errno, which is EISDIR where the file is no regular one. */
int regular_file_open(const char *path, const char **ret_error) MUST_CHECK;

#endif
