/* options.h - what tallyd can be told, from four sources.
 *
 * Layer: service.  The one list of options is option_table.c; flags, environment, configuration
 * file, defaults, --help and `tallyd config` all come from it.
 * Precedence: flag, environment (TALLYD_<NAME>, dashes as underscores), file, default.  Every value
 * of every source is checked, also one that another source overrides.  A flag given twice: the last
 * holds; a name twice in the file is an error. In the file: `name = value`, blank lines, lines that
 * begin with #; a # behind a value belongs to it.
 *
 * Thread safety: a loaded struct is read-only; load and release from one thread.
 */
#ifndef SERVICE_OPTIONS_OPTIONS_H
#define SERVICE_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "service/options/values.h"
#include "storage/base/compiler.h"

/* Fill @options from @argc flags at @argv (neither program nor command name is among them; --help
 * is the caller's), from @environment (as environ) and the file that they name, if any.
 * False: @ret_error (OPTIONS_ERROR bytes) names the option, the value, where it stands and what is
 * allowed, and nothing is owned; exit with 2.  Release what was loaded. */
bool options_load(struct options *options, int argc, char *const *argv, char *const *environment,
    char *ret_error) MUST_CHECK;

/* Harmless on a zeroed or released struct. */
void options_release(struct options *options);

/* The options part of --help.  Errors stay in @out's error flag. */
void options_print_help(FILE *out);

/* Every option with value, unit, default and origin, as a table with a head line.  Passwords are
 * masked.  Errors stay in @out's error flag. */
void options_print(const struct options *options, FILE *out);

#endif
