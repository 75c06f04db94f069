#include "storage/core/period_secrets.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/cond.h"

#define AHEAD_LOOK_MS 10000

struct held_secret {
    struct period_secret period;
    int64_t gone_ms;
    bool proven; /* Redis has it, too */
};

void period_secrets_init(struct period_secrets *secrets)
{
    mutex_init(&secrets->lock);
    secrets->gone_ms = INT64_MAX;
}

void period_secrets_release(struct period_secrets *secrets)
{
    if (secrets->held != NULL) {
        sodium_memzero(secrets->held, secrets->n * sizeof(*secrets->held));
    }
    free(secrets->held);
    free(secrets->late);
    pthread_mutex_destroy(&secrets->lock);
}

/* ---- under the lock ---- */

/* The place in `held` where the secret of the period @start_s is, or belongs. */
static size_t secret_place(const struct period_secrets *secrets, int64_t start_s)
{
    size_t low = 0;
    size_t high = secrets->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (secrets->held[middle].period.start_s < start_s) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The secret of the period @start_s; NULL: this process has none. */
static struct held_secret *secret_find(const struct period_secrets *secrets, int64_t start_s)
{
    size_t at = secret_place(secrets, start_s);
    return at < secrets->n && secrets->held[at].period.start_s == start_s ? &secrets->held[at]
                                                                          : NULL;
}

static void secrets_sweep(struct period_secrets *secrets, int64_t now_ms)
{
    size_t kept = 0;
    if (now_ms < secrets->gone_ms) {
        return;
    }
    secrets->gone_ms = INT64_MAX;
    for (size_t i = 0; i < secrets->n; i++) {
        if (secrets->held[i].gone_ms > now_ms) {
            int64_t gone_ms = secrets->held[i].gone_ms;
            secrets->gone_ms = gone_ms < secrets->gone_ms ? gone_ms : secrets->gone_ms;
            secrets->held[kept++] = secrets->held[i];
        }
    }
    sodium_memzero(secrets->held + kept, (secrets->n - kept) * sizeof(*secrets->held));
    secrets->n = kept;
}

/* Make room for one more secret at @at.  False: out of memory. */
static bool open_place(struct period_secrets *secrets, size_t at)
{
    if (secrets->n == secrets->capacity) {
        size_t capacity = secrets->capacity == 0 ? 4 : secrets->capacity * 2;
        struct held_secret *held = calloc(capacity, sizeof(*held));
        if (held == NULL) {
            return false;
        }
        if (secrets->n > 0) { /* not realloc: that leaves a copy behind */
            memcpy(held, secrets->held, secrets->n * sizeof(*held));
            sodium_memzero(secrets->held, secrets->n * sizeof(*held));
        }
        free(secrets->held);
        secrets->held = held;
        secrets->capacity = capacity;
    }
    memmove(secrets->held + at + 1, secrets->held + at, (secrets->n - at) * sizeof(*secrets->held));
    secrets->n++;
    return true;
}

/* ---- what events need ---- */

static int compare_starts(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* The beginnings of the periods of those of @n events that have an address, each once and sorted;
 * the caller frees them.  NULL: out of memory. */
static int64_t *periods_of(
    enum rotation rotation, const struct event *events, size_t n, size_t *ret_n)
{
    int64_t *starts = malloc((n + 1) * sizeof(*starts));
    size_t found = 0;
    size_t kept = 0;
    for (size_t i = 0; starts != NULL && i < n; i++) {
        if (events[i].address.len > 0) {
            int64_t start_s = rotation_start_s(rotation, events[i].at_s);
            if (found == 0 || starts[found - 1] != start_s) {
                starts[found++] = start_s;
            }
        }
    }
    if (starts != NULL) {
        qsort(starts, found, sizeof(*starts), compare_starts);
    }
    for (size_t i = 0; i < found; i++) {
        if (kept == 0 || starts[kept - 1] != starts[i]) {
            starts[kept++] = starts[i];
        }
    }
    *ret_n = kept;
    return starts;
}

bool period_secrets_find(struct period_secrets *secrets, enum rotation rotation, int64_t now_ms,
    const struct event *events, size_t n, struct period_list *ret)
{
    size_t n_starts;
    if (rotation == ROTATE_NEVER) {
        *ret = (struct period_list){0};
        return true;
    }
    int64_t *starts = periods_of(rotation, events, n, &n_starts);
    *ret = (struct period_list){
        .known = malloc((n_starts + 1) * sizeof(*ret->known)), .missing = starts};
    if (starts == NULL || ret->known == NULL) {
        return false;
    }
    pthread_mutex_lock(&secrets->lock);
    secrets_sweep(secrets, now_ms);
    for (size_t i = 0; i < n_starts; i++) {
        const struct held_secret *held = secret_find(secrets, starts[i]);
        if (held != NULL && held->proven) {
            ret->known[ret->n_known++] = held->period;
        } else {
            starts[ret->n_missing++] = starts[i];
        }
    }
    pthread_mutex_unlock(&secrets->lock);
    return true;
}

void period_list_release(struct period_list *list)
{
    if (list->known != NULL) {
        sodium_memzero(list->known, list->n_known * sizeof(*list->known));
    }
    free(list->known);
    free(list->missing);
    *list = (struct period_list){0};
}

bool period_secrets_ahead(
    struct period_secrets *secrets, enum rotation rotation, int64_t now_ms, int64_t *ret_start_s)
{
    int64_t now_s = now_ms / 1000;
    bool due = false;
    if (rotation == ROTATE_NEVER || now_ms <= 0) {
        return false;
    }
    *ret_start_s = rotation_start_s(rotation, now_s + PERIOD_SECRET_AHEAD_S);
    pthread_mutex_lock(&secrets->lock);
    if (*ret_start_s > now_s && now_ms >= secrets->ahead_ms) {
        const struct held_secret *held = secret_find(secrets, *ret_start_s);
        due = held == NULL || !held->proven;
        secrets->ahead_ms = now_ms + AHEAD_LOOK_MS;
    } else if (secrets->ahead_ms > now_ms + AHEAD_LOOK_MS) {
        secrets->ahead_ms = now_ms; /* Redis's clock was set back */
    }
    pthread_mutex_unlock(&secrets->lock);
    return due;
}

/* ---- what Redis has ---- */

void period_secrets_propose(struct period_secrets *secrets, int64_t start_s, struct secret *ret)
{
    pthread_mutex_lock(&secrets->lock);
    const struct held_secret *held = secret_find(secrets, start_s);
    if (held != NULL) {
        *ret = held->period.secret;
    } else {
        randombytes_buf(ret->bytes, sizeof(ret->bytes));
    }
    pthread_mutex_unlock(&secrets->lock);
}

bool period_secrets_learn(
    struct period_secrets *secrets, int64_t start_s, const struct secret *secret, int64_t gone_ms)
{
    bool ok = true;
    pthread_mutex_lock(&secrets->lock);
    struct held_secret *held = secret_find(secrets, start_s);
    if (held == NULL) {
        size_t at = secret_place(secrets, start_s);
        ok = open_place(secrets, at);
        held = &secrets->held[at];
    }
    if (ok) {
        *held = (struct held_secret){{start_s, *secret}, gone_ms, true};
        secrets->gone_ms = gone_ms < secrets->gone_ms ? gone_ms : secrets->gone_ms;
    }
    pthread_mutex_unlock(&secrets->lock);
    return ok;
}

void period_secrets_doubt(struct period_secrets *secrets)
{
    pthread_mutex_lock(&secrets->lock);
    for (size_t i = 0; i < secrets->n; i++) {
        secrets->held[i].proven = false;
    }
    secrets->ahead_ms = 0;
    pthread_mutex_unlock(&secrets->lock);
}

void period_secrets_sweep(struct period_secrets *secrets, int64_t now_ms)
{
    pthread_mutex_lock(&secrets->lock);
    secrets_sweep(secrets, now_ms);
    pthread_mutex_unlock(&secrets->lock);
}

/* ---- periods that were late ---- */

bool period_secrets_set_late(struct period_secrets *secrets, const int64_t *starts, size_t n)
{
    int64_t *late = malloc((n + 1) * sizeof(*late));
    if (late == NULL) {
        return false;
    }
    if (n > 0) {
        memcpy(late, starts, n * sizeof(*late));
    }
    qsort(late, n, sizeof(*late), compare_starts);
    pthread_mutex_lock(&secrets->lock);
    int64_t *before = secrets->late;
    secrets->late = late;
    secrets->n_late = n;
    pthread_mutex_unlock(&secrets->lock);
    free(before);
    return true;
}

bool period_secrets_is_late(struct period_secrets *secrets, int64_t start_s)
{
    pthread_mutex_lock(&secrets->lock);
    bool late = secrets->n_late > 0 && bsearch(&start_s, secrets->late, secrets->n_late,
                                           sizeof(*secrets->late), compare_starts) != NULL;
    pthread_mutex_unlock(&secrets->lock);
    return late;
}
