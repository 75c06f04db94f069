/* fuzz_access_log.c - any bytes as a line of an access log, in both formats: no byte outside the
 * line is read, and what is called an event keeps the promises of access_log.h.
 */
#include <stdint.h>
#include <stdlib.h>

#include "service/client/access_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define CHECK(fact)                                                                                \
    do {                                                                                           \
        if (!(fact))                                                                               \
            abort();                                                                               \
    } while (0)

static bool lies_in(struct slice part, struct slice whole)
{
    return part.n == 0 || (part.p >= whole.p && part.p + part.n <= whole.p + whole.n);
}

static void check(struct slice text, enum access_log_format format)
{
    struct access_log_line line = {0};
    const char *detail = NULL;

    switch (access_log_parse(text, format, &line, &detail)) {
    case ACCESS_LOG_MALFORMED:
        CHECK(detail && !line.host.p);
        return;
    case ACCESS_LOG_EVENT:
        CHECK(line.method != ACCESS_LOG_OTHER);
        break;
    case ACCESS_LOG_OTHER_METHOD:
        CHECK(line.method == ACCESS_LOG_OTHER);
        break;
    }
    CHECK(!detail && line.host.n > 0 && line.page.n > 0);
    CHECK(lies_in(line.host, text) && lies_in(line.page, text) && lies_in(line.ua, text));
    CHECK(line.at_s >= 0 && line.at_s < INT64_C(100000000000));
    CHECK(!memchr(line.page.p, '?', line.page.n) && !memchr(line.page.p, '\0', line.page.n));
    CHECK((line.ua.p != NULL) == (format == ACCESS_LOG_COMBINED));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct slice text = {(const char *)data, n};

    check(text, ACCESS_LOG_COMBINED);
    check(text, ACCESS_LOG_COMMON);
    return 0;
}
