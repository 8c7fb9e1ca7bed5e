--# reads
--# include core
-- Reads the entries of all tasks that were published.
-- Takes: nothing.
-- Answers: the entries in no order.

return call('HVALS', P .. 'task')
