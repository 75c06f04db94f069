#include "service/client/server_url.h"

#include <curl/curl.h>
#include <string.h>

/* SERVER_URL_GOOD: @url has no @part. */
static enum server_url_verdict judge_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    CURLUcode code = curl_url_get(url, part, &text, 0);
    curl_free(text);
    return code == CURLUE_OK              ? SERVER_URL_WRONG
           : code == CURLUE_OUT_OF_MEMORY ? SERVER_URL_UNCHECKED
                                          : SERVER_URL_GOOD;
}

enum server_url_verdict server_url_judge(const char *text)
{
    static const CURLUPart parts[] = {CURLUPART_USER, CURLUPART_QUERY, CURLUPART_FRAGMENT};
    if (strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0) {
        return SERVER_URL_WRONG;
    }
    CURLU *url = curl_url();
    CURLUcode code = url == NULL ? CURLUE_OUT_OF_MEMORY : curl_url_set(url, CURLUPART_URL, text, 0);
    enum server_url_verdict verdict = code == CURLUE_OK              ? SERVER_URL_GOOD
                                      : code == CURLUE_OUT_OF_MEMORY ? SERVER_URL_UNCHECKED
                                                                     : SERVER_URL_WRONG;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && verdict == SERVER_URL_GOOD; i++) {
        verdict = judge_part(url, parts[i]);
    }
    curl_url_cleanup(url);
    return verdict;
}

size_t server_url_length(const char *url)
{
    size_t n = strlen(url);
    while (n > 0 && url[n - 1] == '/') {
        n--;
    }
    return n;
}
