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
    FOLLOW_PACKED,     /* by another program: zstd, xz, bzip2, lz4 */
    FOLLOW_UNREADABLE, /* mostly for want of a permission */
};

struct follow_entry {
    char name[256]; /* in the directory */
    bool is_log;    /* at the log's own path; else a rotated file, by name or by inode */
    bool has_rotated_name;
    enum follow_kind kind;
    int error; /* errno: why it is FOLLOW_UNREADABLE */
    uint64_t inode;
    int64_t size, mtime_ns; /* as stored, also of a compressed file */
    size_t head_n;
    char head[FOLLOW_HEAD]; /* the first bytes, decompressed if the kind is FOLLOW_GZIP */
};

struct follow_listing {
    char directory[PATH_MAX]; /* with a '/' at the end */
    int error;                /* errno: why not all of it could be seen; 0: it could */
    bool is_complete;         /* it could, and all of it had room */
    size_t n;
    struct follow_entry entries[FOLLOW_ENTRIES];
};

/* Is @name that of a rotated file of the log @base?  That is @base or, before its extension, a
 * number or a time: access.log.1, access.log-20261122.gz, access.1.log, access-2026-11-22.log. */
bool follow_is_rotated_name(const char *base, const char *name);

/* Can a rename have gone unseen while a directory was read?  Its time was @before when that @began,
 * or a moment later, and @after at the end.  A directory's time is as fine as a tick of the clock:
 * what is renamed in the tick of an earlier change leaves the time as it is. */
bool follow_may_have_moved(struct timespec before, struct timespec after, struct timespec began);

/* Does @number, an errno, say that there is no file?  Others leave that open.  A file that is taken
 * for deleted is given up, and what has its name later is counted from the beginning. */
bool follow_says_absent(int number);

/* Look at the log @path and at the files beside it that have a rotated log's name or one of the
 * inodes in @state.  A symbolic link is followed, and its target's directory is looked at.  While
 * files are renamed the directory is read again, some 10 ms later, up to three times.
 * False: *ret_error, @error_n bytes, says why @path cannot be followed ever. */
bool follow_list(const char *path, const struct follow_state *state, struct follow_listing *ret,
    char *ret_error, size_t error_n) MUST_CHECK;

/* Open @entry.  -1: errno says why. */
int follow_entry_open(
    const struct follow_listing *listing, const struct follow_entry *entry) MUST_CHECK;

/* The size of the gzipped file @entry when it is decompressed; -1 if its end cannot be read. */
int64_t follow_entry_unpacked_size(
    const struct follow_listing *listing, const struct follow_entry *entry);

#endif
