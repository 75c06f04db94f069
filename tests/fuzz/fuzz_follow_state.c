/* fuzz_follow_state.c - libFuzzer target: any bytes given to follow_state_parse().
 *
 * A state that is read can be written, and reads as the same again.
 */
#include <stdlib.h>

#include "service/client/follow/follow_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), not lost with NDEBUG. */
static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[FOLLOW_STATE_BYTES], again_text[FOLLOW_STATE_BYTES];
    struct follow_state state, again;
    if (!follow_state_parse((struct slice){(const char *)data, size}, &state)) {
        return 0;
    }
    require(state.n <= FOLLOW_FILES);
    require(!state.has_piece || state.piece.file < state.n);
    size_t n = follow_state_print(&state, text);
    require(n > 0);
    require(follow_state_parse((struct slice){text, n}, &again));
    require(follow_state_print(&again, again_text) == n);
    require(memcmp(text, again_text, n) == 0);
    return 0;
}
