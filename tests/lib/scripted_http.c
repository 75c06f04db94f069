#include "tests/lib/scripted_http.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUESTS_MAX 64

static struct {
    const char *const *answers;
    size_t n_answers, first; /* request first gets answers[0] */
    int listener;
    char url[64];
    struct scripted_request requests[REQUESTS_MAX];
    atomic_size_t n;
} server;

char *scripted_answer(int status, const char *headers, const char *body)
{
    char *answer;
    cr_assert(asprintf(&answer, "HTTP/1.1 %d Said\r\n%sContent-Length: %zu\r\n\r\n%s", status,
                  headers, strlen(body), body) > 0);
    return answer;
}

/* Read one request.  False: the client has closed. */
static bool read_request(int fd, struct scripted_request *ret)
{
    size_t n = 0, length = 0;
    while (n + 1 < sizeof(ret->head) && strstr(ret->head, "\r\n\r\n") == NULL) {
        if (read(fd, ret->head + n, 1) != 1) {
            return false;
        }
        ret->head[++n] = '\0';
    }
    const char *field = strcasestr(ret->head, "\r\nContent-Length:");
    if (field != NULL) {
        length = strtoul(strchr(field, ':') + 1, NULL, 10);
    }
    for (; ret->body_n < length; ret->body_n++) {
        char byte;
        if (read(fd, &byte, 1) != 1) {
            return false;
        }
        if (ret->body_n + 1 < sizeof(ret->body)) {
            ret->body[ret->body_n] = byte;
        }
    }
    return true;
}

static void serve_connection(int fd)
{
    for (;;) {
        struct scripted_request *request = &server.requests[server.n];
        if (server.n + 1 == REQUESTS_MAX || !read_request(fd, request)) {
            *request = (struct scripted_request){0};
            return;
        }
        size_t i = server.n++ - server.first;
        const char *answer = i < server.n_answers ? server.answers[i] : SCRIPTED_CLOSE;
        if (strcmp(answer, SCRIPTED_CLOSE) == 0) {
            return;
        }
        if (strcmp(answer, SCRIPTED_SILENCE) == 0) {
            continue; /* the next byte to read is the client's end */
        }
        for (size_t n = strlen(answer); n > 0;) {
            ssize_t sent = send(fd, answer, n, MSG_NOSIGNAL);
            if (sent <= 0) {
                return;
            }
            answer += sent;
            n -= (size_t)sent;
        }
    }
}

static void *serve(void *nothing)
{
    (void)nothing;
    for (;;) {
        int fd = accept(server.listener, NULL, NULL);
        cr_assert_geq(fd, 0);
        serve_connection(fd);
        (void)close(fd);
    }
    return NULL;
}

void scripted_http_start(const char *const *answers, size_t n_answers)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    pthread_t thread;
    server.answers = answers;
    server.n_answers = n_answers;
    server.first = server.n;
    if (server.url[0] != '\0') {
        return; /* it goes on with another script */
    }
    server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(bind(server.listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
              listen(server.listener, 8) == 0 &&
              getsockname(server.listener, (struct sockaddr *)&address, &size) == 0);
    (void)snprintf(
        server.url, sizeof(server.url), "http://127.0.0.1:%d", (int)ntohs(address.sin_port));
    cr_assert_eq(pthread_create(&thread, NULL, serve, NULL), 0);
    cr_assert_eq(pthread_detach(thread), 0);
}

const char *scripted_http_url(void)
{
    return server.url;
}

size_t scripted_http_requests(void)
{
    return server.n;
}

const struct scripted_request *scripted_http_request(size_t i)
{
    cr_assert_lt(i, server.n, "only %zu requests came", (size_t)server.n);
    return &server.requests[i];
}
