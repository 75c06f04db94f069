/* service.h - a tallyd in this process, on a real Redis, whose allocations may be made to fail.
 *
 * HTTP server, handlers and storage as `tallyd serve` puts them together, with as few threads as
 * there can be.  What cannot be had at all ends the program with status 2.
 */
#ifndef TESTS_OOM_SERVICE_H
#define TESTS_OOM_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handlers/http/app.h"
#include "service/http/server.h"
#include "service/redis/redis_child.h"

#define SERVICE_BODY_MAX (1024 * 1024)

struct service {
    uint64_t max_names;        /* caps of a dimension's values and of named events; 0: none */
    struct redis_child *redis; /* NULL: OOM_REDIS */
    struct app app;
    struct app_stats stats;
    struct site_stats site_stats;
    struct robots_cache robots;
    struct http_server *server;
};

/* A Redis in a directory of its own below /tmp, or what OOM_REDIS of the environment names (see
 * cluster.sh).  jansson is given the failing allocator, too. */
const char *service_redis_url(const struct service *s);
void service_start_redis(struct service *s, enum redis_fsync fsync);
void service_stop_redis(struct service *s);

void service_open(struct service *s);
void service_close(struct service *s);

/* Send @head and @body over a connection of their own.  The status of the answer, its text in
 * @answer; 0 without one. */
int service_ask(struct service *s, const char *head, const char *body, size_t body_n, char *answer,
    size_t answer_n);

/* The same of whoever listens on @port of this machine. */
int service_ask_port(uint16_t port, const char *head, const char *body, size_t body_n, char *answer,
    size_t answer_n);

void service_wait_ms(int64_t ms);

#endif
