#!lua flags=allow-oom
-- merge.lua - one chunk of a pass: make a bucket's content from its parts, for some pages of one site.
--
-- KEYS: 1 state  2 pass  3 open  4 sums of the bucket (zset)  5.. sums of the parts, as many as ARGV[9]
--       then, to put together, the keys of sketches of that: uv, ip
--       then, per page, the keys of sketches: uv and its parts, ip and its parts
-- ARGV: 1 cfg  2 pass  3 cur expected  4 fencing token  5 number behind 'm' in cur  6 budget (us)
--       7 member for open; '': none  8 'H' or 'Z': the parts' sums are hashes or zsets  9 number of parts
--       10 number of pages  11 'own': each page gets its entry; 'anew': and loses what it had; 'together': it loses
--       its entry, and is added to another one  12 name of that one
--       then the pages; then per page the number of uv parts and of ip parts (both 0 for visits)
-- Reply: number of pages done, at least 1; -1: the pass is another one, or is elsewhere
--
-- Sums are computed from the parts and set, never incremented; a sum of 0 gets no entry.  Where pages are put together
-- the sum was set before ('anew') in this very pass, and the cursor lets each page be added once.  A page's own entry in
-- the bucket is from late events then, which are in the parts too.  When the budget is used up the rest is left to the
-- next chunk; the cursor counts pages.  The script also runs when memory is full, because only parts that are merged get
-- an expiry, and that makes room.
local call = redis.call
local is = call('HMGET', KEYS[2], 'pass', 'cur', 'ftok')
if call('HGET', KEYS[1], 'cfg') ~= ARGV[1] or is[1] ~= ARGV[2] or is[2] ~= ARGV[3] then return -1 end
if tonumber(ARGV[4]) < tonumber(is[3] or '0') then return -1 end

local function micros()
    local t = call('TIME')
    return tonumber(t[1]) * 1000000 + tonumber(t[2])
end
local deadline = micros() + tonumber(ARGV[6])
local parts, pages, way, FIRST = tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[11], 13
local read = ARGV[8] == 'H' and 'HMGET' or 'ZMSCORE'

local sums = {}
for i = 1, pages do sums[i] = 0 end
for p = 1, parts do
    local values = call(read, KEYS[4 + p], unpack(ARGV, FIRST, FIRST + pages - 1))
    for i = 1, pages do
        if values[i] then sums[i] = sums[i] + tonumber(values[i]) end
    end
end

local k, a, done = 5 + parts, FIRST + pages, 0
local own, waiting, bytes = {}, {{}, {}}, 0
if way == 'together' then k = k + 2 end

-- The sketches that wait to be put together; many small ones at once cost little more than one.
local function unite()
    for kind = 1, 2 do
        if #waiting[kind] > 0 then call('PFMERGE', KEYS[4 + parts + kind], unpack(waiting[kind])) end
    end
    waiting, bytes = {{}, {}}, 0
end

local function take(kind, first, last)
    if way == 'together' then
        own[#own + 1] = KEYS[first]
        for i = first, last do
            local size = call('STRLEN', KEYS[i])
            if size > 0 then
                table.insert(waiting[kind], KEYS[i])
                bytes = bytes + size
            end
        end
        return
    end
    if way == 'anew' then call('DEL', KEYS[first]) end
    if call('EXISTS', unpack(KEYS, first + 1, last)) > 0 then
        call('PFMERGE', unpack(KEYS, first, last))
    end
end

for _ = 1, pages do
    for kind = 1, 2 do
        local n = tonumber(ARGV[a])
        a = a + 1
        if n > 0 then
            take(kind, k, k + n)
            k = k + 1 + n
        end
    end
    done = done + 1
    if bytes > 65536 then unite() end
    if micros() > deadline then break end
end
unite()
if #own > 0 then call('DEL', unpack(own)) end

local set, gone, added = {}, {}, 0
for i = 1, done do
    local name = ARGV[FIRST + i - 1]
    if way ~= 'together' and sums[i] > 0 then
        set[#set + 1] = string.format('%.0f', sums[i])
        set[#set + 1] = name
    elseif way ~= 'own' then
        gone[#gone + 1] = name
        added = added + sums[i]
    end
end
if #set > 0 then call('ZADD', KEYS[4], unpack(set)) end
if #gone > 0 then call('ZREM', KEYS[4], unpack(gone)) end
if added > 0 then call('ZINCRBY', KEYS[4], string.format('%.0f', added), ARGV[12]) end
if ARGV[7] ~= '' then call('SADD', KEYS[3], ARGV[7]) end
call('HSET', KEYS[2], 'cur', 'm' .. string.format('%.0f', tonumber(ARGV[5]) + done))
return done
