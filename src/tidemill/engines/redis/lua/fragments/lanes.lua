--# at need
--# include record
-- Lanes: a zset of jobs by seq each, r/<queue>/<priority>/<kind>/<group>. Those with jobs are members of lanes/<queue>/<kind>,
-- those that may be claimed from of open/<queue>/<kind>, in the order of turns.
--
-- A kind is '0' for plain jobs, '1' for suspects. Of jobs that stand aside it is '2' or '3', their task, and byte 30: each task
-- has lanes of its own, which claims that do not know it do not read. The set aside/<queue> has the kinds of these that have jobs.

local announced = {}

-- model.lane.group_of
function S.group(q, task, key)
    local group = q.keyed and key or ''
    if q.tasks[task] then
        return task .. '\31' .. group
    end
    return group
end

-- The kind of the lane of a ready job. as: it stands aside
function S.kind(j)
    if j.as then
        return (j.su and '3' or '2') .. j.t .. '\30'
    end
    return j.su and '1' or '0'
end

-- The task of those that stand aside in lanes of a kind, or nil.
function S.aside_task(kind)
    return #kind > 1 and kind:sub(2, -2) or nil
end

-- A text that begins with a kind: the kind, and the rest.
function S.split_kind(text)
    local last = text:byte(1) < 50 and 1 or text:find('\30', 1, true)
    return text:sub(1, last), text:sub(last + 1)
end

-- The kinds of lanes that a queue may have, in the order of listings.
function S.kinds(queue)
    local kinds = call('SMEMBERS', P .. 'aside/' .. queue)
    table.sort(kinds, S.less)
    table.insert(kinds, 1, '0')
    table.insert(kinds, 2, '1')
    return kinds
end

function S.lane_key(queue, priority, kind, group)
    return P .. 'r/' .. queue .. '/' .. priority .. '/' .. kind .. '/' .. group
end

-- A lane with jobs is a member of lanes/<queue>/<kind>, and of open/... unless its key's gate is parked.
function S.enter_lane(id, j)
    local q, kind = S.queue(j.q), S.kind(j)
    j.g = S.group(q, j.t, j.k)
    local lane = S.lane_key(j.q, j.p, kind, j.g)
    S.put('ZADD', lane, j.s, id)
    if not announced[lane] then
        announced[lane] = true
        local member = string.char(48 + j.p) .. j.g
        call('ZADD', P .. 'lanes/' .. j.q .. '/' .. kind, 0, member)
        if j.as then
            call('SADD', P .. 'aside/' .. j.q, kind)
        end
        if q.key and call('ZSCORE', P .. 'park/' .. j.q, j.k or '') then
            call('SADD', P .. 'parked/' .. j.q .. '/' .. (j.k or ''), kind .. member)
        else
            call('ZADD', P .. 'open/' .. j.q .. '/' .. kind, 0, member)
        end
    end
    S.ready_signal(j.q)
end

function S.leave_lane(id, j)
    local kind = S.kind(j)
    local lane = S.lane_key(j.q, j.p, kind, j.g)
    call('ZREM', lane, id)
    S.close_if_empty(lane, j.q, kind, string.char(48 + j.p) .. j.g)
end

function S.close_if_empty(lane, queue, kind, member)
    if call('EXISTS', lane) == 0 then
        announced[lane] = nil
        call('ZREM', P .. 'lanes/' .. queue .. '/' .. kind, member)
        call('ZREM', P .. 'open/' .. queue .. '/' .. kind, member)
        if #kind > 1 and call('EXISTS', P .. 'lanes/' .. queue .. '/' .. kind) == 0 then
            call('SREM', P .. 'aside/' .. queue, kind)
        end
    end
end

function S.unpark(queue, key)
    local set = P .. 'parked/' .. queue .. '/' .. key
    for _, lane in ipairs(call('SMEMBERS', set)) do
        local kind, member = S.split_kind(lane)
        if call('ZSCORE', P .. 'lanes/' .. queue .. '/' .. kind, member) then
            call('ZADD', P .. 'open/' .. queue .. '/' .. kind, 0, member)
        end
    end
    call('DEL', set)
    call('ZREM', P .. 'park/' .. queue, key)
end
