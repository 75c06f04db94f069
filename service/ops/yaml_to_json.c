/* yaml_to_json - a YAML file as JSON on standard output; a tool of the build.
 *
 * usage: yaml_to_json FILE
 *
 * Makes /openapi.json out of openapi.yaml.  What two readers of YAML could take differently is
 * refused with its line: a plain scalar that YAML 1.1 or 1.2 reads as something else than JSON does
 * (yes, 0x1f, 1_000, 2026-11-20, ~), a name that is given twice or is no string, anchors, aliases
 * and tags.  Put quotes around it.
 *
 * The process lives for a moment only, so memory is not freed when it fails.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>
#include <yaml.h>

#define DEPTH_MAX 100

static const char *file_name;

static _Noreturn void fail_at(size_t line, const char *what, const char *text)
{
    (void)fprintf(
        stderr, "%s:%zu: %s%s%s\n", file_name, line, what, *text == '\0' ? "" : ": ", text);
    exit(1);
}

static _Noreturn void fail(const yaml_event_t *event, const char *what, const char *text)
{
    fail_at(event->start_mark.line + 1, what, text);
}

static json_t *need(json_t *value)
{
    if (value == NULL) {
        fail_at(0, "out of memory, or text that is not UTF-8", "");
    }
    return value;
}

static void next(yaml_parser_t *parser, yaml_event_t *ret)
{
    if (yaml_parser_parse(parser, ret) == 0) {
        fail_at(parser->problem_mark.line + 1, parser->problem, "");
    }
}

static void expect(yaml_parser_t *parser, yaml_event_type_t type, const char *what)
{
    yaml_event_t event;
    next(parser, &event);
    if (event.type != type) {
        fail(&event, what, "");
    }
    yaml_event_delete(&event);
}

/* ---- scalars ---- */

static const char *text_of(const yaml_event_t *event)
{
    return (const char *)event->data.scalar.value;
}

/* Is @text a word that some version of YAML reads as a boolean, null or merge key, in any case? */
static bool is_doubtful(const char *text)
{
    static const char *const words[] = {
        "", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "=", "<<"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Does @text begin as numbers, times and dates do in some version of YAML?  A text that does must
 * be in quotes. */
static bool looks_like_a_number(const char *text)
{
    if (*text == '-' || *text == '+') {
        text++;
    }
    if (*text == '.') {
        text++;
    }
    return isdigit((unsigned char)*text) || strcasecmp(text, "inf") == 0 ||
           strcasecmp(text, "nan") == 0;
}

static json_t *plain_value(const yaml_event_t *event)
{
    const char *text = text_of(event);
    if (strcmp(text, "null") == 0) {
        return json_null();
    }
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        return json_boolean(*text == 't');
    }
    if (is_doubtful(text)) {
        fail(event, "not the same in all versions of YAML, put it in quotes", text);
    }
    if (!looks_like_a_number(text)) {
        return need(json_string(text));
    }
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    if (!json_is_number(value)) {
        fail(event, "begins like a number and is none of JSON's, put it in quotes", text);
    }
    return value;
}

static json_t *scalar_value(const yaml_event_t *event)
{
    if (strlen(text_of(event)) != event->data.scalar.length) {
        fail(event, "a NUL in a text", "");
    }
    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        return plain_value(event);
    }
    return need(json_string(text_of(event)));
}

/* ---- structure ---- */

static json_t *read_value(yaml_parser_t *parser, yaml_event_t *event, int depth);

static void refuse_extras(
    const yaml_event_t *event, const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor != NULL || tag != NULL) {
        fail(event, "anchors and tags are not read", "");
    }
}

static json_t *read_sequence(yaml_parser_t *parser, int depth)
{
    json_t *array = need(json_array());
    yaml_event_t event;
    for (next(parser, &event); event.type != YAML_SEQUENCE_END_EVENT; next(parser, &event)) {
        if (json_array_append_new(array, read_value(parser, &event, depth)) != 0) {
            need(NULL);
        }
    }
    yaml_event_delete(&event);
    return array;
}

static void read_member(yaml_parser_t *parser, json_t *object, yaml_event_t *name, int depth)
{
    yaml_event_t event;
    json_t *text = name->type == YAML_SCALAR_EVENT ? scalar_value(name) : NULL;
    if (!json_is_string(text)) {
        fail(name, "a name must be a string, put it in quotes", "");
    }
    if (json_object_get(object, json_string_value(text)) != NULL) {
        fail(name, "the name is given twice", text_of(name));
    }
    next(parser, &event);
    if (json_object_set_new(object, json_string_value(text), read_value(parser, &event, depth)) !=
        0) {
        need(NULL);
    }
    json_decref(text);
    yaml_event_delete(name);
}

static json_t *read_mapping(yaml_parser_t *parser, int depth)
{
    json_t *object = need(json_object());
    yaml_event_t event;
    for (next(parser, &event); event.type != YAML_MAPPING_END_EVENT; next(parser, &event)) {
        read_member(parser, object, &event, depth);
    }
    yaml_event_delete(&event);
    return object;
}

/* The value that begins with @event, which is taken over. */
static json_t *read_value(yaml_parser_t *parser, yaml_event_t *event, int depth)
{
    json_t *value = NULL;
    if (depth == DEPTH_MAX) {
        fail(event, "nested too deeply", "");
    }
    if (event->type == YAML_SCALAR_EVENT) {
        refuse_extras(event, event->data.scalar.anchor, event->data.scalar.tag);
        value = scalar_value(event);
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        refuse_extras(event, event->data.sequence_start.anchor, event->data.sequence_start.tag);
        value = read_sequence(parser, depth + 1);
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        refuse_extras(event, event->data.mapping_start.anchor, event->data.mapping_start.tag);
        value = read_mapping(parser, depth + 1);
    } else {
        fail(event, "a value is expected (aliases are not read)", "");
    }
    yaml_event_delete(event);
    return value;
}

static json_t *read_file(FILE *file)
{
    yaml_parser_t parser;
    yaml_event_t event;
    if (yaml_parser_initialize(&parser) == 0) {
        need(NULL);
    }
    yaml_parser_set_input_file(&parser, file);
    expect(&parser, YAML_STREAM_START_EVENT, "no YAML");
    expect(&parser, YAML_DOCUMENT_START_EVENT, "no document");
    next(&parser, &event);
    json_t *root = read_value(&parser, &event, 0);
    expect(&parser, YAML_DOCUMENT_END_EVENT, "more than one value");
    expect(&parser, YAML_STREAM_END_EVENT, "more than one document");
    yaml_parser_delete(&parser);
    return root;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: yaml_to_json FILE\n");
        return 2;
    }
    file_name = argv[1];
    FILE *file = fopen(file_name, "re");
    if (file == NULL) {
        (void)fprintf(stderr, "%s: %s\n", file_name, strerror(errno));
        return 1;
    }
    json_t *root = read_file(file);
    (void)fclose(file);
    bool written = json_dumpf(root, stdout, JSON_COMPACT) == 0 && fputc('\n', stdout) != EOF &&
                   fflush(stdout) == 0;
    json_decref(root);
    if (!written) {
        (void)fprintf(stderr, "yaml_to_json: cannot write\n");
    }
    return written ? 0 : 1;
}
