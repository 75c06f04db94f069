#!lua
-- seen_fold.lua - do one step of folding a log of pairs into a month's filter: set a string of bits, or end the fold.
-- KEYS: 1 the filter's hash  2 the log that is folded  3 the string of bits; the last step has none
-- ARGV: 1 ver expected; '': none  2 ver to set  3 when the month expires (ms)  4 the bits; '': this is the last step
--       5.. fields and values of the filter's hash
-- Reply: 1: done; 0: nothing was done, because another process folds the log, or the site was deleted meanwhile
local call = redis.call
if (call('HGET', KEYS[1], 'ver') or '') ~= ARGV[1] or call('EXISTS', KEYS[2]) == 0 then return 0 end
if ARGV[4] ~= '' then
    call('SET', KEYS[3], ARGV[4], 'PXAT', ARGV[3])
else
    call('UNLINK', KEYS[2])
end
call('HSET', KEYS[1], 'ver', ARGV[2], unpack(ARGV, 5))
call('PEXPIREAT', KEYS[1], ARGV[3])
return 1
