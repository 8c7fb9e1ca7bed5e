--# at need
--# include moves
-- Children of ended parents. An ended parent is one entry of `ripple`: its id, how it ended (-1: deleted), and the
-- birth number of the last child told.

local function tell(id, j, parent, state)
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

-- Tell up to `limit` children; answers how many, and whether there is more to tell.
function S.tell_children(limit)
    local told = 0
    while told < limit do
        local raw = call('LINDEX', P .. 'ripple', 0)
        if not raw then
            return told, false
        end
        local parent, state, after = unpack(unpack_(raw))
        local some = call('ZRANGEBYSCORE', P .. 'kids/' .. parent, '(' .. S.int(after), '+inf', 'LIMIT', 0,
            math.min(100, limit - told))
        if #some == 0 then
            call('LPOP', P .. 'ripple')
        else
            for _, child in ipairs(some) do
                local j = S.job(child)
                after = j.b
                tell(child, j, parent, state)
            end
            told = told + #some
            call('LSET', P .. 'ripple', 0, pack({ parent, state, after }))
        end
    end
    return told, call('EXISTS', P .. 'ripple') == 1
end
