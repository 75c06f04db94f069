#!lua flags=allow-oom
-- takeover.lua - take over a pass that another process has left open.  The pass gets a new id, and its phase is done again.
-- KEYS: 1 state  2 pass
-- ARGV: 1 cfg  2 st expected  3 pass expected  4 id of the pass  5 fencing token
--       6 cursor: m0: the pass merges again; x0: the bucket is closed for readers already
-- Reply: 1: done; 0: nothing was done, because the settings, st or the pass differ, or the partition has seen a greater token
local is = redis.call('HMGET', KEYS[1], 'cfg', 'st')
local open = redis.call('HMGET', KEYS[2], 'pass', 'ftok')
if is[1] ~= ARGV[1] or is[2] ~= ARGV[2] or open[1] ~= ARGV[3] then return 0 end
if tonumber(ARGV[5]) < tonumber(open[2] or '0') then return 0 end
redis.call('HSET', KEYS[2], 'pass', ARGV[4], 'cur', ARGV[6], 'ftok', ARGV[5])
return 1
