--# at need
--# include moves
-- Completions on the plain way (see plain.lua): those with nothing special about them are written with a few commands for
-- all of them. All others go the general way: moves.lua.

local byte, sub = string.byte, string.sub

-- By queue and by claimant: what ended on the plain way in this call.
local ended, runs = {}, {}
local jobs, results, bodies = {}, {}, {}
local at_now, now_text, last_result, packed_result = S.be8(NOW), S.int(NOW), nil, nil

local function queue_of(name)
    local of = ended[name]
    if of == nil then
        local q = S.queue(name)
        of = S.plain(q) and q.counts[1] ~= 0 and { keeps = q.body, ids = {}, order = {} } or false
        ended[name] = of
    end
    return of
end

local function run_of(claimant)
    local run = runs[claimant]
    if not run then
        run = {}
        runs[claimant] = run
    end
    return run
end

-- The result as it stands in a record.
local function pack_result(id, result)
    if result ~= '' and not S.inline(result) then
        results[#results + 1] = id
        results[#results + 1] = result
        result = ''
    end
    if result ~= last_result then
        last_result, packed_result = result, struct.pack('>I4', #result) .. result
    end
    return packed_result
end

-- A run ends well. stamp: its fence and how long it ran. False: it has to go the general way.
function S.complete_plain(id, raw, stamp, result)
    local at = 59 + byte(raw, 58)
    local of = queue_of(sub(raw, at + 18, at + 17 + byte(raw, at + 17)))
    if not of then
        return false
    end
    local n, run = #of.ids, run_of(sub(raw, 10, 25))
    run[#run + 1] = id
    of.ids[n + 1] = id
    of.order[2 * n + 1], of.order[2 * n + 2] = now_text, sub(raw, at + 1, at + 8) .. id
    n = #jobs
    jobs[n + 1] = id
    if of.keeps then
        jobs[n + 2] = 'C' .. stamp .. at_now .. pack_result(id, result) .. sub(raw, 50)
    else
        bodies[#bodies + 1] = id
        jobs[n + 2] = 'D' .. stamp .. at_now .. '\0\0\0\0' .. sub(raw, 50, S.body_at(raw, at) - 1)
    end
    return true
end

function S.flush_plain()
    if #jobs == 0 then
        return
    end
    S.each('HSET', P .. 'job', jobs)
    if #results > 0 then
        S.each('HSET', P .. 'result', results)
    end
    if #bodies > 0 then
        S.each('HDEL', P .. 'body', bodies)
    end
    for claimant, ids in pairs(runs) do
        S.each('SREM', P .. 'run/' .. claimant, ids)
    end
    for name, of in pairs(ended) do
        if of then
            local count = #of.ids
            S.each('ZREM', P .. 'runq/' .. name, of.ids)
            S.each('ZADD', P .. 'end/' .. name .. '/' .. COMPLETED, of.order)
            S.tally(name, RUNNING, -count)
            S.tally(name, COMPLETED, count)
            S.count(name, 'completed', count)
        end
    end
end
