#!lua flags=allow-oom
-- skip.lua - close buckets of a level in which no site has data, for writers and for readers at once.  Compare and set.
-- KEYS: 1 state  2 pass
-- ARGV: 1 cfg  2 st expected  3 st with the buckets closed  4 ver  5 id of the last fold expected; '': there was none
--       6 fencing token  7 end of the last bucket (s)
-- Reply: 1: done; 0: nothing was done, because the settings, st or the last fold differ, a pass is open, the last bucket is not
--        over, or the partition has seen a greater token
local t = redis.call('TIME')
local is = redis.call('HMGET', KEYS[1], 'cfg', 'st', 'fold')
local open = redis.call('HMGET', KEYS[2], 'pass', 'ftok')
if is[1] ~= ARGV[1] or is[2] ~= ARGV[2] or (is[3] or '') ~= ARGV[5] or open[1] then return 0 end
if tonumber(t[1]) < tonumber(ARGV[7]) then return 0 end
if tonumber(ARGV[6]) < tonumber(open[2] or '0') then return 0 end
redis.call('HSET', KEYS[1], 'st', ARGV[3], 'ver', ARGV[4])
redis.call('HSET', KEYS[2], 'ftok', ARGV[6])
return 1
