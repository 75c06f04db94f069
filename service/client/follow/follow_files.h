/* follow_files.h - the files of an access log that is followed: found, held open, and watched.
 *
 * Layer: service/client.  Blocking.  Not thread-safe.
 *
 * A file stays open while it may grow, whatever its name becomes: a writer goes on with a renamed
 * file until it is told to open the log again.  follow_plan.h decides which files those are.
 */
#ifndef SERVICE_CLIENT_FOLLOW_FOLLOW_FILES_H
#define SERVICE_CLIENT_FOLLOW_FOLLOW_FILES_H

#include "service/client/follow/follow_open.h"
#include "service/client/follow/follow_plan.h"
#include "service/client/import_report.h"
#include "storage/base/compiler.h"

struct follow_files {
    const char *path; /* borrowed, like the next two */
    struct follow_state *state;
    struct import_report *report;
    bool is_changed; /* the state was changed, and is not saved yet */

    /* Fields below are the module's own. */
    struct follow_open open[FOLLOW_FILES]; /* by index of the state's files */
    bool must_look;                        /* the last look could not do all: look again */
    bool is_moving;                        /* a file was renamed during the last look */
    bool has_looked;
    uint64_t looked_inode; /* the log's at the last look; 0: there was no log */
    int64_t looked_ms;     /* when that look was, CLOCK_MONOTONIC */
    unsigned said;         /* bits of messages that need not be repeated */
    struct follow_listing listing;
    struct follow_plan plan;
};

/* All arguments outlive the result.  The first follow_files_watch() opens the state's files.  NULL:
 * out of memory. */
struct follow_files *follow_files_new(
    const char *path, struct follow_state *state, struct import_report *report) MUST_CHECK;
void follow_files_free(struct follow_files *files); /* NULL is fine */

/* Look for growth and rotation.  @is_first: nothing was ever remembered.  Messages say which bytes
 * are missing, except of the file that has the state's piece: there `is_gone` is set, and the
 * caller calls follow_files_give_up() later.  False: a message says why the path can never be
 * followed. */
bool follow_files_watch(struct follow_files *files, bool is_first, int64_t now_ms) MUST_CHECK;

/* The first file with bytes that must be read now, because they have waited for @patience_ms, or
 * are many.  *ret_end says how the file's end is to be taken.  FOLLOW_NONE: there is no such file.
 * Lines are read in the order of their files, because visits count in the order of arrival.  So a
 * file waits until those before it are read, and while one before it is being renamed, or was seen
 * only empty until now. */
size_t follow_files_due(const struct follow_files *files, int64_t now_ms, int64_t patience_ms,
    enum follow_end *ret_end) MUST_CHECK;

/* File @index was read up to @cut's end, which has become its place. */
void follow_files_read(struct follow_files *files, size_t index, const struct follow_cut *cut);

/* If there are many files, forget those that are done, the oldest first, except files that must
 * never be read.  True: indices have changed. */
bool follow_files_forget(struct follow_files *files);

/* File @index is gone, and the state has no piece of the file any more: say what is missing. */
void follow_files_give_up(struct follow_files *files, size_t index);

#endif
