--# at need
--# include due
-- Claims on the plain way: whole ranges of jobs with nothing special about them, in queues without limits and groups, are
-- taken with a few commands for all of them. All others go the general way: choose.lua.

local MOST_QUEUES, PRIORITIES = 8, 11

-- The first jobs of a plain queue: {lanes with how many were read of each, ids, seqs}; nil if one is not as it should be.
local function first_of(name, most)
    local found = { name = name, lanes = {}, ids = {}, seqs = {} }
    for _, member in ipairs(call('ZRANGE', P .. 'open/' .. name .. '/0', 0, PRIORITIES)) do
        if #member > 1 then
            return nil -- a group, from before a change of options
        end
        local key, left = S.lane_key(name, member:byte(1) - 48, '0', ''), most - #found.ids
        if left > 0 then
            local some = call('ZRANGE', key, 0, left - 1, 'WITHSCORES')
            for n = 1, #some, 2 do
                found.ids[#found.ids + 1], found.seqs[#found.seqs + 1] = some[n], some[n + 1]
            end
            found.lanes[#found.lanes + 1] = { key = key, member = member, last = #found.ids }
        end
    end
    return found
end

-- What the wanted queues have, in turn: {sources}; nil where the general way has to choose.
local function sources_of(ctx, wants, most)
    local sources, whole = {}, true
    for _, want in ipairs(wants) do
        local name, q = want[1], S.queue(want[1])
        local bound = want[2] < 0 and most or math.min(most, want[2])
        if q and not q.pa and bound > 0 then
            local open = call('EXISTS', P .. 'open/' .. name .. '/0') == 1
            if ctx.closed[name] or (ctx.suspects > 0 and call('EXISTS', P .. 'open/' .. name .. '/1') == 1)
                or call('EXISTS', P .. 'aside/' .. name) == 1 then
                return nil
            elseif not S.plain(q) then
                if open then
                    return nil
                end
                whole = false -- when it may give something again is known only on the general way
            elseif open then
                local found = #sources < MOST_QUEUES and first_of(name, bound)
                if not found then
                    return nil
                end
                found.bound, found.at = bound, 0
                sources[#sources + 1] = found
            end
        end
    end
    return sources, whole
end

-- One job of each queue in turn.
local function in_turns(sources, most)
    if #sources == 1 then
        local s = sources[1]
        s.at = math.min(#s.ids, s.bound, most)
        return s.ids, s.seqs, s.name
    end
    local ids, seqs, last, went_on = {}, {}, nil, true
    while #ids < most and went_on do
        went_on = false
        for _, s in ipairs(sources) do
            if s.at < #s.ids and s.at < s.bound and #ids < most then
                s.at = s.at + 1
                ids[#ids + 1], seqs[#seqs + 1] = s.ids[s.at], s.seqs[s.at]
                last, went_on = s.name, true
            end
        end
    end
    return ids, seqs, last
end

-- Chosen jobs: {ids, seqs, records, apart (some have their body apart), sources, last}; nil: the general way must choose;
-- false: it would find nothing either. Nothing is written here.
function S.choose_plain(ctx, wants, most)
    local sources, whole = sources_of(ctx, wants, most)
    if not sources then
        return nil
    end
    if #sources == 0 and whole then
        return false
    end
    local ids, seqs, last = in_turns(sources, most)
    if #ids == 0 or (#ids < most and not whole) then
        return nil
    end
    local records, apart = call('HMGET', P .. 'job', unpack(ids)), false
    for _, raw in ipairs(records) do
        local form = raw and raw:byte(1)
        if form == APART then
            apart = true
        elseif form ~= ENQUEUED then
            return nil
        end
    end
    return { ids = ids, seqs = seqs, records = records, apart = apart, sources = sources, last = last }
end

-- Let them run; answers the first fence.
function S.start_plain(c, taken, name)
    local first = S.fences(#taken.ids)
    local shared = c.claimant .. c.member .. S.be8(c.number) .. S.be8(NOW) .. string.char(#name) .. name
    local jobs, records = {}, taken.records
    for n, id in ipairs(taken.ids) do
        jobs[2 * n - 1], jobs[2 * n] = id, 'R' .. struct.pack('>I8', first + n - 1) .. shared .. records[n]
    end
    S.each('HSET', P .. 'job', jobs)
    S.each('SADD', P .. 'run/' .. c.claimant, taken.ids)
    for _, s in ipairs(taken.sources) do
        if s.at > 0 then
            local held, before = {}, 0
            for n = 1, s.at do
                held[2 * n - 1], held[2 * n] = s.seqs[n], s.ids[n]
            end
            S.each('ZADD', P .. 'runq/' .. s.name, held)
            for _, lane in ipairs(s.lanes) do
                local some = math.min(lane.last, s.at) - before
                if some > 0 then
                    call('ZREMRANGEBYRANK', lane.key, 0, some - 1)
                    S.close_if_empty(lane.key, s.name, '0', lane.member)
                end
                before = lane.last
            end
            S.tally(s.name, READY, -s.at)
            S.tally(s.name, RUNNING, s.at)
        end
    end
    return first
end
