--# goes on
--# include moves
-- Stores notes of running jobs: started, progress, log lines, checkpoints.
-- Takes: A.notes: {fence, kind, number or name, level} each; as blobs the ids, and the bytes of progress, lines and
-- checkpoints.
-- Answers: of each 1 (applied) or 0 (stale). A log line is a member '<fence><number><record>' of a zset without scores.

local STARTED, PROGRESS, LINE, CHECKPOINT, KEPT = 0, 1, 2, 3, 1000

local function write(id, j, note, value)
    if note[2] == STARTED then
        if not j.sa then
            j.sa = NOW
            S.save(id, j)
        end
    elseif note[2] == PROGRESS then
        j.pr = value
        S.save(id, j)
    elseif note[2] == LINE then
        local key, prefix = P .. 'log/' .. id, S.be8(j.f) .. S.be8(note[3])
        local known = call('ZRANGEBYLEX', key, '[' .. prefix, '+', 'LIMIT', 0, 1)
        if not known[1] or known[1]:sub(1, 16) ~= prefix then
            call('ZADD', key, 0, prefix .. pack({ NOW, note[4], value }))
            call('ZREMRANGEBYRANK', key, 0, -KEPT - 1)
        end
    else
        local key = P .. 'cp/' .. id
        call('HSETNX', key, note[3], pack({ call('HLEN', key), value }))
    end
end

local answers = {}
for n, note in ipairs(A.notes) do
    local id = S.blob()
    local value = note[2] ~= STARTED and S.blob() or nil
    local j = S.job(id)
    if j and j.st == RUNNING and j.f == note[1] then
        write(id, j, note, value)
        answers[n] = 1
    else
        answers[n] = 0
    end
end
return answers
