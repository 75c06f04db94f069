#!lua flags=allow-oom
-- cursors.lua - a partition gets nothing of some entries: its cursors move on, and nothing else changes (fold/pass_by.c).
-- KEYS: 1 state    ARGV: for each log its id, the number before the first of the entries, the number of the last one
-- Reply: 0 done; n above 0: the n-th log's cursor is before those entries, and nothing was done; -1: there is no state
local call = redis.call
if call('HEXISTS', KEYS[1], 'cfg') == 0 then return -1 end
local set = {}
for i = 1, #ARGV, 3 do
    local is = call('HGET', KEYS[1], ARGV[i])
    local n, part = string.match(is or '0', '^(%d+)(:?)')
    local whole = tonumber(n) - (part == ':' and 1 or 0)
    if whole < tonumber(ARGV[i + 1]) then return (i + 2) / 3 end
    if whole < tonumber(ARGV[i + 2]) then
        set[#set + 1], set[#set + 2] = ARGV[i], ARGV[i + 2]
    end
end
if #set > 0 then call('HSET', KEYS[1], unpack(set)) end
return 0
