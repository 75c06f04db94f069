#!/bin/sh
# deb.sh - the Debian package: built, linted, and, as root where debootstrap is, installed with apt alone on
# a bare Debian root, run there as its own user, asked, removed, and purged.
#
#   tests/deb.sh [DIRECTORY]        for the root; it is kept, so a second run is faster
set -eu
cd "$(dirname "$0")/.."
root=${1:-build/deb-root}

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
  ! ldd /usr/bin/tallyd | grep "not found"'

# As the unit starts it.
mount --bind /proc "$root/proc"
mounted=1
command=$(sed -n 's|^ExecStart=||p' "$root/lib/systemd/system/tallyd.service" | sed 's|%S|/var/lib|')
grep -q '^User=tallyd$' "$root/lib/systemd/system/tallyd.service"
rm -f "$root/root/ready"
mkfifo "$root/root/ready"
chroot --userspec=tallyd:tallyd "$root" sh -c "cd / && exec $command --listen 127.0.0.1:0 --redis-memory 128MiB" \
  >"$root/root/ready" 2>"$root/root/serve.log" &
server=$!
read -r line <"$root/root/ready" || { cat "$root/root/serve.log"; exit 1; }
url=$(echo "$line" | sed 's/.*listening on \(http[^ ]*\) .*/\1/')
curl -sf -d '{"page":"/","user":"u"}' -H 'Content-Type: application/json' "$url/events"
curl -sf "$url/uv?from=now-1h" | grep -q '"uv":1,'
kill "$server"
wait "$server"
server=

within 'apt-get remove -y -qq tallyd >/dev/null 2>&1; [ -d /var/lib/tallyd ]; [ -e /etc/tallyd/tallyd.conf ]; ! command -v tallyd
  apt-get purge -y -qq tallyd >/dev/null 2>&1; [ ! -e /var/lib/tallyd ]; [ ! -e /etc/tallyd ]'
echo "
deb.sh: $(ls tallyd_*.deb) installs, runs, and goes"
