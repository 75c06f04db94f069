#!lua flags=allow-oom
-- settings.lua - change how long a partition's data is kept; compare and set.
-- KEYS: 1 rolled    ARGV: 1 cfg expected  2 st expected  3 cfg  4 kept  5 ver
-- Reply: 1 done, 0 something moved meanwhile
local is = redis.call('HMGET', KEYS[1], 'cfg', 'st')
if is[1] ~= ARGV[1] or is[2] ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'cfg', ARGV[3], 'kept', ARGV[4], 'ver', ARGV[5])
return 1
