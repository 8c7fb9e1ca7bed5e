--# goes on
--# include core
-- A.name, A.by, A.why. UNKNOWNQUEUE: there is none.

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
