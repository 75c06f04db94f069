#include "handlers/ingest/segment_dress.h"

#include <stdio.h>
#include <stdlib.h>

#include "handlers/reply/problem.h"
#include "handlers/text/ascii.h"

/* Write the code for @phrase to @ret, which has @size bytes: "Method Not Allowed" becomes
 * "method_not_allowed". */
static void write_code(const char *phrase, char *ret, size_t size)
{
    size_t n = 0;
    for (; phrase[n] != '\0' && n + 1 < size; n++) {
        ret[n] = phrase[n] == ' ' ? '_' : ascii_lower(phrase[n]);
    }
    ret[n] = '\0';
}

void segment_dress(struct http_response *response)
{
    const char *phrase = problem_phrase(response->status);
    char code[64], *body;
    if (phrase == NULL || response->body_n == 0 || response->body[0] != '{') {
        return;
    }
    write_code(phrase, code, sizeof(code));
    int n = asprintf(&body, "{\"success\":false,\"code\":\"%s\",%.*s", code,
        (int)response->body_n - 1, response->body + 1);
    if (n < 0) {
        return;
    }
    free(response->body);
    response->body = body;
    response->body_n = (size_t)n;
}
