--# goes on
--# include core
-- A.name of a schedule, A.by. Answers 1, or 0 if there is none.

if call('HDEL', P .. 'schedule', A.name) == 0 then
    return 0
end
S.audit(A.by, 'remove schedule', A.name)
return 1
