#!lua flags=allow-oom
-- cursors.lua - move a partition's cursors past entries that have nothing for the partition (fold/pass_by.c).
-- KEYS: 1 state    ARGV: for each log its id, the number before the first of the entries, the number of the last one
-- Reply: 0: done; n above 0: nothing was done, because the n-th log's cursor is before those entries; -1: there is no state
--
-- A cursor is a list of positions (schema/log_state.h).  A position that is behind the last entry already stays.
local call = redis.call
if call('HEXISTS', KEYS[1], 'cfg') == 0 then return -1 end
local set = {}
for i = 1, #ARGV, 3 do
    local from, to, moves, missing = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), false, false
    local is = call('HGET', KEYS[1], ARGV[i]) or '0'
    local new = string.gsub(is, '[^,]+', function(position)
        local n, part, times = string.match(position, '^(%d+)(:?%d*)(.*)$')
        local whole = tonumber(n) - (part == '' and 0 or 1)
        missing = missing or whole < from
        if whole < to then
            moves = true
            return ARGV[i + 2] .. times
        end
    end)
    if missing then return (i + 2) / 3 end
    if moves then
        set[#set + 1], set[#set + 2] = ARGV[i], new
    end
end
if #set > 0 then call('HSET', KEYS[1], unpack(set)) end
return 0
