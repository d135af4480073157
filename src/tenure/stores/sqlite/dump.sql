-- :name counters
-- :cost O(n + c): holdings and changes are counted
SELECT ledger.seq, oldest, generation, next_network,
       1 + coalesce((SELECT sqlite_sequence.seq FROM sqlite_sequence WHERE name = 'space'), 0),
       (SELECT count(*) FROM holding), (SELECT count(*) FROM change), (SELECT count(*) FROM archive)
FROM ledger WHERE id = 1

-- :name spaces
-- :cost O(s)
SELECT id, name, version + (queued <> 0) FROM space ORDER BY id

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
-- :cost O(r)
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

-- :name is_empty
-- :cost O(1)
SELECT seq = 0 AND NOT EXISTS (SELECT 1 FROM space) AND NOT EXISTS (SELECT 1 FROM holding)
       AND NOT EXISTS (SELECT 1 FROM former) AND NOT EXISTS (SELECT 1 FROM reply)
       AND NOT EXISTS (SELECT 1 FROM paper)
FROM ledger WHERE id = 1

-- :name indexes
-- :cost O(indexes)
SELECT name, sql FROM sqlite_schema
WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN ('holding', 'change') ORDER BY name

-- :name put_counters
-- :cost O(1)
UPDATE ledger SET seq = ?, oldest = ?, generation = ?, next_network = ? WHERE id = 1

-- :name drop_space_number
-- :cost O(1)
DELETE FROM sqlite_sequence WHERE name = 'space'

-- :name put_space_number
-- :cost O(1)
INSERT INTO sqlite_sequence (name, seq) VALUES ('space', ?)

-- :name put_spaces
-- :cost O(log s)
INSERT INTO space (id, name, version) VALUES (?, ?, ?)

-- :name put_networks
-- :cost O(log w)
INSERT INTO network (space, id, name, document) VALUES (?, ?, ?, ?)

-- :name put_holdings
-- :cost O(log n)
INSERT INTO holding (space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- :name put_formers
-- :cost O(log f)
INSERT INTO former (network, owner, slot, first) VALUES (?, ?, ?, ?)

-- :name put_replies
-- :cost O(log r)
INSERT INTO reply (key, body, at_us, space, network, first, last, generation, until_us, answer)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- :name put_papers
-- :cost O(log p)
INSERT INTO paper (kind, name, revision, document) VALUES (?, ?, ?, ?)

-- :name put_changes
-- :cost O(1): appended at the end
INSERT INTO change (seq, at_us, verb, space, network, first, last, owner, slot, generation, request, details)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- :name put_archive_pages
-- :cost O(log a)
INSERT INTO archive (first_seq, last_seq, first_us, last_us, body) VALUES (?, ?, ?, ?, ?)

-- :name put_archive_places
-- :cost O(log places)
INSERT INTO archive_place (place, last_seq) VALUES (?, ?)
