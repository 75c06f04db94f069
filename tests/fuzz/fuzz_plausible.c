/* fuzz_plausible.c - the body of POST /api/event: what is accepted keeps the rules of events, all
 * else has a reason. */
#include "handlers/ingest/plausible_event.h"
#include "handlers/text/check.h"

#include <stdlib.h>

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
    struct plausible_event event;
    struct plausible_fault fault;
    char *body = malloc(size); /* of exactly this size: reading past it is seen */

    if (size > 0) {
        memcpy(body, data, size);
    }
    switch (plausible_decode((struct slice){body, size}, &event, &fault)) {
    case PLAUSIBLE_OK:
        require(event_check_page(event.page) == NULL);
        require(event.n_domains >= 1 && event.n_domains <= PLAUSIBLE_DOMAINS_MAX);
        for (size_t i = 0; i < event.n_domains; i++) {
            require(event_check_site(event.domains[i]) == NULL);
        }
        break;
    case PLAUSIBLE_FAULT:
        require(fault.detail != NULL && event.bytes == NULL);
        break;
    case PLAUSIBLE_NOMEM:
        break;
    }
    plausible_release(&event);
    free(body);
    return 0;
}
