--# at need
--# include plain
--# include choose
--# include epoch
-- A claim. c: {number, wants, most, suspects, number of ids or nil, unknown: names of tasks, after: the last number that was
-- answered with jobs}, with member, claimant and ids as blobs.

function S.read_claim(c)
    c.member, c.claimant, c.list = S.blob(), S.blob(), c.ids and {} or nil
    for n = 1, c.ids or 0 do
        c.list[n] = S.blob()
    end
    local raw = call('HGET', P .. 'claimant', c.claimant)
    c.known = raw and unpack_(raw) or {}
    return c
end

-- 'BADCLAIMANT' (an error of the caller), or why the claim is refused, or nil.
function S.refusal(c)
    if c.known.m and not c.known.r and c.known.m ~= c.member then
        return 'BADCLAIMANT'
    elseif call('HEXISTS', P .. 'member', c.member) == 0 then
        return 'MemberGone'
    elseif c.known.r then
        return 'ClaimantRetired'
    elseif c.number < (c.known.n or 0) then
        return 'ClaimOutOfOrder'
    end
    return nil
end

local function shown(id, j, body)
    local q = S.queue(j.q)
    return {
        id, j.f, j.s, j.t, j.q, j.p, (j.a or 0) + 1, j.ma, j.co, body, j.h or false, j.k or false, j.to or false,
        j.rt or false, j.c, j.r, j.cr or 0, j.su and 1 or 0, (q.own or q.keyed or next(q.tasks)) and 1 or 0,
        j.od or false, j.sc or false, j.sn or 0,
    }
end

local function with_bodies(jobs)
    if #jobs == 0 then
        return {}
    end
    local ids, answer = {}, {}
    for n, job in ipairs(jobs) do
        ids[n] = job[1]
    end
    local bodies = call('HMGET', P .. 'body', unpack(ids))
    for n, job in ipairs(jobs) do
        answer[n] = shown(job[1], job[2], job[2].bd or bodies[n])
    end
    return answer
end

local function again(c)
    local jobs = {}
    for _, id in ipairs(S.held(c.claimant)) do
        local j = S.job(id)
        if j.cn == c.number then
            jobs[#jobs + 1] = { id, j }
        end
    end
    table.sort(jobs, function(a, b) return a[2].f < b[2].f end)
    return { 0, NOW, with_bodies(jobs), S.starts(jobs, true) }
end

-- Wanted queues in the order of turns: after the one that gave the last job.
local function in_turn(wants, last)
    table.sort(wants, function(a, b) return S.less(a[1], b[1]) end)
    if not last then
        return wants
    end
    local ordered = {}
    for _, want in ipairs(wants) do
        if S.less(last, want[1]) then
            ordered[#ordered + 1] = want
        end
    end
    for _, want in ipairs(wants) do
        if not S.less(last, want[1]) then
            ordered[#ordered + 1] = want
        end
    end
    return ordered
end

-- What time and changed options do in the wanted queues, before anything is chosen. They share one bound, in equal
-- parts: a long list of queues makes no long step, and none of them waits for the backlog of another.
local function prepare(c, ctx)
    local part = math.ceil(LIMIT / math.max(1, #c.wants))
    S.update_dependents(LIMIT)
    for _, want in ipairs(c.wants) do
        local q = S.queue(want[1])
        if q and not q.pa then
            S.expire_due(want[1], part)
            S.promote_due(want[1], part)
            if q.key then
                S.unpark_due(want[1])
            end
            if S.move_stale(want[1], part) then
                ctx.closed[want[1]], ctx.again = true, true
            end
        end
    end
    if c.list then
        for _, id in ipairs(c.list) do
            local j = S.job(id)
            if j and j.st == SCHEDULED and j.d <= NOW then
                S.promote_due(j.q, LIMIT)
            end
        end
    end
end

local function member_name(c)
    return unpack_(call('HGET', P .. 'member', c.member)).name
end

local function start(c, taken)
    local fence, name = S.fences(#taken), member_name(c)
    local lanes, run, held = {}, {}, {}
    S.gather()
    for n, job in ipairs(taken) do
        local id, j = job[1], job[2]
        local kind = S.kind(j)
        local key = S.lane_key(j.q, j.p, kind, j.g)
        local lane = lanes[key] or { j.q, kind, string.char(48 + j.p) .. j.g, {} }
        lanes[key] = lane
        lane[4][#lane[4] + 1] = id
        S.tally(j.q, READY, -1)
        S.tally(j.q, RUNNING, 1)
        if j.x then
            call('ZREM', P .. 'exp/' .. j.q, id)
        end
        j.st, j.f, j.m, j.mi, j.ct, j.cn, j.cl, j.sa = RUNNING, fence + n - 1, name, c.member, c.claimant, c.number, NOW, nil
        j.rr, j.as = nil, nil
        if j.uu == 1 then
            S.free_key(id, j)
        end
        run[#run + 1] = id
        local of = held[j.q] or {}
        held[j.q] = of
        of[#of + 1] = S.int(j.b)
        of[#of + 1] = id
        S.hold(id, j, S.queue(j.q))
        S.save(id, j)
    end
    S.flush()
    for key, lane in pairs(lanes) do
        call('ZREM', key, unpack(lane[4]))
        S.close_if_empty(key, lane[1], lane[2], lane[3])
    end
    call('SADD', P .. 'run/' .. c.claimant, unpack(run))
    for queue, of in pairs(held) do
        call('ZADD', P .. 'runq/' .. queue, unpack(of))
    end
    S.log_taken()
end

-- From now to the moment at which time alone may make more claimable; -1: only a signal can.
local function wait_of(c, ctx)
    if ctx.again then
        return 0
    end
    local at
    for gate in pairs(ctx.full) do
        at = math.min(at or math.huge, gate.wake or math.huge)
    end
    for _, want in ipairs(c.wants) do
        local q = S.queue(want[1])
        if q and not q.pa then
            local due, wake = S.next_due(want[1]), q.key and S.next_wake(want[1])
            at = math.min(at or math.huge, due or math.huge, wake or math.huge)
        end
    end
    return at and at < math.huge and math.max(0, at - NOW) or -1
end

-- The tasks of which this claim takes no job, as a set; nil if it may take any.
local function passed_by(c)
    local names = call('HKEYS', P .. 'paused')
    if #names == 0 and #c.unknown == 0 then
        return nil
    end
    local passed = {}
    for _, name in ipairs(names) do
        passed[name] = 'paused'
    end
    for _, name in ipairs(c.unknown) do
        passed[name] = 'unknown'
    end
    return passed
end

-- What was met and passed over stands aside from now on.
local function set_aside(ctx)
    for _, job in ipairs(ctx.aside) do
        local id, j = job[1], job[2]
        S.leave_lane(id, j)
        j.as = true
        if ctx.passed[j.t] == 'unknown' then
            j.rr = 'unknown task'
        end
        S.enter_lane(id, j)
        S.save(id, j)
    end
end

local function remember(c, number, last, positions)
    call('HSET', P .. 'claimant', c.claimant, pack({ m = c.member, n = number, lq = last or c.known.lq, pos = positions }))
    call('SADD', P .. 'of/' .. c.member, c.claimant)
end

-- The answer of a claim on the plain way, or nil: {wait, now, first fence, ids, records as they were enqueued, bodies that are
-- kept apart: nil where all records have theirs}
local function claim_plain(c, ctx, wants)
    if ctx.passed then
        return nil -- the task of a job is not read on the plain way
    end
    local taken = S.choose_plain(ctx, wants, c.most)
    if taken == false then
        return { c.most > 0 and wait_of(c, ctx) or -1, NOW, {}, {} }
    end
    local name = taken and member_name(c)
    if not taken or #name > 255 then
        return nil
    end
    local first = S.start_plain(c, taken, name)
    remember(c, c.number, taken.last, c.known.pos)
    return { #taken.ids < c.most and wait_of(c, ctx) or -1, NOW, first, taken.ids, taken.records,
             taken.apart and call('HMGET', P .. 'body', unpack(taken.ids)) or false }
end

-- {wait, now, jobs, when they start}, or as above; wait -1: only a signal can make more claimable.
function S.claim(c)
    if (c.known.n or c.after) < c.after then
        S.new_epoch(0) -- that answer is not known here: data was lost
        c.known.n = math.min(c.after, c.number - 1) -- known again: it is noticed once, and this claim stays a new one
        remember(c, c.known.n, nil, c.known.pos)
    end
    if c.known.n == c.number then
        return again(c)
    end
    local ctx = { suspects = c.suspects, passed = passed_by(c), kinds = {}, aside = {}, expired = {}, parked = {}, full = {},
                  closed = {} }
    prepare(c, ctx)
    local positions, taken, last = c.known.pos or {}, nil, nil
    if c.list then
        taken = S.choose_by_id(ctx, c.list, c.most)
    else
        local wants = in_turn(c.wants, c.known.lq)
        local answer = claim_plain(c, ctx, wants)
        if answer then
            return answer
        end
        taken, last = S.choose(ctx, wants, c.most, positions)
    end
    for _, job in ipairs(ctx.expired) do
        if handled >= HANDLED_LIMIT then
            ctx.again = true -- the next claim finds the others
            break
        end
        S.expire(job[1], job[2])
    end
    if #taken > 0 then
        start(c, taken)
        remember(c, c.number, last, positions)
    end
    for _, park in ipairs(ctx.parked) do -- after the starts: only then is it known when a rate opens
        S.park(unpack(park))
    end
    set_aside(ctx)
    if #ctx.expired > 0 then
        S.update_dependents(LIMIT)
    end
    local wait = -1
    if #taken < c.most then
        wait = wait_of(c, ctx)
    end
    return { wait, NOW, with_bodies(taken), S.starts(taken, false) }
end
