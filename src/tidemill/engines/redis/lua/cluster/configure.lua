--# goes on
--# include moves
-- Sets the options of a queue; makes the queue if it is new. Jobs that wait in lanes of the old options move later
-- (`S.move_stale`), and jobs that run are counted against the new limits.
-- Takes: A.name, A.queue (the record, see flat.py), A.defaults, A.by.
-- Answers: 0.

local name, queue, old, new = A.name, A.queue, S.queue(A.name), false
if not old then
    old, new = A.defaults, true
    old.c = NOW
end
queue.c, queue.pa, queue.pb, queue.pw = old.c, old.pa, old.pb, old.pw
if queue.o == old.o then
    if new then
        S.save_queue(name, queue)
        S.audit(A.by, 'configure', name)
    end
    return 0
end

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
    for suspect = 0, 1 do
        for _, member in ipairs(call('ZRANGE', P .. 'lanes/' .. name .. '/' .. suspect, 0, -1)) do
            call('ZADD', P .. 'stale/' .. name, 0, suspect .. member)
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
S.audit(A.by, 'configure', name, queue.o)
S.ready_signal(name)
S.finish()
return 0
