#!lua flags=allow-oom
-- clear_day.lua - clear the bit of one user, action and day.
-- KEYS: 1 state  2 uid  3 bitmap    ARGV: 1 cfg  2 user  3 id that field users gets  4 site
-- Reply: 1: the bit was set and is cleared; 0: the bit was not set; -2: nothing was done, because the settings differ
local call = redis.call
if call('HGET', KEYS[1], 'cfg') ~= ARGV[1] then return -2 end
local index = call('HGET', KEYS[2], ARGV[2])
if not index or call('GETBIT', KEYS[3], index) == 0 then return 0 end
call('SETBIT', KEYS[3], index, 0)
call('HSET', KEYS[1], 'users', ARGV[3]) -- the new id makes a fold that took the bit for set begin again
return 1
