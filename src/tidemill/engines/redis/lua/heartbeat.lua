--# goes on
--# include claimants
--# include epoch
-- A.name, A.heartbeat, A.lease, A.claimants: {answered, held fences}, A.seen: the number of its last heartbeat, A.epoch: the one
-- it was answered then, A.top: the highest fence we have given it, A.version of the keys; the member's id, its record and
-- the claimants' ids as blobs.
-- Answers {number, now, new, lost fences, {{id, fence}, ...} asked to stop, epoch, 1 if it is to be told that data was
-- lost, maxmemory-policy}.

local AHEAD = 7 * 24 * 60 * MINUTE -- a server's clock may have been wrong
local member, info = S.blob(), S.blob()
local raw = call('HGET', P .. 'member', member)
local m = raw and unpack_(raw) or { si = NOW, ss = NOW, at = NOW }

-- What this member was told must be here. (A member that was swept has no record, and that is no loss.) If its epoch is
-- older than ours, somebody has found out already, maybe itself: then that answer has not arrived.
local last = call('HMGET', P .. 'n', 'heartbeat', 'fence', 'epoch')
local epoch, fence, top = last[3], tonumber(last[2] or 0), A.top
for _, said in ipairs(A.claimants) do
    for _, held in ipairs(said[2]) do
        if held <= CLOCK + AHEAD then -- what nobody has given out must not lift the counter for ever
            top = math.max(top, held)
        end
    end
end
local missing = tonumber(last[1] or 0) < A.seen or (m.n or A.seen) < A.seen or fence < top
local unknown = S.epoch_number(A.epoch) > S.epoch_number(epoch)
local found = unknown or (missing and (not A.epoch or A.epoch == epoch))
if found then
    epoch = S.new_epoch(S.epoch_number(A.epoch))
elseif not epoch then
    epoch = '1.' .. S.int(CLOCK)
    call('HSET', P .. 'n', 'epoch', epoch)
end
local rolled_back = found or (A.epoch and A.epoch ~= epoch)
if fence < top then
    call('HSET', P .. 'n', 'fence', S.int(top)) -- whatever clock this server has, no fence comes twice
end
if call('EXISTS', P .. 'meta') == 0 then -- see schema.py
    call('HSET', P .. 'meta', 'app', 'tidemill', 'version', A.version, 'oldest_code', A.version)
end
m.n = S.number('heartbeat')

if NOW - m.at > 2 * A.heartbeat then -- model.member.steady_after_heartbeat
    m.ss = NOW
end
m.name, m.info, m.bt, m.ls, m.at = A.name, info, A.heartbeat, A.lease, NOW
call('HSET', P .. 'member', member, pack(m))
local lost, asked = {}, {}
for _, said in ipairs(A.claimants) do
    local claimant, held = S.blob(), {}
    for _, fence in ipairs(said[2]) do
        held[fence] = true
    end
    local running = {}
    for _, id in ipairs(S.held(claimant)) do
        local fence = S.fence(S.raw(id))
        running[fence] = true
        if not held[fence] then
            local j = S.job(id)
            if j.cn <= said[1] then
                S.give_back(id, j)
            end
        end
    end
    for _, fence in ipairs(said[2]) do
        if not running[fence] then
            lost[#lost + 1] = fence
        end
    end
end
for _, claimant in ipairs(call('SMEMBERS', P .. 'of/' .. member)) do
    for _, id in ipairs(S.held(claimant)) do
        local raw = S.raw(id)
        if raw:byte(1) ~= CLAIMED then -- who is asked to stop has no plain record
            local j = S.decode(raw)
            if j.ca then
                asked[#asked + 1] = { id, j.f }
            end
        end
    end
end
S.tell_children(LIMIT)
S.finish()
-- A policy that evicts would lose jobs: it may have been set since we were opened. Not everybody may ask.
local said = redis.pcall('INFO', 'memory')
local policy = type(said) == 'string' and said:match('maxmemory_policy:(%S+)') or ''
return S.answer({ m.n, NOW, raw and 0 or 1, lost, asked, epoch, rolled_back and 1 or 0, policy })
