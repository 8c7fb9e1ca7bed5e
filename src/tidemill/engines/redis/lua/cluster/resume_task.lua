--# goes on
--# include lanes
-- Ends the pause of a task. Claims find its jobs where they stand aside.
-- Takes: A.name, A.by.
-- Answers: 0. UNKNOWNTASK: it has no entry.

if call('HEXISTS', P .. 'task', A.name) == 0 then
    return redis.error_reply('UNKNOWNTASK')
end
if call('HDEL', P .. 'paused', A.name) == 1 then
    S.audit(A.by, 'resume task', A.name)
    for _, queue in ipairs(S.queue_names()) do
        for _, kind in ipairs(S.kinds(queue)) do
            if S.aside_task(kind) == A.name then
                S.ready_signal(queue)
            end
        end
    end
    S.finish()
end
return 0
