--# at need
--# include dependents
--# include meeting
-- Storing new jobs, as call.py sends them.
--
-- A new job is {task, queue, priority, codec, has headers, key, delay, at, expires, timeout, retry, attempts, on_dead,
-- schedule, number of parents, parent_died, unique (see meeting.lua)}. Its blobs are its id, its body, its headers if it has some, its parents.

local NEW = { 't', 'q', 'p', 'co', nil, 'k', nil, nil, nil, 'to', 'rt', 'ma', 'od', 'sc' }

function S.read_new(row)
    local new = { row = row, id = S.blob(), body = S.blob(), headers = row[5] and S.blob() or nil, parents = {} }
    for n = 1, row[15] or 0 do
        new.parents[n] = S.blob()
    end
    return new
end

-- The first job of a list that names a parent which is not known; nil if all are.
function S.unknown_parent(list)
    local earlier = {}
    for _, new in ipairs(list) do
        if #new.parents > 0 and not earlier[new.id] and not S.known(new.id) then
            for _, parent in ipairs(new.meets and {} or new.parents) do
                if not earlier[parent] and not S.known(parent) then
                    return parent
                end
            end
        end
        earlier[new.id] = earlier[new.id] or not new.meets
    end
    return nil
end

-- Note the parents that a job waits for; answers the id of a dead parent because of which it is cancelled, or nil.
local function check_parents(id, j, parents)
    j.wf = 0
    for _, parent in ipairs(parents) do
        local p = S.job(parent)
        local died = p.st == DEAD or p.st == CANCELLED
        if p.st ~= COMPLETED and not (died and j.pd == 'run') then
            if call('SADD', P .. 'wait/' .. id, parent) == 1 then
                j.wf = j.wf + 1
                call('ZADD', P .. 'kids/' .. parent, j.b, id)
                if not p.kd then
                    p.kd = true
                    S.save(parent, p)
                end
            end
            if died and j.pd == 'cancel' then
                return parent
            end
        end
    end
    return nil
end

-- A new job that may run at once. body: where it is kept apart
function S.store_ready(id, j, body)
    if body then
        S.put('HSET', P .. 'body', id, body)
    end
    S.tally(j.q, READY, 1)
    S.enter_lane(id, j)
    S.save(id, j)
end

-- 1 if it was stored, 0 if its id is known, else the id of the job that it met.
function S.store(new)
    local id, row = new.id, new.row
    if S.known(id) then
        return 0
    end
    local met = row[17] and S.meet(new)
    if met then
        return met
    end
    local j = { c = NOW, h = new.headers }
    for n, name in pairs(NEW) do
        j[name] = row[n]
    end
    S.found_queue(j.q)
    j.b = S.seq()
    j.s = j.b
    local due = row[8] or (NOW + (row[7] or 0))
    j.d = due > NOW and due or nil
    j.x = row[9] and NOW + row[9] or nil
    if row[17] then
        S.hold_key(id, j, row[17])
    end
    local doomed
    if #new.parents > 0 then
        j.pd = row[16]
        doomed = check_parents(id, j, new.parents)
    end
    if S.inline(new.body) then
        j.bd = new.body
    elseif not doomed or S.keeps(j.q, CANCELLED) then
        S.put('HSET', P .. 'body', id, new.body)
    end
    local naming = A.naming
    A.naming = not doomed and naming or nil -- it is named once
    if (j.wf or 0) > 0 then
        S.to_blocked(id, j)
    elseif j.d then
        S.to_scheduled(id, j)
    else
        j.r = NOW
        j.st = READY
        S.moved(id, j, READY)
        S.tally(j.q, READY, 1)
        if j.x then
            call('ZADD', P .. 'exp/' .. j.q, j.x, id)
        end
        S.enter_lane(id, j)
    end
    S.save(id, j)
    A.naming = naming
    if doomed then
        S.cancel_child(id, j, S.uuid(doomed))
    end
    return 1
end
