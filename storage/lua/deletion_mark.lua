#!lua flags=allow-oom
-- deletion_mark.lua - a partition learns of a deletion: nothing that was remembered of the partition holds any more.
-- KEYS: 1 state  2 pass  3 deletions, of partition 0 alone: the first to be marked
-- ARGV: 1 fencing token  2 field of the deletion, of which nothing is counted, '' = none
--       3 but only what arrived before this, ms; 0 = all  4 a new id
--       5 lines of deletions of which all was counted again before this are dropped, ms
--       6 id of the deletion: from now on it takes keys and fields away, without a new id each time; '': no more
--       7 id of the deletion
-- Reply: 1 done, 0 not: the partition has seen a greater token, or the deletion has its instant, or is over: a leader before this
-- one has brought it to its end, and what is counted now is not to be deleted
local call = redis.call
if tonumber(ARGV[1]) < tonumber(call('HGET', KEYS[2], 'ftok') or '0') then return 0 end
if KEYS[3] then
    local record = call('HGET', KEYS[3], ARGV[2])
    if not record or not string.match(record, '^' .. ARGV[7] .. ' %d+ 0$') then return 0 end
end
call('HSET', KEYS[2], 'ftok', ARGV[1])
local is = call('HMGET', KEYS[1], 'deleted', 'over', 'fold')
local field = string.gsub(ARGV[2], '[ \n%%]', function (c) return string.format('%%%02X', string.byte(c)) end)
local lines = {}
for line in string.gmatch(is[1] or '', '[^\n]+') do
    local is_field, before = string.match(line, '^(%S+) (%d+)')
    if is_field ~= field and (before == '0' or tonumber(before) >= tonumber(ARGV[5])) then table.insert(lines, line .. '\n') end
end
if field ~= '' then table.insert(lines, field .. ' ' .. ARGV[3] .. ' ' .. ARGV[4] .. '\n') end
if #lines > 0 then
    call('HSET', KEYS[1], 'deleted', table.concat(lines))
else
    call('HDEL', KEYS[1], 'deleted')
end
call('HSET', KEYS[1], 'ver', ARGV[4], 'users', ARGV[4])
if ARGV[6] ~= '' then call('HSET', KEYS[1], 'deleting', ARGV[6]) else call('HDEL', KEYS[1], 'deleting') end
-- The instant stays, its id is new: 11 digits, a blank, the id.
if is[2] then call('HSET', KEYS[1], 'over', string.sub(is[2], 1, 12) .. ARGV[4]) end
if is[3] then call('HSET', KEYS[1], 'fold', ARGV[4]) end
return 1
