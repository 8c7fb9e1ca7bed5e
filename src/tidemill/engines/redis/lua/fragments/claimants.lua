--# at need
--# include dependents
-- Emptying and forgetting claimants and members.

-- Call `how(id, record)` for each job that a claimant holds, in the order of fences, at most `limit` (0: all); answers for
-- how many.
function S.empty(claimant, limit, how)
    local ids = S.held(claimant)
    table.sort(ids, function(a, b) return S.fence(S.raw(a)) < S.fence(S.raw(b)) end)
    local count = limit > 0 and math.min(limit, #ids) or #ids
    for n = 1, count do
        how(ids[n], S.job(ids[n]))
    end
    return count
end

-- Refuse its claims from now on.
function S.retire(claimant)
    local raw = call('HGET', P .. 'claimant', claimant)
    local known = raw and unpack_(raw) or {}
    call('HSET', P .. 'claimant', claimant, pack({ m = known.m, n = known.n, r = NOW }))
    call('ZADD', P .. 'retired', NOW, claimant)
    if known.m then
        call('SREM', P .. 'of/' .. known.m, claimant)
    end
end

function S.forget_member(member)
    for _, claimant in ipairs(call('SMEMBERS', P .. 'of/' .. member)) do
        S.retire(claimant)
    end
    call('DEL', P .. 'of/' .. member)
    call('HDEL', P .. 'member', member)
end
