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

complain "lines of more than 100 columns:" "$(awk 'length($0) > 100 {print FILENAME":"FNR}' "$@")"

# Every source of a layer, however deep its folder lies.  A tool that the build runs is no part of the service.
storage=$(find storage -name '*.[ch]')
handlers=$(find handlers -name '*.[ch]')
service=$(find service -name '*.[ch]' ! -name yaml_to_json.c)
for layer in "$storage" "$handlers" "$service"; do
    [ "$(echo "$layer" | wc -l)" -gt 50 ] || complain "lint sees too few files of a layer:" "$layer"
done

# Layers: service -> handlers -> storage, never back; each library has one home.
# The folders of a layer, and what each may include, are a table in its README.md.
complain "folders and circles:" "$(/usr/bin/python3 tests/lint/rooms.py 2>&1)"
complain "storage/ must not know HTTP or JSON:" "$(grep -nE 'microhttpd|jansson' $storage)"
complain "handlers/ must not know HTTP libraries or Redis:" "$(grep -nE 'microhttpd|hiredis' $handlers)"
complain "handlers/ has no clock and no threads:" \
    "$(grep -nE '\b(clock_gettime|gettimeofday|time\(|pthread_create)' $handlers)"
complain "microhttpd.h belongs in service/http/server_private.h:" \
    "$(grep -ln 'include <microhttpd' $service $handlers | grep -v '^service/http/server_private\.h$')"
complain "service/http/server_private.h belongs to the HTTP server:" \
    "$(grep -ln 'include "service/http/server_private' $service | grep -vE '^service/http/(answer|connection|farewell|interposed|server|steps|worker)\.c$')"
complain "hiredis belongs in storage/redis/redis.c:" \
    "$(grep -ln 'include <hiredis' $storage $handlers $service | grep -v '^storage/redis/redis\.c$')"
complain "jansson belongs in handlers/ and service/client/:" \
    "$(grep -ln 'include <jansson' $service $storage | grep -v '^service/client/')"
complain "the schema of keys belongs in storage/schema/key.c:" \
    "$(grep -nE '"t:\{' $storage $handlers $service | grep -v '^storage/schema/key\.[ch]:')"

# Habits.
complain "banned functions:" \
    "$(grep -nE '\b(atoi|atol|atoll|strtok|sprintf|vsprintf|strcpy|strcat|gets|alloca|rand|srand)\(' $storage $handlers $service)"
complain "marks left over:" "$(grep -nE 'TODO|FIXME|XXX|HACK' $storage storage/lua/*.lua $handlers $service)"
complain "every script begins with #!lua:" \
    "$(for f in storage/lua/*.lua; do head -c 5 "$f" | grep -q '^#!lua' || echo "$f"; done)"
complain "files of more than 500 lines:" \
    "$(wc -l $storage $handlers $service | awk '$1 > 500 && $2 != "total" {print $2": "$1}')"

# A function fits a screen: its body and the line of its name.
complain "functions of more than 50 lines:" \
    "$(awk '/^{/ {from = FNR - 1} /^}/ && from {if (FNR - from >= 50) print FILENAME":"from": "FNR - from + 1; from = 0}' $storage $handlers $service)"

if command -v cppcheck >/dev/null; then
    complain "cppcheck:" "$(cppcheck -q -j2 --enable=warning,portability --inline-suppr --std=c11 -I. \
        --suppress=missingIncludeSystem --suppress=varFuncNullUB --suppress=comparePointers:storage/redis/script.c -D_GNU_SOURCE storage handlers service 2>&1)"
fi
[ "$fault" = 0 ] && echo "lint: clean"
exit "$fault"
