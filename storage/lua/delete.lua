#!lua flags=allow-oom
-- delete.lua - take keys of a partition away, or fields out of them.
-- KEYS: 1 pass  2.. keys: first those to be unlinked, then hashes or sets, then sorted sets
-- ARGV: 1 fencing token  2 how many are unlinked  3 'HDEL' or 'SREM'  4 to how many that applies
--       5.. fields that those, and the sorted sets behind them, lose
-- Reply: how many keys and fields there were; -1: the partition has seen a greater token
local call = redis.call
if tonumber(ARGV[1]) < tonumber(call('HGET', KEYS[1], 'ftok') or '0') then return -1 end
local n = 0
local fields = {unpack(ARGV, 5)}
local unlinked = 1 + tonumber(ARGV[2])
local plain = unlinked + tonumber(ARGV[4])
for i = 2, #KEYS do
    if i <= unlinked then
        n = n + call('UNLINK', KEYS[i])
    elseif i <= plain then
        n = n + call(ARGV[3], KEYS[i], unpack(fields))
    else
        n = n + call('ZREM', KEYS[i], unpack(fields))
    end
end
return n
