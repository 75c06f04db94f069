#include "storage/job/dimension.h"

static const struct {
    char letter;
    const char *name;
} dimensions[DIMENSION_N] = {
#define X(value, letter, name) [value] = {letter, name},
    DIMENSIONS(X)
#undef X
};

char dimension_letter(enum dimension dimension)
{
    return dimensions[dimension].letter;
}

enum dimension dimension_of_letter(char letter)
{
    unsigned i = 0;
    while (i < DIMENSION_N && dimensions[i].letter != letter) {
        i++;
    }
    return (enum dimension)i;
}

const char *dimension_name(enum dimension dimension)
{
    return dimensions[dimension].name;
}

enum dimension dimension_find(struct slice name)
{
    for (unsigned i = 0; i < DIMENSION_PROP; i++) {
        if (slice_equal(name, slice_of(dimensions[i].name))) {
            return (enum dimension)i;
        }
    }
    return DIMENSION_N;
}
