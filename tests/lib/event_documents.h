/* event_documents.h - random bodies of POST /events, and ways to break them.
 *
 * For property tests.  The same seed makes the same document.
 */
#ifndef TESTS_EVENT_DOCUMENTS_H
#define TESTS_EVENT_DOCUMENTS_H

#include <stddef.h>
#include <stdint.h>

#define DOCUMENT_MAX 8192

struct document_random {
    uint64_t state;
};

struct document {
    char bytes[DOCUMENT_MAX];
    size_t n;
};

/* A number from 0 on, less than @limit. */
unsigned document_below(struct document_random *r, unsigned limit);

/* What does not fit is left out. */
void document_append(struct document *text, const char *piece);

/* JSON, but for text that is no Unicode: one event or an array; most members are acceptable. */
void event_document_make(struct document_random *r, struct document *text);

/* One small accident: a byte that is changed, lost, doubled or put in, or a tail that is lost. */
void event_document_mutate(struct document_random *r, struct document *text);

#endif
