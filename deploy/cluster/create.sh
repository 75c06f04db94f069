#!/bin/sh
# create.sh - make a cluster of nodes that are empty: the first third become primaries, with two replicas each.
#
# Usage: create.sh HOST:PORT..      Waits for the nodes.  Done before, it changes nothing.
# REDISCLI_AUTH= and TALLYD_REDIS_USER= are for nodes with users.
set -eu
user=${TALLYD_REDIS_USER:+--user $TALLYD_REDIS_USER}
nodes=
for node in "$@"; do
    host=${node%:*}
    port=${node##*:}
    # shellcheck disable=SC2086 # $user is two words, or none
    until [ "$(redis-cli -h "$host" -p "$port" $user ping 2>/dev/null)" = PONG ]; do sleep 0.2; done
    # CLUSTER MEET takes addresses, no names
    nodes="$nodes $(getent ahostsv4 "$host" | awk 'NR == 1 {print $1}'):$port"
done
# shellcheck disable=SC2086
if redis-cli -h "$host" -p "$port" $user cluster info | grep -q '^cluster_slots_assigned:16384'; then
    echo "there is a cluster"
    exit 0
fi
# shellcheck disable=SC2086
exec redis-cli $user --cluster create $nodes --cluster-replicas 2 --cluster-yes
