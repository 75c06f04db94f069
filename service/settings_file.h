/* settings_file.h - opens a file of settings: options or tokens.
 *
 * Layer: service, thread-safe.
 */
#ifndef SERVICE_SETTINGS_FILE_H
#define SERVICE_SETTINGS_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "storage/base/compiler.h"

/* Open the settings at @path for reading.  The first time that may be a pipe, which is waited for;
 * @again, when the process has read settings from there before, only a regular file.  NULL:
 * *ret_error says why, a text that lasts until the thread's next error. */
FILE *settings_file_open(const char *path, bool again, const char **ret_error) MUST_CHECK;

#endif
