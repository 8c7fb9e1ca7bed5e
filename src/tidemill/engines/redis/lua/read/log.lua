--# reads
--# include core
-- Reads log lines of one job.
-- Takes: the job's id as a blob, A.after (how many to pass over), A.limit.
-- Answers: {{fence, number, at, level, message}, ...}.

local answer = {}
for n, member in ipairs(call('ZRANGE', P .. 'log/' .. S.blob(), A.after, A.after + A.limit - 1)) do
    local line = unpack_(member:sub(17))
    local fence, number = struct.unpack('>I8I8', member:sub(1, 16))
    answer[n] = { fence, number, line[1], line[2], line[3] }
end
return answer
