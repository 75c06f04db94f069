#!/usr/bin/python3
"""postgres_copy.py SOCKET CONNECTIONS SECONDS SEED BATCH PAGES USERS - arrays of events by COPY, each folded in its transaction.

The texts are made before the clock runs, and drawn as rate.c draws: pages log-uniformly, users uniformly.  The last line is
JSON, as rate.c's.
"""

import datetime
import io
import json
import math
import random
import sys
import threading
import time

import psycopg2

TEXTS = 200  # different batches of a connection


def text(rng, batch, pages, users):
    now = datetime.datetime.utcnow().isoformat()
    return "".join(f"{now}\t/page/number/{int(math.exp(rng.random() * math.log(pages))):07}\tuser-{rng.randrange(users):08}\n"
                   for _ in range(batch))


def write(connection, texts, until, times):
    i = 0
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE batch (at timestamp, page text, visitor text) ON COMMIT DELETE ROWS")
        connection.commit()
        while time.monotonic() < until:
            begun = time.monotonic()
            cursor.copy_expert("COPY batch FROM STDIN", io.StringIO(texts[i % len(texts)]))
            cursor.execute("SELECT fold()")
            connection.commit()
            times.append(time.monotonic() - begun)
            i += 1


def main():
    socket, connections, seconds, seed, batch, pages, users = sys.argv[1], *map(int, sys.argv[2:])
    rng = random.Random(seed)
    texts = [[text(rng, batch, pages, users) for _ in range(TEXTS)] for _ in range(connections)]
    opened = [psycopg2.connect(host=socket, user="bench", dbname="postgres") for _ in range(connections)]
    begun = time.monotonic()
    times = [[] for _ in range(connections)]
    threads = [threading.Thread(target=write, args=(opened[i], texts[i], begun + seconds, times[i])) for i in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - begun
    all_times = sorted(t for of in times for t in of)
    events = len(all_times) * batch
    print(json.dumps({"events": events, "seconds": took, "rate": events / took,
                      "p50_us": all_times[len(all_times) // 2] * 1e6, "p99_us": all_times[len(all_times) * 99 // 100] * 1e6}))


if __name__ == "__main__":
    main()
