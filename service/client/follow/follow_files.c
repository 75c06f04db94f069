#include "service/client/follow/follow_files.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_AGAIN_MS 1000 /* between looks, while the log is absent or a look could not do all */

/* The bits of follow_files.said. */
enum said { SAID_ABSENT = 1, SAID_UNREADABLE = 2, SAID_DIRECTORY = 4 };

struct follow_files *follow_files_new(
    const char *path, struct follow_state *state, struct import_report *report)
{
    struct follow_files *files = calloc(1, sizeof(*files));
    if (files == NULL) {
        return NULL;
    }
    files->path = path;
    files->state = state;
    files->report = report;
    for (size_t i = 0; i < FOLLOW_FILES; i++) {
        files->open[i] = FOLLOW_NOT_OPEN;
    }
    return files;
}

void follow_files_free(struct follow_files *files)
{
    if (files == NULL) {
        return;
    }
    for (size_t i = 0; i < FOLLOW_FILES; i++) {
        follow_open_close(&files->open[i]);
    }
    free(files);
}

static void say_once(struct follow_files *files, enum said what, const char *verb, int number)
{
    if ((files->said & what) == 0) {
        import_report_say(files->report, "cannot %s %s: %s; trying again", verb,
            what == SAID_DIRECTORY ? files->listing.directory : files->path, strerror(number));
    }
    files->said |= what;
}

/* ---- what is missing ---- */

/* Say that the bytes of @entry behind @from are missing, and which command counts them.  A line of
 * a W3C log is nothing without the line that names its fields, so the command has that line,
 * too. */
static void say_packed(struct follow_files *files, const struct follow_entry *entry, int64_t size,
    const struct follow_place *from)
{
    const char *directory = files->listing.directory;
    char header[sizeof(files->listing.directory) + sizeof(entry->name) + 64] = "";
    if (from->header >= 0) {
        (void)snprintf(header, sizeof(header), "(zcat %s%s | tail -c +%" PRId64 " | head -n 1; ",
            directory, entry->name, from->header + 1);
    }
    if (size < 0) {
        import_report_say(files->report,
            "missing: what %s%s has behind byte %" PRId64
            ": it is compressed, and cannot be read to its end",
            directory, entry->name, from->offset);
    } else if (size > from->offset) {
        import_report_say(files->report,
            "missing: %" PRId64 " bytes of %s%s, from byte %" PRId64
            " on: only what is not compressed is followed; `%szcat %s%s | tail -c +%" PRId64
            "%s | tallyd import -` counts them, with this site, token and other options",
            size - from->offset, directory, entry->name, from->offset, header, directory,
            entry->name, from->offset + 1, from->header >= 0 ? ")" : "");
    }
}

static void say_unread(struct follow_files *files, const struct follow_entry *entry)
{
    if (entry->kind == FOLLOW_UNREADABLE) {
        import_report_say(files->report,
            "missing: %" PRId64 " bytes of %s%s: it cannot be read: %s", entry->size,
            files->listing.directory, entry->name, strerror(entry->error));
    } else if (entry->kind == FOLLOW_GZIP) {
        say_packed(files, entry, follow_entry_unpacked_size(&files->listing, entry),
            &(struct follow_place){.header = -1});
    } else {
        import_report_say(files->report,
            "missing: all of %s%s, %" PRId64
            " bytes as compressed: only what is not compressed is followed",
            files->listing.directory, entry->name, entry->size);
    }
}

void follow_files_give_up(struct follow_files *files, size_t index)
{
    struct follow_file *file = &files->state->files[index];
    size_t packed = files->plan.packed[index];
    int64_t least = file->size - file->place.offset;
    if (packed != FOLLOW_NONE) {
        const struct follow_entry *entry = &files->listing.entries[packed];
        say_packed(files, entry, follow_entry_unpacked_size(&files->listing, entry), &file->place);
    } else if (least > 0) {
        import_report_say(files->report,
            "missing: at least %" PRId64 " bytes of %s, from byte %" PRId64
            " on: the file was deleted or truncated before they were read",
            least, files->path, file->place.offset);
    } else if (files->open[index].grew_ms == 0) { /* this process has never had the file open */
        import_report_say(files->report,
            "a file of %s is not there any more: it was read up to byte %" PRId64
            "; whether more was written is not known",
            files->path, file->place.offset);
    }
    files->open[index].is_gone = false;
    file->is_done = files->is_changed = true;
    file->inode = 0; /* another file may get the inode */
}

/* ---- a look at the directory ---- */

/* File @index has another name by now: look again.  Always false, for the caller to return. */
static bool is_renamed(struct follow_files *files, size_t index)
{
    files->open[index].is_moving = files->is_moving = true;
    return false;
}

/* Open @entry for file @index.  False: try again at the next look. */
static bool open_entry(struct follow_files *files, size_t index, size_t entry, int64_t now_ms)
{
    const struct follow_entry *found = &files->listing.entries[entry];
    struct stat about;
    int fd = follow_entry_open(&files->listing, found);
    if (fd < 0 && errno == ENOENT) {
        return is_renamed(files, index);
    }
    if (fd < 0) {
        say_once(files, SAID_UNREADABLE, "open", errno);
        return false;
    }
    if (fstat(fd, &about) != 0 || (uint64_t)about.st_ino != found->inode) {
        (void)close(fd); /* another file has taken the name meanwhile */
        return is_renamed(files, index);
    }
    files->open[index] = (struct follow_open){.fd = fd, .noticed_ms = -1, .grew_ms = now_ms};
    return true;
}

/* Had @file rotated at the first look, and has it not become the log since?  The file's is_past
 * stays set as long as the file is there, as @entry. */
static bool stays_past(const struct follow_files *files, struct follow_file *file, size_t entry)
{
    bool is_there = entry != FOLLOW_NONE;
    bool is_log = is_there && files->listing.entries[entry].is_log;
    bool stays = file->is_past && !is_log;
    file->is_past = stays && (is_there || !files->listing.is_complete);
    return stays;
}

/* Find file @index, which is not open, where the plan says.  False: try again at the next look. */
static bool find_file(struct follow_files *files, size_t index, int64_t now_ms)
{
    struct follow_file *file = &files->state->files[index];
    size_t entry = files->plan.entries[index];
    files->open[index].is_moving = false;
    if (stays_past(files, file, entry)) {
        return true;
    }
    if (entry == FOLLOW_NONE) {
        if (file->is_done || files->open[index].is_gone) {
            return true;
        }
        if (files->listing.error != 0) {
            return false;
        }
        files->open[index].is_gone = true;
        if (!files->state->has_piece || files->state->piece.file != index) {
            follow_files_give_up(files, index);
        }
        return true;
    }
    const struct follow_entry *found = &files->listing.entries[entry];
    if (files->plan.is_copy[index]) {
        file->inode = found->inode;
        file->is_done = found->size <= file->place.offset;
        files->is_changed = true;
    }
    return (file->is_done && found->size <= file->place.offset) ||
           open_entry(files, index, entry, now_ms);
}

/* Remember @entry as a file.  False: try again at the next look. */
static bool add_file(struct follow_files *files, size_t entry, bool is_first, int64_t now_ms)
{
    const struct follow_entry *found = &files->listing.entries[entry];
    size_t index = files->state->n;
    if (index == FOLLOW_FILES) {
        return false;
    }
    struct follow_file *file = &files->state->files[index];
    files->open[index] = FOLLOW_NOT_OPEN;
    *file = (struct follow_file){.inode = found->inode,
        .head = follow_head_of((struct slice){found->head, found->head_n}),
        .place = {.header = -1},
        .mtime_ns = found->mtime_ns};
    randombytes_buf(file->id.bytes, sizeof(file->id.bytes));
    if (is_first && !found->is_log) {
        file->place.offset = file->size = found->size;
        file->is_done = file->is_past = true;
    } else if (!open_entry(files, index, entry, now_ms)) {
        return false;
    }
    files->state->n++;
    files->is_changed = true;
    return true;
}

static void add_files(struct follow_files *files, bool is_first, int64_t now_ms)
{
    const struct follow_plan *plan = &files->plan;
    size_t first =
        is_first && plan->n_new > FOLLOW_FILES_KEPT ? plan->n_new - FOLLOW_FILES_KEPT : 0;
    for (size_t i = first; i < plan->n_new; i++) {
        if (!add_file(files, plan->new_entries[i], is_first, now_ms)) {
            files->must_look = true;
            return; /* later files wait, so that the order is kept */
        }
    }
}

/* The log was seen only empty, and still is: take its time.  If the log was written and truncated
 * meanwhile, the look at the directory has found the copy. */
static void note_empty_log(struct follow_files *files)
{
    size_t last = files->state->n - 1;
    struct follow_file *file = &files->state->files[last];
    size_t entry = files->plan.entries[last];
    if (entry != FOLLOW_NONE && files->listing.entries[entry].is_log && file->head.n == 0) {
        file->mtime_ns = files->listing.entries[entry].mtime_ns;
    }
}

/* Can the log itself be read, now or later?  False: a message says why not. */
static bool may_read(struct follow_files *files)
{
    const struct follow_entry *first = &files->listing.entries[0];
    if (files->listing.n == 0 || !first->is_log || first->kind == FOLLOW_PLAIN) {
        return true;
    }
    if (first->kind == FOLLOW_UNREADABLE) {
        say_once(files, SAID_UNREADABLE, "read", first->error);
        files->must_look = true;
        return true;
    }
    import_report_say(files->report, "cannot follow %s: it is compressed", files->path);
    return false;
}

static bool look(struct follow_files *files, bool is_first, int64_t now_ms)
{
    char error[512];
    if (!follow_list(files->path, files->state, &files->listing, error, sizeof(error))) {
        import_report_say(files->report, "%s", error);
        return false;
    }
    if (files->listing.error != 0) {
        say_once(files, SAID_DIRECTORY, "read", files->listing.error);
    }
    if (!may_read(files)) {
        return false;
    }
    follow_plan(files->state, is_first, &files->listing, &files->plan);
    for (size_t i = 0; i < files->state->n; i++) {
        if (files->plan.is_copy[i]) {
            follow_open_close(&files->open[i]);
        }
        if (files->open[i].fd >= 0) {
            (void)follow_open_check(&files->open[i], &files->state->files[i], INT64_MAX);
        } else if (!find_file(files, i, now_ms)) {
            files->must_look = true;
        }
    }
    if (files->state->n > 0) {
        note_empty_log(files);
    }
    for (size_t i = 0; i < files->plan.n_unread; i++) {
        const struct follow_entry *entry = &files->listing.entries[files->plan.unread[i]];
        /* While nothing has taken its place, a file may still become readable.  After the first
         * look, only files that this follower has read are compressed. */
        if (entry->kind == FOLLOW_UNREADABLE ? files->plan.n_new > 0 : !files->has_looked) {
            say_unread(files, entry);
        }
    }
    add_files(files, is_first, now_ms);
    return true;
}

/* The inode at the log's path; 0: there is nothing.  Where the path cannot be looked at, the result
 * is the inode of the last file, which may still be written. */
static uint64_t log_inode(struct follow_files *files)
{
    struct stat about;
    if (stat(files->path, &about) == 0) {
        return (uint64_t)about.st_ino;
    }
    int number = errno;
    if (number != ENOENT) {
        say_once(files, SAID_UNREADABLE, "open", number);
    }
    if (!follow_says_absent(number) && files->has_looked && files->state->n > 0) {
        return files->state->files[files->state->n - 1].inode;
    }
    if (number == ENOENT && files->state->n == 0 && (files->said & SAID_ABSENT) == 0) {
        import_report_say(files->report, "%s is not there yet: waiting for it", files->path);
        files->said |= SAID_ABSENT;
    }
    return 0;
}

/* Look at one open file.  True: only a look at the directory tells what became of the file. */
static bool watch_file(struct follow_files *files, size_t index, int64_t now_ms)
{
    struct follow_open *open = &files->open[index];
    struct follow_file *file = &files->state->files[index];
    if (follow_open_watch(open, file, now_ms)) {
        files->is_changed = true;
    }
    return open->fd >= 0 ? open->is_unsure : !file->is_done;
}

bool follow_files_watch(struct follow_files *files, bool is_first, int64_t now_ms)
{
    const struct follow_state *state = files->state;
    bool is_lost = false;
    uint64_t inode = log_inode(files);
    for (size_t i = 0; i < state->n; i++) {
        files->open[i].is_replaced = i + 1 < state->n || state->files[i].inode != inode;
        if (files->open[i].fd >= 0) {
            is_lost = watch_file(files, i, now_ms) || is_lost;
        }
    }
    bool is_replaced = state->n == 0 || state->files[state->n - 1].inode != inode;
    bool is_news = !files->has_looked || is_lost || files->is_moving ||
                   (is_replaced && inode != files->looked_inode);
    bool is_due = (is_replaced || files->must_look) && now_ms - files->looked_ms >= LOOK_AGAIN_MS;
    if (!is_news && !is_due) {
        return true;
    }
    files->must_look = files->is_moving = false;
    if (!look(files, is_first, now_ms)) {
        return false;
    }
    files->has_looked = true;
    files->looked_ms = now_ms;
    files->looked_inode = inode;
    return true;
}

/* ---- reading ---- */

/* Is it not known yet what file @index has?  Then the files behind it must wait. */
static bool is_in_question(const struct follow_files *files, size_t index)
{
    const struct follow_open *open = &files->open[index];
    return open->is_moving || (open->fd >= 0 && open->is_unsure);
}

size_t follow_files_due(
    const struct follow_files *files, int64_t now_ms, int64_t patience_ms, enum follow_end *ret_end)
{
    size_t first = FOLLOW_NONE; /* the first with bytes, however long they have waited */
    enum follow_end end;
    for (size_t i = 0; i < files->state->n && !is_in_question(files, i); i++) {
        const struct follow_open *open = &files->open[i];
        const struct follow_file *file = &files->state->files[i];
        if (first == FOLLOW_NONE && follow_open_due(open, file, now_ms, 0, ret_end)) {
            first = i;
        }
        if (first != FOLLOW_NONE && follow_open_due(open, file, now_ms, patience_ms, &end)) {
            return first;
        }
    }
    return FOLLOW_NONE;
}

void follow_files_read(struct follow_files *files, size_t index, const struct follow_cut *cut)
{
    follow_open_read(&files->open[index], &files->state->files[index], cut);
    files->is_changed = true;
}

bool follow_files_forget(struct follow_files *files)
{
    struct follow_state *state = files->state;
    bool has_changed = false;
    for (size_t i = 0; i < state->n && state->n > FOLLOW_FILES_KEPT;) {
        if (!state->files[i].is_done || state->files[i].is_past) {
            i++;
            continue;
        }
        follow_open_close(&files->open[i]);
        follow_state_remove(state, i);
        memmove(&files->open[i], &files->open[i + 1], (state->n - i) * sizeof(files->open[0]));
        files->open[state->n] = FOLLOW_NOT_OPEN;
        files->is_changed = has_changed = true;
    }
    return has_changed;
}
