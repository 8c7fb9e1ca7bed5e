--# goes on
--# include dependents
-- Cancels jobs that wait; asks jobs that run to stop.
-- Takes: A.count ids as blobs, A.by.
-- Answers: of each 0 (cancelled), 1 (asked to stop), 2 (finished) or 3 (unknown).

local answers, changed = {}, {}
for n = 1, A.count do
    local id = S.blob()
    local j = S.job(id)
    if not j then
        answers[n] = 3
    elseif j.st == RUNNING then
        answers[n] = 1
        if not j.ca then
            j.ca = true
            S.save(id, j)
            S.signal('stop:' .. S.hex(j.mi))
            changed[#changed + 1] = id
        end
    elseif j.st < RUNNING then
        answers[n] = 0
        S.to_final(id, j, CANCELLED)
        changed[#changed + 1] = id
    else
        answers[n] = j.st == CANCELLED and 0 or 2
    end
end
S.update_dependents(LIMIT)
S.audit_jobs(A.by, 'cancel', changed)
S.finish()
return S.answer(answers)
