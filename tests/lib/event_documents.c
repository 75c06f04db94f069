#include "tests/lib/event_documents.h"

#include <string.h>

#define PICK(r, table) pick((r), (table), sizeof(table) / sizeof((table)[0]))

unsigned document_below(struct document_random *r, unsigned limit)
{
    r->state ^= r->state << 13;
    r->state ^= r->state >> 7;
    r->state ^= r->state << 17;
    return (unsigned)(r->state >> 32) % limit;
}

static const char *pick(struct document_random *r, const char *const *table, size_t n)
{
    return table[document_below(r, (unsigned)n)];
}

void document_append(struct document *text, const char *piece)
{
    size_t n = strlen(piece);

    if (text->n + n > DOCUMENT_MAX) {
        return;
    }
    memcpy(text->bytes + text->n, piece, n);
    text->n += n;
}

static const char *const names[] = {"page", "user", "ip", "ua", "ts", "referrer", "site", "actions",
    "event", "visitor", "p\\u0061ge", "x", "title", "tags", ""};

static const char *const strings[] = {"\"/\"", "\"/a\\/b\"", "\"\"", "\"u1\"", "\"1.2.3.4\"",
    "\"::ffff:1.2.3.4\"", "\"2001:db8::1\"", "\"1.2.3.04\"", "\"shop\"", "\"Shop\"", "\"buy\"",
    "\"2025-11-20T14:46:40Z\"", "\"2025-11-20\"", "\"a\\nb\"", "\"\\u00e9\\ud83d\\ude00\"",
    "\"\xe4\xba\xac\"", "\"a plain text, a little longer than the others\"", "\"\x7f\"", "\"\xff\"",
    "\"\\u0000\"", "\"\\ud800\"", "\"\\udc00x\""};

static const char *const scalars[] = {"0", "-0", "42", "-7", "1763650000", "1763650000123",
    "1763650000.5", "1.76365e9", "1e999", "9223372036854775807", "9223372036854775808",
    "123456789012345678901234567890", "1.5", "true", "false", "null"};

static void add_value(struct document_random *r, struct document *text, unsigned depth)
{
    unsigned kind = document_below(r, depth > 3 ? 8 : 11);

    if (kind < 5) {
        document_append(text, PICK(r, strings));
    } else if (kind < 8) {
        document_append(text, PICK(r, scalars));
    } else if (kind < 10) {
        document_append(text, "[");
        for (unsigned i = 0, n = document_below(r, 4); i < n; i++) {
            document_append(text, i == 0 ? "" : ",");
            add_value(r, text, depth + 1);
        }
        document_append(text, "]");
    } else {
        document_append(text, "{");
        for (unsigned i = 0, n = document_below(r, 3); i < n; i++) {
            document_append(text, i == 0 ? "\"" : ",\"");
            document_append(text, PICK(r, names));
            document_append(text, "\":");
            add_value(r, text, depth + 1);
        }
        document_append(text, "}");
    }
}

/* A value that the member is likely to take, else any. */
static void add_member(struct document_random *r, struct document *text, const char *name)
{
    static const char *const likely[][2] = {{"page", "\"/p\""}, {"user", "\"u\\u0037\""},
        {"ip", "\"203.0.113.7\""}, {"ua", "\"Mozilla\""}, {"ts", "1763649999"},
        {"referrer", "null"}, {"site", "\"my.site\""}, {"actions", "[\"buy\",\"a:b\"]"},
        {"event", "\"sign\\u0020up\""}, {"visitor", "\"v\""}};

    document_append(text, "\"");
    document_append(text, name);
    document_append(text, document_below(r, 8) == 0 ? "\" :\n" : "\":");
    for (size_t i = 0; i < sizeof(likely) / sizeof(likely[0]); i++) {
        if (strcmp(name, likely[i][0]) == 0 && document_below(r, 6) != 0) {
            document_append(text, likely[i][1]);
            return;
        }
    }
    add_value(r, text, 0);
}

static void add_event(struct document_random *r, struct document *text)
{
    unsigned first = document_below(r, 15);

    if (document_below(r, 20) == 0) {
        add_value(r, text, 0);
        return;
    }
    document_append(text, document_below(r, 6) == 0 ? "{\"none\":0" : "{\"page\":\"/start\"");
    for (unsigned i = 0, n = document_below(r, 7); i < n; i++) {
        document_append(text, document_below(r, 8) == 0 ? " , " : ",");
        /* mostly each name once */
        add_member(
            r, text, document_below(r, 12) == 0 ? PICK(r, names) : names[1 + (first + i) % 14]);
    }
    document_append(text, "}");
}

void event_document_make(struct document_random *r, struct document *text)
{
    unsigned n = document_below(r, 5);

    text->n = 0;
    if (n == 4) {
        add_event(r, text);
        return;
    }
    document_append(text, document_below(r, 4) == 0 ? "\n[ " : "[");
    for (unsigned i = 0; i < n; i++) {
        document_append(text, i == 0 ? "" : ",");
        add_event(r, text);
    }
    for (unsigned i = 0, deep = document_below(r, 16) == 0 ? 28 + document_below(r, 8) : 0;
         i < 2 * deep; i++) {
        document_append(text, i == 0 && n > 0 ? ",[" : i < deep ? "[" : "]");
    }
    document_append(text, "]");
}

void event_document_mutate(struct document_random *r, struct document *text)
{
    static const char bytes[] = "{}[]\",:\\/ \n\t\r\0u0123456789eE+-.tfnad\x01\x1f\x7f\x80\xc3\xe4"
                                "\xed\xff";
    size_t at = document_below(r, (unsigned)text->n + 1);
    char byte = bytes[document_below(r, sizeof(bytes) - 1)];

    if (text->n == 0 || text->n == DOCUMENT_MAX) {
        return;
    }
    switch (document_below(r, 5)) {
    case 0:
        text->bytes[at == text->n ? 0 : at] = byte;
        break;
    case 1:
        if (at == text->n) {
            return;
        }
        memmove(text->bytes + at, text->bytes + at + 1, text->n - at - 1);
        text->n--;
        break;
    case 2:
        byte = text->bytes[at == 0 ? 0 : at - 1];
        /* fall through */
    case 3:
        memmove(text->bytes + at + 1, text->bytes + at, text->n - at);
        text->bytes[at] = byte;
        text->n++;
        break;
    default:
        if (document_below(r, 8) == 0) {
            text->n = at;
        }
    }
}
