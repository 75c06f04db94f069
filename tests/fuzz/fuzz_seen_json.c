/* fuzz_seen_json.c - the body of POST /seen: what is accepted keeps the rules, all else has a
 * reason. */
#include "handlers/counts/seen_json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/text/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), not lost with NDEBUG. */
static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen_body body;
    struct seen_json_fault fault;
    char *text = malloc(size); /* of exactly this size: reading past it is seen */

    if (size > 0) {
        memcpy(text, data, size);
    }
    switch (seen_json_decode(text, size, &body, &fault)) {
    case SEEN_JSON_OK:
        require(body.n >= 1 && body.n <= SEEN_PAGES_MAX);
        require(event_check_user(body.user) == NULL);
        require(body.site.p == NULL || event_check_site(body.site) == NULL);
        for (size_t i = 0; i < body.n; i++) {
            require(event_check_page(body.pages[i]) == NULL);
        }
        break;
    case SEEN_JSON_MALFORMED:
        require(fault.detail != NULL && fault.line >= 1 && fault.column >= 1);
        break;
    case SEEN_JSON_UNACCEPTABLE:
        require(fault.detail != NULL);
        break;
    case SEEN_JSON_NOMEM:
        abort(); /* nobody takes memory away here */
    }
    seen_body_release(&body);
    free(text);
    return 0;
}
