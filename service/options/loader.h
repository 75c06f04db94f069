/* loader.h - what is gathered while the options are loaded, and how one option is set.
 *
 * Layer: service, private to options.c and options_file.c.  options.c reads the flags and the
 * environment, and options_file.c reads the configuration file; both set options and write errors
 * through these functions.
 *
 * Ownership: the loader borrows everything.  A text that is set is copied, and the copy belongs to
 * the options.
 * Thread safety: a loader lives within one call of options_load().
 */
#ifndef SERVICE_OPTIONS_LOADER_H
#define SERVICE_OPTIONS_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/options/values.h"
#include "storage/base/compiler.h"
#include "storage/base/slice.h"

#define LOADER_SHOWN_MAX 200 /* bytes of a value in an error text */
#define LOADER_NONE      SIZE_MAX
#define LOADER_PREFIX    "TALLYD_" /* in the environment an option's name begins so */

/* Flags and environment are gathered before any option is set, because either may name the file. */
struct loader {
    struct options *options;
    const char *flags[OPTIONS_MAX];       /* borrowed; NULL: not given */
    const char *environment[OPTIONS_MAX]; /* borrowed */
    unsigned lines[OPTIONS_MAX];          /* an option's line in the file; 0: it has none */
    const char *path;                     /* the file's; NULL: there is no file */
    bool again;                           /* the process has read the file before */
    char *error;                          /* borrowed, OPTIONS_ERROR bytes */
};

/* Write the error.  Returns false, so that a caller can return the result. */
__attribute__((format(printf, 2, 3))) bool loader_fail(
    const struct loader *loader, const char *format, ...);

/* The index of the option in option_table, or LOADER_NONE. */
size_t loader_find(struct slice name);

/* Is @name, which follows LOADER_PREFIX, the environment's form of the option @option? */
bool loader_is_variable(const char *option, struct slice name);

/* Write where the value of option @at stands, for an error: --name, TALLYD_NAME, file:line: name,
 * or default of name. */
void loader_place(
    const struct loader *loader, size_t at, enum option_source source, char *text, size_t room);

/* Check @text, which is from @source, and set option @at to a copy.  False: the error says why. */
bool loader_set(
    struct loader *loader, size_t at, const char *text, enum option_source source) MUST_CHECK;

#endif
