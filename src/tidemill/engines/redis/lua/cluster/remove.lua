--# goes on
--# include core
-- Deletes a schedule.
-- Takes: A.name, A.by.
-- Answers: 1, or 0 if there is no such schedule.

if call('HDEL', P .. 'schedule', A.name) == 0 then
    return 0
end
S.audit(A.by, 'remove schedule', A.name)
return 1
