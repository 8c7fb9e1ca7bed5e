-- What every script begins with: its arguments, the clock, numbers, queues, counts, signals.
--
-- KEYS[1]  the prefix of all keys, tagged: a namespace lives in one slot of a cluster
-- ARGV[1]  the prefix of all channels
-- ARGV[2]  now in microseconds, or '' for the server's clock
-- ARGV[3]  the arguments of the call, in MessagePack
-- ARGV[4+] what is binary among them, in the order in which the script reads it (S.blob)
--
-- Numbers: Lua has doubles, exact below 2^53, but '..' prints 14 digits. Whatever may be large is printed
-- by S.int. A script is not rolled back: everything that can be refused is refused before the first write.

local P, CH = KEYS[1], ARGV[1]
local call, pack, unpack_ = redis.call, cmsgpack.pack, cmsgpack.unpack
local A = unpack_(ARGV[3])
local CLOCK, NOW
do
    local t = call('TIME')
    CLOCK = tonumber(t[1]) * 1000000 + tonumber(t[2])
    NOW = tonumber(ARGV[2]) or CLOCK
end
local BLOCKED, SCHEDULED, READY, RUNNING, COMPLETED, DEAD, CANCELLED = 0, 1, 2, 3, 4, 5, 6
local MINUTE, LIMIT, HANDLED_LIMIT = 60000000, 1000, 4194304

local S = {}
local handled = 0 -- bytes of payloads that went on to handlers in this call
local next_blob, queues, tallies, minutes, signals = 4, {}, {}, {}, {}

function S.blob()
    local value = ARGV[next_blob]
    next_blob = next_blob + 1
    return value
end

-- Pass over some blobs; answers the index of the first of them.
function S.skip(count)
    next_blob = next_blob + count
    return next_blob - count
end

function S.int(number)
    return string.format('%.0f', number)
end

function S.be8(number)
    return struct.pack('>I8', number)
end

function S.hex(bytes)
    return (string.gsub(bytes, '.', function(c) return string.format('%02x', string.byte(c)) end))
end

function S.uuid(id)
    local h = S.hex(id)
    return string.format('%s-%s-%s-%s-%s', h:sub(1, 8), h:sub(9, 12), h:sub(13, 16), h:sub(17, 20), h:sub(21))
end

function S.number(name)
    return call('HINCRBY', P .. 'n', name, 1)
end

-- Growing numbers that order jobs; several may be drawn at once, and those not used are lost.
local next_seq, last_seq = 1, 0

function S.draw(count)
    last_seq = call('HINCRBY', P .. 'n', 'seq', count)
    next_seq = last_seq - count + 1
end

-- The first of `count` numbers that the caller hands out itself.
function S.seqs(count)
    return call('HINCRBY', P .. 'n', 'seq', count) - count + 1
end

function S.seq()
    if next_seq > last_seq then
        return S.number('seq')
    end
    next_seq = next_seq + 1
    return next_seq - 1
end

-- The first of `count` fences: growing, and never repeated after data was lost, because the clock goes on.
function S.fences(count)
    local last = tonumber(call('HGET', P .. 'n', 'fence') or 0)
    local first = math.max(last + 1, CLOCK)
    call('HSET', P .. 'n', 'fence', S.int(first + count - 1))
    return first
end

-- Whether one string stands before another by bytes, as in a zset. Lua's own '<' goes by the locale of the server.
function S.less(one, other)
    for n = 1, math.min(#one, #other) do
        local a, b = string.byte(one, n), string.byte(other, n)
        if a ~= b then
            return a < b
        end
    end
    return #one < #other
end

-- A queue as it is kept, or false. See flat.py for its fields.
function S.queue(name)
    local q = queues[name]
    if q == nil then
        local raw = call('HGET', P .. 'q', name)
        q = raw and unpack_(raw) or false
        queues[name] = q
    end
    return q
end

function S.save_queue(name, q)
    queues[name] = q
    call('HSET', P .. 'q', name, pack(q))
end

-- The first job of a queue makes the queue. A call that stores jobs sends the options for it. The same options are
-- published with the tasks, for the handler of a death that has a queue of its own.
function S.found_queue(name)
    local q = S.queue(name)
    if not q then
        local defaults = A.defaults or call('GET', P .. 'defaults')
        if not defaults then
            return false
        end
        q = unpack_(type(defaults) == 'string' and defaults or pack(defaults))
        q.c = NOW
        S.save_queue(name, q)
    end
    return q
end

function S.queue_names()
    local names = call('HKEYS', P .. 'q')
    table.sort(names, S.less)
    return names
end

-- Counts of jobs by queue and state; written by S.finish.
function S.tally(queue, state, change)
    local field = queue .. '/' .. state
    tallies[field] = (tallies[field] or 0) + change
end

-- What ended in this minute: 'completed', 'failed', 'died', 'cancelled'.
function S.count(queue, what, count)
    local of = minutes[queue] or {}
    minutes[queue] = of
    of[what] = (of[what] or 0) + (count or 1)
end

function S.signal(topic, text)
    signals[topic .. '\n' .. (text or '')] = { topic, text or '' }
end

function S.ready_signal(queue)
    S.signal('ready:' .. queue)
end

function S.audit(by, action, target, detail)
    if by ~= '' then
        call('RPUSH', P .. 'audit', pack({ NOW, by, action, target, detail or '' }))
    end
end

function S.audit_jobs(by, action, ids)
    if #ids > 0 then
        local shown = S.uuid(ids[1])
        if #ids > 1 then
            shown = shown .. ' and ' .. (#ids - 1) .. ' more'
        end
        S.audit(by, action, shown)
    end
end

-- Between S.gather and S.flush, S.put gathers single writes into one command for each key: a call of the server from Lua
-- costs as much as the write itself. What was written so may not be read meanwhile, except records (S.job knows them).
local gathered

function S.gather()
    gathered = {}
end

function S.put(command, key, ...)
    if not gathered then
        call(command, key, ...)
        return
    end
    local name = command .. key
    local list = gathered[name]
    if not list then
        list = { command, key }
        gathered[name] = list
    end
    for n = 1, select('#', ...) do
        list[#list + 1] = (select(n, ...))
    end
    if #list > LIMIT then -- Lua passes some thousand values at a time
        gathered[name] = nil
        call(unpack(list))
    end
end

function S.flush()
    for _, list in pairs(gathered) do
        call(unpack(list))
    end
    gathered = nil
end

-- While events have listeners, the call names the jobs that move, at most A.naming of them (`Moves` of the protocol):
-- id, state, queue, task and reason, one after another.
local named, unnamed, whys = {}, 0, {}

-- Remember the failure that is the reason of a job's next move. said: kind, error, message
function S.why(id, said)
    if A.naming then
        whys[id] = string.sub((said[2] ~= '' and said[2] or said[1]) .. ': ' .. said[3], 1, 1200)
    end
end

function S.moved(id, j, state)
    local n = #named
    if not A.naming or state == COMPLETED then
        return
    elseif n >= 5 * A.naming then
        unnamed = unnamed + 1
        return
    end
    named[n + 1], named[n + 2], named[n + 3], named[n + 4], named[n + 5] = id, state, j.q, j.t, whys[id] or ''
    whys[id] = nil
end

-- The answer of an operation that may have moved jobs: with their names, if the call wants them.
function S.answer(value)
    return A.naming and { value, named, unnamed } or value
end

-- Write the sums of this call and publish its signals.
function S.finish()
    for field, change in pairs(tallies) do
        if change ~= 0 then
            call('HINCRBY', P .. 'tally', field, change)
        end
    end
    local minute = NOW - NOW % MINUTE
    local hour = minute - minute % (60 * MINUTE)
    for queue, of in pairs(minutes) do
        local name = queue .. '/' .. S.int(hour)
        for what, count in pairs(of) do
            call('HINCRBY', P .. 'min/' .. name, S.int((minute - hour) / MINUTE) .. '/' .. what, count)
            call('HINCRBY', P .. 'min/' .. name, what, count)
        end
        call('ZADD', P .. 'mins', hour, name)
    end
    for _, signal in pairs(signals) do
        call('PUBLISH', CH .. signal[1], signal[2])
    end
end
