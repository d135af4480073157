-- :name counters
-- :cost O(n + c): holdings and changes are counted. Sequences are no part of the snapshot, but never behind it
SELECT seq, oldest,
       (SELECT last_value - (NOT is_called)::int FROM holding_generation),
       (SELECT last_value + is_called::int FROM network_number),
       (SELECT last_value + is_called::int FROM space_id_seq),
       (SELECT count(*) FROM holding), (SELECT count(*) FROM change), (SELECT count(*) FROM archive)
FROM ledger WHERE id = 1

-- :name spaces
-- :cost O(s)
SELECT id, name, version + queued::int FROM space ORDER BY id

-- :name networks
-- :cost O(w)
SELECT space, id, name, document FROM network ORDER BY id

-- :name holdings
-- :cost O(n)
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM holding ORDER BY space, first

-- :name formers
-- :cost O(f)
SELECT network, owner, slot, first FROM former ORDER BY network, owner, slot

-- :name replies
-- :cost O(r log r)
SELECT key, body, at_us, space, network, first, last, generation, until_us, answer FROM reply ORDER BY key

-- :name papers
-- :cost O(p)
SELECT kind, name, revision, document FROM paper ORDER BY kind, name

-- :name archive_pages
-- :cost O(a)
SELECT first_seq, last_seq, first_us, last_us, body FROM archive ORDER BY last_seq

-- :name changes
-- :cost O(c)
SELECT seq, at_us, verb, space, network, first, last, owner, slot, generation, request, details
FROM change ORDER BY seq

-- :name keep_others_out
-- :cost O(1)
LOCK TABLE ledger, space, network, holding, change, former, reply, paper, archive IN EXCLUSIVE MODE

-- :name is_empty
-- :cost O(1)
SELECT seq = 0 AND NOT EXISTS (SELECT FROM space) AND NOT EXISTS (SELECT FROM holding)
       AND NOT EXISTS (SELECT FROM former) AND NOT EXISTS (SELECT FROM reply)
       AND NOT EXISTS (SELECT FROM paper)
FROM ledger WHERE id = 1

-- :name put_counters
-- :cost O(1)
UPDATE ledger SET seq = $1, oldest = $2 WHERE id = 1
