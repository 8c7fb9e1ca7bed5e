--# adds
--# include moves
-- Makes ended jobs ready again, at most once for each token.
-- Takes: the token and A.count ids as blobs, A.by. For one job also A.edit {codec, key}, with its new body as one more blob.
-- Answers: of each 0 (replayed), 1 (it has not ended), 2 (its body is gone), 3 (unknown) or 4 (another job holds its
-- unique key).

local function edit(id, j)
    local body = S.blob()
    j.co, j.k, j.bd = A.edit[1], A.edit[2] ~= '' and A.edit[2] or nil, nil
    if S.inline(body) then
        j.bd = body
        call('HDEL', P .. 'body', id)
    else
        call('HSET', P .. 'body', id, body)
    end
end

local token, answers, changed = S.blob(), {}, {}
for n = 1, A.count do
    local id = S.blob()
    local j = S.job(id)
    if not j or j.tomb then
        answers[n] = 3
    elseif j.tk == token then
        answers[n] = 0
    elseif j.st <= RUNNING then
        answers[n] = 1
    elseif j.nb then
        answers[n] = 2
    elseif not S.take_key(id, j) then
        answers[n] = 4
    else
        answers[n] = 0
        changed[#changed + 1] = id
        S.leave(id, j)
        if j.st == COMPLETED then
            call('DEL', P .. 'cp/' .. id)
        end
        call('HDEL', P .. 'result', id)
        j.a, j.cr, j.lo, j.sn, j.ca, j.pr, j.e, j.d, j.x = nil, nil, nil, nil, nil, nil, nil, nil, nil
        j.rp, j.tk, j.wf, j.rs = (j.rp or 0) + 1, token, nil, nil
        if A.edit then
            edit(id, j)
        end
        S.to_ready(id, j)
        S.save(id, j)
    end
end
S.audit_jobs(A.by, A.edit and 'edit' or 'replay', changed)
S.finish()
return S.answer(answers)
