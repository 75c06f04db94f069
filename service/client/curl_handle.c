#include "service/client/curl_handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_TIMEOUT_S 10L
#define TIMEOUT_S         60L

/* Is @url an address of this machine?  A proxy of the environment is for the world outside. */
static bool is_loopback(const char *url)
{
    const char *host = strstr(url, "://");
    host = host != NULL ? host + 3 : url;
    size_t n = strcspn(host, ":/");
    return strncmp(host, "127.", 4) == 0 || strncmp(host, "[::1]", 5) == 0 ||
           (n == 9 && strncmp(host, "localhost", n) == 0);
}

bool curl_handle_set_up(CURL *easy, const char *url, const char *agent, curl_write_callback take,
    void *data, char *error)
{
    const long version = CURL_HTTP_VERSION_1_1;
    return curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, version) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_USERAGENT, agent) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, data) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, CONNECT_TIMEOUT_S) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TIMEOUT, TIMEOUT_S) == CURLE_OK &&
           (!is_loopback(url) || curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK);
}

/* @list with @header behind it.  NULL: out of memory, and @list is freed. */
static struct curl_slist *append(struct curl_slist *list, const char *header)
{
    struct curl_slist *longer = curl_slist_append(list, header);
    if (longer == NULL) {
        curl_slist_free_all(list);
    }
    return longer;
}

struct curl_slist *curl_handle_headers(const char *header, const char *token)
{
    struct curl_slist *list = append(NULL, header);
    if (list == NULL || token == NULL) {
        return list;
    }
    char *bearer;
    if (asprintf(&bearer, "Authorization: Bearer %s", token) < 0) {
        curl_slist_free_all(list);
        return NULL;
    }
    list = append(list, bearer);
    free(bearer);
    return list;
}
