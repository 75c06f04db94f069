#!lua flags=allow-oom
-- merge.lua - make a bucket's content from its parts, for some pages of one site, in one chunk of a pass.
--
-- KEYS: 1 state  2 pass  3 open  4 sums of the bucket (zset)  5.. sums of the parts, as many as ARGV[9]
--       with 'together' then the keys of the sketches of page ARGV[12]: uv, ip
--       then for each page the keys of its sketches: uv and the parts of uv, ip and the parts of ip
-- ARGV: 1 cfg  2 pass  3 cur expected  4 fencing token  5 number behind 'm' in cur  6 budget (us)
--       7 member that open gets; '': none  8 'H' or 'Z': the parts' sums are hashes or zsets  9 number of parts
--       10 number of pages
--       11 'own': each page gets an entry from its parts.  'anew': the same, and what the page had is deleted first.
--          'together': each page loses its entry, and its parts are added to page ARGV[12]
--       12 the page that pages are put together in
--       13.. the pages; then for each page the number of uv parts and of ip parts, both 0 for visits
-- Reply: number of pages done, at least 1; -1: nothing was done, because the settings, the pass or its cursor is not the
--        expected one, or the partition has seen a greater token
--
-- A sum is computed from the parts and set, never incremented; a sum of 0 gets no entry.  'together' is the exception: the
-- sum of ARGV[12] was set by 'anew' earlier in the same pass, and the cursor lets each page be added once.  An entry that
-- such a page has in the bucket is from late events, which are in the parts, too.  When the budget is used up, the rest is
-- left to the next chunk; the cursor counts pages.  The script also runs when memory is full: only parts that are merged
-- get an expiry, and expiries make room.
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

-- Merge the sketches that wait to be put together.  Many small sketches at once cost little more than one.
local function unite()
    for kind = 1, 2 do
        if #waiting[kind] > 0 then call('PFMERGE', KEYS[4 + parts + kind], unpack(waiting[kind])) end
    end
    waiting, bytes = {{}, {}}, 0
end

-- Merge the parts KEYS[first + 1 .. last] into the sketch KEYS[first]; with 'together', let all of them wait for unite().
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
