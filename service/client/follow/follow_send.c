#include "service/client/follow/follow_send.h"

#include <inttypes.h>
#include <time.h>

#include "service/client/import_cut.h"

#define RETRY_AFTER_MAX 600 /* a Retry-After of more seconds counts as so many */
#define KEYS_IN_A_ROW   8   /* if so many keys of a piece were used, the fault lies elsewhere */

void follow_sender_init(struct follow_sender *ret, struct import_upload *upload,
    struct import_lines *lines, struct follow_store *store, struct follow_state *state,
    const char *path)
{
    *ret = (struct follow_sender){.upload = upload,
        .lines = lines,
        .store = store,
        .state = state,
        .path = path,
        .request_max = IMPORT_BATCH_EVENTS};
    ret->is_doubted = state->has_piece && state->piece.sent_at_s != 0;
}

static size_t total(const struct follow_sender *sender)
{
    return import_batch_count(sender->lines->batch);
}

void follow_sender_begin(struct follow_sender *sender, size_t file, bool is_last)
{
    sender->file = file;
    sender->is_last = is_last;
    sender->first = 0;
    sender->is_sending = true;
    if (total(sender) == 0) {
        sender->state->files[file].place = sender->cut.to;
        sender->is_sending = false;
    }
}

static bool save(struct follow_sender *sender)
{
    if (follow_store_save(sender->store, sender->state)) {
        return true;
    }
    import_report_say(sender->lines->report, "%s", sender->store->error);
    return false;
}

/* Wait for as long as the server says, or else each time for longer. */
static enum follow_sent wait_for(
    struct follow_sender *sender, int64_t now_ms, const struct import_upload_answer *answer)
{
    int64_t next_ms = sender->wait_ms == 0 ? IMPORT_UPLOAD_WAIT_MIN_MS : sender->wait_ms * 2;
    sender->wait_ms = next_ms < IMPORT_UPLOAD_WAIT_MAX_MS ? next_ms : IMPORT_UPLOAD_WAIT_MAX_MS;
    int64_t told_s =
        answer->retry_after_s < RETRY_AFTER_MAX ? answer->retry_after_s : RETRY_AFTER_MAX;
    sender->try_at_ms = now_ms + (told_s > 0 ? told_s * 1000 : sender->wait_ms);
    if (!sender->is_waiting) {
        import_report_say(sender->lines->report, "%s; waiting, and trying again", answer->detail);
    }
    sender->is_waiting = true;
    return FOLLOW_SENT_WAIT;
}

static void said_well(struct follow_sender *sender)
{
    if (sender->is_waiting) {
        import_report_say(sender->lines->report, "the server answers again");
    }
    sender->is_waiting = false;
    sender->wait_ms = 0;
}

/* The place behind the first @end events of the batch. */
static struct follow_place place_behind(const struct follow_sender *sender, size_t end)
{
    return end == total(sender) ? sender->cut.to : sender->cut.ends[end - 1];
}

/* Make the next @n events of the batch the state's piece. */
static void name_piece(struct follow_sender *sender, size_t n)
{
    size_t end = sender->first + n;
    sender->state->has_piece = true;
    sender->state->piece = (struct follow_piece){.file = sender->file,
        .to = place_behind(sender, end),
        .is_last = end == total(sender) && sender->is_last};
    sender->is_doubted = sender->is_doubt_ours = false;
}

/* The number of events in the state's piece. */
static size_t piece_count(const struct follow_sender *sender)
{
    size_t n = 0;
    while (sender->first + n < total(sender) &&
           sender->cut.ends[sender->first + n].offset <= sender->state->piece.to.offset) {
        n++;
    }
    return n;
}

/* The piece, of @n events, is dealt with: the file's place moves on. */
static void pass(struct follow_sender *sender, size_t n)
{
    sender->first += n;
    /* Of a piece that an older version left, only the offset is known. */
    sender->state->piece.to = place_behind(sender, sender->first);
    follow_state_pass(sender->state);
    sender->is_doubted = sender->is_doubt_ours = false;
}

/* Was the piece sent so long ago that its key is forgotten? */
static bool is_forgotten(const struct follow_sender *sender)
{
    return sender->is_doubted &&
           (int64_t)time(NULL) - sender->state->piece.sent_at_s >= FOLLOW_KEY_LIVES_S;
}

static void say_in_doubt(const struct follow_sender *sender)
{
    const struct follow_piece *piece = &sender->state->piece;
    int64_t from = sender->state->files[piece->file].place.offset;
    import_report_say(sender->lines->report,
        "%" PRId64 " bytes of %s, from byte %" PRId64
        " on, are in doubt: they were sent more than a day ago without an answer, and are not sent "
        "again",
        piece->to.offset - from, sender->path, from);
}

static void piece_key(const struct follow_sender *sender, char ret[IMPORT_KEY_TEXT])
{
    const struct follow_file *file = &sender->state->files[sender->state->piece.file];
    import_piece_key(&file->id, file->place.offset, sender->state->piece.to.offset,
        sender->state->piece.attempt, ret);
}

/* Ask the piece's key whether the piece was counted.  FOLLOW_SENT_ALL: *ret_counted is the
 * answer. */
static enum follow_sent ask(struct follow_sender *sender, int64_t now_ms, bool *ret_counted)
{
    char key[IMPORT_KEY_TEXT];
    struct import_upload_answer answer;
    piece_key(sender, key);
    enum import_upload_result result =
        import_upload_post(sender->upload, key, SLICE("[]"), 0, &answer);
    switch (result) {
    case IMPORT_UPLOAD_ANSWERED:
    case IMPORT_UPLOAD_KEY_USED:
        said_well(sender);
        *ret_counted = result == IMPORT_UPLOAD_KEY_USED;
        return FOLLOW_SENT_ALL;
    case IMPORT_UPLOAD_BUSY:
    case IMPORT_UPLOAD_UNREACHABLE:
    case IMPORT_UPLOAD_IN_DOUBT:
        return wait_for(sender, now_ms, &answer);
    case IMPORT_UPLOAD_TOO_LARGE:
    case IMPORT_UPLOAD_REFUSED:
        break;
    }
    import_report_say(sender->lines->report, "%s", answer.detail);
    return FOLLOW_SENT_STOP;
}

/* The server does not take @n events at once: cut the piece, or reject its only event. */
static enum follow_sent send_smaller(struct follow_sender *sender, int64_t now_ms, size_t n)
{
    struct import_report *report = sender->lines->report;
    bool is_counted = false;
    enum follow_sent asked =
        sender->is_doubted ? ask(sender, now_ms, &is_counted) : FOLLOW_SENT_ALL;
    if (asked != FOLLOW_SENT_ALL) {
        return asked;
    }
    if (is_counted) {
        report->before += n;
        pass(sender, n);
    } else if (n == 1) {
        report->rejected++;
        import_report_rejected(report, import_batch_line(sender->lines->batch, sender->first),
            "larger than the server takes");
        pass(sender, n);
    } else {
        sender->request_max = import_cut_smaller(n);
        sender->state->has_piece = false;
    }
    return FOLLOW_SENT_ALL;
}

static void say_refused(
    const struct follow_sender *sender, const struct import_upload_answer *answer)
{
    import_report_say(sender->lines->report,
        "%s; nothing is lost: started again, it goes on where it stopped", answer->detail);
}

/* The attempt did not get the piece counted.  If no earlier attempt may have, save that.  False: a
 * message says why that failed. */
static bool note_not_counted(struct follow_sender *sender)
{
    if (sender->is_doubted) {
        return true;
    }
    sender->state->piece.sent_at_s = 0;
    return save(sender);
}

/* The key of the piece, of @n events, was used with another body, as @answer says.  Either a
 * follower with other options had that body counted, or the body is the empty list of a question
 * whose answer was lost.  In the second case nothing is counted, and the piece gets another key.
 * Where each key is answered so, something refuses the body, and the follower stops. */
static enum follow_sent take_used_key(struct follow_sender *sender, int64_t now_ms, size_t n,
    const struct import_upload_answer *answer)
{
    bool is_counted = false;
    enum follow_sent asked = ask(sender, now_ms, &is_counted);
    if (asked != FOLLOW_SENT_ALL) {
        return asked;
    }
    if (is_counted) {
        sender->lines->report->before += n;
        pass(sender, n);
        return FOLLOW_SENT_ALL;
    }
    sender->is_doubted = sender->is_doubt_ours = false;
    if (++sender->state->piece.attempt % KEYS_IN_A_ROW != 0) {
        return FOLLOW_SENT_ALL;
    }
    say_refused(sender, answer);
    (void)note_not_counted(sender);
    return FOLLOW_SENT_STOP;
}

static void take_answer(struct follow_sender *sender, size_t n, struct import_upload_answer *answer)
{
    answer->replayed = answer->replayed && !sender->is_doubt_ours;
    import_lines_answered(sender->lines, sender->first, n, answer);
    said_well(sender);
    pass(sender, n);
}

/* Try once to send the state's piece, which has @n events. */
static enum follow_sent attempt(struct follow_sender *sender, int64_t now_ms, size_t n)
{
    char key[IMPORT_KEY_TEXT];
    struct import_upload_answer answer;
    if (!sender->is_doubted) {
        sender->state->piece.sent_at_s = (int64_t)time(NULL);
    }
    if (!save(sender)) {
        return FOLLOW_SENT_STOP;
    }
    piece_key(sender, key);
    struct slice body = import_batch_body(sender->lines->batch, sender->first, n);
    switch (import_upload_post(sender->upload, key, body, n, &answer)) {
    case IMPORT_UPLOAD_ANSWERED:
        take_answer(sender, n, &answer);
        return FOLLOW_SENT_ALL;
    case IMPORT_UPLOAD_KEY_USED:
        return take_used_key(sender, now_ms, n, &answer);
    case IMPORT_UPLOAD_TOO_LARGE:
        return send_smaller(sender, now_ms, n);
    case IMPORT_UPLOAD_IN_DOUBT:
        sender->is_doubted = sender->is_doubt_ours = true;
        return wait_for(sender, now_ms, &answer);
    case IMPORT_UPLOAD_BUSY:
    case IMPORT_UPLOAD_UNREACHABLE:
        return note_not_counted(sender) ? wait_for(sender, now_ms, &answer) : FOLLOW_SENT_STOP;
    case IMPORT_UPLOAD_REFUSED:
        break;
    }
    say_refused(sender, &answer);
    (void)note_not_counted(sender);
    return FOLLOW_SENT_STOP;
}

enum follow_sent follow_sender_try(struct follow_sender *sender, int64_t now_ms)
{
    while (sender->is_sending && sender->first < total(sender)) {
        if (!sender->state->has_piece) {
            size_t left = total(sender) - sender->first;
            name_piece(sender, left < sender->request_max ? left : sender->request_max);
        }
        size_t n = piece_count(sender);
        if (is_forgotten(sender)) {
            say_in_doubt(sender);
            sender->lines->report->in_doubt += n;
            pass(sender, n);
            continue;
        }
        enum follow_sent sent = attempt(sender, now_ms, n);
        if (sent != FOLLOW_SENT_ALL) {
            return sent;
        }
    }
    sender->is_sending = false;
    import_batch_clear(sender->lines->batch);
    return FOLLOW_SENT_ALL;
}

enum follow_sent follow_sender_resolve(struct follow_sender *sender, int64_t now_ms)
{
    enum follow_sent asked = FOLLOW_SENT_ALL;
    bool is_counted = is_forgotten(sender); /* at least it may be: its bytes are not read again */
    if (is_counted) {
        say_in_doubt(sender);
    } else if (sender->is_doubted) {
        asked = ask(sender, now_ms, &is_counted);
    }
    if (asked != FOLLOW_SENT_ALL) {
        return asked;
    }
    if (is_counted) {
        follow_state_pass(sender->state);
    }
    sender->state->has_piece = sender->is_doubted = sender->is_doubt_ours = false;
    return FOLLOW_SENT_ALL;
}
