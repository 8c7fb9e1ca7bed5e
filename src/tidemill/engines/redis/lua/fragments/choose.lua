--# at need
--# include sources
-- Chooses jobs on the general way: whose turn it is. Nothing is written here: jobs are chosen one by one, and permits are
-- counted in memory.
--
-- Queues take turns, one job each. In a queue lower priorities go first. Lanes of one priority take turns by weight, from
-- where the claimant stopped. In a lane jobs go by seq. Nothing becomes claimable within one claim, so a lane, a priority
-- or a queue that had nothing is not tried again.
--
-- ctx: suspects (how many may still be taken); passed (the tasks of which nothing is taken, or nil); expired, parked, full,
-- aside (what the walk met); closed (queues that offer nothing yet); again (there is more to scan)

local LANES = 1000

-- Weighted turns over the lanes of one priority: a function that answers id, record, group, used in this turn.
local function priority_source(ctx, name, q, priority, stop, hint)
    local fresh = S.groups_in_turn(ctx, name, q, priority, stop)
    local this_round, next_round, at, lane, visited = nil, {}, 0, nil, 0
    local function next_lane()
        if fresh then
            local group = fresh()
            if group then
                visited = visited + 1
                if visited > LANES then
                    ctx.again = true
                    return nil
                end
                local weight = S.weight_of(q, group)
                local used = visited == 1 and stop and stop[1] == group and stop[2] < weight and stop[2] or 0
                return { group = group, weight = weight, used = used,
                         take = S.lane_source(ctx, name, q, priority, group, hint or weight) }
            end
            fresh = nil
        end
        at = at + 1
        if not this_round or not this_round[at] then
            this_round, next_round, at = next_round, {}, 1
        end
        local found = this_round[at]
        if found then
            found.used = 0
        end
        return found
    end
    return function()
        while true do
            if not lane then
                lane = next_lane()
                if not lane then
                    return nil
                end
            end
            if lane.used >= lane.weight then
                next_round[#next_round + 1] = lane
                lane = nil
            else
                local id, j = lane.take()
                if id then
                    lane.used = lane.used + 1
                    return id, j, lane.group, lane.used
                end
                lane = nil
            end
        end
    end
end

local function next_priority(ctx, name, from)
    local least
    for _, kind in ipairs(S.kinds_to_read(ctx, name)) do
        local some = call('ZRANGEBYLEX', P .. 'open/' .. name .. '/' .. kind, '[' .. string.char(48 + from), '+',
            'LIMIT', 0, 1)
        if some[1] then
            least = math.min(least or 99, some[1]:byte(1) - 48)
        end
    end
    return least
end

-- The jobs of a queue in turn: a function that answers id, record, priority, group, used.
local function queue_source(ctx, name, q, stops, most)
    local shaped = q.keyed or next(q.tasks) ~= nil
    local own = S.own_gate(name, q)
    if own and own.room <= 0 then
        S.note_full(ctx, own)
        return nil
    end
    local priority, source = -1, nil
    return function()
        while true do
            if own and own.room <= 0 then
                S.note_full(ctx, own)
                return nil
            end
            if source then
                local id, j, group, used = source()
                if id then
                    return id, j, priority, group, used
                end
            end
            priority = next_priority(ctx, name, priority + 1)
            if not priority then
                return nil
            end
            source = priority_source(ctx, name, q, priority, shaped and stops[tostring(priority)] or nil,
                not shaped and most or nil)
        end
    end
end

-- wants: {queue, most or -1} in the order of their turns; positions: by queue and priority, changed as jobs are given.
-- Answers {id, record} in the order of the answer, and the queue that gave the last.
function S.choose(ctx, wants, most, positions)
    local taken, sources, last = {}, {}, nil
    for _, want in ipairs(wants) do
        local name, q = want[1], S.queue(want[1])
        local bound = want[2] < 0 and most or math.min(most, want[2])
        if q and not q.pa and bound > 0 and not ctx.closed[name] then
            local stops = positions[name] or {}
            local shaped = q.keyed or next(q.tasks) ~= nil
            local take = queue_source(ctx, name, q, stops, bound)
            if take then
                sources[#sources + 1] = { name = name, take = take, left = bound, stops = stops, shaped = shaped }
            end
        end
    end
    while #taken < most and #sources > 0 do
        local at = 1
        while at <= #sources and #taken < most do
            local s = sources[at]
            local id, j, priority, group, used
            if s.left > 0 then
                id, j, priority, group, used = s.take()
            end
            if id then
                s.left = s.left - 1
                taken[#taken + 1] = { id, j }
                last = s.name
                if s.shaped then
                    s.stops[tostring(priority)] = { group, used }
                    positions[s.name] = s.stops
                end
                at = at + 1
            else
                table.remove(sources, at)
            end
        end
    end
    return taken, last
end

-- The same for certain jobs, whatever their queue.
function S.choose_by_id(ctx, ids, most)
    local taken, chosen = {}, {}
    for _, id in ipairs(ids) do
        local j = #taken < most and not chosen[id] and S.job(id)
        local q = j and j.st == READY and S.queue(j.q)
        if q and not q.pa then
            local own, task, key = S.own_gate(j.q, q), S.task_gate(j.q, q, j.t), S.key_gate(j.q, q, j.k or '')
            if j.x and j.x <= NOW then
                chosen[id] = true
                ctx.expired[#ctx.expired + 1] = { id, j }
            elseif ctx.passed and ctx.passed[j.t] then
                chosen[id] = true
                S.pass_over(ctx, id, j)
            elseif (not j.su or ctx.suspects > 0) and not (own and own.room <= 0) and not (task and task.room <= 0)
                and not (key and key.room <= 0) then
                chosen[id] = true
                S.take_permit(own)
                S.take_permit(task)
                S.take_permit(key)
                if j.su then
                    ctx.suspects = ctx.suspects - 1
                end
                taken[#taken + 1] = { id, j }
            end
        end
    end
    return taken
end
