#include "handlers/dimension/page_rules.h"

#include "handlers/text/check.h"
#include "handlers/text/plain.h"
#include "storage/job/counted_name.h"

/* Cut the part up to the next slash, and the slash, off the front of @rest.  *ret_more: there was a
 * slash. */
static struct slice take_part(struct slice *rest, bool *ret_more)
{
    struct slice part = *rest;
    *ret_more = slice_take_until(rest, '/', &part);
    return part;
}

bool page_pattern_fits(struct slice pattern, struct slice page)
{
    bool pattern_more = true;
    bool page_more = true;
    while (pattern_more) {
        struct slice want = take_part(&pattern, &pattern_more);
        if (!pattern_more && slice_equal(want, SLICE("**"))) {
            return true;
        }
        if (!page_more) {
            return false;
        }
        struct slice part = take_part(&page, &page_more);
        bool fits = slice_equal(want, SLICE("*")) ? part.n > 0 : slice_equal(want, part);
        if (!fits) {
            return false;
        }
    }
    return !page_more;
}

unsigned page_rule_number(struct slice name)
{
    uint64_t number = 0;
    bool is_number = name.n > 0 && name.p[0] != '0' && text_number(name, PAGE_RULES_MAX, &number);
    return is_number ? (unsigned)number : 0;
}

/* Does `**` stand anywhere but at the end? */
static bool has_early_rest(struct slice pattern)
{
    for (bool more = true; more;) {
        struct slice part = take_part(&pattern, &more);
        if (more && slice_equal(part, SLICE("**"))) {
            return true;
        }
    }
    return false;
}

const char *page_rule_parse(struct slice text, struct page_rule *ret)
{
    static const struct slice arrow = {" -> ", 4};
    const char *at = text.n > 0 ? memmem(text.p, text.n, arrow.p, arrow.n) : NULL;
    if (at == NULL) {
        return "a pattern, ` -> ` and a page, as /user/*/** -> /user/:id";
    }
    struct slice pattern = slice_trim((struct slice){text.p, (size_t)(at - text.p)}, " ");
    at += arrow.n;
    struct slice page = slice_trim((struct slice){at, (size_t)(text.p + text.n - at)}, " ");
    if (event_check_page(pattern) != NULL || event_check_page(page) != NULL) {
        return "pattern and page must be 1 to 2048 bytes without control characters";
    }
    if (has_early_rest(pattern)) {
        return "** may only stand at the end of the pattern, as in /user/*/**";
    }
    *ret = (struct page_rule){pattern, page};
    return NULL;
}

struct slice page_rules_apply(const struct app *app, struct slice page)
{
    for (size_t i = 0; i < app->n_page_rules; i++) {
        if (page_pattern_fits(app->page_rules[i].pattern, page)) {
            return app->page_rules[i].page;
        }
    }
    return page;
}

size_t page_sections_of(const struct app *app, struct slice page, struct slice *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < app->n_sections && n < DIMENSION_SECTIONS_MAX; i++) {
        if (slice_begins(page, app->sections[i].prefix)) {
            ret[n++] = app->sections[i].name;
        }
    }
    return n;
}

/* The number of the section with the name @marked, which has its mark; app->n_sections: none. */
static size_t section_index(const struct app *app, struct slice marked)
{
    struct slice name = event_name_bare(marked);
    for (size_t i = 0; i < app->n_sections; i++) {
        if (slice_equal(app->sections[i].name, name)) {
            return i;
        }
    }
    return app->n_sections;
}

/* Does section @i lie in section @j?  If two have the same prefix, the second lies in the first. */
static bool lies_in(const struct app *app, size_t i, size_t j)
{
    struct slice inner = app->sections[i].prefix, outer = app->sections[j].prefix;
    return i != j && slice_begins(inner, outer) && (inner.n > outer.n || j < i);
}

size_t page_sections_apart(const struct app *app, struct slice *names, size_t n)
{
    bool asked[PAGE_SECTIONS_MAX] = {false};
    for (size_t i = 0; i < n; i++) {
        size_t at = section_index(app, names[i]);
        if (at < app->n_sections) {
            asked[at] = true;
        }
    }
    size_t n_apart = 0;
    for (size_t i = 0; i < n; i++) {
        size_t at = section_index(app, names[i]);
        bool inside = false;
        for (size_t j = 0; at < app->n_sections && j < app->n_sections && !inside; j++) {
            inside = asked[j] && lies_in(app, at, j);
        }
        if (!inside) {
            names[n_apart++] = names[i];
        }
    }
    return n_apart;
}
