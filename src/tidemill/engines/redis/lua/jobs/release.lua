--# goes on
--# include dependents
-- Hands claimed jobs back unfinished, at once or after a delay.
-- Takes: A.items: {fence, delay, reason} each; their ids as blobs.
-- Answers: of each 0 (applied), 1 (already) or 2 (stale).

local answers = {}
for n, item in ipairs(A.items) do
    local id = S.blob()
    local j = S.job(id)
    if not j or j.f ~= item[1] then
        answers[n] = 2
    elseif j.st ~= RUNNING then
        answers[n] = j.sf == item[1] and 2 or 1
    else
        S.release(id, j, item[2] and NOW + item[2], item[3])
        answers[n] = 0
    end
end
S.update_dependents(LIMIT)
S.finish()
return S.answer(answers)
