#!lua flags=allow-oom
-- schema.lua - set the two values that belong to the data as a whole.  The first process sets them; all later ones get them.
-- KEYS: 1 meta  2 secret    ARGV: 1 meta proposed  2 secret proposed
-- Reply: {meta, secret}
redis.call('SET', KEYS[1], ARGV[1], 'NX')
redis.call('SET', KEYS[2], ARGV[2], 'NX')
return {redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])}
