--# goes on
--# include claimants
-- The member as a blob. Answers how many jobs were released.

local member, released = S.blob(), 0
for _, claimant in ipairs(call('SMEMBERS', P .. 'of/' .. member)) do
    released = released + S.empty(claimant, 0, function(id, j) S.give_back(id, j) end)
end
S.forget_member(member)
S.tell_children(LIMIT)
S.finish()
return S.answer(released)
