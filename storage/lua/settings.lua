#!lua flags=allow-oom
-- settings.lua - change for how long a partition's data is kept, and in which zones its sites are cut.  Compare and set.
-- KEYS: 1 state  2 sites
-- ARGV: 1 cfg expected  2 st expected  3 cfg  4 kept  5 ver  6 zones of the sites; '': all sites are in UTC
--       7.. sites of this partition that get another zone, which is allowed as long as a site has no data
-- Reply: 1: done; 0: nothing was done, because the settings or st differ, or such a site has data
local is = redis.call('HMGET', KEYS[1], 'cfg', 'st')
if is[1] ~= ARGV[1] or is[2] ~= ARGV[2] then return 0 end
for i = 7, #ARGV do
    if redis.call('SISMEMBER', KEYS[2], ARGV[i]) == 1 then return 0 end
end
redis.call('HSET', KEYS[1], 'cfg', ARGV[3], 'kept', ARGV[4], 'ver', ARGV[5])
if ARGV[6] == '' then redis.call('HDEL', KEYS[1], 'zones') else redis.call('HSET', KEYS[1], 'zones', ARGV[6]) end
return 1
