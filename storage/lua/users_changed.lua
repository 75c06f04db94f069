#!lua flags=allow-oom
-- users_changed.lua - tell a partition that a user of another partition was changed: remembered answers hold no longer.
-- KEYS: 1 state    ARGV: 1 cfg  2 id that field users gets
-- Reply: 1: done; -2: nothing was done, because the settings differ
local call = redis.call
if call('HGET', KEYS[1], 'cfg') ~= ARGV[1] then return -2 end
call('HSET', KEYS[1], 'users', ARGV[2])
return 1
