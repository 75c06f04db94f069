#include "tests/lib/fake_streams.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>

#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

struct fake_streams fake_streams;

struct fake_stream_log *fake_streams_add(const char *id, uint64_t n)
{
    cr_assert(fake_streams.n_logs < FAKE_STREAMS && n <= FAKE_ITEMS_MAX);
    struct fake_stream_log *log = &fake_streams.logs[fake_streams.n_logs++];
    *log = (struct fake_stream_log){.has_head = true, .n = n, .time_ms = FOLD_NOW_S * 1000};
    memcpy(log->id, id, sizeof(log->id));
    for (uint64_t i = 1; i <= n; i++) {
        log->has[i] = true;
    }
    return log;
}

const struct reply *fake_streams_heads(void)
{
    static struct reply items[2 * FAKE_STREAMS + 2];
    static struct reply reply;
    static char heads[FAKE_STREAMS][60];
    size_t n = 0;
    for (size_t i = 0; i < fake_streams.n_logs; i++) {
        const struct fake_stream_log *log = &fake_streams.logs[i];
        if (log->has_head) {
            (void)snprintf(
                heads[i], sizeof(heads[i]), "%" PRIu64 " e %" PRId64, log->n, log->time_ms);
            items[n++] = fold_text(log->id);
            items[n++] = fold_text(heads[i]);
        }
    }
    if (fake_streams.closed != NULL) {
        items[n++] = fold_text("closed");
        items[n++] = fold_text(fake_streams.closed);
    }
    reply = fold_array(items, n);
    return &reply;
}

static const struct fake_stream_log *find(struct slice id)
{
    for (size_t i = 0; i < fake_streams.n_logs; i++) {
        const struct fake_stream_log *log = &fake_streams.logs[i];
        if (id.n >= LOG_ID_TEXT && memcmp(id.p + id.n - LOG_ID_TEXT, log->id, LOG_ID_TEXT) == 0) {
            return log;
        }
    }
    cr_assert_fail("no such log");
    return NULL;
}

/* XRANGE key from to COUNT n. */
static const struct reply *range(const struct command *command)
{
    static struct reply reply, items[FAKE_ITEMS_MAX], parts[FAKE_ITEMS_MAX][2];
    static struct reply fields[FAKE_ITEMS_MAX][4];
    static char names[FAKE_ITEMS_MAX][24];
    static uint8_t head[ENTRY_HEAD];
    static struct log_entry *one;
    static const struct reply error = {.type = REPLY_ERROR, .text = {"ERR", 3}};
    if (one == NULL) { /* stays: each test is a process */
        one = fold_entry("", 1, FOLD_NOW_S, 1);
        entry_print_head(one, head);
    }
    const struct fake_stream_log *log = find(command->words[1]);
    long long to = command_number(command, 3);
    long long most = command_number(command, 5);
    size_t n = 0;
    fake_streams.n_ranges++;
    (void)snprintf(fake_streams.last, sizeof(fake_streams.last), "%lld %lld %lld",
        command_number(command, 2), to, most);
    cr_assert(to <= FAKE_ITEMS_MAX && command_is(command, 4, "COUNT"));
    for (long long i = command_number(command, 2); i <= to && (long long)n < most; i++) {
        if (log->has[i]) {
            (void)snprintf(names[n], sizeof(names[n]), "%lld-0", i);
            fields[n][0] = fold_text(log->is_foreign[i] ? "x" : "h");
            fields[n][1] =
                (struct reply){.type = REPLY_TEXT, .text = {(const char *)head, ENTRY_HEAD}};
            fields[n][2] = fold_text("p");
            fields[n][3] =
                (struct reply){.type = REPLY_TEXT, .text = {one->packed.p, one->packed.n}};
            parts[n][0] = fold_text(names[n]);
            parts[n][1] = fold_array(fields[n], 4);
            items[n] = fold_array(parts[n], 2);
            n++;
        }
    }
    reply = fold_array(items, n);
    return fake_streams.refuses ? &error : &reply;
}

static const struct reply *answer(const struct buffer *out, size_t i)
{
    static struct reply reply, time[2];
    struct commands commands;
    const struct reply *result = &reply;
    cr_assert(commands_read(out, &commands) && i < commands.n);
    const struct command *command = &commands.commands[i];
    if (command_is(command, 0, "HGETALL")) {
        result = fake_streams_heads();
    } else if (command_is(command, 0, "TIME")) {
        time[0] = fold_text("1795187834");
        time[1] = fold_text("0");
        reply = fold_array(time, 2);
    } else if (command_is(command, 0, "HGET")) {
        reply = fold_text(find(command->words[2])->cursor);
    } else if (command_is(command, 0, "EXISTS")) {
        reply = (struct reply){.type = REPLY_INTEGER, .integer = 1};
    } else {
        cr_assert(command_is(command, 0, "XRANGE"));
        result = range(command);
    }
    commands_release(&commands);
    return fake_streams.is_lost ? NULL : result;
}

static bool connects(void)
{
    return !fake_streams.is_lost;
}

void fake_streams_stand_in(void)
{
    stand_in.answer = answer;
    stand_in.connect = connects;
}
