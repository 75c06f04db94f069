#include "handlers/web/file.h"

#include "handlers/reply/reply.h"

/* Is @tag one of those in @known, the value of If-None-Match?  By the weak comparison of RFC 9110
 * section 13.1.2, so W/ makes no difference. */
static bool is_known(struct slice known, const char *tag)
{
    return slice_equal(known, SLICE("*")) || memmem(known.p, known.n, tag, strlen(tag)) != NULL;
}

void web_file_reply(struct http_exchange *exchange, const struct web_file *file)
{
    struct http_response *response = &exchange->response;
    struct slice known = exchange->request.fields[FIELD_IF_NONE_MATCH];
    if (known.n > 0 && is_known(known, file->tag)) {
        reply_empty(response, 304);
    } else {
        size_t n = (size_t)(file->end - file->text);
        reply_static(response, 200, file->content_type, file->text, n);
    }
    reply_header(response, "ETag", file->tag);
}
