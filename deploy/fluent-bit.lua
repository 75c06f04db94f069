-- fluent-bit.lua - for fluent-bit.conf: the members utm_source, utm_medium, utm_campaign, utm_term and utm_content of a page view.
--
-- They are read of the field `query` as tallyd itself reads a page's query: the first of a name that is UTF-8 without control
-- characters, cut at 256 bytes.  So tallyd refuses no event because of them.

local names = {utm_source = true, utm_medium = true, utm_campaign = true, utm_term = true, utm_content = true}

-- One character, without the control characters of ASCII.  Source: Unicode 15, table 3-7.
local characters = {
    "^[\32-\126]", "^[\194-\223][\128-\191]", "^\224[\160-\191][\128-\191]", "^[\225-\236\238\239][\128-\191][\128-\191]",
    "^\237[\128-\159][\128-\191]", "^\240[\144-\191][\128-\191][\128-\191]", "^[\241-\243][\128-\191][\128-\191][\128-\191]",
    "^\244[\128-\143][\128-\191][\128-\191]"}

local function character_end(text, at)
    for _, pattern in ipairs(characters) do
        local _, last = string.find(text, pattern, at)
        if last then
            return last
        end
    end
    return nil
end

-- The value of a member, or nil.
local function clean(text)
    local cut, at = 0, 1
    while at <= #text do
        local last = character_end(text, at)
        if not last then
            return nil
        end
        cut, at = last <= 256 and last or cut, last + 1
    end
    return cut > 0 and string.sub(text, 1, cut) or nil
end

local function decode(text)
    text = string.gsub(text, "+", " ")
    return (string.gsub(text, "%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

function campaign(tag, timestamp, record)
    for name, value in string.gmatch("&" .. (record.query or ""), "&([^&=]*)=([^&]*)") do
        if names[name] and not record[name] then
            record[name] = clean(decode(value))
        end
    end
    record.query = nil
    return 2, timestamp, record -- 2: the record is another one, its time is the same
end
