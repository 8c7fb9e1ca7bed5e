--# at need
--# include core
-- Statistics. The hash st/<queue>/<hour> has for each minute of the hour the waiting and run times of the queue
-- ('<minute>', packed, see model/stats) and how the queue stood at its end ('<minute>/s', {stock, arrived, oldest});
-- tt/<queue>/<hour> has the times of its tasks ('<minute>/<task>'). The zset `stats` has the names <queue>/<hour>, by hour;
-- statn the minute for which rows of tasks were added last, and how many there are.

local HOUR, TASKS_KEPT, OTHERS, BUDGET = 60 * MINUTE, 200, 'other tasks', 10000

local function add(key, field, packed)
    local raw, cells = call('HGET', key, field), {}
    for _, list in ipairs({ raw and unpack_(raw) or {}, packed }) do
        for _, number in ipairs(list) do
            local cell = number % 128
            cells[cell] = (cells[cell] or 0) + (number - cell)
        end
    end
    local sum = {}
    for cell = 0, 127 do
        if cells[cell] then
            sum[#sum + 1] = cells[cell] + cell
        end
    end
    call('HSET', key, field, pack(sum))
end

-- Where the minute of a moment stands in its hour, and the hour.
local function place(moment)
    local hour = moment - moment % HOUR
    return S.int(math.floor((moment - hour) / MINUTE)), hour
end

-- Add rows {queue, task or '' for the whole queue, packed} to the present minute.
function S.add_stats(rows)
    local minute, hour = place(NOW)
    local now = S.int(NOW - NOW % MINUTE)
    local last = call('HMGET', P .. 'statn', 'minute', 'tasks')
    local tasks = last[1] == now and tonumber(last[2]) or 0
    for _, row in ipairs(rows) do
        local name, task = row[1] .. '/' .. S.int(hour), row[2]
        call('ZADD', P .. 'stats', hour, name)
        if task == '' then
            add(P .. 'st/' .. name, minute, row[3])
        else
            if task ~= OTHERS and call('HEXISTS', P .. 'tt/' .. name, minute .. '/' .. task) == 0 then
                if tasks >= TASKS_KEPT then
                    task = OTHERS
                else
                    tasks = tasks + 1
                end
            end
            add(P .. 'tt/' .. name, minute .. '/' .. task, row[3])
        end
    end
    call('HSET', P .. 'statn', 'minute', now, 'tasks', tasks)
end

-- Note samples {queue, stock, arrived or nil, oldest or nil} of a minute, unless it has some.
function S.sample(moment, samples)
    local minute, hour = place(moment)
    for _, name in ipairs(call('ZRANGEBYSCORE', P .. 'stats', S.int(hour), S.int(hour))) do
        if call('HEXISTS', P .. 'st/' .. name, minute .. '/s') == 1 then
            return false
        end
    end
    for _, each in ipairs(samples) do
        local name = each[1] .. '/' .. S.int(hour)
        call('ZADD', P .. 'stats', hour, name)
        call('HSET', P .. 'st/' .. name, minute .. '/s', pack({ each[2], each[3] or -1, each[4] or -1 }))
    end
    return true
end

-- Read a span, in parts: {rows, next position or -1}. A row is {name, moment, what, packed}; what: '' for the queue, 's' for a
-- sample, else the task.
function S.read_stats(first, last, position, queue, of_tasks, task)
    local rows, left = {}, BUDGET
    local start = first - first % HOUR
    local names = call('ZRANGEBYSCORE', P .. 'stats', S.int(start), '(' .. S.int(last), 'LIMIT', position, 500)
    for _, name in ipairs(names) do
        position = position + 1
        local of, hour = name:match('^(.*)/(%d+)$')
        if not queue or of == queue then
            local fields = call('HGETALL', P .. (of_tasks and 'tt/' or 'st/') .. name)
            for n = 1, #fields, 2 do
                local minute, rest = fields[n]:match('^(%d+)/?(.*)$')
                local at = tonumber(hour) + tonumber(minute) * MINUTE
                if at >= first and at < last and (not task or rest == task) then
                    rows[#rows + 1] = { of, at, rest, fields[n + 1] }
                end
            end
            left = left - #fields / 2 - 1
        end
        if left <= 0 then
            return { rows, position }
        end
    end
    return { rows, #names < 500 and -1 or position }
end
