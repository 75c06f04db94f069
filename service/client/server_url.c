#include "service/client/server_url.h"

#include <curl/curl.h>
#include <string.h>

static bool has_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    bool has = curl_url_get(url, part, &text, 0) == CURLUE_OK;
    curl_free(text);
    return has;
}

bool server_url_valid(const char *text)
{
    bool http = strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
    CURLU *url = curl_url();
    bool good = url != NULL && http && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
                !has_part(url, CURLUPART_USER) && !has_part(url, CURLUPART_QUERY) &&
                !has_part(url, CURLUPART_FRAGMENT);
    curl_url_cleanup(url);
    return good;
}

size_t server_url_length(const char *url)
{
    size_t n = strlen(url);
    while (n > 0 && url[n - 1] == '/') {
        n--;
    }
    return n;
}
