#!lua
-- heartbeat.lua - set the time in the head of a log, so that nobody closes the log of a writer that lives.
-- KEYS: 1 heads    ARGV: 1 id of the log
-- Reply: 1: done; 0: heads has no such log any more
local head = redis.call('HGET', KEYS[1], ARGV[1])
if not head then return 0 end
local t = redis.call('TIME')
local rest = string.match(head, '^%d+ %S+ ')
redis.call('HSET', KEYS[1], ARGV[1], string.format('%s%.0f', rest, t[1] * 1000 + math.floor(t[2] / 1000)))
return 1
