#!lua flags=allow-oom
-- clear_bits.lua - clear the bit of one forgotten user in some bitmaps.
-- KEYS: 1 gone, the set of indexes whose bits are being cleared  2.. bitmaps
-- ARGV: 1 index of the user  2 the index as a member of gone  3 '1': the last step, in which gone loses the member; '': another
-- Reply: number of bits that were set.  An index that is no member of gone any more may be another user's, and keeps its bits.
local call, n = redis.call, 0
if call('SISMEMBER', KEYS[1], ARGV[2]) == 0 then return 0 end
for i = 2, #KEYS do
    if call('GETBIT', KEYS[i], ARGV[1]) == 1 then
        call('SETBIT', KEYS[i], ARGV[1], 0)
        n = n + 1
    end
end
if ARGV[3] ~= '' then call('SREM', KEYS[1], ARGV[2]) end
return n
