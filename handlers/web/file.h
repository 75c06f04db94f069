/* file.h - a file that is built into the program, as an answer.
 *
 * Layer: handlers.  Thread-safe: no state.
 *
 * Each file has a strong ETag, which the build makes of its bytes (the Makefile's .tag files).  A
 * browser that names this ETag in If-None-Match is told 304 and keeps what it has.
 */
#ifndef HANDLERS_WEB_FILE_H
#define HANDLERS_WEB_FILE_H

#include "handlers/http/http.h"
#include "handlers/web/embed.h"

struct web_file {
    const char *name; /* the last segment of the path /web/{file}; NULL: another path leads to it */
    const char *content_type;
    const char *text, *end; /* the bytes, from EMBED */
    const char *tag;        /* the ETag, in quotes */
};

/* Embed the file @name of the folder @folder, and its ETag.  @folder is "" or ends with a slash. */
#define WEB_EMBED(symbol, folder, name)                                                            \
    EMBED(symbol, folder name);                                                                    \
    EMBED(symbol##_tag, "web/" name ".tag")

/* The entry of a file for which WEB_EMBED(symbol, ..) stands above. */
#define WEB_FILE(name, type, symbol)                                                               \
    {                                                                                              \
        name, type, text_of_##symbol, end_of_##symbol, text_of_##symbol##_tag                      \
    }

/* Answer 200 with the file, or 304 if the request names its ETag, and add the header field ETag. */
void web_file_reply(struct http_exchange *exchange, const struct web_file *file);

#endif
