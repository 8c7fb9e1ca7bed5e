--# goes on
--# include core
-- A.names of tasks; their entries as blobs.

for _, name in ipairs(A.names) do
    call('HSET', P .. 'task', name, S.blob())
end
return 0
