#!lua flags=allow-oom
-- sweep_days.lua - delete the bitmaps of days that are not kept any more.
-- KEYS: 1 state  2 acts  3 the prefix act:, which a member of acts completes
-- ARGV: 1 cfg  2 first day that is kept  3 most bitmaps that one call deletes
-- Reply: number of bitmaps deleted; -1: nothing was done, because the settings differ
local call = redis.call
if call('HGET', KEYS[1], 'cfg') ~= ARGV[1] then return -1 end
local old = call('ZRANGE', KEYS[2], '-inf', '(' .. ARGV[2], 'BYSCORE', 'LIMIT', 0, ARGV[3])
for _, member in ipairs(old) do call('UNLINK', KEYS[3] .. member) end
if #old > 0 then
    -- The field swept tells readers that earlier days may be gone, even if a new keep time would include those days.
    local swept = call('HGET', KEYS[1], 'swept')
    if tonumber(swept or '0') < tonumber(ARGV[2]) then call('HSET', KEYS[1], 'swept', ARGV[2]) end
    call('ZREM', KEYS[2], unpack(old))
end
return #old
