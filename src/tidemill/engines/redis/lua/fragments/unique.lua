--# at need
--# include record
-- Unique keys (decision 0031). A record has its key in `uk`, and in `uu` until when it is held: 0 end, 1 start, 2 a period.
--
--   uniq    hash: <task>\0<key> = id of the job that holds it (0 and 1)
--   uniqp   hash: the same for periods, = id and the end of the period in 8 bytes; the zset `uniqe` has them by that end
--   repl    hash: the id of a call that replaced a job = that job; of each job the last 16, which its record has in `ri`
--
-- The part of a call is u, see meeting.lua.

local PERIOD = 2

-- The job that holds a key, or nil.
function S.key_holder(field, u)
    if u[2] ~= PERIOD then
        return call('HGET', P .. 'uniq', field) or nil
    end
    local raw = call('HGET', P .. 'uniqp', field)
    return raw and struct.unpack('>I8', raw, 17) > NOW and raw:sub(1, 16) or nil
end

-- A new job holds its key, which is free or its own.
function S.hold_key(id, j, u)
    local field = j.t .. '\0' .. u[1]
    j.uk, j.uu = u[1], u[2]
    if u[2] ~= PERIOD then
        call('HSET', P .. 'uniq', field, id)
    elseif S.key_holder(field, u) ~= id then
        call('HSET', P .. 'uniqp', field, id .. S.be8(NOW + u[3]))
        call('ZADD', P .. 'uniqe', NOW + u[3], field)
    end
end

-- A job ends, or starts.
function S.free_key(id, j)
    local field = j.t .. '\0' .. j.uk
    if j.uu ~= PERIOD and call('HGET', P .. 'uniq', field) == id then
        call('HDEL', P .. 'uniq', field)
    end
end

-- A job that does not hold its key becomes live, or waits again; false: another one holds it.
function S.take_key(id, j)
    return not j.uk or j.uu == PERIOD or call('HSETNX', P .. 'uniq', j.t .. '\0' .. j.uk, id) == 1
end

-- Nothing is known any more of the calls that replaced a job.
function S.forget_replacing(j)
    for from = 1, #j.ri, 16 do
        call('HDEL', P .. 'repl', j.ri:sub(from, from + 15))
    end
end
