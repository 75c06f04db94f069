/* fuzz_log_format.c - any bytes as lines of an access log.  The first byte names the format: 'a' is
 * the first of LOG_FORMATS, and so on; behind the last of them, the first line is a log_format of
 * nginx.  No byte outside the lines is read, and what is called a
 * request keeps the promises of log_line.h.
 */
#include <stdint.h>
#include <stdlib.h>

#include "handlers/text/utf8.h"
#include "service/formats/log_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define CHECK(fact)                                                                                \
    do {                                                                                           \
        if (!(fact))                                                                               \
            abort();                                                                               \
    } while (0)

static void check_request(const struct log_line *line)
{
    CHECK(line->client.n > 0 && line->page.n > 0);
    CHECK(line->at_s >= 0 && line->at_s < INT64_C(100000000000));
    CHECK(utf8_valid(line->client) && utf8_valid(line->page) && utf8_valid(line->ua));
    CHECK(line->status <= 999 && line->method <= LOG_OTHER);
    for (size_t i = 0; i < line->page.n; i++) {
        CHECK((unsigned char)line->page.p[i] >= 0x20 && line->page.p[i] != '?');
    }
    CHECK(line->ua.n == 0 || memchr(line->ua.p, '\0', line->ua.n) == NULL);
    CHECK(line->host.n == 0 || line->host.p[line->host.n - 1] != '\n');
}

static void check(struct log_parser *parser, struct slice text)
{
    struct log_line line = {0};
    const char *detail = NULL;

    /* A copy that ends where the line does, so that a sanitizer sees a byte read too many. */
    char *copy = malloc(text.n > 0 ? text.n : 1);
    CHECK(copy != NULL);
    if (text.n > 0) {
        memcpy(copy, text.p, text.n);
    }
    enum log_result result = log_parser_read(parser, (struct slice){copy, text.n}, &line, &detail);
    CHECK((result == LOG_MALFORMED) == (detail != NULL));
    if (result == LOG_REQUEST) {
        check_request(&line);
    } else {
        CHECK(line.client.p == NULL);
    }
    free(copy);
}

/* Begin with a template, the first line.  False: it is none. */
static bool begin_template(struct log_parser *parser, const char **p, const char *end)
{
    static char format[1024];
    static struct nginx_template tmpl;
    const char *newline = memchr(*p, '\n', (size_t)(end - *p));

    if (newline == NULL || (size_t)(newline - *p) >= sizeof(format)) {
        return false;
    }
    memcpy(format, *p, (size_t)(newline - *p));
    format[newline - *p] = '\0';
    *p = newline + 1;
    if (nginx_template_compile(format, &tmpl) != NULL) {
        return false;
    }
    log_parser_init(parser, LOG_FORMAT_AUTO, &tmpl);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct log_parser parser;

    if (n == 0 || data[0] < 'a' || data[0] - 'a' > LOG_FORMAT_COUNT) {
        return -1;
    }
    const char *p = (const char *)data + 1, *end = (const char *)data + n;
    log_parser_init(&parser, (enum log_format)(data[0] - 'a'), NULL);
    if (data[0] - 'a' == LOG_FORMAT_COUNT && !begin_template(&parser, &p, end)) {
        return 0;
    }
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline != NULL ? newline : end;
        if (stop - p <= LOG_LINE_MAX) {
            check(&parser, (struct slice){p, (size_t)(stop - p)});
        }
        p = stop < end ? stop + 1 : end;
    }
    return 0;
}
