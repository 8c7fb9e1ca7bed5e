--# reads
--# include core
-- Reads the checkpoints of one job.
-- Takes: the job's id as a blob.
-- Answers: {{number, name, value}, ...} in no order.

local all, answer = call('HGETALL', P .. 'cp/' .. S.blob()), {}
for n = 1, #all, 2 do
    local stored = unpack_(all[n + 1])
    answer[#answer + 1] = { stored[1], all[n], stored[2] }
end
return answer
