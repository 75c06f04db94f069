#!lua flags=allow-oom
-- delete.lua - take keys of a partition away, or fields out of them.
-- KEYS: 1 state  2 pass  3.. keys: first those to be unlinked, then hashes or sets, then sorted sets
-- ARGV: 1 fencing token  2 id of the deletion  3 how many are unlinked  4 'HDEL' or 'SREM'  5 to how many that applies
--       6.. fields that those, and the sorted sets behind them, lose
-- Reply: how many keys and fields there were; -1: the partition has seen a greater token; -2: the partition does not know of
--        the deletion any more, because Redis has gone back behind its mark.  Nothing was done then
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
