--# goes on
--# include moves
-- Changes the layers of a queue's options, if their version is still the one that was read. With them change the options
-- in force, or they stay as they are. Jobs that wait in lanes of the old options move later (`S.move_stale`), and jobs
-- that run are counted against the new limits.
-- Takes: A.name, A.creates, A.version, A.queue (the record of the new options, see flat.py; nil: they stay), A.defaults,
-- A.by, A.action, A.detail. Blobs: the layers.
-- Answers: 1, or 0: the version is another one. UNKNOWNQUEUE: there is no such queue.

local name, queue, old = A.name, A.queue, S.queue(A.name)
if not old and not A.creates then
    return redis.error_reply('UNKNOWNQUEUE')
end
if tonumber(call('HGET', P .. 'layerv', name) or 0) ~= A.version then
    return 0
end
call('HSET', P .. 'layers', name, S.blob())
call('HINCRBY', P .. 'layerv', name, 1)
S.audit(A.by, A.action, name, A.detail)
if not old then
    old = A.defaults
    old.c = NOW
    S.save_queue(name, old)
end
if not queue then
    return 1
end
queue.c, queue.pa, queue.pb, queue.pw = old.c, old.pa, old.pb, old.pw

local function same_tasks()
    for task in pairs(old.tasks) do
        if not queue.tasks[task] then
            return false
        end
    end
    for task in pairs(queue.tasks) do
        if not old.tasks[task] then
            return false
        end
    end
    return true
end

if (old.keyed or false) ~= (queue.keyed or false) or not same_tasks() then
    for _, kind in ipairs(S.kinds(name)) do
        for _, member in ipairs(call('ZRANGE', P .. 'lanes/' .. name .. '/' .. kind, 0, -1)) do
            call('ZADD', P .. 'stale/' .. name, 0, kind .. member)
        end
    end
end
for _, key in ipairs(call('ZRANGE', P .. 'park/' .. name, 0, -1)) do
    S.unpark(name, key) -- every gate is measured anew
end
if old.key or queue.key or next(old.tasks) or next(queue.tasks) then
    local running, jobs = call('ZRANGE', P .. 'runq/' .. name, 0, -1), {}
    for n, id in ipairs(running) do
        jobs[n] = S.job(id)
        call('DEL', P .. 'held/' .. name .. '/t/' .. jobs[n].t, P .. 'held/' .. name .. '/k/' .. (jobs[n].k or ''))
    end
    for n, id in ipairs(running) do
        S.hold(id, jobs[n], queue)
    end
end
S.save_queue(name, queue)
call('HINCRBY', P .. 'n', 'options', 1)
S.ready_signal(name)
S.signal('options')
S.finish()
return 1
