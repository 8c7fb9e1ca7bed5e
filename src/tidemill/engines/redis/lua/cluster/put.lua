--# goes on
--# include core
-- Stores schedules. One that is declared by code is left alone if newer code has declared it (`declared_at`).
-- Takes: A.schedules: {name, timing, job, missed, overlap, waiting, keep (nil: as the queue says), source, declared_at,
-- next_at} each; A.by.
-- Answers: 0. A schedule is stored as {t timing, j job, mi missed, o overlap, w waiting, k keep, so source, d declared_at,
-- n next_at, l last_at, li line, ke kept, pa paused, r retired_at, v version}.

local changed = {}
for _, s in ipairs(A.schedules) do
    local raw = call('HGET', P .. 'schedule', s[1])
    local old = raw and unpack_(raw)
    local new = {
        t = s[2], j = s[3], mi = s[4], o = s[5], w = s[6], k = s[7], so = s[8], d = s[9], n = s[10],
        v = NOW, -- no schedule of this name has had it before
    }
    local differs, back = true, false
    if old then
        differs = old.t ~= new.t or old.j ~= new.j or old.mi ~= new.mi or old.o ~= new.o or old.w ~= new.w
            or old.k ~= new.k or old.so ~= new.so
        back = old.r ~= nil
        new.l, new.li, new.ke, new.pa, new.v = old.l, old.li, old.ke, old.pa, old.v + (differs and 1 or 0)
        if old.t == new.t and not back then
            new.n = old.n
        end
    end
    -- else newer code has spoken
    if not (old and new.so ~= '' and new.d < old.d) then
        if differs or back or old.d ~= new.d then
            call('HSET', P .. 'schedule', s[1], pack(new))
        end
        if differs or back then
            changed[#changed + 1] = s[1]
        end
    end
end
if #changed > 0 then
    S.audit(A.by, 'put schedule', table.concat(changed, ', '))
end
return 0
