#!lua flags=allow-oom
-- fold.lua - carry out a transaction of a fold where Redis's memory is full and MULTI is refused (fold/transaction.c).
-- KEYS: 1 heads  2.. the states of the partitions
-- ARGV: number of logs, and their ids; for each state: number of fields, and for each field its name and the value expected,
--       which is "=" and the value, or "-" if there is none; for each command: the number of its words, and the words
-- Reply: 0: nothing was done, because a log has no head, or a field has another value; else the replies to the commands
local call, unpack = redis.call, unpack
local at = 0
local function take()
    at = at + 1
    return ARGV[at]
end
for _ = 1, tonumber(take()) do
    if call('HEXISTS', KEYS[1], take()) == 0 then return 0 end
end
for k = 2, #KEYS do
    local names, expected = {}, {}
    for i = 1, tonumber(take()) do names[i], expected[i] = take(), take() end
    for i, is in ipairs(call('HMGET', KEYS[k], unpack(names))) do
        if (is and '=' .. is or '-') ~= expected[i] then return 0 end
    end
end
local look = at -- first, because unpack() fails at 8000 words, when earlier commands are done
while look < #ARGV do
    local n = tonumber(ARGV[look + 1])
    if n > 7900 then return redis.error_reply('ERR a command of a fold has ' .. n .. ' words') end
    look = look + 1 + n
end
local replies = {}
while at < #ARGV do
    local n = tonumber(take())
    replies[#replies + 1] = redis.pcall(unpack(ARGV, at + 1, at + n)) -- a command that fails stops no other one, as in EXEC
    at = at + n
end
return replies
