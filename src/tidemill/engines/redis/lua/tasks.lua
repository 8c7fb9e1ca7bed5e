--# reads
--# include core
-- Answers the entries in no order.

return call('HVALS', P .. 'task')
