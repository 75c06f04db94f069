#!lua flags=no-writes
-- list.lua - one step in which a pass lists the names that the parts of its bucket hold, and their numbers.
-- It is no MULTI, because a Redis whose memory is full queues none; rolling up is what makes room there.
-- KEYS: 1 state  2 pass  3.. keys
-- ARGV: 1 cfg  2 pass  3 cur expected
--       then per key: 'HLEN' or 'ZCARD'; or 'SSCAN', 'HSCAN' or 'ZSCAN', a cursor and a count
-- Reply: per key the number, or {cursor, names (SSCAN), or names and numbers by turns}; then Redis's time (ms).  0: the pass is another one, or is elsewhere
local call = redis.call
local is = call('HMGET', KEYS[2], 'pass', 'cur')
if call('HGET', KEYS[1], 'cfg') ~= ARGV[1] or is[1] ~= ARGV[2] or is[2] ~= ARGV[3] then return 0 end
local reply, a = {}, 4
for k = 3, #KEYS do
    local what = ARGV[a]
    if what == 'HLEN' or what == 'ZCARD' then
        reply[k - 2] = call(what, KEYS[k])
        a = a + 1
    else
        reply[k - 2] = call(what, KEYS[k], ARGV[a + 1], 'COUNT', ARGV[a + 2])
        a = a + 3
    end
end
local t = call('TIME')
reply[#KEYS - 1] = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
return reply
