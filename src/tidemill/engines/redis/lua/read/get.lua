--# reads
--# include show
-- Reads jobs by id.
-- Takes: A.count ids as blobs.
-- Answers: the records, nil for unknown ids and tombstones.

local answer = {}
for n = 1, A.count do
    local id = S.blob()
    local raw = call('HGET', P .. 'job', id)
    local j = raw and S.decode(raw)
    answer[n] = j and not j.tomb and S.show(id, j, true) or false
end
return answer
