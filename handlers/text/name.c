#include "handlers/text/name.h"

#define NAME_MAX_BYTES 64

bool name_valid(struct slice name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && c != '.' && c != '_' && c != '-') {
            return false;
        }
    }
    return name.n >= 1 && name.n <= NAME_MAX_BYTES;
}
