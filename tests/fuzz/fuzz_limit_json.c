/* fuzz_limit_json.c - the body of POST /ratelimit: what is accepted keeps the rules, all else has a
 * reason. */
#include "handlers/limit/limit_json.h"

#include <stdlib.h>

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
    struct limit_question question;
    struct limit_json_fault fault;
    enum limit_part part;
    char *body = malloc(size); /* of exactly this size: reading past it is seen */

    if (size > 0) {
        memcpy(body, data, size);
    }
    switch (limit_json_decode(body, size, &question, &fault)) {
    case LIMIT_JSON_OK:
        require(question.key.n >= 1 && question.key.n <= LIMIT_KEY_MAX);
        require(question.cost >= 0 && question.cost <= LIMIT_COST_MAX);
        if (question.policy.n > 0) {
            require(name_valid(question.policy));
        } else {
            require(limit_check(&question.limit, &part) == NULL);
        }
        break;
    case LIMIT_JSON_MALFORMED:
        require(fault.detail != NULL && fault.line >= 1 && fault.column >= 1);
        break;
    case LIMIT_JSON_UNACCEPTABLE:
        require(fault.detail != NULL && fault.pointer != NULL);
        break;
    }
    free(body);
    return 0;
}
