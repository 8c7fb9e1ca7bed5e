--# at need
--# include core
-- How many jobs ended, by the minute. The hash min/<queue>/<hour> has '<minute>/<kind>' and, for the whole hour, '<kind>';
-- the zset `mins` has the names of all these hashes, by hour. A long span is read in parts: one call reads about BUDGET
-- numbers and answers the position to go on from.

local HOUR, BUDGET = 60 * MINUTE, 10000
local KINDS = { 'completed', 'failed', 'died', 'cancelled' }

-- The next names of a span. The names of one queue are known, and `position` counts hours; otherwise it counts names.
local function names_of(first, last, position, queue, most)
    local start = first - first % HOUR
    if not queue then
        return call('ZRANGEBYSCORE', P .. 'mins', S.int(start), '(' .. S.int(last), 'LIMIT', position, most)
    end
    local names = {}
    for hour = start + position * HOUR, math.min(last - 1, start + (position + most - 1) * HOUR), HOUR do
        names[#names + 1] = queue .. '/' .. S.int(hour)
    end
    return names
end

-- {rows, next position or -1}. A row is {name, at, kind, count}; whole: an hour within the span is one row a kind.
function S.ended(first, last, whole, position, queue)
    local rows, left, most = {}, BUDGET, 500
    while left > 0 do
        local names = names_of(first, last, position, queue, most)
        for _, name in ipairs(names) do
            local key, hour = P .. 'min/' .. name, tonumber(name:match('%d+$'))
            if whole and hour >= first and hour + HOUR <= last then
                for n, count in ipairs(call('HMGET', key, unpack(KINDS))) do
                    if count then
                        rows[#rows + 1] = { name, hour, KINDS[n], tonumber(count) }
                    end
                end
                left = left - #KINDS
            else
                local fields = call('HGETALL', key)
                for n = 1, #fields, 2 do
                    local minute, kind = fields[n]:match('^(%d+)/(.*)$')
                    local at = minute and hour + tonumber(minute) * MINUTE
                    if at and at >= first and at < last then
                        rows[#rows + 1] = { name, at, kind, tonumber(fields[n + 1]) }
                    end
                end
                left = left - #fields / 2 - 1
            end
            position = position + 1
            if left <= 0 then
                return { rows, position }
            end
        end
        if #names < most then
            return { rows, -1 }
        end
    end
end
