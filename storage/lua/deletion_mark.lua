#!lua flags=allow-oom
-- deletion_mark.lua - tell a partition of a deletion.  Nothing that processes remember of the partition holds any more.
-- KEYS: 1 state  2 pass  3 deletions; only for partition 0, which is marked before all others
-- ARGV: 1 fencing token  2 field of the deletion; '': none
--       3 instant (ms): what arrived before it and belongs to the field is not counted; 0: nothing of the field is counted
--       4 a new id for ver, users, over and fold
--       5 instant (ms): the state loses the lines of other deletions with an earlier instant, because entries that are so old
--         come no more
--       6 id of the deletion if it deletes keys and fields from now on, without a new id for each; '': it does so no more
--       7 id of the deletion; only for partition 0
-- Reply: 1: done; 0: nothing was done.  Then the partition has seen a greater token, or the deletion has its instant already
--        or is over: an earlier leader has brought the deletion to its end, and what is counted now is not to be deleted
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
-- over is an instant of 11 digits, a blank and an id.  The instant stays, and the id is new.
if is[2] then call('HSET', KEYS[1], 'over', string.sub(is[2], 1, 12) .. ARGV[4]) end
if is[3] then call('HSET', KEYS[1], 'fold', ARGV[4]) end
return 1
