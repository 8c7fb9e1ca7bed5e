--# goes on
--# include core
-- Ends the pause of a queue.
-- Takes: A.name, A.by.
-- Answers: 0. UNKNOWNQUEUE: there is no such queue.

local q = S.queue(A.name)
if not q then
    return redis.error_reply('UNKNOWNQUEUE')
end
if q.pa then
    q.pa, q.pb, q.pw = nil, nil, nil
    S.save_queue(A.name, q)
    S.audit(A.by, 'resume', A.name)
    S.ready_signal(A.name)
    S.finish()
end
return 0
