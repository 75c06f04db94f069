#include "storage/job/error.h"

const char *storage_err_text(enum storage_err err)
{
    switch (err) {
#define X(name, text)                                                                              \
    case name:                                                                                     \
        return text;
        STORAGE_ERRORS(X)
#undef X
    }
    return "unknown";
}
