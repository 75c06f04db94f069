#include "service/http/listen_socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* Why bind() has just failed. */
static const char *bind_fault(void)
{
    switch (errno) {
    case EADDRINUSE:
        return "the port is in use";
    case EACCES:
        return "no permission for this port";
    case EADDRNOTAVAIL:
        return "this machine does not have the address";
    default:
        return "the address cannot be bound";
    }
}

static int listen_on(const struct addrinfo *address, const char **ret_error)
{
    int type = address->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC;
    int fd = socket(address->ai_family, type, address->ai_protocol);
    if (fd < 0) {
        *ret_error = "no socket of this address family can be had";
        return -1;
    }
    /* Connections of a server that has just stopped must not keep the port. */
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    const char *fault = NULL;
    if (bind(fd, address->ai_addr, address->ai_addrlen) != 0) {
        fault = bind_fault();
    } else if (listen(fd, SOMAXCONN) != 0) {
        fault = "the address cannot be listened on";
    }
    if (fault == NULL) {
        return fd;
    }
    int saved = errno;
    (void)close(fd);
    errno = saved;
    *ret_error = fault;
    return -1;
}

static bool bound_port(int fd, uint16_t *ret)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } name = {.v6 = {0}};
    socklen_t n = sizeof(name);
    if (getsockname(fd, &name.any, &n) != 0) {
        return false;
    }
    *ret = ntohs(name.any.sa_family == AF_INET6 ? name.v6.sin6_port : name.v4.sin_port);
    return true;
}

int listen_socket_open(const char *host, uint16_t port, uint16_t *ret_port, const char **ret_error)
{
    char service[8];
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    (void)snprintf(service, sizeof(service), "%u", (unsigned)port);
    if (getaddrinfo(host, service, &hints, &found) != 0) {
        *ret_error = "the host name is not known";
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *address = found; fd < 0 && address != NULL;
         address = address->ai_next) {
        fd = listen_on(address, ret_error);
    }
    freeaddrinfo(found);
    if (fd >= 0 && !bound_port(fd, ret_port)) {
        (void)close(fd);
        *ret_error = "the port that was bound cannot be told";
        return -1;
    }
    return fd;
}
