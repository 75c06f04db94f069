/* loader.h - what is gathered while the options are loaded.
 *
 * Layer: service, private to options.c (flags, environment, precedence, what must go together) and
 * options_file.c (the configuration file).
 *
 * Ownership: the loader borrows everything; texts that are set belong to the options.  Thread
 * safety: it lives within one call of options_load().
 */
#ifndef SERVICE_OPTIONS_LOADER_H
#define SERVICE_OPTIONS_LOADER_H

#include "service/options/options.h"
#include "storage/base/slice.h"

#define LOADER_SHOWN_MAX 200 /* bytes of a value in an error text */
#define LOADER_NONE      SIZE_MAX

/* What is gathered before anything is set: the file's name may stand in any of them. */
struct loader {
    struct options *options;
    const char *flags[OPTIONS_MAX];       /* borrowed; NULL: not given */
    const char *environment[OPTIONS_MAX]; /* borrowed */
    unsigned lines[OPTIONS_MAX];          /* of the file; 0: not given */
    const char *path;                     /* the file, NULL: none */
    char *error;
};

/* Write the error.  Returns false. */
__attribute__((format(printf, 2, 3))) bool loader_fail(
    const struct loader *loader, const char *format, ...);

/* The index of the option in option_table, or LOADER_NONE. */
size_t loader_find(struct slice name);

/* Check @text, from @source, and set option @at to it.  False: the error says why. */
bool loader_set(struct loader *loader, size_t at, const char *text, enum option_source source);

/* options_file.c's: set what stands in the file that the flags or the environment name, if any. */
bool loader_read_file(struct loader *loader);

#endif
