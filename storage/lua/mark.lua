#!lua flags=allow-oom
-- mark.lua - open a pass of the rollup, which closes the next bucket of a level for writers.  Compare and set.
-- KEYS: 1 state  2 pass
-- ARGV: 1 cfg  2 st expected  3 st with the bucket closed  4 id of the pass  5 fencing token  6 end of the bucket (s)
-- Reply: 1: done; 0: nothing was done, because the settings or st differ, a pass is open, the bucket is not over, or the
--        partition has seen a greater token
local t = redis.call('TIME')
local is = redis.call('HMGET', KEYS[1], 'cfg', 'st')
local open = redis.call('HMGET', KEYS[2], 'pass', 'ftok')
if is[1] ~= ARGV[1] or is[2] ~= ARGV[2] or open[1] then return 0 end
if tonumber(t[1]) < tonumber(ARGV[6]) then return 0 end
if tonumber(ARGV[5]) < tonumber(open[2] or '0') then return 0 end
redis.call('HSET', KEYS[1], 'st', ARGV[3])
redis.call('HSET', KEYS[2], 'pass', ARGV[4], 'cur', 'm0', 'ftok', ARGV[5])
return 1
