#!/bin/sh
# deb.sh - the Debian package: built, linted, and, as root where debootstrap is, installed with apt alone on
# a bare Debian root, run there as its own user, asked, removed, and purged; and installed over an older one.
#
#   tests/deb.sh [DIRECTORY]        for the root; it is kept, so a second run is faster
#
# DEB_BEFORE=COMMIT is of what the older package is made: one whose data this version refuses.
set -eu
cd "$(dirname "$0")/.."
root=${1:-build/deb-root}
before=${DEB_BEFORE:-984d2ba}

make deb
lintian --allow-root --fail-on error,warning tallyd_*.deb

if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
  echo "deb.sh: not installed anywhere: that needs root and debootstrap"
  exit 0
fi
if [ ! -e "$root/etc/debian_version" ]; then
  mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
    sed -n -e 's/^URIs: *\([^ ]*debian\/*\)$/\1/p' -e 's/^deb \(\[[^]]*\] \)*\([^ ]*debian\/*\) .*/\2/p' | head -1)
  debootstrap --variant=minbase bookworm "$root" "${mirror:-http://deb.debian.org/debian}"
fi
server=
mounted=
finish() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || :
  [ -z "$mounted" ] || umount "$root/proc"
}
trap finish EXIT
cp /etc/resolv.conf "$root/etc/resolv.conf"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # nothing is started by itself
chmod 755 "$root/usr/sbin/policy-rc.d"
rm -f "$root"/root/tallyd_*.deb
cp tallyd_*.deb "$root/root/"
within() { chroot "$root" env DEBIAN_FRONTEND=noninteractive sh -euc "$1"; }

within 'apt-get update -qq; apt-get purge -y -qq tallyd >/dev/null 2>&1 || :; apt-get install -y -qq /root/tallyd_*.deb >/root/install.log 2>&1 ||
  { cat /root/install.log; exit 1; }'
within '[ "$(stat -c "%U:%G %a" /etc/tallyd/tallyd.conf)" = "root:tallyd 640" ]
  [ "$(stat -c "%U:%G %a" /var/lib/tallyd)" = "tallyd:tallyd 700" ]
  dpkg-query -W -f "\${Conffiles}" tallyd | grep -q "/etc/tallyd/tallyd.conf"
  [ -x /usr/bin/tallyd ]
  [ -s /usr/share/doc/tallyd/CHANGELOG.md ] # deploy/README.md says to read it before an upgrade
  [ -s /usr/share/doc/tallyd/openapi.yaml ] && [ -s /usr/share/doc/tallyd/LICENSE ] # pages link to them
  [ -s /usr/share/doc/tallyd/deploy/prometheus/tallyd.rules.yml ] # prometheus.yml beside it names it
  [ -z "$(find /usr/share/doc/tallyd/deploy -name "*.gz")" ]
  ! ldd /usr/bin/tallyd | grep "not found"'

if command -v systemd-analyze >/dev/null; then
  for unit in tallyd.service tallyd-follow@.service; do
    systemd-analyze security --offline=true --threshold=15 --no-pager "$root/lib/systemd/system/$unit" >"$root/root/security.log" ||
      { tail -3 "$root/root/security.log"; exit 1; }
  done
fi

# As the unit starts it.
mount --bind /proc "$root/proc"
mounted=1
begin() {
  command=$(sed -n 's|^ExecStart=||p' "$root/lib/systemd/system/tallyd.service" | sed 's|%S|/var/lib|')
  grep -q '^User=tallyd$' "$root/lib/systemd/system/tallyd.service"
  rm -f "$root/root/ready"
  mkfifo "$root/root/ready"
  chroot --userspec=tallyd:tallyd "$root" sh -c "cd / && exec $command --listen 127.0.0.1:0 --redis-memory 128MiB" \
    >"$root/root/ready" 2>"$root/root/serve.log" &
  server=$!
  line=
  read -r line <"$root/root/ready" || return 0
  url=$(echo "$line" | sed 's/.*listening on \(http[^ ]*\) .*/\1/')
}
end() {
  kill "$server"
  wait "$server"
  server=
}
runs() {
  begin
  [ -n "$line" ] || { cat "$root/root/serve.log"; exit 1; }
  curl -sf -d '{"page":"/","user":"u"}' -H 'Content-Type: application/json' "$url/events"
  curl -sf "$url/uv?from=now-1h" | grep -q '"uv":1,'
  end
}
runs

within 'apt-get remove -y -qq tallyd >/dev/null 2>&1; [ -d /var/lib/tallyd ]; [ -e /etc/tallyd/tallyd.conf ]; ! command -v tallyd'
within 'apt-get purge -y -qq tallyd >/dev/null 2>&1; [ ! -e /var/lib/tallyd ]; [ ! -e /etc/tallyd ]'

# Over the older package: an administrator's line stays, and data that this version cannot read is refused and left as it is.
if git rev-parse -q --verify "$before^{commit}" >/dev/null 2>&1; then
  old=build/deb-before
  if ! ls $old/tallyd_*.deb >/dev/null 2>&1; then
    rm -rf $old
    mkdir -p $old
    git archive "$before" | tar x -C $old
    make -C $old deb >$old.log 2>&1 || { tail -20 $old.log; exit 1; }
  fi
  rm -f "$root"/root/before_*.deb
  cp $old/tallyd_*.deb "$root/root/before_tallyd.deb"
  within 'apt-get install -y -qq /root/before_tallyd.deb >/root/install.log 2>&1 || { cat /root/install.log; exit 1; }'
  runs
  within 'echo "# mine" >>/etc/tallyd/tallyd.conf; dpkg-query -W -f "\${Version}" tallyd >/root/before
    find /var/lib/tallyd -name "*.aof" -exec sha256sum {} + | sort >/root/data
    apt-get install -y -qq -o Dpkg::Options::=--force-confold /root/tallyd_*.deb >/root/install.log 2>&1 || { cat /root/install.log; exit 1; }
    dpkg --compare-versions "$(dpkg-query -W -f "\${Version}" tallyd)" gt "$(cat /root/before)"
    grep -qx "# mine" /etc/tallyd/tallyd.conf
    [ "$(stat -c "%U:%G %a" /etc/tallyd/tallyd.conf)" = "root:tallyd 640" ]'
  begin
  status=0
  wait "$server" || status=$?
  server=
  [ -z "$line" ] && [ "$status" = 2 ] && grep -q 'the data has schema .* start with an empty Redis or data directory' "$root/root/serve.log" ||
    { echo "deb.sh: the data of $before was not refused: status $status"; cat "$root/root/serve.log"; exit 1; }
  within 'find /var/lib/tallyd -name "*.aof" -exec sha256sum {} + | sort | cmp - /root/data; [ -s /root/data ]
    rm -r /var/lib/tallyd; install -d -m 0700 -o tallyd -g tallyd /var/lib/tallyd'
  runs
  within 'apt-get purge -y -qq tallyd >/dev/null 2>&1; [ ! -e /var/lib/tallyd ]; [ ! -e /etc/tallyd ]'
  upgraded=", upgrades the one of $before,"
else
  echo "deb.sh: no upgrade: commit $before is not here"
fi
echo "
deb.sh: $(ls tallyd_*.deb) installs, runs${upgraded:-,} and goes"
