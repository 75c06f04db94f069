/* A host's site. */
#include <criterion/criterion.h>

#include "service/client/import_lines.h"

Test(import_lines, the_site_of_a_host)
{
    static const struct {
        const char *host, *site; /* NULL: none */
    } rows[] = {
        {"example.org", "example.org"},
        {"WWW.Example.ORG", "www.example.org"},
        {"example.org:8080", "example.org"},
        {"example.org.", "example.org"},
        {"example.org.:443", "example.org"},
        {"192.0.2.1:80", "192.0.2.1"},
        {"localhost", "localhost"},
        {"", NULL},
        {":80", NULL},
        {".", NULL},
        {"_", NULL}, /* nginx's name of a server without one */
        {"-", NULL},
        {"a b", NULL},
        {"[2001:db8::1]:443", NULL},
        {"2001:db8::1", NULL},
        {"b\xc3\xbc"
         "cher.example",
            NULL},
        {"0123456789012345678901234567890123456789012345678901234567890123",
            "0123456789012345678901234567890123456789012345678901234567890123"},
        {"0123456789012345678901234567890123456789012345678901234567890123x", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char to[EVENT_SITE_MAX];
        struct slice site = {0};
        bool found = import_site_of_host(slice_of(rows[i].host), to, &site);
        cr_assert_eq(found, rows[i].site != NULL, "%s", rows[i].host);
        cr_expect(!found || slice_equal(site, slice_of(rows[i].site)), "%s", rows[i].host);
    }
}

/* The server lists a hundred rejects of a request.  Of those behind them some are seen to be no
 * JSON at all, and the others are rejected: no event is both, and none is counted twice. */
Test(import_lines, rejects_behind_those_that_are_listed)
{
    static struct import_upload_answer answer;
    static struct import_lines lines;
    static struct import_report report;
    const struct import_options options = {.format = LOG_FORMAT_NDJSON};
    struct import_batch *batch = import_batch_new(NULL);
    cr_assert_not_null(batch);
    import_report_init(&report);
    import_lines_init(&lines, &options, batch, &report);
    for (size_t i = 0; i < IMPORT_UPLOAD_REJECTS + 2; i++) {
        import_lines_take(&lines, i <= IMPORT_UPLOAD_REJECTS ? SLICE("{") : SLICE("{}"), i + 1);
    }
    for (size_t i = 0; i < IMPORT_UPLOAD_REJECTS; i++) {
        answer.rejects[answer.n_rejects++].index = i;
    }
    answer.rejected = IMPORT_UPLOAD_REJECTS + 2;
    import_lines_answered(&lines, 0, IMPORT_UPLOAD_REJECTS + 2, &answer);
    cr_expect_eq(report.left_out[IMPORT_MALFORMED], IMPORT_UPLOAD_REJECTS + 1);
    cr_expect_eq(report.rejected, 1);
    import_batch_free(batch);
}
