#include "service/client/follow/follow_open.h"

#include <sys/stat.h>
#include <unistd.h>

#define MANY_BYTES (256 * 1024) /* so many bytes are read without patience */

void follow_open_close(struct follow_open *open)
{
    if (open->fd >= 0) {
        (void)close(open->fd);
    }
    open->fd = -1;
}

bool follow_open_check(const struct follow_open *open, struct follow_file *file, int64_t size)
{
    char head[FOLLOW_HEAD];
    ssize_t n = pread(open->fd, head, sizeof(head), 0);
    struct slice bytes = {head, n > 0 ? (size_t)n : 0};
    if (size < file->place.offset || !follow_head_fits(&file->head, bytes)) {
        return false;
    }
    if (bytes.n > file->head.n) {
        file->head = follow_head_of(bytes);
    }
    return true;
}

static bool open_rests(const struct follow_open *open, int64_t now_ms)
{
    return open->is_replaced && now_ms - open->grew_ms >= FOLLOW_REST_MS;
}

bool follow_open_watch(struct follow_open *open, struct follow_file *file, int64_t now_ms)
{
    struct stat about;
    if (fstat(open->fd, &about) != 0) {
        return false;
    }
    int64_t size = (int64_t)about.st_size;
    int64_t mtime_ns = follow_time_ns(about.st_mtim);
    bool was_written = size > 0 || (!open->is_replaced && mtime_ns != file->mtime_ns);
    open->is_unsure = file->head.n == 0 && was_written;
    if (open->is_unsure) {
        return false;
    }
    if (size != file->size || mtime_ns != open->mtime_ns) {
        if (!follow_open_check(open, file, size)) {
            /* The file was truncated: the caller finds out what became of the rest. */
            follow_open_close(open);
            return false;
        }
        open->grew_ms = now_ms;
        open->has_half_line = false;
        file->size = size;
        open->mtime_ns = mtime_ns;
        if (!open->is_replaced) {
            file->mtime_ns = mtime_ns; /* follow_plan.h: no later file was written before that */
        }
    }
    if (size > file->place.offset && !open->has_half_line && open->noticed_ms < 0) {
        open->noticed_ms = now_ms;
        file->is_done = false;
    }
    bool is_news = open_rests(open, now_ms) && size == file->place.offset && !file->is_done;
    file->is_done = file->is_done || is_news;
    if (file->is_done && about.st_nlink == 0) {
        follow_open_close(open); /* the disk gets its room back */
    }
    return is_news;
}

bool follow_open_due(const struct follow_open *open, const struct follow_file *file, int64_t now_ms,
    int64_t patience_ms, enum follow_end *ret_end)
{
    if (open->fd < 0) {
        return false;
    }
    bool rests = open_rests(open, now_ms);
    bool is_due = open->noticed_ms >= 0 && (now_ms - open->noticed_ms >= patience_ms ||
                                               file->size - file->place.offset >= MANY_BYTES);
    if (!is_due && !(rests && open->has_half_line)) {
        return false;
    }
    *ret_end = rests ? FOLLOW_END_LAST : FOLLOW_END_OPEN;
    return true;
}

void follow_open_read(
    struct follow_open *open, const struct follow_file *file, const struct follow_cut *cut)
{
    /* While the piece was sent, more may have been written. */
    if (!cut->is_full && file->size <= cut->seen) {
        open->noticed_ms = -1;
        open->has_half_line = cut->to.offset < file->size;
    }
}
