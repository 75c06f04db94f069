#!lua flags=allow-oom
-- delete.lua - delete keys of a partition, or fields and members of keys.
-- KEYS: 1 state  2 pass  3.. keys: first those to be unlinked, then hashes or sets, then sorted sets
-- ARGV: 1 fencing token  2 id of the deletion  3 number of keys that are unlinked  4 'HDEL' or 'SREM'  5 number of keys of that
--       command  6.. fields or members that the keys of that command, and the sorted sets behind them, lose
-- Reply: number of keys, fields and members that were deleted.  Below 0 nothing was done.  -1: the partition has seen a greater
--        token; -2: the partition has no mark of the deletion, because Redis has gone back to an earlier state
local call = redis.call
if tonumber(ARGV[1]) < tonumber(call('HGET', KEYS[2], 'ftok') or '0') then return -1 end
if call('HGET', KEYS[1], 'deleting') ~= ARGV[2] then return -2 end
local n = 0
local fields = {unpack(ARGV, 6)}
local unlinked = 2 + tonumber(ARGV[3])
local plain = unlinked + tonumber(ARGV[5])
for i = 3, #KEYS do
    if i <= unlinked then
        n = n + call('UNLINK', KEYS[i])
    elseif i <= plain then
        n = n + call(ARGV[4], KEYS[i], unpack(fields))
    else
        n = n + call('ZREM', KEYS[i], unpack(fields))
    end
end
return n
