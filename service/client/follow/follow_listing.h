/* follow_listing.h - what lies in the directory of an access log: the log, and its rotated files.
 *
 * Layer: service/client.  Blocking.  Not thread-safe.
 */
#ifndef SERVICE_CLIENT_FOLLOW_FOLLOW_LISTING_H
#define SERVICE_CLIENT_FOLLOW_FOLLOW_LISTING_H

#include <limits.h>
#include <time.h>

#include "service/client/follow/follow_state.h"
#include "storage/base/compiler.h"

#define FOLLOW_ENTRIES 256

enum follow_kind {
    FOLLOW_PLAIN,
    FOLLOW_GZIP,
    FOLLOW_PACKED,     /* compressed by another program: zstd, xz, bzip2, lz4 */
    FOLLOW_UNREADABLE, /* `error` says why; mostly for want of a permission */
};

struct follow_entry {
    char name[256]; /* the name in the listing's directory */
    bool is_log;    /* it lies at the log's own path; false: a rotated file, by name or by inode */
    bool has_rotated_name;
    enum follow_kind kind;
    int error; /* the errno of FOLLOW_UNREADABLE; else 0 */
    uint64_t inode;
    int64_t size, mtime_ns; /* of the file as stored, compressed or not */
    size_t head_n;
    char head[FOLLOW_HEAD]; /* the first bytes, decompressed if the kind is FOLLOW_GZIP */
};

struct follow_listing {
    char directory[PATH_MAX]; /* with a '/' at the end */
    int error;                /* the errno by which not all files could be seen; 0: all could */
    bool is_complete;         /* all files could be seen, and had room */
    size_t n;
    struct follow_entry entries[FOLLOW_ENTRIES];
};

/* Is @name that of a rotated file of the log @base?  A rotation puts a number or a time behind
 * @base, or before its extension: access.log.1, access.log-20261122.gz, access.1.log,
 * access-2026-11-22.log.  access.log.old is one, too. */
bool follow_is_rotated_name(const char *base, const char *name);

/* Can a rename have gone unseen while a directory was read?  The directory's time was @before when
 * the reading @began, or a moment later, and @after at the end.  That time is as fine as a tick of
 * the clock: a rename in the tick of an earlier change leaves the time as it is. */
bool follow_may_have_moved(struct timespec before, struct timespec after, struct timespec began);

/* Does @number, an errno, say that there is no file?  Other errors leave that open.  This matters,
 * because a file that is taken for deleted is given up, and what has its name later is counted from
 * the beginning. */
bool follow_says_absent(int number);

/* Look at the log @path and at the files beside it that have a rotated log's name or one of the
 * inodes in @state.  A symbolic link is followed, and its target's directory is looked at.  While
 * files are renamed the directory is read again, some 10 ms later, up to three times.
 * False: *ret_error, @error_n bytes, says why @path can never be followed. */
bool follow_list(const char *path, const struct follow_state *state, struct follow_listing *ret,
    char *ret_error, size_t error_n) MUST_CHECK;

/* Open @entry for reading.  The caller closes the descriptor.  -1: errno says why. */
int follow_entry_open(
    const struct follow_listing *listing, const struct follow_entry *entry) MUST_CHECK;

/* The bytes of the gzipped file @entry once decompressed; -1 if its end cannot be read.  The whole
 * file is read. */
int64_t follow_entry_unpacked_size(
    const struct follow_listing *listing, const struct follow_entry *entry);

#endif
