#!lua flags=allow-oom
-- mark.lua - open a pass of the rollup, which closes the next bucket of a level for writers.  Compare and set.
-- KEYS: 1 rolled
-- ARGV: 1 cfg  2 st expected  3 st with the bucket closed  4 id of the pass  5 fencing token  6 end of the bucket (s)
-- Reply: 1 done, 0 not: something has changed, or the bucket is not over
local t = redis.call('TIME')
local is = redis.call('HMGET', KEYS[1], 'cfg', 'st', 'pass', 'ftok')
if is[1] ~= ARGV[1] or is[2] ~= ARGV[2] or is[3] then return 0 end
if tonumber(t[1]) < tonumber(ARGV[6]) then return 0 end
if tonumber(ARGV[5]) < tonumber(is[4] or '0') then return 0 end
redis.call('HSET', KEYS[1], 'st', ARGV[3], 'pass', ARGV[4], 'cur', 'm0', 'ftok', ARGV[5])
return 1
