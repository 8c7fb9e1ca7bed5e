--# goes on
--# include claimants
-- A.losses: {fence, verdict, said}; the claimant and the ids of the losses as blobs. Answers how many jobs it held.

local claimant, losses = S.blob(), {}
for _, loss in ipairs(A.losses) do
    losses[S.blob() .. S.int(loss[1])] = loss
end
local held = S.empty(claimant, 0, function(id, j)
    local loss = losses[id .. S.int(j.f)]
    if loss then
        S.lose(id, j, loss[2], loss[3])
    else
        S.give_back(id, j)
    end
end)
S.retire(claimant)
S.tell_children(LIMIT)
S.finish()
return S.answer(held)
