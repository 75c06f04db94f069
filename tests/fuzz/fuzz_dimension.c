/* fuzz_dimension.c - libFuzzer target: any bytes given to the parsers that make values of
 * dimensions.
 *
 * Whatever was sent, a value is short, is UTF-8 where its input was, and has no control characters:
 * it will stand in keys of Redis and in answers.
 */
#include <stdlib.h>

#include "handlers/dimension/derive.h"
#include "handlers/dimension/source.h"
#include "handlers/text/check.h"
#include "handlers/text/utf8.h"

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
        require(text.n > 0 && text.n <= DIMENSION_VALUE_MAX);
        require(event_check_value(text) == NULL);
        require(!is_text || utf8_valid(text));
    }
}

/* The bytes are the referrer, the page, the agent, the language and the country. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = {(const char *)data, size < 2048 ? size : 2048};
    struct app app = {.plan = {.counted = (1u << DIMENSION_PROP) - 1, .with_visitors = 1}};
    struct view_traits traits = {.referrer = text, .url = text, .country = text, .language = text};
    struct event event = {.site = SLICE("a"), .page = SLICE("/"), .agent = text};
    struct arena arena = {0};
    require(derive_view(&app, &traits, &event, &arena));
    require(event.n_values == DIMENSION_PROP);
    check_values(&event, utf8_valid(text));
    arena_release(&arena);
    return 0;
}
