--# goes on
--# include stats
-- Notes how queues stood at the end of a minute.
-- Takes: A.minute; A.samples: {queue, stock, arrived or false, oldest or false} each.
-- Answers: 1, or 0 if the minute has samples already.

return S.answer(S.sample(A.minute, A.samples) and 1 or 0)
