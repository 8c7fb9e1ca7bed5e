--# reads
--# include core
-- Reads the queues.
-- Takes: nothing.
-- Answers: {{name, options, created_at, paused_at, paused_by, paused_why}, ...} by name.

local answer = {}
for n, name in ipairs(S.queue_names()) do
    local q = S.queue(name)
    answer[n] = { name, q.o, q.c, q.pa or false, q.pb or '', q.pw or '' }
end
return answer
