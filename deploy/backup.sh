#!/bin/sh
# backup.sh - copy the data of an embedded Redis while tallyd runs, and put a copy in place.
#
#   backup.sh save DATA_DIR TARGET        TARGET must not exist; tallyd may run or not
#   backup.sh restore BACKUP DATA_DIR     tallyd must not run on DATA_DIR; what is there is moved aside
#
# As the user that the data belongs to, or root.  Everything that was acknowledged before `save` began is in
# the copy; it may end amid a command, which Redis cuts off when it loads.  The copy holds the hashing secret:
# treat it like the data.  Needs redis-cli.
set -eu

usage() {
  sed -n '4,5s/^# *//p' "$0" >&2
  exit 2
}

fail() {
  echo "backup.sh: $1" >&2
  exit 1
}

ask() {
  redis-cli -s "$1/redis.sock" --no-auth-warning config "$2" auto-aof-rewrite-percentage ${3+"$3"}
}

runs() {
  [ -S "$1/redis.sock" ] && redis-cli -s "$1/redis.sock" ping >/dev/null 2>&1
}

# Copy the files of append-only file $1 to $2.  Redis writes its manifest anew when it begins or ends a file:
# then once more.  A rewrite that tallyd asks for may begin amid the copy, whatever the percentage is.  So the manifest
# that is copied must be the one that was there before the first file was, and is there behind the last.
copy() {
  manifest=appendonly.aof.manifest
  for _ in 1 2 3 4 5; do
    rm -rf "$2"
    was=$(cat "$1/$manifest") || fail "$1 has no manifest"
    if why=$(cp -R "$1" "$2" 2>&1) && [ "$was" = "$(cat "$2/$manifest")" ] &&
      [ "$was" = "$(cat "$1/$manifest")" ]; then
      rm -f "$2"/temp-*
      return
    fi
    sleep 1
  done
  fail "${why:-the files in $1 keep changing}"
}

save() {
  data=$1
  target=${2%/}
  [ -n "$target" ] || fail "$2 is there already"
  [ -d "$data/appendonlydir" ] || fail "$data has no appendonlydir: not a data directory"
  [ ! -e "$target" ] || fail "$target is there already"
  umask 077
  part=$target.part
  rm -rf "$part"
  trap 'rm -rf "$part"' EXIT
  if runs "$data"; then
    # A rewrite would replace files under our hands: none may begin, and one under way must end.
    before=$(ask "$data" get | tail -1)
    trap 'ask "$data" set "$before" >/dev/null; rm -rf "$part"' EXIT
    trap 'exit 1' HUP INT TERM
    ask "$data" set 0 >/dev/null
    while redis-cli -s "$data/redis.sock" info persistence |
      grep -Eq 'aof_rewrite_(in_progress|scheduled):1'; do
      sleep 1
    done
    copy "$data/appendonlydir" "$part"
    ask "$data" set "$before" >/dev/null
  else
    copy "$data/appendonlydir" "$part"
  fi
  trap - EXIT
  sync -f "$part" 2>/dev/null || sync
  mv "$part" "$target"
  echo "saved $(du -sk "$target" | cut -f1) KB in $target"
}

restore() {
  backup=$1
  data=$2
  ls "$backup"/*.manifest >/dev/null 2>&1 || fail "$backup is not a copy: it has no manifest"
  if [ -d "$data" ] && runs "$data"; then
    fail "a Redis runs on $data: stop tallyd first"
  fi
  # A tallyd whose Redis does not start tries again each second, and would begin with half a copy.
  if command -v flock >/dev/null && [ -e "$data/tallyd.lock" ]; then
    exec 9<>"$data/tallyd.lock" # held to the end
    flock -n 9 || fail "a tallyd runs on $data: stop it first"
  fi
  [ -d "$data" ] || mkdir -m 0700 "$data"
  # Half a copy would be taken for all: it gets its name when it is whole.
  part=$data/appendonlydir.part
  rm -rf "$part"
  trap 'rm -rf "$part"' EXIT
  cp -R "$backup" "$part"
  # The owner is that of the directory around it, the service's user.
  [ "$(id -u)" != 0 ] || chown -R --reference="$data" "$part"
  sync -f "$part" 2>/dev/null || sync
  if [ -e "$data/appendonlydir" ]; then
    aside=$data/appendonlydir.before.$(date +%Y%m%d%H%M%S)
    mv "$data/appendonlydir" "$aside"
    echo "what was there is now $aside"
  fi
  mv "$part" "$data/appendonlydir"
  trap - EXIT
  echo "restored; start tallyd on $data"
}

[ $# -eq 3 ] || usage
case $1 in
  save) save "$2" "$3" ;;
  restore) restore "$2" "$3" ;;
  *) usage ;;
esac
