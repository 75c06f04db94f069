#include "storage/redis/resolver.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "storage/base/clock.h"
#include "storage/base/cond.h"

struct resolver {
    pthread_mutex_t lock; /* a leaf; guards the members up to `address` */
    pthread_cond_t ended; /* a look-up has ended */
    unsigned users;   /* the owner, and a thread that looks up; the last one frees the resolver */
    bool under_way;   /* a look-up is under way */
    uint64_t n_ended; /* how many look-ups have ended */
    int64_t ended_ms; /* when the last look-up ended, CLOCK_MONOTONIC */
    bool found;       /* the last look-up has found an address */
    char address[RESOLVER_ADDRESS_MAX]; /* the address, or the reason why there is none */

    resolver_lookup lookup;
    bool numeric; /* the host is an address, so nothing is looked up */
    char host[];
};

/* A resolver_lookup by getaddrinfo(). */
static bool look_up(const char *host, char address[RESOLVER_ADDRESS_MAX])
{
    static const int families[] = {AF_INET, AF_INET6};
    int fault = EAI_FAIL;
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        struct addrinfo hints = {.ai_family = families[i], .ai_socktype = SOCK_STREAM};
        struct addrinfo *found = NULL;
        fault = getaddrinfo(host, NULL, &hints, &found);
        if (fault == 0) {
            fault = getnameinfo(found->ai_addr, found->ai_addrlen, address, RESOLVER_ADDRESS_MAX,
                NULL, 0, NI_NUMERICHOST);
            freeaddrinfo(found);
        }
        if (fault == 0) {
            return true;
        }
    }
    (void)snprintf(address, RESOLVER_ADDRESS_MAX, "%s", gai_strerror(fault));
    return false;
}

static bool is_numeric(const char *host)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

struct resolver *resolver_new(const char *host, resolver_lookup lookup)
{
    size_t n = strlen(host) + 1;
    struct resolver *r = calloc(1, sizeof(*r) + n);
    if (r == NULL) {
        return NULL;
    }
    mutex_init(&r->lock);
    cond_init(&r->ended);
    memcpy(r->host, host, n);
    r->users = 1;
    r->lookup = lookup != NULL ? lookup : look_up;
    r->numeric = n <= RESOLVER_ADDRESS_MAX && is_numeric(host);
    return r;
}

/* Take one user away; the last user frees the resolver.  Called with the lock held, and unlocks
 * it. */
static void resolver_leave(struct resolver *r)
{
    bool last = --r->users == 0;
    pthread_mutex_unlock(&r->lock);
    if (last) {
        pthread_cond_destroy(&r->ended);
        pthread_mutex_destroy(&r->lock);
        free(r);
    }
}

void resolver_free(struct resolver *r)
{
    if (r != NULL) {
        pthread_mutex_lock(&r->lock);
        resolver_leave(r);
    }
}

/* The thread of one look-up. */
static void *resolver_run(void *argument)
{
    struct resolver *r = argument;
    char address[RESOLVER_ADDRESS_MAX] = "";
    bool found = r->lookup(r->host, address);
    pthread_mutex_lock(&r->lock);
    r->found = found;
    memcpy(r->address, address, sizeof(address));
    r->under_way = false;
    r->ended_ms = monotonic_ms();
    r->n_ended++;
    pthread_cond_broadcast(&r->ended);
    resolver_leave(r);
    return NULL;
}

/* Start a thread that looks the host up.  Called with the lock held.  False: there is no thread. */
static bool resolver_begin(struct resolver *r)
{
    pthread_attr_t detached;
    pthread_t thread;
    if (pthread_attr_init(&detached) != 0) {
        return false;
    }
    (void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    r->under_way = pthread_create(&thread, &detached, resolver_run, r) == 0;
    r->users += r->under_way;
    (void)pthread_attr_destroy(&detached);
    return r->under_way;
}

/* Take the last answer if it is fresh, or wait for a new one.  Called with the lock held.  False:
 * @address holds the reason as text. */
static bool wait_for_answer(
    struct resolver *r, int64_t deadline_ms, char address[RESOLVER_ADDRESS_MAX])
{
    bool fresh = r->n_ended > 0 && monotonic_ms() - r->ended_ms < RESOLVER_FRESH_MS;
    uint64_t wanted = r->n_ended + !fresh;
    if (!fresh && !r->under_way && !resolver_begin(r)) {
        (void)snprintf(address, RESOLVER_ADDRESS_MAX, "no thread to look the name up");
        return false;
    }
    while (r->n_ended < wanted && monotonic_ms() < deadline_ms) {
        cond_wait_until_ms(&r->ended, &r->lock, deadline_ms);
    }
    if (r->n_ended < wanted) {
        (void)snprintf(address, RESOLVER_ADDRESS_MAX, "the name servers do not answer");
        return false;
    }
    memcpy(address, r->address, RESOLVER_ADDRESS_MAX);
    return r->found;
}

bool resolver_ask(struct resolver *r, int64_t deadline_ms, char address[RESOLVER_ADDRESS_MAX])
{
    if (r->numeric) {
        (void)snprintf(address, RESOLVER_ADDRESS_MAX, "%.*s", RESOLVER_ADDRESS_MAX - 1, r->host);
        return true;
    }
    pthread_mutex_lock(&r->lock);
    bool found = wait_for_answer(r, deadline_ms, address);
    pthread_mutex_unlock(&r->lock);
    return found;
}
