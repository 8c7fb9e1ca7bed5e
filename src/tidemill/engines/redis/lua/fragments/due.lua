--# at need
--# include dependents
-- What time alone does in a queue: due jobs become ready, expired jobs die. And what changed options do: waiting jobs move
-- to their new lanes.

-- Make due jobs ready, in the order of their due times, then of their former seqs; answers how many.
function S.promote_due(name, limit)
    local due = call('ZRANGEBYSCORE', P .. 'due/' .. name, '-inf', S.int(NOW), 'LIMIT', 0, limit)
    for _, member in ipairs(due) do
        local id = member:sub(9)
        local j = S.job(id)
        S.leave(id, j)
        S.to_ready(id, j)
        S.save(id, j)
    end
    return #due
end

function S.expire_due(name, limit)
    local ids = call('ZRANGEBYSCORE', P .. 'exp/' .. name, '-inf', S.int(NOW), 'LIMIT', 0, limit)
    for n, id in ipairs(ids) do
        if handled >= HANDLED_LIMIT then
            return n - 1
        end
        S.expire(id, S.job(id))
    end
    return #ids
end

-- When the next job of a queue is due, or nil.
function S.next_due(name)
    local first = call('ZRANGE', P .. 'due/' .. name, 0, 0, 'WITHSCORES')
    return first[2] and tonumber(first[2])
end

-- After a change of options, jobs may belong to other lanes. `stale/<queue>` has the old lanes, each with the seq up to
-- which its jobs were scanned. At most `limit` jobs are scanned; answers true while there is more to do.
function S.move_stale(name, limit)
    local key = P .. 'stale/' .. name
    while limit > 0 do
        local lane = call('ZRANGE', key, 0, 0, 'WITHSCORES')
        if #lane == 0 then
            return false
        end
        local kind, member = S.split_kind(lane[1])
        local ids = call('ZRANGEBYSCORE', S.lane_key(name, member:byte(1) - 48, kind, member:sub(2)), '(' .. lane[2], '+inf', 'LIMIT', 0,
            math.min(limit, 100))
        local q, last = S.queue(name)
        for _, id in ipairs(ids) do
            local j = S.job(id)
            last = j.s
            if S.group(q, j.t, j.k) ~= j.g then
                S.leave_lane(id, j)
                S.enter_lane(id, j)
                S.save(id, j)
            end
        end
        limit = limit - math.max(1, #ids)
        if #ids == 0 then
            call('ZREM', key, lane[1])
        else
            call('ZADD', key, last, lane[1])
        end
    end
    return call('EXISTS', key) == 1
end
