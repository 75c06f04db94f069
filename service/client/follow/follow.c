#include "service/client/follow/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "service/client/follow/follow_files.h"
#include "service/client/follow/follow_piece.h"
#include "service/client/follow/follow_send.h"
#include "service/client/follow/follow_store.h"
#include "storage/base/clock.h"

#define TICK_MS     100
#define PATIENCE_MS 400
#define FAREWELL_MS 3000 /* after SIGTERM, bytes that are there are sent for so long */

struct follow {
    const struct import_options *options;
    char state_path[PATH_MAX];
    struct follow_store store;
    struct follow_state state;
    struct import_report report;
    struct import_batch *batch;
    struct import_upload *upload;
    struct import_lines lines;
    struct follow_files *files;
    char buffer[LINE_READER_BUFFER]; /* of follow_read() */
    struct follow_sender sender;
    bool is_said;     /* a message has said where the log is taken up */
    size_t read_last; /* the index of the file that was read last, or FOLLOW_NONE */
    uint64_t n_lines; /* lines that were read */
};

/* The result of a step of the loop: something was done, nothing is due, or the follower must
 * stop. */
enum step { STEP_DONE, STEP_IDLE, STEP_STOP };

static volatile sig_atomic_t stop_asked;

static void ask_to_stop(int number)
{
    (void)number;
    stop_asked = 1;
}

static void handle_signals(void)
{
    struct sigaction action = {.sa_handler = ask_to_stop}; /* without SA_RESTART a sleep ends */
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
}

/* The state of access.log lies beside it in .access.log.tallyd, unless --state says otherwise. */
static void find_state_path(struct follow *follow)
{
    const struct import_options *options = follow->options;
    const char *slash = strrchr(options->path, '/');
    int directory = slash == NULL ? 0 : (int)(slash - options->path) + 1;
    if (options->state != NULL) {
        (void)snprintf(follow->state_path, sizeof(follow->state_path), "%s", options->state);
    } else {
        (void)snprintf(follow->state_path, sizeof(follow->state_path), "%.*s.%s.tallyd", directory,
            options->path, options->path + directory);
    }
}

/* What was read of the log has counted for a site, and a piece may be on its way there.  So a state
 * belongs to a site: if the options name another one, a message says so, and the result is false.
 */
static bool claim_sites(struct follow *follow)
{
    const struct import_options *options = follow->options;
    char *before = follow->state.sites;
    char sites[FOLLOW_SITES];
    (void)snprintf(sites, sizeof(sites), "%s--site %s",
        options->site_from_host ? "--site-from-host " : "", import_options_site(options));
    if (before[0] != '\0' && strcmp(before, sites) != 0) {
        import_report_say(&follow->report,
            "%s says how far a log was read with %s, not with %s.  Name another file by --state; "
            "or remove this one, and the log is read from its beginning",
            follow->state_path, before, sites);
        return false;
    }
    memcpy(before, sites, sizeof(sites));
    return true;
}

/* Make the parser ready for @file, which is open as @fd: for the format that its lines were seen to
 * have, and for the fields that a line before its place named.  False: errno says why not. */
static bool begin_file(struct follow *follow, const struct follow_file *file, int fd)
{
    enum log_format format = follow->options->format;
    const struct nginx_template *tmpl = &follow->options->nginx;
    if (format == LOG_FORMAT_AUTO && !log_format_find(file->format, &format)) {
        format = LOG_FORMAT_AUTO;
    }
    log_parser_init(&follow->lines.parser, format, tmpl->n > 0 ? tmpl : NULL);
    return follow_read_header(fd, file, &follow->lines);
}

static void note_format(const struct follow *follow, struct follow_file *file)
{
    enum log_format format = follow->lines.parser.format;
    if (format < LOG_FORMAT_COUNT && format != LOG_FORMAT_AUTO) {
        (void)snprintf(file->format, sizeof(file->format), "%s", log_format_name(format));
    }
}

static bool follow_save(struct follow *follow)
{
    follow->files->is_changed = false;
    if (follow_store_save(&follow->store, &follow->state)) {
        return true;
    }
    import_report_say(&follow->report, "%s", follow->store.error);
    return false;
}

/* Say that the log cannot be read, as errno says.  Always false, for the caller to return. */
static bool say_unreadable(struct follow *follow)
{
    import_report_say(
        &follow->report, "cannot read %s: %s", follow->options->path, strerror(errno));
    return false;
}

/* Read file @index up to offset @limit into the batch.  False: a message says why not. */
static bool follow_take(struct follow *follow, size_t index, int64_t limit, enum follow_end end)
{
    struct follow_file *file = &follow->state.files[index];
    struct follow_cut cut;
    int fd = follow->files->open[index].fd;
    if (index != follow->read_last) {
        if (!begin_file(follow, file, fd)) {
            return say_unreadable(follow);
        }
        follow->read_last = index;
    }
    if (!follow_read(follow->buffer, fd, file, limit, end, &follow->lines, &cut)) {
        return say_unreadable(follow);
    }
    note_format(follow, file);
    follow->n_lines += cut.to.lines - file->place.lines;
    follow->sender.cut = cut;
    return true;
}

/* No piece of file @index is being sent any more: if the file is gone, say what is missing. */
static void give_up_if_gone(struct follow *follow, size_t index)
{
    if (follow->files->open[index].is_gone) {
        follow_files_give_up(follow->files, index);
    }
}

/* The piece that another process may have sent cannot be sent again as it was: find out whether it
 * was counted. */
static enum step resolve_piece(struct follow *follow, int64_t now_ms)
{
    size_t index = follow->state.piece.file;
    import_batch_clear(follow->batch);
    switch (follow_sender_resolve(&follow->sender, now_ms)) {
    case FOLLOW_SENT_WAIT:
        return STEP_IDLE;
    case FOLLOW_SENT_STOP:
        return STEP_STOP;
    case FOLLOW_SENT_ALL:
        break;
    }
    give_up_if_gone(follow, index);
    return follow_save(follow) ? STEP_DONE : STEP_STOP;
}

/* Go on with the piece that another process has left. */
static enum step take_up_piece(struct follow *follow, int64_t now_ms)
{
    const struct follow_piece *piece = &follow->state.piece;
    const struct follow_open *open = &follow->files->open[piece->file];
    if (now_ms < follow->sender.try_at_ms) {
        return STEP_IDLE;
    }
    if (open->fd < 0) {
        return open->is_gone || follow->state.files[piece->file].is_done
                   ? resolve_piece(follow, now_ms)
                   : STEP_IDLE;
    }
    enum follow_end end = piece->is_last ? FOLLOW_END_LAST : FOLLOW_END_OPEN;
    if (!follow_take(follow, piece->file, piece->to.offset, end)) {
        return STEP_STOP;
    }
    if (follow->sender.cut.to.offset != piece->to.offset ||
        import_batch_count(follow->batch) == 0) {
        return resolve_piece(follow, now_ms);
    }
    follow_sender_begin(&follow->sender, piece->file, piece->is_last);
    return STEP_DONE;
}

/* Read what is due, and begin to send it. */
static enum step take_next(struct follow *follow, int64_t now_ms)
{
    enum follow_end end;
    size_t index = follow_files_due(follow->files, now_ms, stop_asked != 0 ? 0 : PATIENCE_MS, &end);
    if (index == FOLLOW_NONE) {
        if (follow_files_forget(follow->files)) {
            follow->read_last = FOLLOW_NONE;
        }
        return !follow->files->is_changed || follow_save(follow) ? STEP_IDLE : STEP_STOP;
    }
    if (!follow_take(follow, index, INT64_MAX, end)) {
        return STEP_STOP;
    }
    follow_sender_begin(&follow->sender, index, end == FOLLOW_END_LAST);
    if (!follow->sender.is_sending) {
        follow_files_read(follow->files, index, &follow->sender.cut);
    }
    return STEP_DONE;
}

static enum step follow_step(struct follow *follow, int64_t now_ms)
{
    if (!follow->sender.is_sending) {
        return follow->state.has_piece ? take_up_piece(follow, now_ms) : take_next(follow, now_ms);
    }
    if (now_ms < follow->sender.try_at_ms) {
        return STEP_IDLE;
    }
    switch (follow_sender_try(&follow->sender, now_ms)) {
    case FOLLOW_SENT_ALL:
        follow_files_read(follow->files, follow->sender.file, &follow->sender.cut);
        give_up_if_gone(follow, follow->sender.file);
        return STEP_DONE;
    case FOLLOW_SENT_WAIT:
        return STEP_IDLE;
    case FOLLOW_SENT_STOP:
        break;
    }
    return STEP_STOP;
}

static void sleep_tick(void)
{
    struct timespec tick = {.tv_nsec = TICK_MS * 1000000L};
    (void)nanosleep(&tick, NULL); /* a signal may end the sleep */
}

/* Say where the log is taken up, once there is a log. */
static void say_begin(struct follow *follow)
{
    const struct follow_state *state = &follow->state;
    import_report_say(&follow->report, "following %s from byte %" PRId64 " on",
        follow->options->path, state->files[state->n - 1].place.offset);
    follow->is_said = true;
}

/* Follow until a signal comes.  False: a message says why that is not possible. */
static bool follow_loop(struct follow *follow, bool is_first)
{
    int64_t stop_ms = -1;
    for (;;) {
        int64_t now_ms = monotonic_ms();
        if (stop_asked != 0 && stop_ms < 0) {
            stop_ms = now_ms;
        }
        if (!follow_files_watch(follow->files, is_first, now_ms) ||
            (is_first && !follow_save(follow))) {
            return false;
        }
        if (!follow->is_said && follow->state.n > 0) {
            say_begin(follow);
        }
        is_first = false;
        enum step step = follow_step(follow, now_ms);
        if (step == STEP_STOP) {
            return false;
        }
        if (stop_ms >= 0 && (step == STEP_IDLE || now_ms - stop_ms >= FAREWELL_MS)) {
            return follow_save(follow);
        }
        if (step == STEP_IDLE) {
            sleep_tick();
        }
    }
}

static bool follow_set_up(struct follow *follow, bool *ret_is_first)
{
    const struct import_options *options = follow->options;
    follow->read_last = FOLLOW_NONE;
    import_report_init(&follow->report);
    find_state_path(follow);
    if (!follow_store_open(&follow->store, follow->state_path, &follow->state, ret_is_first)) {
        import_report_say(&follow->report, "%s", follow->store.error);
        return false;
    }
    if (!claim_sites(follow)) {
        return false;
    }
    follow->batch = import_batch_new(options->site);
    follow->upload = import_upload_new(
        options->url, options->token, import_filter_counts_robots(&options->filter));
    follow->files = follow_files_new(options->path, &follow->state, &follow->report);
    if (sodium_init() < 0 || follow->batch == NULL || follow->upload == NULL ||
        follow->files == NULL) {
        import_report_say(&follow->report, "out of memory");
        return false;
    }
    import_upload_stop_at(follow->upload, &stop_asked, FAREWELL_MS);
    import_lines_init(&follow->lines, options, follow->batch, &follow->report);
    follow_sender_init(&follow->sender, follow->upload, &follow->lines, &follow->store,
        &follow->state, options->path);
    return true;
}

bool follow_run(const struct import_options *options)
{
    static struct follow follow; /* too large for the stack; one call a process */
    bool is_first, is_ended = false;
    follow = (struct follow){.options = options, .store = {.fd = -1}};
    handle_signals();
    if (follow_set_up(&follow, &is_first)) {
        is_ended = follow_loop(&follow, is_first);
        import_lines_finish(&follow.lines);
        import_report_finish(&follow.report, follow.n_lines, options->json);
    }
    follow_files_free(follow.files);
    import_upload_free(follow.upload);
    import_batch_free(follow.batch);
    follow_store_close(&follow.store);
    return is_ended;
}
