--# at need
--# include gates
-- What a claim walks over: the jobs of a lane, and the open groups of a priority in the order of their turns. Nothing is
-- written here. ctx: see choose.lua.

local CHUNK = 50

-- The kinds of lanes of a queue that this claim may read. Suspects are read while some may be taken.
function S.kinds_to_read(ctx, name)
    local found = ctx.kinds[name]
    if not found then
        found = {}
        for _, kind in ipairs(S.kinds(name)) do
            local task = S.aside_task(kind)
            if not (task and ctx.passed and ctx.passed[task]) and (kind:byte(1) % 2 == 0 or ctx.suspects > 0) then
                found[#found + 1] = kind
            end
        end
        ctx.kinds[name] = found
    end
    return found
end

-- A claim does not take this job because of its task: it is set aside, if it does not stand there. False: no more in this claim.
function S.pass_over(ctx, id, j)
    if not j.as then
        if #ctx.aside >= LIMIT then
            ctx.again = true
            return false
        end
        ctx.aside[#ctx.aside + 1] = { id, j }
    end
    return true
end

function S.weight_of(q, group)
    return q.weights[group:match('[^\31]*$')] or 1
end

function S.note_full(ctx, gate)
    ctx.full[gate] = true
end

-- The jobs of one lane in the order of seq: a function that answers an id and its record, or nil.
function S.lane_source(ctx, name, q, priority, group, hint)
    local heads = {}
    for n, kind in ipairs(S.kinds_to_read(ctx, name)) do
        heads[n] = { at = 1, offset = 0, size = hint, ids = {}, suspects = kind:byte(1) % 2 == 1,
                     key = S.lane_key(name, priority, kind, group) }
    end
    local function head(h)
        if h.at > #h.ids and not h.done then
            h.ids = call('ZRANGE', h.key, h.offset, h.offset + h.size - 1, 'WITHSCORES')
            h.done = #h.ids < 2 * h.size
            local ids = {}
            for n = 1, #h.ids, 2 do
                ids[#ids + 1] = h.ids[n]
            end
            S.fetch(ids)
            h.offset, h.at, h.size = h.offset + h.size, 1, math.min(h.size * 2, LIMIT)
        end
        return h.ids[h.at] and h
    end
    return function()
        while true do
            local h
            for _, each in ipairs(heads) do
                local other = (not each.suspects or ctx.suspects > 0) and head(each)
                if other and (not h or tonumber(other.ids[other.at + 1]) < tonumber(h.ids[h.at + 1])) then
                    h = other
                end
            end
            if not h then
                return nil
            end
            local id = h.ids[h.at]
            local j = S.job(id)
            if not j then
                error('DAMAGED job ' .. S.hex(id) .. ' stands in a lane and has no record')
            elseif #ctx.expired >= LIMIT then -- enough for one step: nothing more is given, from no lane
                ctx.again = true
                return nil
            elseif j.x and j.x <= NOW then
                ctx.expired[#ctx.expired + 1] = { id, j }
                h.at = h.at + 2
            elseif ctx.passed and ctx.passed[j.t] then
                if not S.pass_over(ctx, id, j) then
                    return nil
                end
                h.at = h.at + 2
            else
                local own, task, key = S.own_gate(name, q), S.task_gate(name, q, j.t), S.key_gate(name, q, j.k or '')
                if key and key.room <= 0 then
                    ctx.parked[#ctx.parked + 1] = { name, j.k or '', key, priority, group }
                    return nil
                elseif (own and own.room <= 0) or (task and task.room <= 0) then
                    S.note_full(ctx, own and own.room <= 0 and own or task)
                    return nil
                end
                h.at = h.at + 2
                S.take_permit(own)
                S.take_permit(task)
                S.take_permit(key)
                if j.su then
                    ctx.suspects = ctx.suspects - 1
                end
                return id, j
            end
        end
    end
end

-- Open groups between two bounds of ZRANGEBYLEX, in order, those of all kinds of lanes merged.
local function groups_between(ctx, name, q, from, to, pch)
    local streams = {}
    for _, kind in ipairs(S.kinds_to_read(ctx, name)) do
        streams[#streams + 1] = { key = P .. 'open/' .. name .. '/' .. kind, from = from, at = 1, list = {} }
    end
    local function peek(s)
        if s.at > #s.list and not s.done then
            s.list = call('ZRANGEBYLEX', s.key, s.from, to, 'LIMIT', 0, CHUNK)
            s.done = #s.list < CHUNK
            s.at = 1
            if #s.list > 0 then
                s.from = '(' .. s.list[#s.list]
            end
        end
        return s.list[s.at]
    end
    local function full_task(member)
        local task = member:match('^.([^\31]*)\31')
        local gate = task and q.tasks[task] and S.task_gate(name, q, task)
        if gate and gate.room <= 0 then
            S.note_full(ctx, gate)
            return task
        end
    end
    return function()
        while true do
            local least
            for _, s in ipairs(streams) do
                local member = peek(s)
                if member and (not least or S.less(member, least)) then
                    least = member
                end
            end
            if not least then
                return nil
            end
            local task = full_task(least)
            for _, s in ipairs(streams) do
                if task then -- all its lanes share the prefix: seek to the first one after them
                    local prefix, beyond = pch .. task .. '\31', pch .. task .. '\32'
                    if peek(s) and s.list[s.at]:sub(1, #prefix) == prefix then
                        while s.at <= #s.list and s.list[s.at]:sub(1, #prefix) == prefix do
                            s.at = s.at + 1
                        end
                        if s.at > #s.list and not s.done then
                            s.from = '[' .. beyond
                        end
                    end
                elseif peek(s) == least then
                    s.at = s.at + 1
                end
            end
            if not task then
                return least:sub(2)
            end
        end
    end
end

-- The open groups of a priority in the order of their turns, beginning after the one served last.
function S.groups_in_turn(ctx, name, q, priority, stop)
    local pch, beyond = string.char(48 + priority), '(' .. string.char(49 + priority)
    if not stop then
        return groups_between(ctx, name, q, '[' .. pch, beyond, pch)
    end
    local parts = {
        function() return groups_between(ctx, name, q, '(' .. pch .. stop[1], beyond, pch) end,
        function() return groups_between(ctx, name, q, '[' .. pch, '(' .. pch .. stop[1], pch) end,
        function() return groups_between(ctx, name, q, '[' .. pch .. stop[1], '[' .. pch .. stop[1], pch) end,
    }
    if stop[2] < S.weight_of(q, stop[1]) then -- it stopped inside a turn
        table.insert(parts, 1, table.remove(parts))
    end
    local at, part = 0, nil
    return function()
        while true do
            local group = part and part()
            if group then
                return group
            end
            at = at + 1
            if not parts[at] then
                return nil
            end
            part = parts[at]()
        end
    end
end
