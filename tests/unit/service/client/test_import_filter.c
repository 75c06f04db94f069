/* Which class a request is in, and what the options of an import change about that. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "service/client/import_filter.h"

#define N(table)  (sizeof(table) / sizeof((table)[0]))
#define PERSON    "Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0"
#define ROBOT     "Googlebot/2.1 (+http://www.google.com/bot.html)"
#define PAGE_VIEW IMPORT_PAGE_VIEW

struct row {
    enum log_method method;
    unsigned status;
    const char *page, *ua;
    enum import_class class;
};

static struct log_line line_of(const struct row *row)
{
    return (struct log_line){.client = SLICE("192.0.2.1"),
        .client_is_ip = true,
        .method = row->method,
        .status = row->status,
        .page = slice_of(row->page),
        .ua = row->ua != NULL ? slice_of(row->ua) : (struct slice){0}};
}

static struct import_filter new_filter(void)
{
    struct import_filter filter;
    import_filter_init(&filter);
    return filter;
}

static void expect_classes(const struct import_filter *filter, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct log_line line = line_of(&rows[i]);
        enum import_class class = import_filter_class(filter, &line);
        cr_expect_eq(class, rows[i].class, "row %zu, %s %u: %d", i, rows[i].page, rows[i].status,
            (int)class);
    }
}

Test(import_filter, what_is_left_out_by_default)
{
    static const struct row rows[] = {
        {LOG_GET, 200, "/", PERSON, PAGE_VIEW},
        {LOG_POST, 200, "/form", PERSON, PAGE_VIEW},
        {LOG_GET, 304, "/", PERSON, PAGE_VIEW}, /* the browser has it already */
        {LOG_GET, 206, "/", PERSON, PAGE_VIEW},
        {LOG_GET, 0, "/", PERSON, PAGE_VIEW}, /* the log has no status */
        {LOG_GET, 200, "/", NULL, PAGE_VIEW}, /* nor an agent */
        {LOG_GET, 200, "/", "", PAGE_VIEW},
        {LOG_HEAD, 200, "/", PERSON, IMPORT_METHOD},
        {LOG_OTHER, 200, "/", PERSON, IMPORT_METHOD},
        {LOG_GET, 200, "/", ROBOT, IMPORT_ROBOT},
        {LOG_GET, 400, "/", PERSON, IMPORT_ERROR},
        {LOG_GET, 499, "/", PERSON, IMPORT_ERROR},
        {LOG_GET, 599, "/", PERSON, IMPORT_ERROR},
        {LOG_GET, 600, "/", PERSON, PAGE_VIEW},
        {LOG_GET, 300, "/", PERSON, IMPORT_REDIRECT},
        {LOG_GET, 303, "/", PERSON, IMPORT_REDIRECT},
        {LOG_GET, 305, "/", PERSON, IMPORT_REDIRECT},
        {LOG_GET, 399, "/", PERSON, IMPORT_REDIRECT},
        {LOG_GET, 200, "/a.css", PERSON, IMPORT_FILE},
        {LOG_GET, 304, "/a.css", PERSON, IMPORT_FILE},
        /* the first that fits */
        {LOG_HEAD, 404, "/robots.txt", ROBOT, IMPORT_METHOD},
        {LOG_GET, 404, "/robots.txt", ROBOT, IMPORT_ROBOT},
        {LOG_GET, 404, "/robots.txt", PERSON, IMPORT_ERROR},
        {LOG_GET, 301, "/robots.txt", PERSON, IMPORT_REDIRECT},
    };
    struct import_filter filter = new_filter();
    expect_classes(&filter, rows, N(rows));
}

Test(import_filter, suffixes)
{
    static const char *const files[] = {"css", "js", "mjs", "map", "json", "xml", "txt", "ico",
        "png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "bmp", "woff", "woff2", "ttf", "otf",
        "eot", "mp3", "mp4", "webm", "ogg", "CSS", "Js", "WOFF2", "JpEg"};
    static const char *const pages[] = {"/a", "/", "/css", "/a.html", "/a.php", "/a.csss", "/a.pdf",
        "/a.css/", "/a.css/b", "/a.j", "/a.", ".", "/a.woff22", "/a.js;v=1", "/a.css "};
    struct import_filter filter = new_filter();
    for (size_t i = 0; i < N(files); i++) {
        char page[32];
        (void)snprintf(page, sizeof(page), "/x.y/a.%s", files[i]);
        struct row row = {LOG_GET, 200, page, PERSON, IMPORT_FILE};
        expect_classes(&filter, &row, 1);
    }
    for (size_t i = 0; i < N(pages); i++) {
        struct row row = {LOG_GET, 200, pages[i], PERSON, PAGE_VIEW};
        expect_classes(&filter, &row, 1);
    }
}

Test(import_filter, an_included_class_counts_whatever_else_fits)
{
    static const struct row rows[] = {
        {LOG_GET, 200, "/", ROBOT, PAGE_VIEW},
        {LOG_GET, 404, "/robots.txt", ROBOT, PAGE_VIEW}, /* its class is robot */
        {LOG_GET, 404, "/robots.txt", PERSON, IMPORT_ERROR},
        {LOG_HEAD, 200, "/", ROBOT, IMPORT_METHOD},
    };
    struct import_filter filter = new_filter();
    cr_assert_null(import_filter_include(&filter, SLICE("robot")));
    expect_classes(&filter, rows, N(rows));
}

Test(import_filter, all_counts_every_get_head_and_post)
{
    static const struct row rows[] = {
        {LOG_GET, 404, "/robots.txt", ROBOT, PAGE_VIEW},
        {LOG_HEAD, 301, "/a.css", PERSON, PAGE_VIEW},
        {LOG_OTHER, 200, "/", PERSON, IMPORT_METHOD},
    };
    static const struct row any_method = {LOG_OTHER, 200, "/", PERSON, PAGE_VIEW};
    struct import_filter filter = new_filter();
    filter.all = true;
    expect_classes(&filter, rows, N(rows));
    cr_assert_null(import_filter_include(&filter, SLICE("method")));
    expect_classes(&filter, &any_method, 1);
}

Test(import_filter, an_excluded_class_never_counts)
{
    static const struct row rows[] = {
        {LOG_GET, 200, "/", ROBOT, IMPORT_ROBOT},
        {LOG_HEAD, 200, "/", ROBOT, IMPORT_ROBOT},
        {LOG_GET, 500, "/a.css", PERSON, PAGE_VIEW},
    };
    struct import_filter filter = new_filter();
    filter.all = true;
    cr_assert_null(import_filter_include(&filter, SLICE("robot"))); /* gives way */
    cr_assert_null(import_filter_exclude(&filter, SLICE("robot")));
    expect_classes(&filter, rows, N(rows));
}

Test(import_filter, paths)
{
    static const struct row rows[] = {
        {LOG_GET, 200, "/blog", PERSON, PAGE_VIEW},
        {LOG_GET, 200, "/blog/a", PERSON, PAGE_VIEW},
        {LOG_GET, 200, "/docs", PERSON, PAGE_VIEW},
        {LOG_GET, 200, "/blo", PERSON, IMPORT_PATH},
        {LOG_GET, 200, "/", PERSON, IMPORT_PATH},
        {LOG_GET, 200, "/blog/admin/x", PERSON, IMPORT_PATH},
        {LOG_GET, 404, "/", PERSON, IMPORT_ERROR},
    };
    struct import_filter filter = new_filter();
    cr_assert_null(import_filter_only(&filter, SLICE("/blog")));
    cr_assert_null(import_filter_only(&filter, SLICE("/docs")));
    cr_assert_null(import_filter_exclude(&filter, SLICE("/blog/admin")));
    expect_classes(&filter, rows, N(rows));
    filter.all = true; /* all of these paths */
    expect_classes(&filter, rows, N(rows) - 1);
}
