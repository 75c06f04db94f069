#include "storage/time/zone_store.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "storage/base/cond.h"
#include "storage/base/index.h"
#include "storage/base/regular_file.h"
#include "storage/time/zone_file.h"

#define SYSTEM_DIRECTORY "/usr/share/zoneinfo"

static const char unknown[] = "no such time zone: give an IANA name such as Europe/Berlin";

struct zone_store {
    char *directory;
    pthread_mutex_t lock; /* guards the members below */
    struct zone **zones;  /* owned; the zones that were read so far, a few */
    size_t n, capacity;
};

struct zone_store *zone_store_new(const char *directory)
{
    struct zone_store *store = calloc(1, sizeof(*store));
    if (store == NULL) {
        return NULL;
    }
    if (directory == NULL) {
        const char *environment = getenv("TZDIR");
        directory = environment != NULL && *environment != '\0' ? environment : SYSTEM_DIRECTORY;
    }
    store->directory = strdup(directory);
    if (store->directory == NULL) {
        free(store);
        return NULL;
    }
    mutex_init(&store->lock);
    return store;
}

void zone_store_free(struct zone_store *store)
{
    if (store == NULL) {
        return;
    }
    for (size_t i = 0; i < store->n; i++) {
        zone_free(store->zones[i]);
    }
    free(store->zones);
    free(store->directory);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

static bool is_name_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '+' || c == '-';
}

bool zone_name_is_valid(struct slice name)
{
    bool inside = false; /* the character before belongs to a part */
    if (name.n > ZONE_NAME_MAX || slice_equal(name, SLICE("localtime")) ||
        slice_equal(name, SLICE("posixrules"))) {
        return false; /* these two names stand for other zones on other machines */
    }
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] == '/' ? !inside : !is_name_char(name.p[i])) {
            return false;
        }
        inside = name.p[i] != '/';
    }
    return inside;
}

/* Read a whole file of at most @room bytes.  Returns its size, or -1 with errno set. */
static ssize_t read_file(const char *path, char *bytes, size_t room)
{
    const char *ignored;
    int fd = regular_file_open(path, &ignored);
    if (fd < 0) {
        return -1;
    }
    size_t n = 0;
    ssize_t got;
    do {
        got = read(fd, bytes + n, room - n);
        n += got > 0 ? (size_t)got : 0;
    } while (got > 0 && n < room);
    (void)close(fd);
    return got < 0 ? -1 : (ssize_t)n;
}

static struct zone *load_zone(
    const struct zone_store *store, const char *name, const char **ret_fault)
{
    size_t size = strlen(store->directory) + 1 + strlen(name) + 1;
    char *path = malloc(size);
    char *bytes = malloc(ZONE_FILE_MAX + 1);
    struct zone *zone = NULL;
    const char *fault = "out of memory";
    if (path != NULL && bytes != NULL) {
        (void)snprintf(path, size, "%s/%s", store->directory, name);
        ssize_t n = read_file(path, bytes, ZONE_FILE_MAX + 1);
        if (n >= 0) {
            zone = zone_from_file((struct slice){bytes, (size_t)n}, name, &fault);
        } else if (errno == ENOENT || errno == ENOTDIR || errno == EISDIR || errno == ELOOP) {
            fault = unknown;
        } else {
            fault = "the file of this time zone cannot be read";
        }
    }
    free(bytes);
    free(path);
    if (zone == NULL) {
        *ret_fault = fault;
    }
    return zone;
}

/* The zone as it was read before, or else from its file.  With the lock held. */
static const struct zone *find_zone(
    struct zone_store *store, const char *name, const char **ret_fault)
{
    for (size_t i = 0; i < store->n; i++) {
        if (strcmp(zone_name(store->zones[i]), name) == 0) {
            return store->zones[i];
        }
    }
    struct zone *zone = load_zone(store, name, ret_fault);
    if (zone == NULL) {
        return NULL;
    }
    if (!array_reserve(&store->zones, &store->capacity, store->n, sizeof(struct zone *))) {
        zone_free(zone);
        *ret_fault = "out of memory";
        return NULL;
    }
    store->zones[store->n++] = zone;
    return zone;
}

const struct zone *zone_store_get(
    struct zone_store *store, struct slice name, const char **ret_fault)
{
    if (slice_equal(name, SLICE("UTC"))) {
        return zone_utc();
    }
    if (!zone_name_is_valid(name)) {
        *ret_fault = unknown;
        return NULL;
    }
    char text[ZONE_NAME_MAX + 1];
    memcpy(text, name.p, name.n);
    text[name.n] = '\0';
    pthread_mutex_lock(&store->lock);
    const struct zone *zone = find_zone(store, text, ret_fault);
    pthread_mutex_unlock(&store->lock);
    return zone;
}
