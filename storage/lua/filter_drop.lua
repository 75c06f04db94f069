#!lua flags=allow-oom
-- filter_drop.lua - begin or end the deletion of a filter in one of its hashes.
-- KEYS: 1 the hash of the filter or of a shard
-- ARGV: 1 id of the filter  2 'fence': the caller deletes the filter's strings next; 'over': the strings are deleted
-- Reply: number of layers to delete; -1: nothing was done, because a later filter has the name, or the deletion is over
local call = redis.call
local is = call('HMGET', KEYS[1], 'id', 'n', 'last')
local id = tonumber(ARGV[1])
if is[1] ~= ARGV[1] then
    local latest = is[1] or is[3]
    if latest and tonumber(latest) >= id then return -1 end
    is[2] = false -- the shard has got no items of this filter, and must not get any now
    call('HSET', KEYS[1], 'id', ARGV[1])
    call('PERSIST', KEYS[1])
end
if ARGV[2] == 'fence' then
    call('HSET', KEYS[1], 'drop', '1')
else
    -- The key is not deleted first: while its slot is moved to another server, Redis would refuse to make the key again.
    call('HSET', KEYS[1], 'last', ARGV[1])
    for _, field in ipairs(call('HKEYS', KEYS[1])) do
        if field ~= 'last' then call('HDEL', KEYS[1], field) end
    end
    call('EXPIRE', KEYS[1], 7200)
end
return tonumber(is[2] or '0')
