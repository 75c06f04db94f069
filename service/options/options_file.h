/* options_file.h - the configuration file: lines `name = value`.
 *
 * Layer: service, private to options.c.  options.h says what such a file looks like.
 * Thread safety: within one call of options_load().
 */
#ifndef SERVICE_OPTIONS_OPTIONS_FILE_H
#define SERVICE_OPTIONS_OPTIONS_FILE_H

#include "service/options/loader.h"

/* Set what stands in the file that the flags or the environment name.  Without such a file nothing
 * is done.  False: the loader's error names the line. */
bool options_file_read(struct loader *loader) MUST_CHECK;

#endif
