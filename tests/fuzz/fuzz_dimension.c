/* fuzz_dimension.c - libFuzzer target: any bytes given to the parsers that make values of
 * dimensions.
 *
 * Whatever was sent, a value is short, is UTF-8 where its input was, and has no control characters:
 * it will stand in keys of Redis and in answers.
 */
#include <stdlib.h>

#include "handlers/dimension/derive.h"
#include "handlers/dimension/page_rules.h"
#include "handlers/dimension/source.h"
#include "handlers/text/check.h"
#include "handlers/text/utf8.h"
#include "storage/job/counted_name.h"

#define PROPERTY "plan"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), not lost with NDEBUG. */
static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void check_values(const struct event *event, bool is_text)
{
    for (size_t i = 0; i < event->n_values; i++) {
        struct slice text = event->values[i].text;
        if (event->values[i].dimension == DIMENSION_PROP) {
            require(slice_equal(slice_until(&text, '='), SLICE(PROPERTY)));
        }
        require(text.n > 0 && text.n <= DIMENSION_VALUE_MAX);
        require(event_check_value(text) == NULL);
        require(!is_text || utf8_valid(text));
    }
}

/* The next line of @rest; once there is none, all of @text. */
static struct slice field(struct slice *rest, struct slice text)
{
    return rest->n > 0 ? slice_until(rest, '\n') : text;
}

/* A rule that was read stands for its own page, and for what it says. */
static size_t read_rule(struct slice text, struct page_rule *ret)
{
    if (page_rule_parse(text, ret) != NULL) {
        return 0;
    }
    require(event_check_page(ret->pattern) == NULL && event_check_page(ret->page) == NULL);
    return 1;
}

/* The lines are the referrer, the page, the agent, the language, the country, a property and a rule
 * for pages. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct slice names[] = {{PROPERTY, sizeof(PROPERTY) - 1}},
                              denied[] = {{"spam.example", 12}};
    static const struct page_section sections[] = {
        {{"all", 3}, {"/", 1}}, {{"blog", 4}, {"/blog/", 6}}};
    struct slice text = {(const char *)data, size < 2048 ? size : 2048}, rest = text;
    struct view_traits traits = {.referrer = field(&rest, text)};
    struct event event = {.site = SLICE("a"), .page = field(&rest, text)};
    event.agent = field(&rest, text);
    traits.language = field(&rest, text);
    traits.country = field(&rest, text);
    struct view_prop prop = {names[0], field(&rest, text)};
    struct page_rule rules[2] = {{SLICE("/user/*/**"), SLICE("/user/:id")}};
    size_t n_rules = 1 + read_rule(field(&rest, text), &rules[1]);
    traits.props = &prop;
    traits.n_props = event_check_value(prop.value) == NULL ? 1 : 0; /* as decoders do */
    struct app app = {.plan = {(1u << DIMENSION_PROP) - 1, 1, names, 1},
        .denied_sources = denied,
        .n_denied_sources = 1,
        .page_rules = rules,
        .n_page_rules = n_rules,
        .sections = sections,
        .n_sections = 2};
    struct arena arena = {0};
    bool is_view = event.page.n > 0 && !event_name_is(event.page);
    require(derive_view(&app, &traits, &event, &arena));
    struct slice in[DIMENSION_SECTIONS_MAX];
    size_t n_sections = is_view ? page_sections_of(&app, event.page, in) : 0;
    require(event.n_values == (is_view ? DIMENSION_PROP + 1 + n_sections : 0));
    check_values(&event, utf8_valid(text));
    arena_release(&arena);
    return 0;
}
