--# reads
--# include show
--# include lanes
-- Why jobs are where they are: what a claim looks at. The reasons are made elsewhere (model/why).
-- Takes: A.count ids as blobs; A.counted, how far jobs are counted; A.shown, the most holders;
-- A.parents, the most parents.
-- Answers: {now, queues, members, jobs}. A queue is {name, options, paused_at, by, why}, a member {record, since,
-- heartbeat_at, steady_since, 0}. A job is nil if unknown or a tombstone, else {row of show.lua, gates, ahead, better,
-- parents, {paused at, by, why} of its task or nil}: a gate {kind, held, {{id, member, claimed_at}, ...}, {end of step, starts, ...}}, a parent {id, state}.

local names, queues_read, gates_read = {}, {}, {}

local function note_queue(name)
    if not names[name] then
        local q = S.queue(name)
        names[name] = true
        queues_read[#queues_read + 1] = { name, q.o, q.pa or false, q.pb or '', q.pw or '' }
    end
end

local function holders_of(ids)
    local rows = {}
    for _, id in ipairs(ids) do
        local j = S.job(id)
        rows[#rows + 1] = { id, j.m or '', j.cl }
    end
    return rows
end

-- Some members of a set: the same ones in each call, unless there are very many.
local function some_of(key, size, most)
    if size > A.counted then
        return call('SRANDMEMBER', key, most)
    end
    local ids = call('SMEMBERS', key)
    table.sort(ids) -- by the locale of the server: any order will do, and S.less takes 5 ms for 200
    return { unpack(ids, 1, math.min(#ids, most)) }
end

local function log_of(gate)
    local log = {}
    local entries = call('ZRANGE', P .. 'rate/' .. gate, 0, -1, 'WITHSCORES')
    for n = 1, #entries, 2 do
        log[n], log[n + 1] = tonumber(entries[n + 1]), tonumber(entries[n]:match(':(%d+)$'))
    end
    return log
end

-- set: the key of the holders; nil: all running jobs of the queue.
local function gate_facts(kind, gate, limit, queue, set)
    local found = gates_read[gate]
    if not found then
        local held, ids = 0, {}
        if limit[1] >= 0 and set then
            held = call('SCARD', set)
            ids = some_of(set, held, A.shown)
        elseif limit[1] >= 0 then
            held = call('ZCARD', P .. 'runq/' .. queue)
            ids = call('ZRANGE', P .. 'runq/' .. queue, 0, A.shown - 1)
        end
        found = { kind, held, holders_of(ids), limit[2] >= 0 and log_of(gate) or {} }
        gates_read[gate] = found
    end
    return found
end

local function gates_of(j)
    local q, rows, key = S.queue(j.q), {}, j.k or ''
    local task_limit, key_limit = q.tasks[j.t], S.key_limit(q, key)
    if q.own then
        rows[#rows + 1] = gate_facts('queue', j.q .. '/q/', q.own, j.q)
    end
    if task_limit then
        rows[#rows + 1] = gate_facts('task', j.q .. '/t/' .. j.t, task_limit, j.q, P .. 'held/' .. j.q .. '/t/' .. j.t)
    end
    if key_limit then
        rows[#rows + 1] = gate_facts('key', j.q .. '/k/' .. key, key_limit, j.q, P .. 'held/' .. j.q .. '/k/' .. key)
    end
    return rows
end

local function ahead_of(j)
    local count = 0
    for suspect = 0, j.su and 1 or 0 do
        count = count + call('ZCOUNT', S.lane_key(j.q, j.p, suspect, j.g), '-inf', '(' .. S.int(j.s))
    end
    return count
end

-- Ready jobs of lower priority numbers. A lane that is listed has a job at least, so few are read.
local function better_than(j)
    local count = 0
    for suspect = 0, 1 do
        for _, member in ipairs(call('ZRANGEBYLEX', P .. 'lanes/' .. j.q .. '/' .. suspect, '-',
            '(' .. string.char(48 + j.p), 'LIMIT', 0, A.counted + 1)) do
            if count <= A.counted then
                count = count + call('ZCARD', S.lane_key(j.q, string.byte(member) - 48, suspect, member:sub(2)))
            end
        end
    end
    return count
end

local function parents_of(id)
    local rows = {}
    for _, parent in ipairs(some_of(P .. 'wait/' .. id, call('SCARD', P .. 'wait/' .. id), A.parents)) do
        local p = S.job(parent)
        if p then
            rows[#rows + 1] = { parent, p.st }
        end
    end
    return rows
end

local function task_pause(task)
    local raw = call('HGET', P .. 'paused', task)
    return raw and unpack_(raw) or false
end

local jobs, waiting = {}, false
for n = 1, A.count do
    local id = S.blob()
    local j = S.job(id)
    if not j or j.tomb then
        jobs[n] = false
    elseif j.st >= RUNNING then
        jobs[n] = { S.show(id, j, false), {}, 0, 0, {}, false }
    else
        waiting = true
        note_queue(j.q)
        local ready = j.st == READY
        local due = ready or (j.st == SCHEDULED and j.d <= NOW)
        jobs[n] = {
            S.show(id, j, false), due and gates_of(j) or {}, ready and ahead_of(j) or 0, ready and better_than(j) or 0,
            j.st == BLOCKED and parents_of(id) or {}, task_pause(j.t),
        }
    end
end

local members = {}
if waiting then
    local all = call('HVALS', P .. 'member')
    for n = 1, #all do
        local m = unpack_(all[n])
        members[n] = { m.info, m.si, m.at, m.ss, 0 }
    end
end
return { NOW, queues_read, members, jobs }
