#!/bin/sh
# lint.sh - openapi.yaml by other people's rules: redocly and spectral.   usage: lint.sh DIRECTORY
#
# The linters are installed into DIRECTORY, in the versions that package.json names; without npm there is nothing to do.
set -u
dir=$1
here=tests/contract
if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
    echo "lint-openapi: skipped, for npm is missing (apt-get install npm)"
    exit 0
fi
if ! cmp -s $here/package.json "$dir/installed.json"; then
    rm -rf "$dir" && mkdir -p "$dir" && cp $here/package.json "$dir/" || exit 1
    if ! (cd "$dir" && npm install --no-package-lock --no-audit --no-fund --ignore-scripts --loglevel=error) \
        >"$dir/npm.log" 2>&1; then
        tail -5 "$dir/npm.log" >&2
        echo "lint-openapi: npm could not install the linters ($dir/npm.log)" >&2
        exit 1
    fi
    cp $here/package.json "$dir/installed.json"
fi

# Neither may tell anybody about us, or ask for news.
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
status=0
"$dir/node_modules/.bin/redocly" lint --config $here/redocly.yaml openapi.yaml || status=1
"$dir/node_modules/.bin/spectral" lint --ruleset $here/spectral.yaml --fail-severity warn openapi.yaml || status=1
[ "$status" = 0 ] && echo "lint-openapi: clean"
exit "$status"
