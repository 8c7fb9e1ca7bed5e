--# include core
-- Records as they are stored. The general form is MessagePack of all fields (see moves.lua). Jobs on the plain way, which
-- is nearly all of them, have forms that are made by joining strings; nothing of them is taken apart on that way:
--
--   'E' seq now tail                                        ready since it was enqueued; 'A': its body is kept apart
--   'R' fence claimant member number now n name E...        running since it was claimed
--   'C' fence ran ended r result now n name E...            completed; 'D': without body and result
--
-- Numbers have 8 bytes, claimant and member 16, n (the length of the member's name) one, r (that of the result) four. The
-- tail is made by the producer (tail.py): the length of the queue's name in one byte and the name; the length of the spec
-- in four and the spec, MessagePack of what never changes; the length of the headers in four and the headers; the body.
-- A body or result of more than 512 bytes is kept apart, in the hashes `body` and `result`, because records are written
-- whole. MessagePack begins with a byte above 127, these do not.

local ENQUEUED, APART, CLAIMED, DROPPED = 69, 65, 82, 68
local INLINE = 512

-- Where the body begins in a record as it was enqueued, which begins at `at`; where its queue ends, and its spec.
function S.body_at(raw, at)
    local q = at + 18 + raw:byte(at + 17)
    local spec = q + 4 + struct.unpack('>I4', raw, q)
    return spec + 4 + struct.unpack('>I4', raw, spec), q, spec
end

local function add_enqueued(j, raw, at)
    local body, q, spec = S.body_at(raw, at)
    for name, value in pairs(unpack_(raw:sub(q + 4, spec - 1))) do
        j[name] = value
    end
    j.b, j.c = struct.unpack('>I8I8', raw, at + 1)
    j.q, j.s, j.r, j.g = raw:sub(at + 18, q - 1), j.b, j.c, ''
    if body > spec + 4 then
        j.h = raw:sub(spec + 4, body - 1)
    end
    if body <= #raw then
        j.bd = raw:sub(body)
    end
    return j
end

-- Whether a body or a result is part of the record.
function S.inline(bytes)
    return #bytes > 0 and #bytes <= INLINE
end

-- The fields of a record, whatever its form.
function S.decode(raw)
    local form, at, j = raw:byte(1), 50, {}
    if form > 127 then
        return unpack_(raw)
    elseif form == ENQUEUED or form == APART then
        return add_enqueued({ st = READY }, raw, 1)
    elseif form == CLAIMED then
        j.st, j.ct, j.mi = RUNNING, raw:sub(10, 25), raw:sub(26, 41)
        j.cn = struct.unpack('>I8', raw, 42)
    else
        local ran, ended, size = struct.unpack('>I8I8I4', raw, 10)
        j.st, j.a, j.e, j.sa = COMPLETED, 1, ended, ended - ran
        j.rs = size > 0 and raw:sub(30, 29 + size) or nil
        j.nb = form == DROPPED or nil
        at = 30 + size
    end
    j.f, j.cl = struct.unpack('>I8', raw, 2), struct.unpack('>I8', raw, at)
    j.sf = j.st == COMPLETED and j.f or nil
    local name = at + 9 + raw:byte(at + 8)
    j.m = raw:sub(at + 9, name - 1)
    return add_enqueued(j, raw, name)
end

-- The fence of a running job.
function S.fence(raw)
    return raw:byte(1) == CLAIMED and struct.unpack('>I8', raw, 2) or S.decode(raw).f
end

-- Whether nothing but order decides in a queue: no limits, no groups.
function S.plain(q)
    return not (q.own or q.key or q.keyed or next(q.tasks))
end

-- The limit of the jobs of a key: {concurrency, count, window}, -1 for none. Nil where no key is limited.
function S.key_limit(q, key)
    return q.key and (q.keys[key] or q.key)
end

-- The server takes some thousand arguments of a script at a time.
function S.each(command, key, list)
    if #list <= 2 * LIMIT then
        call(command, key, unpack(list))
        return
    end
    for from = 1, #list, 2 * LIMIT do
        call(command, key, unpack(list, from, math.min(#list, from + 2 * LIMIT - 1)))
    end
end

local records = {} -- as this call has read or written them

function S.raw(id)
    local raw = records[id]
    if raw == nil then
        raw = call('HGET', P .. 'job', id)
    end
    return raw
end

function S.job(id)
    local raw = S.raw(id)
    return raw and S.decode(raw) or nil
end

-- A record that the caller writes itself.
function S.note(id, raw)
    records[id] = raw
end

function S.known(id)
    local raw = records[id]
    if raw ~= nil then
        return raw ~= false
    end
    return call('HEXISTS', P .. 'job', id) == 1
end

-- Read several records at once, for S.job.
function S.fetch(ids)
    if #ids > 0 then
        for n, raw in ipairs(call('HMGET', P .. 'job', unpack(ids))) do
            if records[ids[n]] == nil then
                records[ids[n]] = raw
            end
        end
    end
end

-- What a claimant holds, with the records at hand.
function S.held(claimant)
    local ids = call('SMEMBERS', P .. 'run/' .. claimant)
    for from = 1, #ids, LIMIT do
        S.fetch({ unpack(ids, from, math.min(#ids, from + LIMIT - 1)) })
    end
    return ids
end

function S.save(id, j)
    local raw = pack(j)
    records[id] = raw
    S.put('HSET', P .. 'job', id, raw)
end
