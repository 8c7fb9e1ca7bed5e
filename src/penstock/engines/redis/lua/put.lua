--# adds
--# include core
-- A.schedules: {name, timing, job, missed, next_at}; A.by. A schedule is {t timing, j job, mi missed, n next_at,
-- l last_at, pa paused, v version}.

local changed = {}
for _, s in ipairs(A.schedules) do
    local raw = call('HGET', P .. 'schedule', s[1])
    local old = raw and unpack_(raw)
    if not old or old.t ~= s[2] or old.j ~= s[3] or old.mi ~= s[4] then
        local new = { t = s[2], j = s[3], mi = s[4], n = s[5], v = 1 }
        if old then
            new.l, new.pa, new.v = old.l, old.pa, old.v + 1
            if old.t == s[2] then
                new.n = old.n
            end
        end
        call('HSET', P .. 'schedule', s[1], pack(new))
        changed[#changed + 1] = s[1]
    end
end
if #changed > 0 then
    S.audit(A.by, 'put schedule', table.concat(changed, ', '))
end
return 0
