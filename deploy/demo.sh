#!/bin/sh
# demo.sh - a tallyd with two months of synthetic traffic, for a look; nothing of it is anybody's.
#
#   deploy/demo.sh BINARY [ADDRESS]
#
# The data lies in a directory of its own that is removed at the end.  Ctrl-C ends it.
set -eu
binary=$1
address=${2:-127.0.0.1:8080}
directory=$(mktemp -d "${TMPDIR:-/tmp}/tallyd-demo.XXXXXX")
server=
sender=
finish() {
  trap - EXIT INT TERM
  [ -z "$sender" ] || kill "$sender" 2>/dev/null || :
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || :
    wait "$server" 2>/dev/null || :
  fi
  rm -rf "$directory"
}
trap finish EXIT
trap 'exit 0' INT TERM

# everysec: there is nothing here that must outlive a power cut.
mkfifo "$directory/ready"
printf 'section.posts = /posts/\nsection.products = /product/\n' >"$directory/tallyd.conf"
"$binary" serve --config "$directory/tallyd.conf" --data-dir "$directory/data" --listen "$address" --fsync everysec --redis-memory 512MiB \
  --log-level warn >"$directory/ready" &
server=$!
read -r line <"$directory/ready" || { echo "tallyd did not start" >&2; exit 1; }
echo "$line"
url=$(echo "$line" | sed 's/.*listening on \(http[^ ]*\) .*/\1/')
"${PYTHON:-python3}" -B "$(dirname "$0")/demo.py" --url "$url"
# The days of two months are whole, so let them be rolled up.
curl -s -o "$directory/rollup" -X POST "$url/rollup" || :
cat <<TEXT

All of this is made up: sites demo-shop and demo-blog, users demo-..., addresses of RFC 5737.  Ask it:

  $url/
  curl '$url/uv?site=demo-shop&from=now-30d/h'
  curl '$url/pv?site=demo-blog&from=now-7d/h&page=/'
  curl '$url/visits?site=demo-shop&from=now/d'
  curl '$url/dau?site=demo-shop&from=now-6d'
  curl '$url/retention?site=demo-shop&cohort=$(date -u -d '7 days ago' +%F)&days=7'

Page views go on coming in.  Ctrl-C ends it and throws the data away.
TEXT
"${PYTHON:-python3}" -B "$(dirname "$0")/demo.py" --url "$url" --days 0 --per-day 20000 --live >"$directory/live" 2>&1 &
sender=$!
wait "$server"
