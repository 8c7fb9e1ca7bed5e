--# goes on
--# include children
-- A.count ids as blobs, A.by. Answers: 0 dropped, 1 live, 2 unknown.

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
S.tell_children(LIMIT)
S.audit_jobs(A.by, 'drop', changed)
S.finish()
return S.answer(answers)
