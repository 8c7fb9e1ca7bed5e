--# goes on
--# include claimants
-- Ends a claimant whose process is dead: blames or releases the jobs that it holds, and refuses its claims from now on.
-- Takes: A.lost_runs: {fence, verdict, failure} each; the claimant and the ids of those jobs as blobs.
-- Answers: how many jobs it held.

local claimant, lost_runs = S.blob(), {}
for _, run in ipairs(A.lost_runs) do
    lost_runs[S.blob() .. S.int(run[1])] = run
end
local held = S.empty(claimant, 0, function(id, j)
    local run = lost_runs[id .. S.int(j.f)]
    if run then
        S.lose(id, j, run[2], run[3])
    else
        S.release(id, j)
    end
end)
S.retire(claimant)
S.update_dependents(LIMIT)
S.finish()
return S.answer(held)
