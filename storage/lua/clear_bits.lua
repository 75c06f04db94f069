#!lua flags=allow-oom
-- clear_bits.lua - clear the bit of one user in some bitmaps.
-- KEYS: 1 gone  2.. bitmaps
-- ARGV: 1 index of the user  2 member to take out of gone, because this is the last step; '' otherwise
-- Reply: number of bits that were set
local call, n = redis.call, 0
for i = 2, #KEYS do
    if call('GETBIT', KEYS[i], ARGV[1]) == 1 then
        call('SETBIT', KEYS[i], ARGV[1], 0)
        n = n + 1
    end
end
if ARGV[2] ~= '' then call('SREM', KEYS[1], ARGV[2]) end
return n
