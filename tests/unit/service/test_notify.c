#include "service/notify.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

TestSuite(notify, .timeout = 60);

/* A manager's socket; @address is as in $NOTIFY_SOCKET. */
static int listen_at(const char *address)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t n = strlen(address);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    cr_assert_geq(fd, 0);
    cr_assert_leq(n, sizeof(at.sun_path));
    memcpy(at.sun_path, address, n);
    if (address[0] == '@') {
        at.sun_path[0] = '\0';
    }
    socklen_t at_n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    cr_assert_eq(bind(fd, (struct sockaddr *)&at, at_n), 0, "%s: %s", address, strerror(errno));
    return fd;
}

/* What came, in @text; "" if nothing did. */
static void receive(int fd, char text[64])
{
    ssize_t n = recv(fd, text, 63, MSG_DONTWAIT);

    text[n < 0 ? 0 : n] = '\0';
}

Test(notify, path)
{
    char dir[] = "/tmp/notify-XXXXXX", path[64], text[64];

    cr_assert_not_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/s", dir);
    int fd = listen_at(path);

    cr_expect(notify_send(path, NOTIFY_READY));
    cr_expect(notify_send(path, NOTIFY_STOPPING));
    receive(fd, text);
    cr_expect_str_eq(text, "READY=1");
    receive(fd, text);
    cr_expect_str_eq(text, "STOPPING=1", "one datagram each, in order");
    receive(fd, text);
    cr_expect_str_eq(text, "", "and nothing else");
    (void)close(fd);
    (void)unlink(path);
    (void)rmdir(dir);
}

/* The whole room of an address may be used: there is no NUL at an abstract name's end. */
Test(notify, abstract)
{
    char address[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 1], text[64];
    int n = snprintf(address, sizeof(address), "@tallyd-test-notify-%ld-", (long)getpid());

    memset(address + n, 'x', sizeof(address) - 1 - (size_t)n);
    address[sizeof(address) - 1] = '\0';
    for (int whole = 0; whole < 2; whole++) {
        address[whole ? sizeof(address) - 1 : (size_t)n] = '\0';
        int fd = listen_at(address);

        cr_expect(notify_send(address, NOTIFY_READY), "%s", address);
        receive(fd, text);
        cr_expect_str_eq(text, "READY=1", "%s", address);
        (void)close(fd);
        address[n] = 'x';
    }
}

Test(notify, nobody_asked)
{
    cr_expect(notify_send(NULL, NOTIFY_READY));
    cr_expect(notify_send("", NOTIFY_READY));
}

Test(notify, no_address)
{
    static const char *const texts[] = {"relative/path", "vsock:2:1234", "@", "/", "x"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        errno = 0;
        cr_expect_not(notify_send(texts[i], NOTIFY_READY), "%s", texts[i]);
        cr_expect_eq(errno, EAFNOSUPPORT, "%s: %d", texts[i], errno);
    }
}

Test(notify, too_long)
{
    size_t room = sizeof(((struct sockaddr_un *)NULL)->sun_path);
    char text[128];

    memset(text, 'x', sizeof(text));
    text[0] = '/';
    text[room] = '\0'; /* no room for the NUL behind it */
    cr_expect_not(notify_send(text, NOTIFY_READY));
    cr_expect_eq(errno, ENAMETOOLONG);
    text[0] = '@';
    text[room] = 'x';
    text[room + 1] = '\0';
    cr_expect_not(notify_send(text, NOTIFY_READY));
    cr_expect_eq(errno, ENAMETOOLONG);
}

Test(notify, nobody_there)
{
    cr_expect_not(notify_send("/tmp/there/is/no/such/socket", NOTIFY_READY));
    cr_expect_eq(errno, ENOENT);
    cr_expect_not(notify_send("@tallyd-test-nobody-is-here", NOTIFY_READY));
    cr_expect_eq(errno, ECONNREFUSED);
}

/* A manager that does not read must not stop the program: at last it is told no, at once. */
Test(notify, never_blocks)
{
    char address[64];
    bool sent = true;

    (void)snprintf(address, sizeof(address), "@tallyd-test-full-%ld", (long)getpid());
    int fd = listen_at(address);
    for (int i = 0; i < 1000000 && sent; i++) {
        sent = notify_send(address, NOTIFY_READY);
    }
    cr_expect_not(sent);
    cr_expect_eq(errno, EAGAIN);
    (void)close(fd);
}
