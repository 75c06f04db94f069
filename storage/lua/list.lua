#!lua flags=no-writes
-- list.lua - list names that the parts of a pass's bucket hold, with their numbers, in one step of the pass.
-- This is a script and no MULTI, because a Redis whose memory is full queues no commands, and the rollup makes room there.
-- KEYS: 1 state  2 pass  3.. keys
-- ARGV: 1 cfg  2 pass  3 cur expected
--       4.. for each key: 'HLEN' or 'ZCARD'; or 'SSCAN', 'HSCAN' or 'ZSCAN', a cursor and a count
-- Reply: for each key the number of names, or {cursor, list}; then Redis's time (ms).  A list of SSCAN has names, that of another
--        command has names and numbers by turns.  0: the settings, the pass or its cursor is not the expected one
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
