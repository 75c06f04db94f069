#include "service/notify.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The length of the address that @text means; 0 with errno if @text is no address.  An abstract
 * name has no NUL at its end: only the length says where the name stops. */
static socklen_t parse(const char *text, struct sockaddr_un *ret)
{
    size_t n = strlen(text);
    bool abstract = text[0] == '@';
    if ((!abstract && text[0] != '/') || n < 2) {
        errno = EAFNOSUPPORT;
        return 0;
    }
    if (n > sizeof(ret->sun_path) - (abstract ? 0 : 1)) {
        errno = ENAMETOOLONG;
        return 0;
    }
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret->sun_path, text, n);
    if (abstract) {
        ret->sun_path[0] = '\0';
    }
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (abstract ? 0 : 1));
}

bool notify_send(const char *address, const char *state)
{
    struct sockaddr_un to;
    if (address == NULL || address[0] == '\0') {
        return true;
    }
    socklen_t to_n = parse(address, &to);
    int fd = to_n == 0 ? -1 : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    ssize_t sent = sendto(
        fd, state, strlen(state), MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&to, to_n);
    int saved = errno;
    (void)close(fd);
    errno = saved;
    return sent >= 0;
}
