#!lua flags=allow-oom
-- deletion_step.lua - write down how far a deletion has come, or that it is over.  Compare and set.
-- KEYS: 1 pass of partition 0  2 deletions
-- ARGV: 1 fencing token  2 field of the deletion  3 id of the deletion  4 the new record; '': the deletion is over
--       5 instant of the deletion (ms): what arrives from then on is counted again
-- Reply: 1: done; 0: nothing was done, because another process leads, or the field has another deletion or none
local call = redis.call
if tonumber(ARGV[1]) < tonumber(call('HGET', KEYS[1], 'ftok') or '0') then return 0 end
local is = call('HGET', KEYS[2], ARGV[2])
if not is or string.sub(is, 1, #ARGV[3]) ~= ARGV[3] then return 0 end
if ARGV[4] == '' then
    call('HDEL', KEYS[2], ARGV[2])
    if tonumber(call('HGET', KEYS[1], 'over') or '0') < tonumber(ARGV[5]) then call('HSET', KEYS[1], 'over', ARGV[5]) end
else
    call('HSET', KEYS[2], ARGV[2], ARGV[4])
end
return 1
