#!lua flags=allow-oom
-- init.lua - give a partition without a state its first one, and return the partition's state.
-- KEYS: 1 state    ARGV: 1 cfg  2 st of a partition without data  3 ver  4 zones of the sites; '': all sites are in UTC
-- Reply: {cfg, st, ver, kept, over, fold, zones}; each of the last four may be nil
if redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('HSET', KEYS[1], 'cfg', ARGV[1], 'st', ARGV[2], 'ver', ARGV[3])
    if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'zones', ARGV[4]) end
end
return redis.call('HMGET', KEYS[1], 'cfg', 'st', 'ver', 'kept', 'over', 'fold', 'zones')
