/* steps.c - the steps of a request: its head, its body, its job, and when the answer is made. */
#include "service/http/server_private.h"

#include <string.h>

#include "handlers/reply/problem.h"
#include "service/http/strict.h"

#define LOOK_PIECES 64 /* the kernel is asked for the framing once in so many pieces of a body */

/* ---- the head ---- */

struct fields {
    struct http_field at[HTTP_FIELDS_MAX];
    size_t n;
    bool overflow;
};

static enum MHD_Result gather_field(void *cls, enum MHD_ValueKind kind, const char *name,
    size_t name_n, const char *value, size_t value_n)
{
    struct fields *fields = cls;
    (void)kind;
    fields->overflow = fields->n == HTTP_FIELDS_MAX;
    if (fields->overflow) {
        return MHD_NO;
    }
    fields->at[fields->n++] = (struct http_field){{name, name_n}, {value, value_n}};
    return MHD_YES;
}

/* Count the bytes of this request, so that the reaper knows where the next one begins. */
static void account(struct connection *connection, size_t head_n)
{
    const struct http_message *message = &connection->request.message;
    if (message->chunked) { /* the library does not tell how much framing a body has */
        connection->consumed = REAPER_UNKNOWN;
    } else if (connection->consumed != REAPER_UNKNOWN) {
        connection->consumed += head_n + message->content_length;
    }
}

static enum request_verdict judge_head(
    struct connection *connection, const char *method, const char *version)
{
    struct request *request = &connection->request;
    struct fields fields;
    fields.n = 0; /* the rest is 3 KiB that need no clearing */
    fields.overflow = false;
    (void)MHD_get_connection_values_n(connection->mhd, MHD_HEADER_KIND, gather_field, &fields);
    if (fields.overflow) {
        const struct http_head first = {.fields = fields.at, .n_fields = fields.n};
        request->message.request_id = http_request_id(&first);
        request_refuse(
            request, PROBLEM_HEAD_TOO_LARGE, "more than " HTTP_FIELDS_MAX_TEXT " header fields");
        return REQUEST_ANSWER_NOW;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct http_head head = {
        .method = slice_of(method),
        .target = {connection->target_in_head, request->target.n},
        .version = slice_of(version),
        .fields = fields.at,
        .n_fields = fields.n,
        .size = info != NULL ? info->header_size : 0,
    };
    request->exchange.request.peer = slice_of(connection->peer);
    enum request_verdict verdict = request_head(request, &head);
    account(connection, head.size);
    return verdict;
}

void connection_name(struct connection *connection, struct slice given)
{
    if (http_request_id_valid(given)) {
        memcpy(connection->id, given.p, given.n);
        connection->id[given.n] = '\0';
    } else {
        request_ids_next(&connection->server->ids, connection->id);
    }
    atomic_store_explicit(&connection->named, true, memory_order_release);
}

/* The library's first call for a request: the head is complete, and the body was not asked for yet.
 * Without a body the library calls again at once.  An answer now makes the library close the
 * connection. */
static enum MHD_Result on_head(
    struct connection *connection, const char *method, const char *version)
{
    enum request_verdict verdict = judge_head(connection, method, version);
    connection_name(connection, connection->request.message.request_id);
    if (verdict == REQUEST_ANSWER_NOW) {
        connection->linger = true;
        return connection_reply(connection);
    }
    connection_enter(connection, REQUEST_BODY);
    return MHD_YES;
}

/* ---- the body, and the handler ---- */

/* Runs on a thread of storage, or within submit.  The exchange is the HTTP thread's at once, so
 * this function does not touch the connection any more.  `lent` is touched last, because a server
 * that stops frees itself when `lent` is 0. */
static void on_job_done(struct storage_job *job)
{
    struct connection *connection = job->data;
    struct http_server *server = connection->server;
    struct worker *worker = connection->worker;
    enum lent out = LENT_OUT;
    if (!atomic_compare_exchange_strong(&connection->lent, &out, LENT_NOT)) {
        struct connection *next = atomic_load(&worker->orphans);
        do {
            connection->next_orphan = next;
        } while (!atomic_compare_exchange_weak(&worker->orphans, &next, connection));
    }
    worker_wake(worker);
    (void)atomic_fetch_sub(&server->lent, 1);
}

/* Storage must answer so long before the request is due that the answer is still in time. */
static int64_t slack_ms(int64_t timeout_ms)
{
    return timeout_ms < 5000 ? timeout_ms / 20 : 250;
}

/* The order of the two atomics makes sure that http_server_stop() sees this job, or that this
 * function sees the stop. */
bool connection_lend(struct connection *connection)
{
    struct http_server *server = connection->server;
    struct storage_job *job = &connection->request.exchange.job;
    int64_t deadline_ms = connection->due_ms - slack_ms(server->config.request_timeout_ms);
    (void)atomic_fetch_add(&server->lent, 1);
    if (atomic_load(&server->stopping)) {
        (void)atomic_fetch_sub(&server->lent, 1);
        return false;
    }
    job->done = on_job_done;
    job->data = connection;
    job->more_follow = true;
    if (job->deadline_ms == 0 || job->deadline_ms > deadline_ms) {
        job->deadline_ms = deadline_ms; /* a handler may allow the job less time */
    }
    connection->worker->submitted = true;
    server->config.submit(server->config.storage, job);
    return true;
}

/* The exchange is this thread's again.  Whatever becomes of the answer, the job is finished once,
 * and the thread waits for it no more. */
static void take_back(struct connection *connection)
{
    connection_enter(connection, REQUEST_MADE);
    connection->worker->waiting--;
}

static enum MHD_Result on_job_back(struct connection *connection);

/* Lend the job to storage.  It may be done before submit() returns. */
static enum MHD_Result lend(struct connection *connection)
{
    struct http_exchange *exchange = &connection->request.exchange;
    if (!reaper_busy(&connection->watch, REAPER_NEVER)) { /* storage answers in time */
        return MHD_NO;
    }
    connection_enter(connection, REQUEST_WAIT);
    connection->worker->waiting++;
    atomic_store(&connection->lent, LENT_OUT);
    if (!connection_lend(connection)) {
        atomic_store(&connection->lent, LENT_NOT);
        take_back(connection);
        problem_from_storage(&exchange->response, STORAGE_SHUTDOWN, NULL);
        return connection_reply(connection);
    }
    return on_job_back(connection);
}

/* The library calls for a request whose job is lent whenever it runs. */
static enum MHD_Result on_job_back(struct connection *connection)
{
    struct http_exchange *exchange = &connection->request.exchange;
    if (atomic_load(&connection->lent) != LENT_NOT) {
        return MHD_YES;
    }
    take_back(connection);
    request_finish(&connection->request);
    if (exchange->again) {
        exchange->again = false;
        return lend(connection);
    }
    return connection_reply(connection);
}

static enum MHD_Result on_complete(struct connection *connection)
{
    const struct http_server_config *config = &connection->server->config;
    int64_t now_ms = config->now_ms(config->storage);
    if (request_run(&connection->request, now_ms) == HANDLER_WAIT) {
        return lend(connection);
    }
    return connection_reply(connection);
}

/* How many bytes the body has taken on the wire, with its framing.  The library does not tell, so
 * the kernel is asked, once in LOOK_PIECES pieces. */
static uint64_t framing_of(struct connection *connection)
{
    if (!connection->request.message.chunked || ++connection->pieces % LOOK_PIECES != 0) {
        return 0;
    }
    uint64_t received = reaper_received(&connection->watch);
    if (connection->pieces == LOOK_PIECES) {
        connection->wire = received;
    }
    return received != REAPER_UNKNOWN ? received - connection->wire : 0;
}

/* A body without an announced length is cut once it is too long, or its framing is.  The library
 * takes no answer before the body's end, so the answer goes to the socket by itself. */
static enum MHD_Result on_upload(
    struct connection *connection, const char *upload, size_t *upload_n)
{
    struct request *request = &connection->request;
    connection->worker->moved = true;
    enum request_verdict verdict =
        request_upload(request, upload, *upload_n, framing_of(connection));
    *upload_n = 0;
    if (verdict == REQUEST_GO_ON) {
        return MHD_YES;
    }
    return connection_farewell(connection);
}

enum MHD_Result http_on_request(void *cls, struct MHD_Connection *mhd, const char *url,
    const char *method, const char *version, const char *upload, size_t *upload_n, void **state)
{
    struct connection *connection = *state;
    (void)cls;
    (void)mhd;
    (void)url;                /* url is decoded and cut: http_on_target() gets the target raw */
    if (connection == NULL) { /* http_on_target() has given the request up */
        return MHD_NO;
    }
    switch (connection->state) {
    case REQUEST_HEAD:
        return on_head(connection, method, version);
    case REQUEST_BODY:
        if (*upload_n == 0) {
            return on_complete(connection);
        }
        return on_upload(connection, upload, upload_n);
    case REQUEST_WAIT:
        return on_job_back(connection);
    case REQUEST_MADE:
    case REQUEST_REPLY:
    case REQUEST_DONE:
        break;
    }
    return MHD_NO; /* not reached: the library calls only for a request without an answer */
}
