#!/bin/sh
# sanitize.sh - the tests on a build with a sanitizer.   usage: sanitize.sh address|thread MAKE
#
# Reports go to files: a test runner may swallow an exit status, but any file in the directory fails this.
# ThreadSanitizer does not get along with Criterion, so under it the real binary runs the integration tests.
set -u
kind=$1
make=$2
dir=build/$kind
logs=$PWD/$dir/logs
rm -rf "$logs" && mkdir -p "$logs"
san="-fsanitize=$kind"
[ "$kind" = address ] && san="-fsanitize=address,undefined -fno-sanitize-recover=undefined"
options="B=$dir CFLAGS_OPT=-O1\ -g"
eval set -- "$options"
"$make" --no-print-directory -j2 "$@" SAN="$san" "$dir/tallyd" \
    $(for tool in tests/tools/*.c; do echo "$dir/tools/$(basename "$tool" .c)"; done) || exit 1

export ASAN_OPTIONS="log_path=$logs/san:detect_leaks=1:exitcode=99"
export UBSAN_OPTIONS="log_path=$logs/san:print_stacktrace=1"
export TSAN_OPTIONS="log_path=$logs/san:exitcode=99:suppressions=$PWD/tests/tsan.supp"
export TALLYD_SAN_LOGS="$logs"
status=0

# What must be found is found: a planted leak or race.
cat >"$dir/planted.c" <<'C'
#include <pthread.h>
#include <stdlib.h>
static int shared;
static void *touch(void *p) { shared++; return p; }
int main(void)
{
    pthread_t a, b;
    char *volatile lost = malloc(42);
    lost = NULL;
    (void)lost;
    pthread_create(&a, NULL, touch, NULL);
    pthread_create(&b, NULL, touch, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
C
gcc -g $san -pthread -o "$dir/planted" "$dir/planted.c" && "$dir/planted"
if ! ls "$logs"/san.* >/dev/null 2>&1; then
    echo "the $kind sanitizer did not report a planted fault" >&2
    exit 1
fi
rm -f "$logs"/san.*

if [ "$kind" = address ]; then
    # The whole stack of each block: lsan.supp names a function that is far from it.
    "$make" --no-print-directory -j2 "$@" SAN="$san" "$dir/unit-tests" &&
        ASAN_OPTIONS="$ASAN_OPTIONS:fast_unwind_on_malloc=0" \
        LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0" "$dir/unit-tests" -j2 || status=1
fi
"$make" --no-print-directory "$@" SAN="$san" integration || status=1

if ls "$logs"/san.* >/dev/null 2>&1; then
    head -60 "$logs"/san.* >&2
    echo "the $kind sanitizer reported: $(ls "$logs" | wc -l) file(s) in $logs" >&2
    status=1
fi
[ "$status" = 0 ] && echo "$kind: no reports"
exit "$status"
