--# goes on
--# include core
-- A.name, A.fence. Answers 1, or 0 if it is not held under this fence.

local raw = call('HGET', P .. 'lease', A.name)
if not raw or unpack_(raw).f ~= A.fence then
    return 0
end
call('HDEL', P .. 'lease', A.name)
return 1
