#!/bin/sh
# lint.sh - style, layers and habits; prints what is wrong and fails.   usage: lint.sh C_FILES
set -u
fault=0
complain() {
    if [ -n "$2" ]; then
        printf '%s\n%s\n' "$1" "$2" >&2
        fault=1
    fi
}

complain "not formatted (make format):" "$(clang-format --dry-run "$@" 2>&1 | grep -E 'warning|error' | cut -d: -f1 | sort -u)"

# Layers: service -> handlers -> storage, never back; each library has one home.
complain "storage/ must not know handlers/, service/, HTTP or JSON:" \
    "$(grep -nE '#include "(handlers|service)/|microhttpd|jansson' storage/*.[ch])"
complain "handlers/ must not know service/, HTTP libraries or Redis:" \
    "$(grep -nE '#include "service/|microhttpd|hiredis' handlers/*.[ch])"
# Its door, and what is a plain value or arithmetic: all else is storage's own.
door='activity_day|bloom|bucket|buffer|event|index|limit|redis_endpoint|rollup_state|seen_layout|slice|step|storage|zone|zone_store'
complain "handlers/ and service/ must not know storage's insides:" \
    "$(grep -n '#include "storage/' handlers/*.[ch] service/*.[ch] service/*/*.[ch] | grep -vE "\"storage/($door)\.h\"")"
complain "handlers/ has no clock and no threads:" \
    "$(grep -nE '\b(clock_gettime|gettimeofday|time\(|pthread_create)' handlers/*.[ch])"
complain "microhttpd.h belongs in service/http_connection.h:" \
    "$(grep -ln 'include <microhttpd' service/*.[ch] service/*/*.[ch] handlers/*.[ch] | grep -v '^service/http_connection\.h$')"
complain "service/http_connection.h belongs to the HTTP server:" \
    "$(grep -ln 'include "service/http_connection' service/*.[ch] service/*/*.[ch] | grep -vE '^service/http_(connection|farewell|server|steps)\.c$')"
complain "hiredis belongs in storage/redis.c:" \
    "$(grep -ln 'include <hiredis' storage/*.[ch] handlers/*.[ch] service/*.[ch] | grep -v '^storage/redis\.c$')"
complain "jansson belongs in handlers/ and service/client/:" \
    "$(grep -ln 'include <jansson' service/*.[ch] storage/*.[ch])"
complain "the schema of keys belongs in storage/key.c:" \
    "$(grep -nE '"t:\{' storage/*.[ch] handlers/*.[ch] service/*.[ch] | grep -v '^storage/key\.[ch]:')"

# Habits.
complain "banned functions:" \
    "$(grep -nE '\b(atoi|atol|atoll|strtok|sprintf|vsprintf|strcpy|strcat|gets|alloca|rand|srand)\(' storage/*.[ch] handlers/*.[ch] service/*.[ch] service/*/*.[ch])"
complain "marks left over:" \
    "$(grep -nE 'TODO|FIXME|XXX|HACK' storage/*.[ch] storage/lua/*.lua handlers/*.[ch] service/*.[ch] service/*/*.[ch])"
complain "every script begins with #!lua:" \
    "$(for f in storage/lua/*.lua; do head -c 5 "$f" | grep -q '^#!lua' || echo "$f"; done)"
complain "files of more than 500 lines:" \
    "$(wc -l storage/*.[ch] handlers/*.[ch] service/*.[ch] service/*/*.[ch] | awk '$1 > 500 && $2 != "total" {print $2": "$1}')"

if command -v cppcheck >/dev/null; then
    complain "cppcheck:" "$(cppcheck -q -j2 --enable=warning,portability --inline-suppr --std=c11 -I. \
        --suppress=missingIncludeSystem --suppress=varFuncNullUB --suppress=comparePointers:storage/script.c -D_GNU_SOURCE storage handlers service 2>&1)"
fi
[ "$fault" = 0 ] && echo "lint: clean"
exit "$fault"
