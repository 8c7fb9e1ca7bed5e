--# at need
--# include core
-- What ended, by the minute. min/<queue>/<hour> has '<minute>/<kind>' and, summed up over the hour, '<kind>'; `mins` has
-- the names of all of them by hour. A long span is read in parts: each call reads about BUDGET numbers and tells where to
-- go on.

local HOUR, BUDGET = 60 * MINUTE, 10000
local KINDS = { 'completed', 'failed', 'died', 'cancelled' }

-- The next names of a span: of one queue they are known, and `place` counts hours; otherwise it counts names.
local function names_of(first, last, place, queue, most)
    local start = first - first % HOUR
    if not queue then
        return call('ZRANGEBYSCORE', P .. 'mins', S.int(start), '(' .. S.int(last), 'LIMIT', place, most)
    end
    local names = {}
    for hour = start + place * HOUR, math.min(last - 1, start + (place + most - 1) * HOUR), HOUR do
        names[#names + 1] = queue .. '/' .. S.int(hour)
    end
    return names
end

-- {rows, next place or -1}. A row is {name, at, kind, count}; whole: an hour within the span is one row a kind.
function S.ended(first, last, whole, place, queue)
    local rows, left, most = {}, BUDGET, 500
    while left > 0 do
        local names = names_of(first, last, place, queue, most)
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
            place = place + 1
            if left <= 0 then
                return { rows, place }
            end
        end
        if #names < most then
            return { rows, -1 }
        end
    end
end
