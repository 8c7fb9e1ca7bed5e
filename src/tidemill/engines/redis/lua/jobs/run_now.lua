--# adds
--# include moves
-- Makes scheduled jobs ready at once.
-- Takes: A.count ids as blobs, A.by.
-- Answers: of each 0 (ready), 1 (blocked), 2 (running), 3 (finished) or 4 (unknown).

local ANSWERS, changed, answers = { [BLOCKED] = 1, [READY] = 0, [RUNNING] = 2 }, {}, {}
for n = 1, A.count do
    local id = S.blob()
    local j = S.job(id)
    if j and j.st == SCHEDULED then
        S.leave(id, j)
        j.d = nil
        S.to_ready(id, j)
        S.save(id, j)
        changed[#changed + 1] = id
    end
    answers[n] = (not j or j.tomb) and 4 or ANSWERS[j.st] or 3
end
S.audit_jobs(A.by, 'run now', changed)
S.finish()
return S.answer(answers)
