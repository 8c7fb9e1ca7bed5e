--# goes on
--# include core
-- Stores what a worker or program knows: the entries of its tasks, and the options that a new queue gets.
-- Takes: A.names of tasks, their entries as blobs; A.defaults, see S.found_queue.
-- Answers: 0.

for _, name in ipairs(A.names) do
    call('HSET', P .. 'task', name, S.blob())
end
call('SET', P .. 'defaults', pack(A.defaults))
return 0
