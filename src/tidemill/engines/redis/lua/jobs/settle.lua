--# goes on
--# include take
--# include store
--# include done
-- Records outcomes of runs, and claims in the same step if the call carries a claim.
-- Takes: A.done, the number of plain completions, all in one blob: of each its id (16 bytes), its fence and how long it ran
-- (8 each), and whether it has a result (1); then A.results of these, a blob each. Then A.items: {fence, kind, ran, has
-- result, failure, retry_in, then} each, their ids and results as blobs. A failure is {kind, error, message, traceback};
-- `then` is {jobs, schedule, schedule_in, schedule_version}. A.claim: a claim (take.lua) or nil.
-- Answers: {answers, claim}: of each 0 (applied), 1 (already) or 2 (stale), in the order of the call; the claim as in
-- claim.lua, or nil.

local ITEM_COMPLETED, ITEM_FAILED, ITEM_STOPPED, ITEM_CRASHED = 0, 1, 2, 3
local byte, sub = string.byte, string.sub

local function complete(id, j, result)
    j.a = (j.a or 0) + 1
    if S.queue(j.q).body then
        if result and S.keeps(j.q, COMPLETED) then
            S.put('HSET', P .. 'result', id, result)
        end
    else
        call('HDEL', P .. 'body', id)
        j.bd, j.nb = nil, true
    end
    S.to_final(id, j, COMPLETED)
end

local function fail(id, j, said, retry_in)
    j.a = (j.a or 0) + 1
    S.count(j.q, 'failed')
    local retry = not j.ca and retry_in
    S.fail(id, j, said, j.a, retry or nil)
    if retry then
        S.leave(id, j)
        if j.uu == 1 then
            S.take_key(id, j)
        end
        j.d = NOW + retry_in
        S.to_scheduled(id, j)
        S.save(id, j)
    else
        S.to_final(id, j, j.ca and CANCELLED or DEAD)
    end
end

local function set_schedule(name, at, version)
    local raw = call('HGET', P .. 'schedule', name)
    local s = raw and unpack_(raw)
    if s and (version or s.v) == s.v then
        s.n = at
        call('HSET', P .. 'schedule', name, pack(s))
    end
end

local function settle(item)
    local id = item.id
    local j = S.job(id)
    if not j or j.st ~= RUNNING or j.f ~= item[1] then
        return j and j.sf == item[1] and 1 or 2
    end
    j.sf = j.f
    j.sa = j.sa or NOW - item[3]
    local kind = item[2]
    if kind == ITEM_COMPLETED then
        complete(id, j, item.result)
    elseif kind == ITEM_FAILED then
        fail(id, j, item[5], item[6])
    elseif kind == ITEM_CRASHED then
        S.lose(id, j, 'crash', item[5])
    else
        S.to_final(id, j, CANCELLED)
    end
    if item.jobs then
        for _, new in ipairs(item.jobs) do
            S.store(new)
        end
        if item[7][2] then
            set_schedule(item[7][2], NOW + item[7][3], item[7][4])
        end
    end
    return 0
end

-- Those that just completed, the plain way where they have nothing about them. No id comes twice among all that is settled.
local DONE = 33
local done, next_result = S.blob(), S.skip(A.results)

local function settle_done(answers)
    local ids = {}
    for n = 1, A.done do
        ids[n] = sub(done, DONE * n - 32, DONE * n - 17)
    end
    for n, raw in ipairs(A.done > 0 and call('HMGET', P .. 'job', unpack(ids)) or {}) do
        local id, stamp, result = ids[n], sub(done, DONE * n - 16, DONE * n - 1), ''
        if byte(done, DONE * n) == 1 then
            result, next_result = ARGV[next_result], next_result + 1
        end
        if raw and raw:byte(1) == CLAIMED and raw:find(stamp:sub(1, 8), 2, true) == 2
            and S.complete_plain(id, raw, stamp, result) then
            answers[n] = 0
        else
            local fence, ran = struct.unpack('>I8I8', stamp)
            S.note(id, raw)
            answers[n] = settle({ fence, ITEM_COMPLETED, ran, id = id, result = result ~= '' and result or nil })
        end
    end
end

for _, item in ipairs(A.items) do
    item.id = S.blob()
    item.result = item[4] and S.blob() or nil
    if item[7] then
        item.jobs = {}
        for n, row in ipairs(item[7][1]) do
            item.jobs[n] = S.read_new(row)
        end
    end
end
local c, refused
if A.claim then
    c = S.read_claim(A.claim)
    refused = S.refusal(c)
    if refused == 'BADCLAIMANT' then
        return redis.error_reply('BADCLAIMANT')
    end
end
local answers, ids = {}, {}
for n, item in ipairs(A.items) do
    ids[n] = item.id
end
S.fetch(ids)
S.gather()
settle_done(answers)
for n, item in ipairs(A.items) do
    answers[A.done + n] = settle(item)
end
S.flush()
S.flush_plain()
S.update_dependents(LIMIT)
local claim = false
if refused then
    claim = { refused, c.known.n or 0 }
elseif c then
    claim = S.claim(c)
end
S.finish()
return S.answer({ answers, claim })
