#include "service/settings_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "storage/base/regular_file.h"

FILE *settings_file_open(const char *path, bool again, const char **ret_error)
{
    int fd = again ? regular_file_open(path, ret_error) : open(path, O_RDONLY | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (file == NULL && (fd >= 0 || !again)) {
        *ret_error = strerror(errno);
    }
    if (file == NULL && fd >= 0) {
        (void)close(fd);
    }
    return file;
}
