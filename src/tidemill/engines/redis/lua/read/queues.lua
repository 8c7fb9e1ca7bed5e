--# reads
--# include core
-- Reads the queues.
-- Takes: A.names, those that are wanted; nil: all.
-- Answers: {{name, options, layers, version, created_at, paused_at, paused_by, paused_why}, ...} by name.

local answer = {}
for _, name in ipairs(A.names or S.queue_names()) do
    local q = S.queue(name)
    if q then
        answer[#answer + 1] = {
            name, q.o, call('HGET', P .. 'layers', name) or '{}', tonumber(call('HGET', P .. 'layerv', name) or 0),
            q.c, q.pa or false, q.pb or '', q.pw or '',
        }
    end
end
return answer
