#!lua
-- close_log.lua - delete a log of which everything is counted, unless its writer was heard of meanwhile.  The same step adds 1
-- to the number of closed logs: see tests/model/answers.pml.
-- KEYS: 1 heads  2 log    ARGV: 1 id of the log  2 its head as it was when the cursors were read
-- Reply: 1: the log is closed; 0: nothing was done, because its head has changed or is gone
--
-- The flag allow-oom is not set: where memory is full, a writer that cannot append is not dead.
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HINCRBY', KEYS[1], 'closed', 1)
redis.call('UNLINK', KEYS[2])
return 1
