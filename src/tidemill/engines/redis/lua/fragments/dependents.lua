--# at need
--# include moves
-- Dependents of ended parents. The list `ended_parents` has one entry for each parent that ended: {its id, the state in
-- which it ended (-1: it was deleted), the birth number of the last dependent that was moved}.

-- One parent of a blocked job has ended: the job waits for one less, or is cancelled.
local function parent_ended(id, j, parent, state)
    if state == COMPLETED or (state ~= -1 and j.pd == 'run') then
        call('SREM', P .. 'wait/' .. id, parent)
        call('ZREM', P .. 'kids/' .. parent, id)
        j.wf = j.wf - 1
        if j.wf == 0 then
            S.leave(id, j)
            S.begin(id, j)
        end
        S.save(id, j)
    elseif state == -1 or j.pd == 'cancel' then
        S.cancel_child(id, j, state == -1 and 'which was deleted' or S.uuid(parent))
    end
end

function S.cancel_child(id, j, parent)
    S.fail(id, j, { 'parent', '', 'a parent did not complete: ' .. parent, '' }, j.a or 0)
    S.to_final(id, j, CANCELLED)
end

-- Move up to `limit` dependents of ended parents; answers how many, and whether there are more.
function S.update_dependents(limit)
    local moved = 0
    while moved < limit do
        local raw = call('LINDEX', P .. 'ended_parents', 0)
        if not raw then
            return moved, false
        end
        local parent, state, after = unpack(unpack_(raw))
        local some = call('ZRANGEBYSCORE', P .. 'kids/' .. parent, '(' .. S.int(after), '+inf', 'LIMIT', 0,
            math.min(100, limit - moved))
        if #some == 0 then
            call('LPOP', P .. 'ended_parents')
        else
            for _, child in ipairs(some) do
                local j = S.job(child)
                after = j.b
                parent_ended(child, j, parent, state)
            end
            moved = moved + #some
            call('LSET', P .. 'ended_parents', 0, pack({ parent, state, after }))
        end
    end
    return moved, call('EXISTS', P .. 'ended_parents') == 1
end
