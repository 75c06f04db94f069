#include "tests/oom/failing_alloc.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *p);
/* The second is what a hardened build calls. */
int __wrap_asprintf(char **ret, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define BLOCKS 4096 /* watched at once */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static unsigned long count, fail_at, fail_last;
static bool armed, failed, watching;
static struct block {
    void *p;
    unsigned long number;
    size_t size;
} blocks[BLOCKS];
static unsigned long number_of_all;

/* Is this one to fail? */
static bool strikes(void)
{
    pthread_mutex_lock(&lock);
    bool now = false;
    if (armed) {
        count++;
        now = count >= fail_at && count <= fail_last;
        failed = failed || now;
    }
    pthread_mutex_unlock(&lock);
    if (now) {
        errno = ENOMEM;
    }
    return now;
}

static void note(void *p, size_t size)
{
    pthread_mutex_lock(&lock);
    number_of_all++;
    for (size_t i = 0; watching && p != NULL && i <= BLOCKS; i++) {
        if (i == BLOCKS) {
            abort(); /* a larger table is needed */
        }
        struct block *b = &blocks[((uintptr_t)p / 16 + i) % BLOCKS];
        if (b->p == NULL) {
            *b = (struct block){p, number_of_all, size};
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

static void forget(const void *p)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; p != NULL && i < BLOCKS; i++) {
        struct block *b = &blocks[((uintptr_t)p / 16 + i) % BLOCKS];
        if (b->p == p) {
            b->p = NULL; /* no end of a search: every search goes around */
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

void *__wrap_malloc(size_t n)
{
    if (strikes()) {
        return NULL;
    }
    void *p = __real_malloc(n);
    note(p, n);
    return p;
}

void *__wrap_calloc(size_t n, size_t size)
{
    if (strikes()) {
        return NULL;
    }
    void *p = __real_calloc(n, size);
    note(p, n * size);
    return p;
}

void *__wrap_realloc(void *p, size_t n)
{
    if (strikes()) {
        return NULL;
    }
    forget(p); /* before another thread may get the same address */
    void *moved = __real_realloc(p, n);
    note(moved, n);
    return moved;
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
    if (size != 0 && n > SIZE_MAX / size) {
        errno = ENOMEM;
        return NULL;
    }
    return __wrap_realloc(p, n * size);
}

char *__wrap_strdup(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = __wrap_malloc(n);
    return copy == NULL ? NULL : memcpy(copy, text, n);
}

/* The C library's own allocation does not pass here. */
static int print(char **ret, const char *format, va_list args)
{
    if (strikes()) {
        return -1;
    }
    int n = vasprintf(ret, format, args);
    if (n >= 0) {
        note(*ret, (size_t)n + 1);
    }
    return n;
}

int __wrap_asprintf(char **ret, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = print(ret, format, args);
    va_end(args);
    return n;
}

int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
{
    va_list args;
    (void)flag;
    va_start(args, format);
    int n = print(ret, format, args);
    va_end(args);
    return n;
}

void __wrap_free(void *p)
{
    forget(p);
    __real_free(p);
}

void alloc_handed_over(const void *p)
{
    forget(p);
}

void alloc_fail(unsigned long nth, unsigned long more)
{
    pthread_mutex_lock(&lock);
    count = 0;
    fail_at = nth;
    fail_last = nth + more;
    armed = true;
    failed = false;
    pthread_mutex_unlock(&lock);
}

bool alloc_stop(void)
{
    pthread_mutex_lock(&lock);
    armed = false;
    bool was = failed;
    pthread_mutex_unlock(&lock);
    return was;
}

void alloc_watch(void)
{
    pthread_mutex_lock(&lock);
    memset(blocks, 0, sizeof(blocks));
    number_of_all = 0;
    watching = true;
    pthread_mutex_unlock(&lock);
}

size_t alloc_left(unsigned long *ret_number, size_t *ret_size)
{
    size_t left = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < BLOCKS; i++) {
        if (blocks[i].p != NULL) {
            *ret_number = blocks[i].number;
            *ret_size = blocks[i].size;
            left++;
        }
    }
    pthread_mutex_unlock(&lock);
    return left;
}
