#include "handlers/dimension/geo.h"

#include <errno.h>
#include <fcntl.h>
#include <maxminddb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "handlers/dimension/language.h"

struct geo {
    MMDB_s file;
};

/* NULL, or why no file can be read at @path.  libmaxminddb does not say, and waits for a pipe. */
static const char *file_fault(const char *path)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return strerror(errno);
    }
    bool is_file = fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
    (void)close(fd);
    return is_file ? NULL : "not a regular file";
}

struct geo *geo_open(const char *path, const char **ret_error)
{
    const char *fault = file_fault(path);
    if (fault != NULL) {
        *ret_error = fault;
        return NULL;
    }
    struct geo *geo = calloc(1, sizeof(*geo));
    if (geo == NULL) {
        *ret_error = "out of memory";
        return NULL;
    }
    int status = MMDB_open(path, MMDB_MODE_MMAP, &geo->file);
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

/* The entry of an address.  False: the file has none. */
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
