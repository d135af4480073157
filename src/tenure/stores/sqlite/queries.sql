-- Every statement of the SQLite store. Rows are selected in one order everywhere: see sql_files.read_row.
--
-- CROSS JOIN fixes the order of a join, and INDEXED BY the way to a row, so that no table that grows is scanned.
-- Conditions that always hold (at_us >= 0, last_seq > 0) turn a scan along an index into a search, as tests want it.

-- :name version_of
-- :cost O(log s): s spaces
SELECT version FROM space WHERE id = ?

-- :name bump
-- :cost O(log s)
UPDATE space SET version = version + 1 WHERE id = ?

-- :name insert_holding
-- :cost O(log n): n holdings; two unique indexes probed
INSERT INTO holding (space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING

-- :name grant_holdings
-- :cost O(log n) a row: the nearest holding below is probed, and two unique indexes; see bulk_statements.py for more rows
INSERT INTO holding (space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details)
SELECT * FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)) AS wish
WHERE coalesce((
    SELECT held.last FROM holding AS held WHERE held.space = wish.column1 AND held.first <= wish.column4
    ORDER BY held.first DESC LIMIT 1), x'') < wish.column3
ON CONFLICT DO NOTHING

-- :name grant_at_once
-- :cost O(log n) a row, as grant_holdings; see grants.sql for what it writes, and grants.py for more rows
INSERT INTO granting (
    version, seq, space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details,
    log_details, key, body, answer, looks)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- :name row_at
-- :cost O(log n)
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM holding WHERE space = ? AND first = ?

-- :name row_for
-- :cost O(log n)
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM holding WHERE owner = ? AND network = ? AND slot = ? AND state < 2

-- :name rows_for
-- :cost O(k log n): k claims, as a JSON array of owner, network and slot
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM json_each(?) AS claim CROSS JOIN holding
WHERE owner = json_extract(claim.value, '$[0]') AND network = json_extract(claim.value, '$[1]')
  AND slot = json_extract(claim.value, '$[2]') AND state < 2

-- :name row_below
-- :cost O(log n): the nearest holding that begins at or below a position
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM holding WHERE space = ? AND first <= ? ORDER BY first DESC LIMIT 1

-- :name rows_from
-- :cost O(log n + limit)
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM holding WHERE space = ? AND first >= ? AND first <= ? ORDER BY first LIMIT ?

-- :name rows_from_of_network
-- :cost O(log n + rows of other networks in between)
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM holding WHERE space = ? AND first >= ? AND first <= ? AND network = ? ORDER BY first LIMIT ?

-- :name rows_after
-- :cost O(log n + limit)
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM holding WHERE space = ? AND first > ? ORDER BY first LIMIT ?

-- :name rows_of_owner
-- :cost O(log n + answer)
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM holding WHERE owner = ?1 AND state < 2
UNION ALL
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM holding WHERE owner = ?1 AND state >= 2

-- :name spans
-- :cost O(log n + answer)
SELECT first, last FROM holding WHERE space = ? AND first >= ? AND first <= ? ORDER BY first

-- :name delete_holding
-- :cost O(log n)
DELETE FROM holding WHERE space = ? AND first = ?

-- :name rewrite_holding
-- :cost O(log n)
UPDATE holding SET owner = ?, slot = ?, state = ?, since_us = ?, until_us = ?, request = ?, details = ?, generation = ?
WHERE space = ? AND first = ?

-- :name take_write_lock
-- :cost O(1): changes nothing, but nobody else can write until the transaction ends
UPDATE ledger SET seq = seq WHERE id = 1

-- :name counters
-- :cost O(1)
SELECT seq, oldest, generation FROM ledger WHERE id = 1

-- :name set_counters
-- :cost O(1)
UPDATE ledger SET seq = ?, generation = ? WHERE id = 1

-- :name insert_change
-- :cost O(1): appended at the end
INSERT INTO change (seq, at_us, verb, space, network, first, last, owner, slot, generation, request, details)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- :name changes
-- :cost O(log c + limit): c changes kept
SELECT seq, at_us, verb, space, network, first, last, owner, slot, generation, request, details
FROM change WHERE seq > ? ORDER BY seq LIMIT ?

-- :name changes_of_space
-- :cost O(log c + changes behind the cursor)
SELECT seq, at_us, verb, space, network, first, last, owner, slot, generation, request, details
FROM change WHERE seq > ? AND space = ? ORDER BY seq LIMIT ?

-- :name effects
-- :cost O(log c + changes behind the cursor)
SELECT seq, verb = 'grant', first, last FROM change
WHERE seq > ? AND space = ? AND verb IN ('grant', 'release') ORDER BY seq

-- :name trim_changes
-- :cost O(changes dropped)
DELETE FROM change WHERE seq < ?

-- :name set_oldest
-- :cost O(1)
UPDATE ledger SET oldest = max(oldest, ?) WHERE id = 1

-- :name remember
-- :cost O(log f): f owners remembered
INSERT INTO former (network, owner, slot, first) VALUES (?, ?, ?, ?)
ON CONFLICT (network, owner, slot) DO UPDATE SET first = excluded.first

-- :name former
-- :cost O(log f)
SELECT first FROM former WHERE network = ? AND owner = ? AND slot = ?

-- :name forget_network
-- :cost O(owners remembered of the network)
DELETE FROM former WHERE network = ?

-- :name reach
-- :cost O(log d): how far the log reaches, and whether a deadline in the space has passed, in one statement for the lane
SELECT seq, oldest, EXISTS (
    SELECT 1 FROM holding INDEXED BY holding_due WHERE space = ? AND until_us <= ?) FROM ledger WHERE id = 1

-- :name is_due
-- :cost O(log d): d holdings with a deadline
SELECT 1 FROM holding INDEXED BY holding_due WHERE space = ? AND until_us <= ? LIMIT 1

-- :name overdue
-- :cost O(log d + limit): d holdings with a deadline
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM holding WHERE space = ? AND until_us <= ? ORDER BY until_us LIMIT ?

-- :name waiters
-- :cost O(log q + answer): q waiting claims
SELECT ticket, space, network, owner, slot, since_us, until_us, document, lasts_us
FROM waiting WHERE space = ? ORDER BY ticket

-- :name somebody_waits
-- :cost O(log q)
SELECT 1 FROM waiting WHERE space = ? LIMIT 1

-- :name join
-- :cost O(log q)
INSERT INTO waiting (ticket, space, network, owner, slot, since_us, until_us, document, lasts_us)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
RETURNING ticket

-- :name linger
-- :cost O(log q)
UPDATE waiting SET until_us = ?, lasts_us = ? WHERE ticket = ?

-- :name delete_waiter
-- :cost O(log q)
DELETE FROM waiting WHERE ticket = ?

-- :name delete_waiters_of_space
-- :cost O(log q + answer)
DELETE FROM waiting WHERE space = ?

-- :name mark_queued
-- :cost O(log s)
UPDATE space SET queued = ?, version = version + 1 WHERE id = ? AND queued <> ?

-- :name paper
-- :cost O(log p): p papers
SELECT kind, name, revision, document FROM paper WHERE kind = ? AND name = ?

-- :name papers
-- :cost O(log p + limit)
SELECT kind, name, revision, document FROM paper WHERE kind = ? AND name >= ? AND name < ? AND name > ?
ORDER BY name LIMIT ?

-- :name insert_paper
-- :cost O(log p)
INSERT INTO paper (kind, name, revision, document) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING

-- :name put_paper
-- :cost O(log p)
INSERT INTO paper (kind, name, revision, document) VALUES (?, ?, ?, ?)
ON CONFLICT (kind, name) DO UPDATE SET revision = excluded.revision, document = excluded.document

-- :name delete_paper
-- :cost O(log p)
DELETE FROM paper WHERE kind = ? AND name = ?

-- :name replies
-- :cost O(k log r): k keys, as a JSON array
SELECT key, body, at_us, space, network, first, last, generation, until_us, answer FROM reply
WHERE key IN (SELECT value FROM json_each(?))

-- :name keep_reply
-- :cost O(log r)
INSERT INTO reply (key, body, at_us, space, network, first, last, generation, until_us, answer)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- :name forget_replies
-- :cost O(log r + answers dropped)
DELETE FROM reply WHERE key IN (SELECT key FROM reply WHERE at_us < ? LIMIT ?)

-- :name forget_oldest_replies
-- :cost O(log r + answers dropped)
DELETE FROM reply WHERE key IN (SELECT key FROM reply WHERE at_us >= 0 ORDER BY at_us LIMIT ?)

-- :name insert_space
-- :cost O(log s)
INSERT INTO space (name) VALUES (?) RETURNING id

-- :name space_named
-- :cost O(log s)
SELECT id FROM space WHERE name = ?

-- :name space_by_id
-- :cost O(log s)
SELECT name, version, queued FROM space WHERE id = ?

-- :name rename_space
-- :cost O(log s)
UPDATE OR IGNORE space SET name = ? WHERE id = ? RETURNING id

-- :name delete_space
-- :cost O(log s)
DELETE FROM space WHERE id = ?

-- :name spaces
-- :cost O(s)
SELECT id, name FROM space ORDER BY name

-- :name take_network_number
-- :cost O(1)
UPDATE ledger SET next_network = next_network + 1 WHERE id = 1 RETURNING next_network - 1

-- :name park_network
-- :cost O(log w): w networks; out of the way of another that takes its name in the same transaction
UPDATE network SET name = char(0) || id WHERE id = ?

-- :name put_network
-- :cost O(log w): w networks
INSERT INTO network (id, name, space, document) VALUES (?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, document = excluded.document

-- :name delete_network
-- :cost O(log w)
DELETE FROM network WHERE id = ?

-- :name networks_of_space
-- :cost O(log w + answer)
SELECT id, name, document FROM network WHERE space = ? ORDER BY id

-- :name locate_network
-- :cost O(log w)
SELECT space FROM network WHERE name = ?

-- :name look_around
-- :cost O(tables): one statement, so one moment
SELECT (SELECT user_version FROM pragma_user_version), count(*), coalesce(sum(name = 'ledger'), 0) FROM sqlite_schema

-- :name changes_at
-- :cost O(log c + limit): c changes kept
SELECT seq, at_us, verb, space, network, first, last, owner, slot, generation, request, details
FROM change WHERE first = ? AND verb <> 'grant' AND seq > ? ORDER BY seq LIMIT ?

-- :name insert_archive_page
-- :cost O(log a + bytes): a pages of the archive
INSERT INTO archive (first_seq, last_seq, first_us, last_us, body) VALUES (?, ?, ?, ?, ?)

-- :name insert_archive_place
-- :cost O(log places)
INSERT INTO archive_place (place, last_seq) VALUES (?, ?)

-- :name archive_page_after
-- :cost O(log a + a page)
SELECT first_seq, last_seq, first_us, last_us, body FROM archive WHERE last_seq > ? ORDER BY last_seq LIMIT 1

-- :name archive_begins
-- :cost O(log a): the number behind which changes are kept, in the archive or in the log
SELECT coalesce((SELECT first_seq - 1 FROM archive WHERE last_seq > 0 ORDER BY last_seq LIMIT 1), oldest) FROM ledger WHERE id = 1

-- :name archive_pages_at
-- :cost O(k log places + answer): k marks, as a JSON array
SELECT place.last_seq FROM json_each(?) AS mark CROSS JOIN archive_place AS place
WHERE place.place = mark.value AND place.last_seq > ?

-- :name delete_archive_pages
-- :cost O(pages dropped)
DELETE FROM archive WHERE last_seq < ?

-- :name delete_archive_places
-- :cost O(places): once for a trim, which is rare
DELETE FROM archive_place WHERE last_seq < ?

-- :name delete_archive_page
-- :cost O(log a)
DELETE FROM archive WHERE last_seq = ?

-- :name delete_places_of_page
-- :cost O(places): once for a trim, which is rare
DELETE FROM archive_place WHERE last_seq = ?

-- :name count_replies
-- :cost O(r): r answers kept; on the reader's connection, where nobody who writes waits for it
SELECT count(*) FROM reply
