--# goes on
--# include core
-- Pauses a task: no job of it is claimed. A task that is paused stays as it is.
-- Takes: A.name, A.by, A.why.
-- Answers: 0. UNKNOWNTASK: it has no entry.

if call('HEXISTS', P .. 'task', A.name) == 0 then
    return redis.error_reply('UNKNOWNTASK')
end
if call('HSETNX', P .. 'paused', A.name, pack({ NOW, A.by, A.why })) == 1 then
    S.audit(A.by, 'pause task', A.name, A.why)
end
return 0
