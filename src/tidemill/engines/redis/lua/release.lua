--# goes on
--# include children
-- A.items: {fence, delay}, ids as blobs. Answers: 0 applied, 1 already, 2 stale.

local answers = {}
for n, item in ipairs(A.items) do
    local id = S.blob()
    local j = S.job(id)
    if not j or j.f ~= item[1] then
        answers[n] = 2
    elseif j.st ~= RUNNING then
        answers[n] = j.sf == item[1] and 2 or 1
    else
        S.give_back(id, j, item[2] and NOW + item[2])
        answers[n] = 0
    end
end
S.tell_children(LIMIT)
S.finish()
return S.answer(answers)
