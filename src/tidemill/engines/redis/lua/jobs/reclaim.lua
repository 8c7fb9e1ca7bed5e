--# goes on
--# include claimants
-- Sweeps: takes back the jobs of members whose lease has lapsed, and forgets those members.
-- Takes: A.limit jobs; the sweeping member as a blob.
-- Answers: {1 if that member may sweep, jobs taken back, names of members forgotten}.

local raw = call('HGET', P .. 'member', S.blob())
local sweeper = raw and unpack_(raw)
-- model.member.may_sweep
if not sweeper or NOW - sweeper.at > 2 * sweeper.bt or NOW - sweeper.ss < sweeper.ls then
    return S.answer({ 0, 0, {} })
end
local all, silent, jobs, gone = call('HGETALL', P .. 'member'), {}, 0, {}
for n = 1, #all, 2 do
    local m = unpack_(all[n + 1])
    if NOW - m.at > m.ls then
        silent[#silent + 1] = { all[n], m }
    end
end
table.sort(silent, function(a, b) return a[2].at < b[2].at end)
for _, each in ipairs(silent) do
    for _, claimant in ipairs(call('SMEMBERS', P .. 'of/' .. each[1])) do
        if jobs < A.limit then
            jobs = jobs + S.empty(claimant, A.limit - jobs, function(id, j) S.lose(id, j, 'lost') end)
        end
    end
    if jobs >= A.limit then
        break
    end
    S.forget_member(each[1])
    gone[#gone + 1] = each[2].name
end
S.update_dependents(LIMIT)
S.finish()
return S.answer({ 1, jobs, gone })
