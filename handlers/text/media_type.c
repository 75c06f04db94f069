#include "handlers/text/media_type.h"

#include <strings.h>

bool media_type_is(struct slice content_type, const char *type)
{
    size_t n = strlen(type);
    if (content_type.n < n || strncasecmp(content_type.p, type, n) != 0) {
        return false;
    }
    return content_type.n == n || content_type.p[n] == ';' || content_type.p[n] == ' ' ||
           content_type.p[n] == '\t';
}
