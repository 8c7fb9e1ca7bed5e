--# at need
--# include record
-- A job as a row for readers; rows.py has the order of its fields. The last failure is always in it.

function S.failure(raw)
    return unpack_(raw)
end

function S.show(id, j, whole, text)
    local failures, last = {}, false
    if j.fc then
        if whole then
            local all = call('HGETALL', P .. 'f/' .. id)
            for n = 2, #all, 2 do
                failures[#failures + 1] = S.failure(all[n])
            end
        end
        local raw = call('HGET', P .. 'f/' .. id, j.fc)
        last = raw and S.failure(raw) or false
    end
    local bulky = whole and not j.tomb
    return {
        id, j.t, j.q, j.p, j.st, j.k or false, j.g or '', j.s or 0, j.a or 0, j.ma or 0, j.cr or 0, j.lo or 0, j.sn or 0,
        j.su and 1 or 0, j.ca and 1 or 0, j.rp or 0, j.c or 0, j.d or false, j.r or false, j.cl or false,
        j.sa or false, j.e or false, j.x or false, j.m or '', j.f or false, j.sf or false, j.to or false,
        j.rt or false, j.co or 0, j.st == 0 and j.wf or 0, j.od or false, j.sc or false,
        j.uk or false, j.rr or false, j.fc or 0, j.pr or false,
        j.h or false, last, j.tomb and 1 or 0, j.b, j.as and 1 or 0,
        (bulky or text) and (j.bd or call('HGET', P .. 'body', id)) or false,
        bulky and (j.rs or call('HGET', P .. 'result', id)) or false, failures,
    }
end
