--# goes on
--# include core
-- A.names of tasks; their entries as blobs. A.defaults: see S.found_queue.

for _, name in ipairs(A.names) do
    call('HSET', P .. 'task', name, S.blob())
end
call('SET', P .. 'defaults', pack(A.defaults))
return 0
