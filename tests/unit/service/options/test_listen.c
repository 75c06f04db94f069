#include "service/options/listen.h"

#include <criterion/criterion.h>

TestSuite(listen, .timeout = 60);

/* ---- what works ---- */

Test(listen, loopback)
{
    static const struct {
        const char *text;
        bool loopback;
        uint16_t port;
    } cases[] = {{"127.0.0.1:8080", true, 8080}, {"127.255.3.4:0", true, 0}, {"[::1]:1", true, 1},
        {"localhost:65535", true, 65535}, {"LocalHost:1", true, 1}, {"0.0.0.0:80", false, 80},
        {"128.0.0.1:80", false, 80}, {"[::]:80", false, 80}, {"[0:0:0:0:0:0:0:1]:80", true, 80},
        {"[::ffff:127.0.0.1]:80", false, 80}, {"example.org:80", false, 80},
        {"localhost.example:80", false, 80}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct listen_address address;

        cr_assert(listen_parse(cases[i].text, &address) == NULL, "%s", cases[i].text);
        cr_expect_eq(listen_is_loopback(&address), cases[i].loopback, "%s", cases[i].text);
        cr_expect_eq(address.port, cases[i].port, "%s", cases[i].text);
    }
}

/* ---- what is refused ---- */

Test(listen, refused)
{
    static const char *const texts[] = {"", ":80", "80", "127.0.0.1", "127.0.0.1:", "h:65536",
        "h:-1", "h:+1", "h: 1", "::1:80", "[::1]", "[::1]80", "[]:80", "[127.0.0.1]:80", "127.1:80",
        "0x7f.0x1:80", "1:80", "256.0.0.1:80", "a b:80", "a/b:80", ".:80", "a.:80",
        "[fe80::1%lo]:80", "http://h:80", "[:80", "]:80"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct listen_address address;

        cr_expect(listen_parse(texts[i], &address) != NULL, "%s", texts[i]);
    }
}
