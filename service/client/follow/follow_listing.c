#include "service/client/follow/follow_listing.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "service/client/line_reader.h"

#define INFLATE_BYTES 65536
#define TICK_NS       10000000 /* as long as a tick of the system's clock, or longer */
#define LISTINGS      4        /* at most: other programs may write to the directory all the time */

/* The length of what a rotation puts into a name, at the beginning of @text: ".1", "-20261122",
 * ".2026-11-22_10:00".  0: something else stands there. */
static size_t mark_length(const char *text)
{
    size_t n = strspn(text, "0123456789.-_:TZ");
    bool has_digit = false;
    for (size_t i = 0; i < n; i++) {
        has_digit = has_digit || isdigit((unsigned char)text[i]);
    }
    if (n == 0 || !has_digit || strchr(".-_", text[0]) == NULL) {
        return 0;
    }
    /* The last '.' belongs to what follows. */
    return text[n] != '\0' && text[n - 1] == '.' ? n - 1 : n;
}

static bool is_packed_suffix(const char *text)
{
    static const char *const suffixes[] = {"", ".gz", ".zst", ".xz", ".bz2", ".lz4"};
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        if (strcmp(text, suffixes[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool follow_is_rotated_name(const char *base, const char *name)
{
    size_t n = strlen(base);
    if (strncmp(name, base, n) == 0) {
        size_t mark = mark_length(name + n);
        if (strcmp(name + n, ".old") == 0 || (mark > 0 && is_packed_suffix(name + n + mark))) {
            return true;
        }
    }
    const char *extension = strrchr(base, '.');
    if (extension == NULL || extension == base) {
        return false;
    }
    size_t stem = (size_t)(extension - base), mark;
    if (strncmp(name, base, stem) != 0 || (mark = mark_length(name + stem)) == 0) {
        return false;
    }
    const char *rest = name + stem + mark;
    size_t m = strlen(extension);
    return strncmp(rest, extension, m) == 0 && is_packed_suffix(rest + m);
}

static enum follow_kind kind_of(const char *head, size_t n)
{
    if (n >= 2 && memcmp(head, "\x1f\x8b", 2) == 0) {
        return FOLLOW_GZIP;
    }
    return line_reader_packed(head, n) != NULL ? FOLLOW_PACKED : FOLLOW_PLAIN;
}

/* Put the decompressed head of @fd, which is closed, into @entry. */
static void read_gzip_head(int fd, struct follow_entry *entry)
{
    gzFile file = gzdopen(fd, "rb");
    if (file == NULL) {
        (void)close(fd);
        entry->head_n = 0;
        return;
    }
    int n = gzread(file, entry->head, sizeof(entry->head));
    entry->head_n = n > 0 ? (size_t)n : 0;
    (void)gzclose_r(file);
}

int follow_entry_open(const struct follow_listing *listing, const struct follow_entry *entry)
{
    char path[PATH_MAX + 256];
    (void)snprintf(path, sizeof(path), "%s%s", listing->directory, entry->name);
    /* O_NONBLOCK: if a pipe has taken the file's place, do not wait for its writer. */
    return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

int64_t follow_entry_unpacked_size(
    const struct follow_listing *listing, const struct follow_entry *entry)
{
    int fd = follow_entry_open(listing, entry);
    gzFile file = fd < 0 ? NULL : gzdopen(fd, "rb");
    if (file == NULL) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return -1;
    }
    char bytes[INFLATE_BYTES];
    int64_t size = 0;
    int n;
    while ((n = gzread(file, bytes, sizeof(bytes))) > 0) {
        size += n;
    }
    int code = Z_OK;
    (void)gzerror(file, &code);
    (void)gzclose_r(file);
    return n < 0 || (code != Z_OK && code != Z_STREAM_END) ? -1 : size;
}

bool follow_says_absent(int number)
{
    return number == ENOENT || number == ENOTDIR || number == ELOOP;
}

/* Fill in @entry, whose name is set, without looking at its bytes.  False: there is no such file,
 * or no regular one, or listing->error says why that is not known. */
static bool look_at(struct follow_listing *listing, struct follow_entry *entry)
{
    char path[PATH_MAX + 256];
    struct stat about;
    (void)snprintf(path, sizeof(path), "%s%s", listing->directory, entry->name);
    if (stat(path, &about) != 0) {
        /* A link beside the log may lead to a directory that can never be looked into. */
        bool is_absent = follow_says_absent(errno) || (errno == EACCES && !entry->is_log);
        listing->error = is_absent ? listing->error : errno;
        return false;
    }
    if (!S_ISREG(about.st_mode)) {
        return false;
    }
    entry->inode = (uint64_t)about.st_ino;
    entry->size = (int64_t)about.st_size;
    entry->mtime_ns = follow_time_ns(about.st_mtim);
    return true;
}

static void read_head(const struct follow_listing *listing, struct follow_entry *entry)
{
    int fd = follow_entry_open(listing, entry);
    ssize_t n = fd < 0 ? -1 : pread(fd, entry->head, sizeof(entry->head), 0);
    entry->head_n = n > 0 ? (size_t)n : 0;
    entry->error = n < 0 ? errno : 0;
    entry->kind = n < 0 ? FOLLOW_UNREADABLE : kind_of(entry->head, entry->head_n);
    if (entry->kind == FOLLOW_GZIP) {
        read_gzip_head(fd, entry);
    } else if (fd >= 0) {
        (void)close(fd);
    }
}

static bool knows_inode(const struct follow_state *state, uint64_t inode)
{
    for (size_t i = 0; i < state->n; i++) {
        if (state->files[i].inode == inode) {
            return true;
        }
    }
    return false;
}

/* The place of @entry in the listing.  Where there is no room, files that are known stay, and of
 * the others those that were written last.  NULL: there is no place for @entry. */
static struct follow_entry *place_for(struct follow_listing *listing,
    const struct follow_state *state, const struct follow_entry *entry)
{
    if (listing->n < FOLLOW_ENTRIES) {
        return &listing->entries[listing->n++];
    }
    struct follow_entry *oldest = NULL;
    listing->is_complete = false;
    for (size_t i = 0; i < listing->n; i++) {
        struct follow_entry *at = &listing->entries[i];
        if (!at->is_log && (oldest == NULL || at->mtime_ns < oldest->mtime_ns) &&
            !knows_inode(state, at->inode)) {
            oldest = at;
        }
    }
    bool stays =
        oldest != NULL && !knows_inode(state, entry->inode) && entry->mtime_ns <= oldest->mtime_ns;
    return stays ? NULL : oldest;
}

static void add(struct follow_listing *listing, const struct follow_state *state, const char *name,
    bool is_log, bool is_rotated)
{
    struct follow_entry entry = {.is_log = is_log, .has_rotated_name = is_rotated};
    (void)snprintf(entry.name, sizeof(entry.name), "%s", name);
    /* The log may have a second name. */
    if (!look_at(listing, &entry) || (listing->n > 0 && listing->entries[0].is_log &&
                                         listing->entries[0].inode == entry.inode)) {
        return;
    }
    struct follow_entry *place = place_for(listing, state, &entry);
    if (place != NULL) { /* only these are opened: there may be thousands of others */
        *place = entry;
        read_head(listing, place);
    }
}

/* Can @path be followed, now or once it exists?  False: @ret_error says why not. */
static bool may_follow(const char *path, char *ret_error, size_t error_n)
{
    struct stat about;
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) {
        (void)snprintf(ret_error, error_n, "cannot follow %s: %s", path,
            S_ISDIR(about.st_mode) ? "is a directory" : "is no regular file");
        return false;
    }
    return true;
}

bool follow_may_have_moved(struct timespec before, struct timespec after, struct timespec began)
{
    int64_t age_ns = follow_time_ns(began) - follow_time_ns(before);
    return follow_time_ns(after) != follow_time_ns(before) ||
           (age_ns > -TICK_NS && age_ns < TICK_NS);
}

/* Add the files beside the log.  False: a file may have been passed over, because it was renamed
 * meanwhile. */
static bool list_others(struct follow_listing *listing, const struct follow_state *state,
    const char *base, const char *name)
{
    struct stat before;
    struct stat after;
    struct timespec began;
    DIR *directory = opendir(listing->directory);
    const struct dirent *found;
    if (directory == NULL || clock_gettime(CLOCK_REALTIME, &began) != 0 ||
        fstat(dirfd(directory), &before) != 0) {
        listing->error = errno;
        if (directory != NULL) {
            (void)closedir(directory);
        }
        return true;
    }
    while (errno = 0, (found = readdir(directory)) != NULL) {
        bool is_rotated = follow_is_rotated_name(base, found->d_name) ||
                          follow_is_rotated_name(name, found->d_name);
        if (strcmp(found->d_name, name) != 0 &&
            (is_rotated || knows_inode(state, (uint64_t)found->d_ino))) {
            add(listing, state, found->d_name, false, is_rotated);
        }
    }
    listing->error = errno != 0 ? errno : listing->error;
    bool is_sound = fstat(dirfd(directory), &after) != 0 ||
                    !follow_may_have_moved(before.st_mtim, after.st_mtim, began);
    (void)closedir(directory);
    return is_sound;
}

bool follow_list(const char *path, const struct follow_state *state, struct follow_listing *ret,
    char *ret_error, size_t error_n)
{
    char real[PATH_MAX];
    bool is_sound = false;
    int unresolved = 0;
    if (!may_follow(path, ret_error, error_n)) {
        return false;
    }
    if (realpath(path, real) == NULL) {
        unresolved = follow_says_absent(errno) ? 0 : errno;
        (void)snprintf(real, sizeof(real), "%s", path);
    }
    const char *given = strrchr(path, '/'), *slash = strrchr(real, '/');
    const char *name = slash == NULL ? real : slash + 1;
    (void)snprintf(ret->directory, sizeof(ret->directory), "%.*s",
        slash == NULL ? 2 : (int)(slash - real) + 1, slash == NULL ? "./" : real);
    for (unsigned i = 0; i < LISTINGS && !is_sound; i++) {
        if (i > 0) {
            (void)nanosleep(&(struct timespec){.tv_nsec = TICK_NS}, NULL);
        }
        ret->n = 0;
        ret->error = unresolved;
        ret->is_complete = true;
        add(ret, state, name, true, false);
        is_sound = list_others(ret, state, given == NULL ? path : given + 1, name);
        ret->is_complete = ret->is_complete && ret->error == 0;
    }
    return true;
}
