#!lua
-- claim.lua - who executes a request with an Idempotency-Key?  Compare and set, for many keys in turn.
-- KEYS: claims
-- ARGV: 1 ttl (ms)  2 how long a record is kept (ms)  then per key: owner (16 bytes)  digest of the body (16)  lease (ms)
-- Reply: {seconds, microseconds of Redis's clock, code, value, code, value..}
--        0 mine: gen (ms), of the first try   1 done: the answer   2 another body's   3 in flight: how long (ms) still
--        4 done by this owner: the answer
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
local ttl = tonumber(ARGV[1])

local function claim(key, owner, body, lease)
    local is, gen = redis.call('GET', key), now
    if is then
        local was = tonumber(string.sub(is, 2, 14))
        if now < was + ttl then -- decided by gen, not by when the record happens to expire
            if string.sub(is, 44, 59) ~= body then return 2, '' end
            if string.sub(is, 1, 1) == 'D' then
                return string.sub(is, 28, 43) == owner and 4 or 1, string.sub(is, 60)
            end
            local ends = tonumber(string.sub(is, 15, 27))
            if now < ends and string.sub(is, 28, 43) ~= owner then return 3, ends - now end
            gen = was
        end
    end
    redis.call('SET', key, string.format('I%013.0f%013.0f', gen, now + lease) .. owner .. body, 'PX', ARGV[2])
    return 0, gen
end

local reply = {tonumber(t[1]), tonumber(t[2])}
for i, key in ipairs(KEYS) do
    local a = 3 * i
    reply[2 * i + 1], reply[2 * i + 2] = claim(key, ARGV[a], ARGV[a + 1], tonumber(ARGV[a + 2]))
end
return reply
