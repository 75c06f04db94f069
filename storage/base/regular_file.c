#include "storage/base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int regular_file_open(const char *path, const char **ret_error)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) {
        return fd;
    }
    *ret_error = fd < 0 ? strerror(errno) : "not a regular file";
    if (fd >= 0) {
        (void)close(fd);
        errno = EISDIR;
    }
    return -1;
}
