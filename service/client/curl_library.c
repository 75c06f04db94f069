/* curl_library.c - libcurl, loaded when the first of its functions is called.
 *
 * Layer: service/client.  Thread-safe.
 *
 * Only the commands of a client need libcurl, which brings 22 other libraries with it.  Were tallyd
 * linked with them, each `tallyd serve` would hold 3 MiB for nothing.  So this file has the
 * functions that the client calls, by their own names, and each hands its call on.  A program that
 * lacks a library ends as it does when the system's loader misses one.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

/* The header has macros that check the types of arguments where these two are called. */
#undef curl_easy_setopt
#undef curl_easy_getinfo

#define LIBRARY           "libcurl.so.4"
#define STATUS_NO_LIBRARY 127 /* with this status ld.so exits, too */

/* The type of an option's argument is in its number: see curl.h. */
#define TYPE_STEP (CURLOPTTYPE_OBJECTPOINT - CURLOPTTYPE_LONG)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library;

static void fail(void)
{
    (void)fprintf(stderr, "tallyd: %s\n", dlerror());
    exit(STATUS_NO_LIBRARY);
}

static void load(void)
{
    library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fail();
    }
}

/* Put the address of the function @name into the pointer at @ret. */
static void find(const char *name, void *ret)
{
    (void)pthread_once(&once, load);
    void *address = dlsym(library, name);
    if (address == NULL) {
        fail();
    }
    memcpy(ret, &address, sizeof(address));
}

/* Declare a pointer `real` to libcurl's function @name. */
#define REAL(name)                                                                                 \
    __typeof__(&(name)) real;                                                                      \
    find(#name, &real)

/* Define a function of libcurl's name that hands its call on. */
#define HAND_ON(type, name, parameters, ...)                                                       \
    type name parameters                                                                           \
    {                                                                                              \
        REAL(name);                                                                                \
        return real(__VA_ARGS__);                                                                  \
    }

HAND_ON(CURL *, curl_easy_init, (void))
HAND_ON(void, curl_easy_cleanup, (CURL * easy), easy)
HAND_ON(CURLcode, curl_easy_perform, (CURL * easy), easy)
HAND_ON(const char *, curl_easy_strerror, (CURLcode code), code)
HAND_ON(CURLHcode, curl_easy_header,
    (CURL * easy, const char *name, size_t index, unsigned int origin, int request,
        struct curl_header **header),
    easy, name, index, origin, request, header)
HAND_ON(char *, curl_easy_escape, (CURL * easy, const char *text, int n), easy, text, n)
HAND_ON(void, curl_free, (void *p), p)
HAND_ON(struct curl_slist *, curl_slist_append, (struct curl_slist * list, const char *text), list,
    text)
HAND_ON(void, curl_slist_free_all, (struct curl_slist * list), list)
HAND_ON(CURLU *, curl_url, (void))
HAND_ON(void, curl_url_cleanup, (CURLU * url), url)
HAND_ON(CURLUcode, curl_url_get, (CURLU * url, CURLUPart part, char **text, unsigned int flags),
    url, part, text, flags)
HAND_ON(CURLUcode, curl_url_set,
    (CURLU * url, CURLUPart part, const char *text, unsigned int flags), url, part, text, flags)

/* ---- functions with a variable argument ---- */

CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    REAL(curl_easy_setopt);
    va_list arguments;
    curl_off_t size;
    CURLcode code;
    va_start(arguments, option);
    switch (option / TYPE_STEP * TYPE_STEP) {
    case CURLOPTTYPE_LONG:
        code = real(easy, option, va_arg(arguments, long));
        break;
    case CURLOPTTYPE_OFF_T:
        size = va_arg(arguments, curl_off_t);
        code = real(easy, option, size);
        break;
    default: /* a pointer to data or to a function */
        code = real(easy, option, va_arg(arguments, void *));
        break;
    }
    va_end(arguments);
    return code;
}

CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
    REAL(curl_easy_getinfo);
    va_list arguments;
    va_start(arguments, info);
    CURLcode code = real(easy, info, va_arg(arguments, void *));
    va_end(arguments);
    return code;
}
