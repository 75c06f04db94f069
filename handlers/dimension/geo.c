#include "handlers/dimension/geo.h"

#include <errno.h>
#include <maxminddb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "handlers/dimension/language.h"
#include "storage/base/regular_file.h"

#define COPY_STEP (1 << 20) /* bytes that one call of sendfile() copies at most */

struct geo {
    MMDB_s file;
};

/* Copy the file into memory.  -1: *ret_error says why.  libmaxminddb maps the file that it reads.
 * `cp` and `curl -o` truncate the file that they write over, and reading a mapped file that was
 * truncated ends the process. */
static int copy_file(int fd, const char **ret_error)
{
    int copy = memfd_create("geo", MFD_CLOEXEC);
    ssize_t n = copy < 0 ? -1 : 1;
    while (n > 0) {
        n = sendfile(copy, fd, NULL, COPY_STEP);
    }
    if (n == 0) {
        return copy;
    }
    *ret_error = strerror(errno);
    if (copy >= 0) {
        (void)close(copy);
    }
    return -1;
}

/* Open the copy, which has no name, by the path of its descriptor. */
static int open_copy(int copy, MMDB_s *ret)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", copy);
    return MMDB_open(path, MMDB_MODE_MMAP, ret);
}

struct geo *geo_open(const char *path, const char **ret_error)
{
    int fd = regular_file_open(path, ret_error); /* libmaxminddb would wait for a pipe */
    if (fd < 0) {
        return NULL;
    }
    int copy = copy_file(fd, ret_error);
    (void)close(fd);
    if (copy < 0) {
        return NULL;
    }
    struct geo *geo = calloc(1, sizeof(*geo));
    if (geo == NULL) {
        (void)close(copy);
        *ret_error = "out of memory";
        return NULL;
    }
    int status = open_copy(copy, &geo->file);
    (void)close(copy);
    if (status != MMDB_SUCCESS) {
        *ret_error = MMDB_strerror(status);
        free(geo);
        return NULL;
    }
    return geo;
}

void geo_close(struct geo *geo)
{
    if (geo != NULL) {
        MMDB_close(&geo->file);
        free(geo);
    }
}

/* Find the entry of @address.  False: the file has none. */
static bool look_up(
    const struct geo *geo, const struct event_address *address, MMDB_entry_s *ret_entry)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    const struct sockaddr *socket_address = (const struct sockaddr *)&v6;
    int error = MMDB_SUCCESS;
    if (address->len == 4) {
        memcpy(&v4.sin_addr, address->bytes, 4);
        socket_address = (const struct sockaddr *)&v4;
    } else if (address->len == 16 && geo->file.metadata.ip_version == 6) {
        memcpy(&v6.sin6_addr, address->bytes, 16);
    } else {
        return false;
    }
    MMDB_lookup_result_s result = MMDB_lookup_sockaddr(&geo->file, socket_address, &error);
    *ret_entry = result.entry;
    return error == MMDB_SUCCESS && result.found_entry;
}

struct slice geo_country(const struct geo *geo, const struct event_address *address)
{
    MMDB_entry_s entry;
    MMDB_entry_data_s data;
    if (!look_up(geo, address, &entry) ||
        MMDB_get_value(&entry, &data, "country", "iso_code", NULL) != MMDB_SUCCESS ||
        !data.has_data || data.type != MMDB_DATA_TYPE_UTF8_STRING ||
        data.data_size != COUNTRY_SIZE || data.utf8_string[0] < 'A' || data.utf8_string[0] > 'Z' ||
        data.utf8_string[1] < 'A' || data.utf8_string[1] > 'Z') {
        return (struct slice){NULL, 0};
    }
    return (struct slice){data.utf8_string, COUNTRY_SIZE};
}
