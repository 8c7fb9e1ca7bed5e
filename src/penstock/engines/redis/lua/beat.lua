--# goes on
--# include claimants
-- A.name, A.beat, A.lease, A.claimants: {answered, held fences}; the member's id, its record and the claimants' ids as
-- blobs. Answers {number, now, new, lost fences, {{id, fence}, ...} asked to stop}.

local member, info = S.blob(), S.blob()
local raw = call('HGET', P .. 'member', member)
local m = raw and unpack_(raw) or { si = NOW, ss = NOW, at = NOW }
if NOW - m.at > 2 * A.beat then -- model.member.steady_after_beat
    m.ss = NOW
end
m.name, m.info, m.bt, m.ls, m.at = A.name, info, A.beat, A.lease, NOW
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
return { S.number('beat'), NOW, raw and 0 or 1, lost, asked }
