#!/bin/sh
# cluster.sh - run a program on a Redis Cluster of two servers, which end with it.   usage: cluster.sh PROGRAM [ARGUMENT...]
# OOM_REDIS has the cluster's URL (service.h).
set -eu
dir=$(mktemp -d /tmp/tallyd-oom-cluster-XXXXXX)
pids=
stop() {
    [ -z "$pids" ] || kill $pids 2>/dev/null || true
    for pid in $pids; do wait "$pid" || true; done
    rm -rf "$dir"
}
trap stop EXIT
trap 'exit 2' INT TERM

# A server's port, and that of its bus.
set -- $(/usr/bin/python3 -c '
import socket
s = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
print(*[x.getsockname()[1] for x in s])') "$@"
first=$1 first_bus=$2 second=$3 second_bus=$4
shift 4
for pair in "$first $first_bus" "$second $second_bus"; do
    port=${pair% *}
    mkdir "$dir/$port"
    redis-server --port "$port" --cluster-port "${pair#* }" --bind 127.0.0.1 --dir "$dir/$port" --save '' --cluster-enabled yes \
        --logfile "$dir/$port/log" &
    pids="$pids $!"
done

# Ask until the answer is what it shall be.   usage: await PORT ANSWER COMMAND...
await() {
    port=$1 answer=$2 tries=0
    shift 2
    until redis-cli -p "$port" "$@" 2>/dev/null | grep -q "$answer"; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || { echo "the cluster does not start: $*" >&2; exit 2; }
        sleep 0.1
    done
}

await "$first" PONG PING
await "$second" PONG PING
await "$first" OK CLUSTER ADDSLOTSRANGE 0 8191
await "$second" OK CLUSTER ADDSLOTSRANGE 8192 16383
await "$second" OK CLUSTER MEET 127.0.0.1 "$first" "$first_bus"
await "$first" cluster_state:ok CLUSTER INFO
await "$second" cluster_state:ok CLUSTER INFO
OOM_REDIS=redis-cluster://127.0.0.1:$first "$@"
