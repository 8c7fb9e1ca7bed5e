--# goes on
--# include core
-- A.name, A.by. UNKNOWNQUEUE: there is none.

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
