--# at need
--# include moves
-- A new job with a unique key (unique.lua): does it meet another job, and what becomes of that.
--
-- A call's part is u = {key, until, period, conflict, latest}; conflict: 0 existing, 1 replace, 2 refuse.

local PERIOD, REPLACE, REFUSE, KEPT = 2, 1, 2, 16

local function field_of(new)
    return new.row[1] .. '\0' .. new.row[17][1]
end

local function replace(id, j, new, u)
    local row, before = new.row, j.st
    local due = row[8] or NOW + (row[7] or 0)
    due = u[5] and math.min(due, j.c + u[5]) or due
    local state = before == BLOCKED and BLOCKED or due > NOW and SCHEDULED or READY
    local stays, ready_at, naming = state == READY and before == READY and u[5], j.r, A.naming
    if state ~= BLOCKED then
        S.leave(id, j)
    elseif j.x then
        call('ZREM', P .. 'exp/' .. j.q, id)
    end
    j.p, j.co, j.k, j.h, j.bd = row[3], row[4], row[6] or nil, new.headers, nil
    if S.inline(new.body) then
        j.bd = new.body
        call('HDEL', P .. 'body', id)
    else
        call('HSET', P .. 'body', id, new.body)
    end
    j.x, j.d = row[9] and NOW + row[9] or nil, due > NOW and due or nil
    A.naming = before ~= state and new.naming or nil
    if state == SCHEDULED then
        j.s = S.seq()
        S.to_scheduled(id, j)
    elseif state == READY then
        S.to_ready(id, j, stays)
        j.r = stays and ready_at or j.r
    elseif j.x then
        call('ZADD', P .. 'exp/' .. j.q, j.x, id)
    end
    A.naming = naming
    call('HSET', P .. 'repl', new.id, id)
    j.ri = (j.ri or '') .. new.id
    if #j.ri > 16 * KEPT then
        call('HDEL', P .. 'repl', j.ri:sub(1, 16))
        j.ri = j.ri:sub(17)
    end
    S.save(id, j)
end

-- The job that a call meets, replaced if the call asks for that; nil: the key is free. The id of the call is new.
function S.meet(new)
    local u = new.row[17]
    local met = call('HGET', P .. 'repl', new.id)
    if met then
        return met
    end
    met = S.key_holder(field_of(new), u)
    if not met or met == new.id then
        return nil
    end
    if u[4] == REPLACE then
        local j = S.job(met)
        if j and not j.tomb and j.st < RUNNING then
            replace(met, j, new, u)
        end
    end
    return met
end

-- Whether a new job would be cancelled at once, because a parent has died.
local function is_doomed(new, doomed)
    if new.row[16] == 'cancel' then
        for _, parent in ipairs(new.parents) do
            local p = S.job(parent)
            if doomed[parent] or (p and (p.st == DEAD or p.st == CANCELLED)) then
                return true
            end
        end
    end
    return false
end

-- Before anything is written: marks the jobs of a list that will meet others (new.meets); answers what to refuse the call
-- with, or nil.
function S.foresee(list)
    local held, seen, doomed = {}, {}, {}
    for _, new in ipairs(list) do
        local u, id = new.row[17], new.id
        if not seen[id] and not S.known(id) then
            if u and call('HEXISTS', P .. 'repl', id) == 1 then
                new.meets = true
            elseif u then
                local field = field_of(new)
                local mine = (u[2] == PERIOD and 'p' or '') .. field
                local holder = held[mine] or S.key_holder(field, u)
                if holder and holder ~= id then
                    if u[4] == REFUSE then
                        return 'NOTUNIQUE ' .. S.hex(holder) .. ' ' .. new.row[1] .. ' ' .. u[1]
                    end
                    new.meets = true
                elseif u[2] == PERIOD or not is_doomed(new, doomed) then
                    held[mine] = id
                end
            end
            doomed[id] = not new.meets and is_doomed(new, doomed)
            seen[id] = not new.meets
        end
    end
    return nil
end
