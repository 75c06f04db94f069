#include "service/client/query/query_http.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "service/client/curl_handle.h"
#include "service/client/server_url.h"

/* A series of 11,000 points has 1.5 MB.  A much longer answer comes from another server. */
#define ANSWER_MAX ((size_t)64 << 20)

static size_t take_answer(char *from, size_t size, size_t n, void *data)
{
    struct query_answer *answer = data;
    size_t length = size * n;
    if (length > ANSWER_MAX - answer->text.n) {
        return 0; /* curl then gives up with CURLE_WRITE_ERROR */
    }
    buffer_append(&answer->text, from, length);
    return answer->text.failed ? 0 : length;
}

/* Put the question's whole address, with a NUL, into @to.  False: out of memory. */
static bool put_url(CURL *easy, const struct query_options *options, struct buffer *to)
{
    buffer_append(to, options->url, server_url_length(options->url));
    const char *between = strchr(options->path, '?') == NULL ? "?" : "&";
    buffer_text(to, options->path);
    for (size_t i = 0; i < options->n_parameters; i++) {
        const struct query_parameter *p = &options->parameters[i];
        char *value = curl_easy_escape(easy, p->value, (int)strlen(p->value));
        buffer_text(to, i == 0 ? between : "&");
        for (const char *at = p->name; *at != '\0'; at++) { /* --new-within is new_within */
            buffer_append(to, *at == '-' ? "_" : at, 1);
        }
        buffer_text(to, "=");
        buffer_text(to, value != NULL ? value : "");
        to->failed = to->failed || value == NULL;
        curl_free(value);
    }
    buffer_append(to, "", 1);
    return !to->failed;
}

void query_http_get(const struct query_options *options, struct query_answer *ret)
{
    char error[CURL_ERROR_SIZE] = "";
    struct curl_slist *headers = curl_handle_headers("Accept: application/json", options->token);
    struct buffer url;
    CURL *easy = curl_easy_init();
    CURLcode code = CURLE_OUT_OF_MEMORY;
    *ret = (struct query_answer){0};
    buffer_init(&url);
    if (easy != NULL && headers != NULL && put_url(easy, options, &url) &&
        curl_handle_set_up(easy, url.p, "tallyd-query", take_answer, ret, error) &&
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers) == CURLE_OK) {
        code = curl_easy_perform(easy);
    }
    if (ret->text.failed) {
        code = CURLE_OUT_OF_MEMORY;
        error[0] = '\0';
    }
    if (code == CURLE_OK) {
        (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &ret->status);
    } else {
        (void)snprintf(ret->error, sizeof(ret->error), "%s: %s", options->url,
            error[0] != '\0' ? error : curl_easy_strerror(code));
    }
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    buffer_release(&url);
}
