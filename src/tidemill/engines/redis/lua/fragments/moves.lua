--# at need
--# include lanes
--# include deaths
--# include unique
-- The moves of a job: out of the structure of one state, into that of another. The caller saves the record.
--
-- Fields of a record (absent: none, 0 or false):
--   t task, q queue, p priority, k key, g group, co codec, h headers, to timeout, rt retry, ma attempts allowed,
--   od on_dead, sc schedule, pd parent_died, c created_at, b born (order of creation)
--   st state, s seq, a attempts, cr crashes, lo lost runs, sn snoozes, su suspect, ca cancel requested, rp replays, tk replay token
--   d due_at, r ready_at, cl claimed_at, sa started_at, e ended_at, x expires_at
--   f fence, sf settled fence, m member's name, mi member, ct claimant, cn claim number, rr why the last run was released
--   as it stands aside
--   fp fingerprint of the last failure; uk unique key, uu until when it is held, ri ids of calls that replaced it (unique.lua)
--   bd body and rs result where they are short, nb body dropped, pr progress, fc failures, wf parents waited for,
--   kd has children, w is watched, tomb tombstone

local NAMES = { [COMPLETED] = 'completed', [DEAD] = 'died', [CANCELLED] = 'cancelled' }

-- The holders of the gates of a task and a key are sets; of a queue's gate, all its running jobs.
function S.hold(id, j, q)
    local limit = q.tasks[j.t]
    if limit and limit[1] >= 0 then
        call('SADD', P .. 'held/' .. j.q .. '/t/' .. j.t, id)
    end
    local of_key = S.key_limit(q, j.k or '')
    if of_key and of_key[1] >= 0 then
        call('SADD', P .. 'held/' .. j.q .. '/k/' .. (j.k or ''), id)
    end
end

function S.leave_run(id, j)
    local q = S.queue(j.q)
    S.put('ZREM', P .. 'runq/' .. j.q, id)
    S.put('SREM', P .. 'run/' .. j.ct, id)
    j.ct, j.cn, j.mi = nil, nil, nil
    local limit = q.tasks[j.t]
    if limit and limit[1] >= 0 then
        call('SREM', P .. 'held/' .. j.q .. '/t/' .. j.t, id)
    end
    if q.key then
        local key = j.k or ''
        call('SREM', P .. 'held/' .. j.q .. '/k/' .. key, id)
        if call('ZSCORE', P .. 'park/' .. j.q, key) then
            S.unpark(j.q, key)
        end
    end
    if q.own or q.key or limit then
        S.ready_signal(j.q)
    end
end

-- The dead letters of a group (decision 0027) are a zset. Those of a queue that have some are members of another, in the
-- order of task and fingerprint: no task's name has a zero byte.
function S.group_key(queue, task, fingerprint)
    return P .. 'group/' .. queue .. '/' .. task .. '\0' .. fingerprint
end

function S.enter_group(id, j)
    call('ZADD', S.group_key(j.q, j.t, j.fp), NOW, S.be8(j.b) .. id)
    call('ZADD', P .. 'groups/' .. j.q, 0, j.t .. '\0' .. j.fp)
end

function S.leave_group(id, j)
    local key = S.group_key(j.q, j.t, j.fp)
    call('ZREM', key, S.be8(j.b) .. id)
    if call('EXISTS', key) == 0 then
        call('ZREM', P .. 'groups/' .. j.q, j.t .. '\0' .. j.fp)
    end
end

-- Out of the structure of its present state.
function S.leave(id, j)
    local state = j.st
    S.tally(j.q, state, -1)
    if state == RUNNING then
        S.leave_run(id, j)
        return
    elseif state == READY then
        S.leave_lane(id, j)
        j.as = nil
    elseif state == SCHEDULED then
        call('ZREM', P .. 'due/' .. j.q, S.be8(j.s) .. id)
    elseif state == BLOCKED then
        call('ZREM', P .. 'blk/' .. j.q, id)
        for _, parent in ipairs(call('SMEMBERS', P .. 'wait/' .. id)) do
            call('ZREM', P .. 'kids/' .. parent, id)
        end
        call('DEL', P .. 'wait/' .. id)
    else
        call('ZREM', P .. 'end/' .. j.q .. '/' .. state, S.be8(j.b) .. id)
        if state == DEAD then
            call('ZREM', P .. 'dead/' .. j.q .. '/' .. j.t, S.be8(j.b) .. id)
            S.leave_group(id, j)
        end
    end
    if j.x then
        call('ZREM', P .. 'exp/' .. j.q, id)
    end
end

local function waits_from(id, j, state)
    j.st = state
    S.moved(id, j, state)
    S.tally(j.q, state, 1)
    if j.x then
        call('ZADD', P .. 'exp/' .. j.q, j.x, id)
    end
end

-- Into its lane: at the end, or with its old seq.
function S.to_ready(id, j, keep_seq)
    if not keep_seq then
        j.s = S.seq()
    end
    j.r = NOW
    waits_from(id, j, READY)
    S.enter_lane(id, j)
end

function S.to_scheduled(id, j)
    waits_from(id, j, SCHEDULED)
    call('ZADD', P .. 'due/' .. j.q, j.d, S.be8(j.s) .. id)
    S.ready_signal(j.q)
end

function S.to_blocked(id, j)
    waits_from(id, j, BLOCKED)
    call('ZADD', P .. 'blk/' .. j.q, j.b, id)
end

-- A job without parents to wait for: to its due time or its lane.
function S.begin(id, j)
    if j.d and j.d > NOW then
        S.to_scheduled(id, j)
    else
        S.to_ready(id, j)
    end
end

-- Whether a job of this queue is kept in a final state, or leaves a tombstone alone.
function S.keeps(queue, state)
    return S.queue(queue).counts[state - 3] ~= 0
end

-- Written at once: nothing of the job may have been gathered (S.put) before.
function S.forget_parts(id)
    call('HDEL', P .. 'body', id)
    call('HDEL', P .. 'result', id)
    call('DEL', P .. 'f/' .. id, P .. 'log/' .. id, P .. 'cp/' .. id)
end

local function signal_watchers(id)
    local key = P .. 'w/' .. id
    local watchers = call('HGETALL', key)
    for n = 1, #watchers, 2 do
        call('ZREM', P .. 'watches', id .. watchers[n])
        if tonumber(watchers[n + 1]) > NOW then
            S.signal('ended:' .. watchers[n], S.hex(id))
        end
    end
    call('DEL', key)
end

local function leave_handler(id, j)
    local handler, new, body = S.handler_of(id, j)
    new.b = S.seq()
    new.s = new.b
    if S.inline(body) then
        new.bd = body
    else
        S.put('HSET', P .. 'body', handler, body)
    end
    S.to_ready(handler, new, true)
    S.save(handler, new)
end

-- To a final state. The job is counted, its dependents are queued to move, its watchers get signals, and it is saved.
function S.to_final(id, j, state)
    S.moved(id, j, state)
    if state == DEAD and j.od then
        leave_handler(id, j)
    end
    S.leave(id, j)
    if j.uk then
        S.free_key(id, j)
    end
    j.st, j.e, j.x, j.rr = state, NOW, nil, nil
    S.count(j.q, NAMES[state])
    if j.kd then
        call('RPUSH', P .. 'ended_parents', pack({ id, state, 0 }))
    end
    if j.w then
        signal_watchers(id)
        j.w = nil
    end
    if not S.keeps(j.q, state) then
        S.forget_parts(id)
        call('ZADD', P .. 'tomb', NOW, id)
        j = { t = j.t, q = j.q, p = j.p, st = state, f = j.f, sf = j.sf, e = NOW, b = j.b, kd = j.kd, ri = j.ri,
            tomb = true }
    else
        S.tally(j.q, state, 1)
        S.put('ZADD', P .. 'end/' .. j.q .. '/' .. state, NOW, S.be8(j.b) .. id)
        if state == DEAD then
            call('ZADD', P .. 'dead/' .. j.q .. '/' .. j.t, NOW, S.be8(j.b) .. id)
            S.enter_group(id, j)
        end
    end
    S.save(id, j)
end

-- Append a failure; the first 5 and the last 20 are kept. said: kind, error, message, traceback, fingerprint. What the
-- engine causes has its kind as fingerprint.
function S.fail(id, j, said, attempt, retry_in)
    local number = (j.fc or 0) + 1
    j.fc = number
    S.why(id, said)
    call('HSET', P .. 'f/' .. id, number, pack({
        said[1], said[2], said[3], said[4], attempt, number, j.m or '', j.cl or -1, j.sa or -1, NOW, retry_in or -1,
        said[5] or said[1],
    }))
    j.fp = said[5] or said[1]
    if number - 20 > 5 then
        call('HDEL', P .. 'f/' .. id, number - 20)
    end
end

-- A run ends without an outcome: the job returns to its lane with its old seq, or waits for a later time.
function S.release(id, j, due_at, reason)
    if j.ca then
        S.to_final(id, j, CANCELLED)
        return
    end
    S.leave(id, j)
    if j.uu == 1 then
        S.take_key(id, j)
    end
    j.rr = reason or nil
    if reason == 'snooze' then
        j.sn = (j.sn or 0) + 1
    end
    if due_at then
        j.d = due_at
        S.to_scheduled(id, j)
    else
        j.as = reason == 'unknown task' or nil
        S.to_ready(id, j, true)
    end
    S.save(id, j)
end

-- A run was lost (model.crash). verdict: 'suspect' or 'crash'; 'lost' if its member vanished, which blames no job
function S.lose(id, j, verdict, said)
    local crashed = verdict == 'crash' or (verdict == 'lost' and j.su and j.sa)
    S.fail(id, j, said or { crashed and 'crash' or 'lost', '', 'its member vanished', '' }, (j.a or 0) + 1)
    if crashed then
        j.cr = (j.cr or 0) + 1
    end
    local suspect = true
    if verdict == 'lost' then
        j.lo = (j.lo or 0) + 1
        suspect = j.su or j.lo >= 2
    end
    j.su = suspect or nil
    if not j.ca and (j.cr or 0) >= 3 then
        S.to_final(id, j, DEAD)
    else
        S.release(id, j)
    end
end

function S.expire(id, j)
    S.fail(id, j, { 'expired', '', 'not started before it expired', '' }, j.a or 0)
    S.to_final(id, j, DEAD)
end

function S.delete(id, j)
    if j.tomb then
        call('ZREM', P .. 'tomb', id)
    else
        S.leave(id, j)
        S.forget_parts(id)
    end
    call('DEL', P .. 'w/' .. id)
    if j.ri then
        S.forget_replacing(j)
    end
    if j.kd then
        call('RPUSH', P .. 'ended_parents', pack({ id, -1, 0 }))
    end
    records[id] = nil
    call('HDEL', P .. 'job', id)
end
