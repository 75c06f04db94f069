/* options.h - load the options of `tallyd serve` from four sources, and print them.
 *
 * Layer: service.  option_table.c is the one list of all options.  Flags, environment,
 * configuration file, defaults, --help and `tallyd config` are made from that list.
 *
 *   precedence   source
 *   1            a flag: --name VALUE or --name=VALUE; of several, the last
 *   2            the environment: TALLYD_<NAME>, with underscores for dashes
 *   3            the configuration file: a line `name = value`; the same name twice is an error
 *   4            the default
 *
 * Every value of every source is checked, also a value that another source overrides.  In the file,
 * blank lines and lines that begin with # are passed over.  A # behind a value belongs to the
 * value.
 *
 * Thread safety: load and release from one thread; printing only reads.
 */
#ifndef SERVICE_OPTIONS_OPTIONS_H
#define SERVICE_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "service/options/values.h"
#include "storage/base/compiler.h"

/* Fill @options from the @argc flags at @argv, from @environment, and from the file that one of
 * them names.  @argv begins behind the names of program and command, and the caller has looked for
 * --help.  @environment is like environ.  @again: the process has loaded its options before, so the
 * file must be a regular one: a pipe cannot be read again.  The caller releases what was loaded.
 *
 * False: nothing is owned, and *ret_error, OPTIONS_ERROR bytes, names the option, the value, where
 * the value stands, and what is allowed. */
bool options_load(struct options *options, int argc, char *const *argv, char *const *environment,
    bool again, char *ret_error) MUST_CHECK;

/* Free what was loaded.  A zeroed or released struct is fine. */
void options_release(struct options *options);

/* Print the part of --help about options.  Errors stay in @out's error flag. */
void options_print_help(FILE *out);

/* Print every option with value, unit, default and origin, as a table with a head line.  Passwords
 * are masked.  Errors stay in @out's error flag. */
void options_print(const struct options *options, FILE *out);

#endif
