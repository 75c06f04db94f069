#!lua flags=allow-oom
-- small_write.lua - carry out a small write also where Redis's memory is full, because the write asks for work that frees memory.
-- KEYS: 1 the command's key
-- ARGV: 1 the command's name  2.. the command's words behind the key
-- Reply: the reply to the command
return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))
