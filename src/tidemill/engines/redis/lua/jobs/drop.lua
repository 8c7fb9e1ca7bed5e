--# goes on
--# include dependents
-- Deletes jobs that have ended.
-- Takes: A.count ids as blobs, A.by.
-- Answers: of each 0 (dropped), 1 (it has not ended) or 2 (unknown).

local answers, changed = {}, {}
for n = 1, A.count do
    local id = S.blob()
    local j = S.job(id)
    if not j or j.tomb then
        answers[n] = 2
    elseif j.st <= RUNNING then
        answers[n] = 1
    else
        answers[n] = 0
        changed[#changed + 1] = id
        S.delete(id, j)
    end
end
S.update_dependents(LIMIT)
S.audit_jobs(A.by, 'drop', changed)
S.finish()
return S.answer(answers)
