--# goes on
--# include claimants
-- Signs a member off: releases its jobs and forgets it.
-- Takes: the member as a blob.
-- Answers: how many jobs were released.

local member, released = S.blob(), 0
for _, claimant in ipairs(call('SMEMBERS', P .. 'of/' .. member)) do
    released = released + S.empty(claimant, 0, function(id, j) S.release(id, j) end)
end
S.forget_member(member)
S.update_dependents(LIMIT)
S.finish()
return S.answer(released)
