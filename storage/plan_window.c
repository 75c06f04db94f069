#include "storage/plan_window.h"

enum storage_err plan_error(enum cover_result result)
{
    switch (result) {
    case COVER_OK:
        return STORAGE_OK;
    case COVER_NOT_KEPT:
        return STORAGE_NOT_KEPT;
    case COVER_TOO_MANY:
        return STORAGE_TOO_BROAD;
    case COVER_NOMEM:
        break;
    }
    return STORAGE_NOMEM;
}

bool plan_widen(const struct cover_basis *bases, size_t n, struct window *window)
{
    struct window before;
    do {
        before = *window;
        for (size_t i = 0; i < n; i++) {
            if (!cover_outer(&bases[i], *window, window)) {
                return false;
            }
        }
    } while (before.from_s != window->from_s || before.to_s != window->to_s);
    return true;
}
