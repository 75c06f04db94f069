#include "service/client/import_upload.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "handlers/reply/json_memory.h"
#include "service/client/curl_handle.h"
#include "service/client/server_url.h"
#include "service/log/escape.h"
#include "storage/base/clock.h"

/* A tallyd lists at most 100 errors of some 200 bytes.  A longer answer is another server's. */
#define ANSWER_BYTES (256 * 1024)

struct import_upload {
    CURL *easy;
    struct curl_slist *headers;
    char *url;
    const volatile sig_atomic_t *stop;    /* NULL: nothing ends a post */
    int64_t stop_patience_ms, stopped_ms; /* stopped_ms: CLOCK_MONOTONIC; 0: not stopped yet */
    struct slice unsent; /* the part of the body that curl has not got; borrowed during a post */
    size_t answer_n;
    bool answer_too_long;
    char error[CURL_ERROR_SIZE];
    char answer[ANSWER_BYTES];
};

/* Hand curl the body.  This callback cannot rewind: when a kept connection dies without an answer,
 * the caller decides whether the request is sent again. */
static size_t give_body(char *to, size_t size, size_t n, void *data)
{
    struct import_upload *upload = data;
    size_t room = size * n, length = upload->unsent.n < room ? upload->unsent.n : room;
    if (length > 0) {
        memcpy(to, upload->unsent.p, length);
    }
    upload->unsent.p += length;
    upload->unsent.n -= length;
    return length;
}

static size_t take_answer(char *from, size_t size, size_t n, void *data)
{
    struct import_upload *upload = data;
    size_t length = size * n;
    if (length > sizeof(upload->answer) - upload->answer_n) {
        upload->answer_too_long = true;
        return 0; /* curl then gives up with CURLE_WRITE_ERROR */
    }
    memcpy(upload->answer + upload->answer_n, from, length);
    upload->answer_n += length;
    return length;
}

/* Does the post end now?  curl asks about once a second, and when something has happened. */
static int is_stopped(
    void *data, curl_off_t to_get, curl_off_t got, curl_off_t to_put, curl_off_t put)
{
    struct import_upload *upload = data;
    (void)to_get, (void)got, (void)to_put, (void)put;
    if (*upload->stop == 0) {
        return 0;
    }
    int64_t now_ms = monotonic_ms();
    if (upload->stopped_ms == 0) {
        upload->stopped_ms = now_ms;
    }
    return now_ms - upload->stopped_ms >= upload->stop_patience_ms;
}

void import_upload_stop_at(
    struct import_upload *upload, const volatile sig_atomic_t *stop, int64_t patience_ms)
{
    upload->stop = stop;
    upload->stop_patience_ms = patience_ms;
    (void)curl_easy_setopt(upload->easy, CURLOPT_XFERINFOFUNCTION, is_stopped);
    (void)curl_easy_setopt(upload->easy, CURLOPT_XFERINFODATA, upload);
    (void)curl_easy_setopt(upload->easy, CURLOPT_NOPROGRESS, 0L);
}

static bool set_up(struct import_upload *upload, const char *token)
{
    CURL *easy = upload->easy;
    /* No "Expect: 100-continue": it costs a round trip and gains nothing for a body this small. */
    upload->headers = curl_handle_headers("Expect:", token);
    return upload->headers != NULL &&
           curl_handle_set_up(
               easy, upload->url, "tallyd-import", take_answer, upload, upload->error) &&
           curl_easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_body) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_READDATA, upload) == CURLE_OK;
}

struct import_upload *import_upload_new(const char *url, const char *token, bool count_robots)
{
    struct import_upload *upload = calloc(1, sizeof(*upload));
    if (upload == NULL) {
        return NULL;
    }
    if (asprintf(&upload->url, "%.*s/events%s", (int)server_url_length(url), url,
            count_robots ? "?bots=count" : "") < 0) {
        upload->url = NULL;
    }
    upload->easy = curl_easy_init();
    if (upload->url != NULL && upload->easy != NULL && set_up(upload, token)) {
        return upload;
    }
    import_upload_free(upload);
    return NULL;
}

void import_upload_free(struct import_upload *upload)
{
    if (upload == NULL) {
        return;
    }
    curl_easy_cleanup(upload->easy);
    curl_slist_free_all(upload->headers);
    free(upload->url);
    free(upload);
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static void list_rejects(const json_t *errors, size_t count, struct import_upload_answer *ret)
{
    const json_t *item;
    size_t i;
    json_array_foreach(errors, i, item)
    {
        if (ret->n_rejects == IMPORT_UPLOAD_REJECTS) {
            return;
        }
        const json_t *index = json_object_get(item, "index");
        json_int_t value = json_integer_value(index);
        if (!json_is_integer(index) || value < 0 || (uint64_t)value >= count) {
            continue;
        }
        struct import_upload_reject *reject = &ret->rejects[ret->n_rejects];
        const char *pointer = text_of(item, "pointer");
        reject->index = (size_t)value;
        (void)snprintf(reject->detail, sizeof(reject->detail), "%s%s%s", pointer,
            *pointer != '\0' ? ": " : "", text_of(item, "detail"));
        escape_in_place(reject->detail);
        ret->n_rejects++;
    }
}

/* Read the counts and errors of a 202.  False: the answer has none, or does not account for every
 * event. */
static bool read_counts(const json_t *answer, size_t count, struct import_upload_answer *ret)
{
    const json_t *accepted = json_object_get(answer, "accepted");
    const json_t *rejected = json_object_get(answer, "rejected");
    const json_t *dropped = json_object_get(answer, "dropped_total");
    if (!json_is_integer(accepted) || !json_is_integer(rejected) ||
        json_integer_value(accepted) < 0 || json_integer_value(rejected) < 0 ||
        json_integer_value(dropped) < 0) {
        return false;
    }
    ret->accepted = (uint64_t)json_integer_value(accepted);
    ret->rejected = (uint64_t)json_integer_value(rejected);
    ret->dropped = (uint64_t)json_integer_value(dropped); /* 0 where there is no such member */
    list_rejects(json_object_get(answer, "errors"), count, ret);
    return ret->accepted + ret->rejected + ret->dropped == count;
}

/* Write "the server answers 503 Service Unavailable: storage is not reachable". */
static void describe(long status, const json_t *problem, struct import_upload_answer *ret)
{
    const char *title = text_of(problem, "title"), *detail = text_of(problem, "detail");
    (void)snprintf(ret->detail, sizeof(ret->detail), "the server answers %ld%s%s%s%s%s", status,
        *title != '\0' ? " " : "", title, *detail != '\0' ? ": " : "", detail,
        status == 404 ? " (is --url right? it ends before /events)" : "");
    escape_in_place(ret->detail);
}

static enum import_upload_result judge(
    long status, const json_t *answer, size_t count, struct import_upload_answer *ret)
{
    const json_t *errors = json_object_get(answer, "errors");
    describe(status, answer, ret);
    switch (status) {
    case 202:
        if (read_counts(answer, count, ret)) {
            return IMPORT_UPLOAD_ANSWERED;
        }
        (void)snprintf(ret->detail, sizeof(ret->detail),
            "the server answers 202 without saying what became of all %zu events", count);
        return IMPORT_UPLOAD_IN_DOUBT;
    case 422: /* every event was rejected; without a list: the key was used with another body */
        if (!json_is_array(errors)) {
            return IMPORT_UPLOAD_KEY_USED;
        }
        ret->rejected = count;
        list_rejects(errors, count, ret);
        return IMPORT_UPLOAD_ANSWERED;
    case 413:
        return IMPORT_UPLOAD_TOO_LARGE;
    case 429: /* -1: more than the limit ever lets through at once */
        return json_integer_value(json_object_get(answer, "retry_after_s")) < 0
                   ? IMPORT_UPLOAD_TOO_LARGE
                   : IMPORT_UPLOAD_BUSY;
    case 503:
        return IMPORT_UPLOAD_BUSY;
    case 408: /* the body came too slowly: a proxy may have had all of it */
        return IMPORT_UPLOAD_IN_DOUBT;
    default: /* 504, and what a proxy or a fault answers, leaves open what happened */
        return status >= 300 && status < 500 ? IMPORT_UPLOAD_REFUSED : IMPORT_UPLOAD_IN_DOUBT;
    }
}

/* Judge a post without an answer.  As long as a part of the body has not been handed to curl, the
 * server cannot have all of the body, and a server does nothing with a part. */
static enum import_upload_result judge_failure(
    const struct import_upload *upload, CURLcode code, struct import_upload_answer *ret)
{
    const char *why = upload->error[0] != '\0' ? upload->error : curl_easy_strerror(code);
    if (upload->answer_too_long) {
        why = "the answer is longer than tallyd's ever are";
    } else if (code == CURLE_SEND_FAIL_REWIND) { /* curl wanted to send the body again */
        why = "the connection was lost";
    }
    (void)snprintf(ret->detail, sizeof(ret->detail), "no answer from %s: %s", upload->url, why);
    escape_in_place(ret->detail);
    return upload->unsent.n > 0 ? IMPORT_UPLOAD_UNREACHABLE : IMPORT_UPLOAD_IN_DOUBT;
}

static bool is_replayed(struct import_upload *upload)
{
    struct curl_header *header;
    return curl_easy_header(upload->easy, "Idempotency-Replayed", 0, CURLH_HEADER, -1, &header) ==
           CURLHE_OK;
}

static CURLcode perform(
    struct import_upload *upload, const char *key, struct slice body, size_t count)
{
    char text[128];
    char ndjson[] = "Content-Type: application/x-ndjson", json[] = "Content-Type: application/json";
    struct curl_slist type = {.data = count > 0 ? ndjson : json, .next = upload->headers};
    struct curl_slist first = {.data = text, .next = &type};
    (void)snprintf(text, sizeof(text), "Idempotency-Key: %s", key);
    CURLcode code = curl_easy_setopt(upload->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.n);
    if (code == CURLE_OK) {
        code = curl_easy_setopt(upload->easy, CURLOPT_HTTPHEADER, &first);
    }
    if (code == CURLE_OK) {
        code = curl_easy_perform(upload->easy);
    }
    (void)curl_easy_setopt(upload->easy, CURLOPT_HTTPHEADER, NULL);
    return code;
}

enum import_upload_result import_upload_post(struct import_upload *upload, const char *key,
    struct slice body, size_t count, struct import_upload_answer *ret)
{
    *ret = (struct import_upload_answer){0};
    upload->unsent = body;
    upload->answer_n = 0;
    upload->answer_too_long = false;
    upload->error[0] = '\0';
    CURLcode code = perform(upload, key, body, count);
    if (code != CURLE_OK) {
        return judge_failure(upload, code, ret);
    }
    long status = 0;
    curl_off_t retry_after_s = 0;
    (void)curl_easy_getinfo(upload->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(upload->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    ret->retry_after_s = (int64_t)retry_after_s;
    ret->replayed = is_replayed(upload);
    json_memory_begin(false);
    json_t *answer = json_loadb(upload->answer, upload->answer_n, 0, NULL);
    enum import_upload_result result = IMPORT_UPLOAD_IN_DOUBT;
    if (json_memory_failed()) { /* a number may lack a digit */
        (void)snprintf(ret->detail, sizeof(ret->detail), "out of memory for the server's answer");
    } else {
        result = judge(status, answer, count, ret);
    }
    json_decref(answer);
    return result;
}
