#!lua flags=allow-oom
-- settle.lua - what became of claims: done, with the answer to repeat; or released.  Compare and set, for many in turn.
-- KEYS: claims
-- ARGV: 1 how long a record is kept (ms)  then per key: D or R  gen (ms, 13 digits)  owner  digest of the body  the answer
-- Reply: a code per key: 0 done  1 not: the record is gone, or another generation's, or (to be released) another owner's
local function settle(key, what, gen, owner, body, answer)
    local is = redis.call('GET', key)
    if not is or string.sub(is, 2, 14) ~= gen or string.sub(is, 44, 59) ~= body then return 1 end
    if what == 'D' then
        if string.sub(is, 1, 1) == 'D' then return 0 end -- the first answer stays
        redis.call('SET', key, 'D' .. string.sub(is, 2, 59) .. answer, 'PX', ARGV[1])
        return 0
    end
    if string.sub(is, 1, 1) ~= 'I' or string.sub(is, 28, 43) ~= owner then return 1 end
    redis.call('DEL', key)
    return 0
end

local reply = {}
for i, key in ipairs(KEYS) do
    local a = 5 * i - 3
    reply[i] = settle(key, ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4])
end
return reply
