--# goes on
--# include core
-- Pauses a queue: nothing is claimed from it. A queue that is paused stays as it is.
-- Takes: A.name, A.by, A.why.
-- Answers: 0. UNKNOWNQUEUE: there is no such queue.

local q = S.queue(A.name)
if not q then
    return redis.error_reply('UNKNOWNQUEUE')
end
if not q.pa then
    q.pa, q.pb, q.pw = NOW, A.by, A.why
    S.save_queue(A.name, q)
    S.audit(A.by, 'pause', A.name, A.why)
end
return 0
