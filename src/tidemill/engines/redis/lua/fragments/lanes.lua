--# at need
--# include record
-- Lanes: a zset of jobs by seq each, r/<queue>/<priority>/<suspect>/<group>. Those with jobs are members of
-- lanes/<queue>/<suspect>, those that may be claimed from of open/<queue>/<suspect>, in the order of turns.

local announced = {}

-- model.lane.group_of
function S.group(q, task, key)
    local group = q.keyed and key or ''
    if q.tasks[task] then
        return task .. '\31' .. group
    end
    return group
end

function S.lane_key(queue, priority, suspect, group)
    return P .. 'r/' .. queue .. '/' .. priority .. '/' .. suspect .. '/' .. group
end

-- A lane with jobs is a member of lanes/<queue>/<suspect>, and of open/... unless its key's gate is parked.
function S.enter_lane(id, j)
    local q, suspect = S.queue(j.q), j.su and 1 or 0
    j.g = S.group(q, j.t, j.k)
    local lane = S.lane_key(j.q, j.p, suspect, j.g)
    S.put('ZADD', lane, j.s, id)
    if not announced[lane] then
        announced[lane] = true
        local member = string.char(48 + j.p) .. j.g
        call('ZADD', P .. 'lanes/' .. j.q .. '/' .. suspect, 0, member)
        if q.key and call('ZSCORE', P .. 'park/' .. j.q, j.k or '') then
            call('SADD', P .. 'parked/' .. j.q .. '/' .. (j.k or ''), suspect .. member)
        else
            call('ZADD', P .. 'open/' .. j.q .. '/' .. suspect, 0, member)
        end
    end
    S.ready_signal(j.q)
end

function S.leave_lane(id, j)
    local suspect = j.su and 1 or 0
    local lane = S.lane_key(j.q, j.p, suspect, j.g)
    call('ZREM', lane, id)
    S.close_if_empty(lane, j.q, suspect, string.char(48 + j.p) .. j.g)
end

function S.close_if_empty(lane, queue, suspect, member)
    if call('EXISTS', lane) == 0 then
        announced[lane] = nil
        call('ZREM', P .. 'lanes/' .. queue .. '/' .. suspect, member)
        call('ZREM', P .. 'open/' .. queue .. '/' .. suspect, member)
    end
end

function S.unpark(queue, key)
    local set = P .. 'parked/' .. queue .. '/' .. key
    for _, lane in ipairs(call('SMEMBERS', set)) do
        local suspect, member = lane:sub(1, 1), lane:sub(2)
        if call('ZSCORE', P .. 'lanes/' .. queue .. '/' .. suspect, member) then
            call('ZADD', P .. 'open/' .. queue .. '/' .. suspect, 0, member)
        end
    end
    call('DEL', set)
    call('ZREM', P .. 'park/' .. queue, key)
end
