-- Every statement of the PostgreSQL store. Rows are selected in one order everywhere: see sql_files.read_row.
--
-- A space's row is its guard. Its lock strengths are the guards of the port:
--   FOR KEY SHARE      grants: run together with all but edits
--   FOR NO KEY UPDATE  the lane: runs alone but for plain grants. Whatever frees an address is in the lane, and
--                      counts up the row's "frees"
--   FOR UPDATE         an edit: runs alone
-- A waiter for a row lock sees the row as it is when the lock is his; the rest of his statement sees what was committed
-- when the statement began. So what must not be stale (version, frees) is asked of the space's row itself.
-- A grant also asks the space's row whether anything in the space is due (its time is over by the database's clock): then
-- nothing is granted before the lane has removed it.
-- The ledger row is the counter of the log. It is locked last, so that its holder never waits for anybody.
-- A release locks the space, then its rows, then judges them, and deletes them by their addresses: in a join with
-- holding the order would be the planner's, who may still believe that the table is empty.
-- OFFSET 0 keeps the planner from making a join of a subquery, for the same reason.
-- An owner is looked up in two halves (state < 2, state >= 2), because each half has a partial index of its own.

-- :name grant
-- :cost O(k log n): k wishes, n holdings; two unique indexes probed a wish (and the keys', where there are any)
WITH guard AS MATERIALIZED (
    SELECT id, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us
    FROM space WHERE id = $1 AND version = $2 AND NOT is_due_v1($1) FOR KEY SHARE
), wish AS MATERIALIZED (
    SELECT network, first, coalesce(last, first) AS last, owner, coalesce(slot, '') AS slot, state, lasts_us, request,
           details, log_details, key, body
    FROM unnest($3::bigint[], $4::bytea[], $5::bytea[], $6::text[], $7::text[], $8::smallint[], $9::bigint[],
                $10::text[], $11::text[], $12::text[], $13::text[], $14::bytea[])
        AS wish (network, first, last, owner, slot, state, lasts_us, request, details, log_details, key, body)
), granted AS (
    INSERT INTO holding (space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details)
    SELECT guard.id, wish.network, wish.first, wish.last, wish.owner, wish.slot, coalesce(wish.state, 1),
           nextval('holding_generation'), guard.now_us, guard.now_us + wish.lasts_us, wish.request, wish.details
    FROM guard, wish WHERE coalesce((SELECT false FROM reply WHERE reply.key = wish.key), true)
    ORDER BY wish.first
    ON CONFLICT DO NOTHING
    RETURNING network, first, last, owner, slot, generation, since_us, until_us, request
), kept AS (
    INSERT INTO reply (key, body, at_us, space, network, first, last, generation, until_us, answer)
    SELECT wish.key, wish.body, granted.since_us, $1, granted.network, granted.first, granted.last, granted.generation,
           granted.until_us, wish.details::json ->> 'by'
    FROM granted JOIN wish USING (first) WHERE wish.key IS NOT NULL ORDER BY wish.key
), counted AS (
    UPDATE ledger SET seq = seq + (SELECT count(*) FROM granted) WHERE id = 1 RETURNING seq
), logged AS (
    INSERT INTO change (seq, at_us, verb, space, network, first, last, owner, slot, generation, request, details)
    SELECT counted.seq + 1 - row_number() OVER (), granted.since_us, 'grant', $1, granted.network,
           granted.first, granted.last, granted.owner, granted.slot, granted.generation, granted.request,
           coalesce(left(wish.log_details, -1) || ',"until_us":' || granted.until_us || '}', wish.log_details)
    FROM counted, granted JOIN wish USING (first)
)
SELECT first, generation, since_us, (SELECT seq FROM counted) AS seq FROM granted

-- :name grant_plain
-- :cost O(k log n): as grant, for wishes that are held from the start and have no key: what the log tells is what they say
WITH guard AS MATERIALIZED (
    SELECT id, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us
    FROM space WHERE id = $1 AND version = $2 AND NOT is_due_v1($1) FOR KEY SHARE
), granted AS (
    INSERT INTO holding (space, network, first, last, owner, slot, state, generation, since_us, details)
    SELECT guard.id, wish.network, wish.first, coalesce(wish.last, wish.first), wish.owner, coalesce(wish.slot, ''), 1,
           nextval('holding_generation'), guard.now_us, wish.details
    FROM guard, unnest($3::bigint[], $4::bytea[], $5::bytea[], $6::text[], $7::text[], $8::text[])
         AS wish (network, first, last, owner, slot, details)
    ORDER BY wish.first
    ON CONFLICT DO NOTHING
    RETURNING network, first, last, owner, slot, generation, since_us, details
), counted AS (
    UPDATE ledger SET seq = seq + (SELECT count(*) FROM granted) WHERE id = 1 RETURNING seq
), logged AS (
    INSERT INTO change (seq, at_us, verb, space, network, first, last, owner, slot, generation, details)
    SELECT counted.seq + 1 - row_number() OVER (), granted.since_us, 'grant', $1, granted.network,
           granted.first, granted.last, granted.owner, granted.slot, granted.generation, granted.details
    FROM counted, granted
)
SELECT first, generation, since_us, (SELECT seq FROM counted) AS seq FROM granted

-- :name grant_unless_freed
-- :cost O(k log n): as grant, in the lane; fails as a whole (division by zero) where it cannot be all
WITH guard AS MATERIALIZED (
    SELECT id, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us
    FROM space WHERE id = $1 AND version = $2 AND frees = $3 AND NOT is_due_v1($1) FOR NO KEY UPDATE
), wish AS MATERIALIZED (
    SELECT network, first, coalesce(last, first) AS last, owner, coalesce(slot, '') AS slot, state, lasts_us, request,
           details, log_details, key, body, number
    FROM unnest($4::bigint[], $5::bytea[], $6::bytea[], $7::text[], $8::text[], $9::smallint[], $10::bigint[],
                $11::text[], $12::text[], $13::text[], $14::text[], $15::bytea[]) WITH ORDINALITY
        AS wish (network, first, last, owner, slot, state, lasts_us, request, details, log_details, key, body, number)
), granted AS (
    INSERT INTO holding (space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details)
    SELECT guard.id, wish.network, wish.first, wish.last, wish.owner, wish.slot, coalesce(wish.state, 1),
           nextval('holding_generation'), guard.now_us, guard.now_us + wish.lasts_us, wish.request, wish.details
    FROM guard, wish WHERE coalesce((SELECT false FROM reply WHERE reply.key = wish.key), true)
    ORDER BY wish.first
    ON CONFLICT DO NOTHING
    RETURNING first, generation, since_us, until_us
), kept AS (
    INSERT INTO reply (key, body, at_us, space, network, first, last, generation, until_us, answer)
    SELECT wish.key, wish.body, granted.since_us, $1, wish.network, wish.first, wish.last, granted.generation,
           granted.until_us, wish.details::json ->> 'by'
    FROM granted JOIN wish USING (first) WHERE wish.key IS NOT NULL ORDER BY wish.key
), counted AS (
    UPDATE ledger SET seq = seq + (SELECT count(*) FROM granted)
    WHERE id = 1 AND 1 / (CASE WHEN (SELECT count(*) FROM granted) = cardinality($5::bytea[]) THEN 1 ELSE 0 END) = 1
    RETURNING seq - cardinality($5::bytea[]) AS before
), logged AS (
    INSERT INTO change (seq, at_us, verb, space, network, first, last, owner, slot, generation, request, details)
    SELECT counted.before + wish.number, granted.since_us, 'grant', $1, wish.network, wish.first, wish.last, wish.owner,
           wish.slot, granted.generation, wish.request,
           coalesce(left(wish.log_details, -1) || ',"until_us":' || granted.until_us || '}', wish.log_details)
    FROM counted, granted JOIN wish USING (first)
)
SELECT first, generation, since_us, (SELECT before FROM counted) + cardinality($5::bytea[]) AS seq FROM granted

-- :name insert_holdings
-- :cost O(k log n): k wishes; both indexes and the neighbour below probed a wish
WITH granted AS (
    INSERT INTO holding (space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details)
    SELECT $1, wish.network, wish.first, coalesce(wish.last, wish.first), wish.owner, coalesce(wish.slot, ''),
           coalesce(wish.state, 1),
           nextval('holding_generation'), now.us, now.us + wish.lasts_us, wish.request, wish.details
    FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us OFFSET 0) AS now,
         unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::text[], $6::text[], $7::smallint[], $8::bigint[],
                $9::text[], $10::text[])
         AS wish (network, first, last, owner, slot, state, lasts_us, request, details)
    WHERE NOT coalesce((SELECT near.last >= wish.first FROM holding AS near
                        WHERE near.space = $1 AND near.first <= coalesce(wish.last, wish.first)
                        ORDER BY near.first DESC LIMIT 1), false)
    ORDER BY wish.first
    ON CONFLICT DO NOTHING
    RETURNING first, owner, slot, generation, since_us
)
SELECT first, owner, slot, generation, since_us FROM granted

-- :name release
-- :cost O(k log n): k tickets
WITH guard AS (
    UPDATE space SET frees = frees + 1 WHERE id = $1 AND version = coalesce($8, version) RETURNING id
), ticket AS MATERIALIZED (
    SELECT * FROM unnest($2::bigint[], $3::bytea[], $4::text[], $5::bigint[], $6::text[], $7::boolean[], $9::text[])
        AS ticket (network, first, owner, generation, request, remember, asker) ORDER BY first
), gone AS MATERIALIZED (
    SELECT DISTINCT ON (held.first) held.*, ticket.request AS by_request, ticket.remember, ticket.asker
    FROM guard, ticket CROSS JOIN LATERAL (
        SELECT * FROM holding WHERE space = guard.id AND first = ticket.first OFFSET 0 FOR UPDATE) AS held
    WHERE held.network = ticket.network AND held.owner = ticket.owner AND held.state <> 3
      AND (ticket.generation IS NULL OR held.generation = ticket.generation)
), ended AS (
    DELETE FROM holding WHERE space = $1 AND first = ANY (ARRAY(SELECT first FROM gone))
), remembered AS (
    INSERT INTO former (network, owner, slot, first) SELECT network, owner, slot, first FROM gone WHERE remember
    ON CONFLICT (network, owner, slot) DO UPDATE SET first = excluded.first
), counted AS (
    UPDATE ledger SET seq = seq + (SELECT count(*) FROM gone) FROM guard WHERE ledger.id = 1 RETURNING seq
), logged AS (
    INSERT INTO change (seq, at_us, verb, space, network, first, last, owner, slot, generation, request, details)
    SELECT counted.seq + 1 - row_number() OVER (),
           (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 'release', gone.space, gone.network, gone.first,
           gone.last, gone.owner, gone.slot, gone.generation, gone.by_request,
           '{"since_us":' || gone.since_us || coalesce(',"request":' || to_json(gone.request)::text, '')
               || coalesce(',"began_by":' || (gone.details::json -> 'by')::text, '')
               || coalesce(',"by":' || gone.asker, '') || '}'
    FROM counted, gone
)
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details FROM gone

-- :name release_to_cool
-- :cost O(k log n): as release; those whose ticket says so stay in the way, cooling, by the kernel's rule cooling_us
WITH guard AS (
    UPDATE space SET frees = frees + 1 WHERE id = $1 AND version = coalesce($8, version)
    RETURNING id, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us
), ticket AS MATERIALIZED (
    SELECT * FROM unnest($2::bigint[], $3::bytea[], $4::text[], $5::bigint[], $6::text[], $7::boolean[], $9::text[],
                         $10::bigint[])
        AS ticket (network, first, owner, generation, request, remember, asker, cooling_us) ORDER BY first
), gone AS MATERIALIZED (
    SELECT DISTINCT ON (held.first) held.*, ticket.request AS by_request, ticket.remember, ticket.asker,
           CASE WHEN held.state > 0 AND ticket.cooling_us > 0 THEN guard.now_us + ticket.cooling_us END AS cools_until,
           guard.now_us
    FROM guard, ticket CROSS JOIN LATERAL (
        SELECT * FROM holding WHERE space = guard.id AND first = ticket.first OFFSET 0 FOR UPDATE) AS held
    WHERE held.network = ticket.network AND held.owner = ticket.owner AND held.state <> 3
      AND (ticket.generation IS NULL OR held.generation = ticket.generation)
), ended AS (
    DELETE FROM holding WHERE space = $1 AND first = ANY (ARRAY(SELECT first FROM gone WHERE cools_until IS NULL))
), cooled AS (
    INSERT INTO holding (space, network, first, last, owner, slot, state, generation, since_us, until_us)
    SELECT space, network, first, last, owner, slot, 3, generation, since_us, cools_until
    FROM gone WHERE cools_until IS NOT NULL
    ON CONFLICT (space, first) DO UPDATE SET state = 3, until_us = excluded.until_us
), remembered AS (
    INSERT INTO former (network, owner, slot, first) SELECT network, owner, slot, first FROM gone WHERE remember
    ON CONFLICT (network, owner, slot) DO UPDATE SET first = excluded.first
), counted AS (
    UPDATE ledger SET seq = seq + (SELECT count(*) FROM gone) FROM guard WHERE ledger.id = 1 RETURNING seq
), logged AS (
    INSERT INTO change (seq, at_us, verb, space, network, first, last, owner, slot, generation, request, details)
    SELECT counted.seq + 1 - row_number() OVER (), gone.now_us,
           CASE WHEN gone.cools_until IS NULL THEN 'release' ELSE 'cool' END, gone.space, gone.network, gone.first,
           gone.last, gone.owner, gone.slot, gone.generation, gone.by_request,
           '{"since_us":' || gone.since_us || coalesce(',"request":' || to_json(gone.request)::text, '')
               || coalesce(',"began_by":' || (gone.details::json -> 'by')::text, '')
               || coalesce(',"until_us":' || gone.cools_until, '') || coalesce(',"by":' || gone.asker, '') || '}'
    FROM counted, gone
)
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details FROM gone

-- :name rewrite_unchanged
-- :cost O(k log n): k rows; the rows of a group are written only if all of them are as they were seen
WITH guard AS MATERIALIZED (
    SELECT id FROM space WHERE id = $1 AND version = $2 FOR NO KEY UPDATE
), wanted AS MATERIALIZED (
    SELECT * FROM unnest($3::integer[], $4::integer[], $5::bytea[], $6::bigint[], $7::smallint[], $8::bigint[], $9::text[],
                         $10::smallint[], $11::bigint[], $12::text[], $13::text[], $14::text[], $15::text[])
        WITH ORDINALITY
        AS wanted (part, size, first, generation, seen_state, seen_until_us, seen_details, state, until_us, details,
                   verb, request, log_details, number)
    ORDER BY first
), found AS MATERIALIZED (
    SELECT wanted.*, held.network, held.last, held.owner, held.slot, held.since_us,
           count(*) OVER (PARTITION BY wanted.part) AS unchanged
    FROM guard, wanted CROSS JOIN LATERAL (
        SELECT * FROM holding WHERE space = guard.id AND first = wanted.first OFFSET 0 FOR UPDATE) AS held
    WHERE held.generation = wanted.generation AND held.state = wanted.seen_state
      AND held.until_us IS NOT DISTINCT FROM wanted.seen_until_us
      AND held.details IS NOT DISTINCT FROM wanted.seen_details
), ready AS MATERIALIZED (
    SELECT * FROM found WHERE unchanged = size
), written AS (
    INSERT INTO holding (space, network, first, last, owner, slot, state, generation, since_us, until_us, details)
    SELECT $1, network, first, last, owner, slot, state, generation, since_us, until_us, details FROM ready
    ON CONFLICT (space, first)
        DO UPDATE SET state = excluded.state, until_us = excluded.until_us, details = excluded.details
), counted AS (
    UPDATE ledger SET seq = seq + (SELECT count(*) FROM ready) WHERE id = 1 AND EXISTS (SELECT FROM ready)
    RETURNING seq
), logged AS (
    INSERT INTO change (seq, at_us, verb, space, network, first, last, owner, slot, generation, request, details)
    SELECT counted.seq + 1 - row_number() OVER (ORDER BY ready.number DESC),
           (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, ready.verb, $1, ready.network, ready.first, ready.last,
           ready.owner, ready.slot, ready.generation, ready.request, ready.log_details
    FROM counted, ready
)
SELECT ready.part, (SELECT seq FROM counted) AS seq FROM guard LEFT JOIN ready ON true

-- :name end_sessions
-- :cost O(sessions of the database server)
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = ANY ($1::text[])

-- :name rows_at
-- :cost O(k log n)
SELECT space, network, held.first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM unnest($2::bytea[]) AS asked (first)
CROSS JOIN LATERAL (SELECT * FROM holding WHERE holding.space = $1 AND holding.first = asked.first OFFSET 0) AS held

-- :name lock_rows_at
-- :cost O(k log n)
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM holding WHERE space = $1 AND first = ANY ($2::bytea[]) ORDER BY first FOR UPDATE

-- :name rows_for
-- :cost O(k log n)
SELECT held.space, held.network, held.first, held.last, held.owner, held.slot, held.state, held.generation,
       held.since_us, held.until_us, held.request, held.details
FROM unnest($1::bigint[], $2::text[], $3::text[]) AS asked (network, owner, slot)
CROSS JOIN LATERAL (
    SELECT * FROM holding
    WHERE holding.owner = asked.owner AND holding.network = asked.network AND holding.slot = asked.slot AND state < 2
    OFFSET 0) AS held

-- :name rows_near
-- :cost O(k log n): the nearest holding that begins at or below each position
SELECT held.space, held.network, held.first, held.last, held.owner, held.slot, held.state, held.generation,
       held.since_us, held.until_us, held.request, held.details
FROM unnest($2::bytea[]) AS asked (last)
CROSS JOIN LATERAL (
    SELECT * FROM holding WHERE holding.space = $1 AND holding.first <= asked.last
    ORDER BY holding.first DESC LIMIT 1) AS held

-- :name rows_of
-- :cost O(log n + answer)
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM holding WHERE owner = ANY ($1::text[]) AND state < 2
UNION ALL
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM holding WHERE owner = ANY ($1::text[]) AND state >= 2

-- :name rows_from
-- :cost O(log n + limit)
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM holding
WHERE space = $1 AND first <= $3 AND first >= coalesce((
    SELECT near.first FROM (
        SELECT first, last FROM holding WHERE space = $1 AND first <= $2 ORDER BY first DESC LIMIT 1) AS near
    WHERE near.last >= $2), $2)
ORDER BY first LIMIT $4

-- :name rows_from_of_network
-- :cost O(log n + rows of other networks in between)
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM holding
WHERE space = $1 AND first <= $3 AND network = $5 AND first >= coalesce((
    SELECT near.first FROM (
        SELECT first, last FROM holding WHERE space = $1 AND first <= $2 ORDER BY first DESC LIMIT 1) AS near
    WHERE near.last >= $2), $2)
ORDER BY first LIMIT $4

-- :name rows_after
-- :cost O(log n + limit)
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM holding WHERE space = $1 AND first > $2 ORDER BY first LIMIT $3

-- :name spans
-- :cost O(log n + answer)
SELECT first, last FROM holding
WHERE space = $1 AND first <= $3 AND first >= coalesce((
    SELECT near.first FROM holding AS near WHERE near.space = $1 AND near.first <= $2
    ORDER BY near.first DESC LIMIT 1), $2)
ORDER BY first

-- :name delete_holdings
-- :cost O(k log n)
DELETE FROM holding WHERE space = $1 AND first = ANY ($2::bytea[])

-- :name rewrite_holding
-- :cost O(log n)
UPDATE holding SET owner = $3, slot = $4, state = $5, since_us = $6, until_us = $7, request = $8, details = $9,
                   generation = $10
WHERE space = $1 AND first = $2

-- :name remember
-- :cost O(log f): f owners remembered
INSERT INTO former (network, owner, slot, first) VALUES ($1, $2, $3, $4)
ON CONFLICT (network, owner, slot) DO UPDATE SET first = excluded.first

-- :name former
-- :cost O(log f)
SELECT first FROM former WHERE network = $1 AND owner = $2 AND slot = $3

-- :name forget_networks
-- :cost O(owners remembered of the networks)
DELETE FROM former WHERE network = ANY ($1::bigint[])

-- :name counters
-- :cost O(1)
SELECT seq, oldest FROM ledger WHERE id = 1

-- :name try_log
-- :cost O(log c); it is rolled back, and no change has a number below one
INSERT INTO change (seq, at_us, verb) VALUES ($1, 0, 'try')

-- :name log
-- :cost O(e): e entries; the counter is locked from here to the commit
WITH counted AS (
    UPDATE ledger SET seq = seq + cardinality($1::text[]) WHERE id = 1 RETURNING seq
), logged AS (
    INSERT INTO change (seq, at_us, verb, space, network, first, last, owner, slot, generation, request, details)
    SELECT counted.seq - cardinality($1::text[]) + entry.number,
           (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
           entry.verb, entry.space, entry.network, entry.first, entry.last, entry.owner, entry.slot, entry.generation,
           entry.request, entry.details
    FROM counted, unnest($1::text[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[], $6::text[], $7::text[],
                         $8::bigint[], $9::text[], $10::text[]) WITH ORDINALITY
         AS entry (verb, space, network, first, last, owner, slot, generation, request, details, number)
)
SELECT seq FROM counted

-- :name changes
-- :cost O(log c + limit): c changes kept
SELECT seq, at_us, verb, space, network, first, last, owner, slot, generation, request, details
FROM change WHERE seq > $1 ORDER BY seq LIMIT $2

-- :name changes_of_space
-- :cost O(log c + changes behind the cursor)
SELECT seq, at_us, verb, space, network, first, last, owner, slot, generation, request, details
FROM change WHERE seq > $1 AND space = $3 ORDER BY seq LIMIT $2

-- :name effects
-- :cost O(log c + changes behind the cursor), which are at most $3
SELECT ledger.seq AS upto, ledger.oldest, (SELECT frees FROM space WHERE id = $1) AS frees, is_due_v1($1) AS due,
       step.seq, step.takes, step.first, step.last
FROM ledger LEFT JOIN LATERAL (
    SELECT change.seq, change.verb = 'grant' AS takes, change.first, change.last FROM change
    WHERE ledger.seq <= $2::bigint + $3::bigint  -- in here, so that a cursor too far behind reads nothing
      AND change.seq > $2 AND change.seq <= $2 + $3 AND change.space = $1 AND change.verb IN ('grant', 'release')
    ORDER BY change.seq
) AS step ON true
WHERE ledger.id = 1
ORDER BY step.seq

-- :name trim_changes
-- :cost O(changes dropped)
DELETE FROM change WHERE seq < $1

-- :name set_oldest
-- :cost O(1)
UPDATE ledger SET oldest = greatest(oldest, $1) WHERE id = 1

-- :name open_lane
-- :cost O(log c + changes behind the cursor), which are at most $3
SELECT version, frees, upto, oldest, due, seq, takes, first, last FROM open_lane_v2($1, $2, $3)

-- :name guard_grant
-- :cost O(k log s): s spaces
SELECT id, version FROM space WHERE id = ANY ($1::bigint[]) ORDER BY id FOR KEY SHARE

-- :name guard_lane
-- :cost O(k log s)
SELECT id, version FROM space WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE

-- :name guard_edit
-- :cost O(k log s)
SELECT id, version FROM space WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE

-- :name versions
-- :cost O(log s)
SELECT version FROM space WHERE id = $1

-- :name standing
-- :cost O(log s + log d): what a grant was refused under
SELECT version, is_due_v1(id) AS due FROM space WHERE id = $1

-- :name count_free
-- :cost O(log s)
UPDATE space SET frees = frees + 1 WHERE id = $1

-- :name bump
-- :cost O(log s)
UPDATE space SET version = version + 1 WHERE id = $1

-- :name now_us
-- :cost O(1)
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint

-- :name is_due
-- :cost O(log d): d holdings with a deadline
SELECT is_due_v1($1)

-- :name overdue
-- :cost O(log d + limit): d holdings with a deadline
SELECT space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details
FROM holding WHERE space = $1 AND until_us <= (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
ORDER BY until_us LIMIT $2 FOR UPDATE

-- :name waiters
-- :cost O(log q + answer): q waiting claims
SELECT ticket, space, network, owner, slot, since_us, until_us, document, lasts_us
FROM waiting WHERE space = $1 ORDER BY ticket

-- :name somebody_waits
-- :cost O(log q)
SELECT true FROM waiting WHERE space = $1 LIMIT 1

-- :name join
-- :cost O(log q)
INSERT INTO waiting (ticket, space, network, owner, slot, since_us, until_us, document, lasts_us)
SELECT coalesce($1::bigint, nextval('waiting_ticket')), $2, $3, $4, $5, coalesce($6, now.us), now.us + $7, $8, $7
FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us) AS now
RETURNING ticket, space, network, owner, slot, since_us, until_us, document, lasts_us

-- :name linger
-- :cost O(k log q)
UPDATE waiting SET until_us = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + $2, lasts_us = $2
WHERE ticket = ANY ($1::bigint[])

-- :name delete_waiters
-- :cost O(k log q)
DELETE FROM waiting WHERE ticket = ANY ($1::bigint[])

-- :name delete_waiters_of_space
-- :cost O(log q + answer)
DELETE FROM waiting WHERE space = $1

-- :name mark_queued
-- :cost O(log s)
UPDATE space SET queued = $2, version = version + 1 WHERE id = $1 AND queued <> $2

-- :name lock_papers
-- :cost O(k log p): p papers
SELECT kind, name, revision, document FROM paper WHERE kind = $1 AND name = ANY ($2::text[]) ORDER BY name FOR UPDATE

-- :name share_papers
-- :cost O(k log p)
SELECT kind, name, revision, document FROM paper WHERE kind = $1 AND name = ANY ($2::text[]) ORDER BY name FOR SHARE

-- :name papers
-- :cost O(log p + limit)
SELECT kind, name, revision, document FROM paper WHERE kind = $1 AND name >= $2 AND name < $3 AND name > $4
ORDER BY name LIMIT $5

-- :name insert_papers
-- :cost O(k log p): in order of kind and name, as they are locked
INSERT INTO paper (kind, name, revision, document)
SELECT kind, name, revision, document FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[])
     AS new (kind, name, revision, document)
ORDER BY kind COLLATE "C", name COLLATE "C"
ON CONFLICT DO NOTHING RETURNING kind, name

-- :name put_papers
-- :cost O(k log p)
INSERT INTO paper (kind, name, revision, document)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[])
ON CONFLICT (kind, name) DO UPDATE SET revision = excluded.revision, document = excluded.document

-- :name delete_papers
-- :cost O(k log p)
DELETE FROM paper WHERE kind = $1 AND name = ANY ($2::text[])

-- :name replies
-- :cost O(k log r): r answers kept
SELECT reply.key, body, at_us, space, network, first, last, generation, until_us, answer
FROM unnest($1::text[]) AS asked (key)
CROSS JOIN LATERAL (SELECT * FROM reply WHERE reply.key = asked.key OFFSET 0) AS reply

-- :name keep_replies
-- :cost O(k log r)
INSERT INTO reply (key, body, at_us, space, network, first, last, generation, until_us, answer)
SELECT key, body, coalesce(nullif(at_us, 0), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), space, network,
       first, last, generation, until_us, answer
FROM unnest($1::text[], $2::bytea[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[], $8::bigint[],
            $9::bigint[], $10::text[])
     AS kept (key, body, at_us, space, network, first, last, generation, until_us, answer)
ORDER BY key

-- :name forget_replies
-- :cost O(answers dropped)
WITH gone AS (
    DELETE FROM reply WHERE key IN (
        SELECT key FROM reply WHERE at_us < (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - $1)
        LIMIT $2)
    RETURNING 1
)
SELECT count(*) FROM gone

-- :name forget_oldest_replies
-- :cost O(r log k): all r answers are looked at, and the k oldest kept in mind; the index by age has no order
WITH gone AS (
    DELETE FROM reply WHERE key IN (SELECT key FROM reply ORDER BY at_us LIMIT $1) RETURNING 1
)
SELECT count(*) FROM gone

-- :name insert_space
-- :cost O(log s)
INSERT INTO space (name) VALUES ($1) ON CONFLICT DO NOTHING RETURNING id

-- :name rename_space
-- :cost O(log s)
UPDATE space SET name = $2 WHERE id = $1 AND NOT EXISTS (SELECT FROM space WHERE name = $2) RETURNING id

-- :name delete_space
-- :cost O(log s)
DELETE FROM space WHERE id = $1

-- :name spaces
-- :cost O(s)
SELECT id, name FROM space ORDER BY name

-- :name space_named
-- :cost O(log s)
SELECT id FROM space WHERE name = $1

-- :name spaces_by_id
-- :cost O(k log s)
SELECT id, name, version, queued FROM space WHERE id = ANY ($1::bigint[]) ORDER BY id

-- :name networks_of_spaces
-- :cost O(log w + answer): w networks
SELECT space, id, name, document FROM network WHERE space = ANY ($1::bigint[]) ORDER BY id

-- :name take_network_number
-- :cost O(1)
SELECT nextval('network_number')

-- :name park_networks
-- :cost O(k log w): w networks; out of the way of others that take their names in the same transaction
UPDATE network SET name = chr(1) || id WHERE id = ANY ($1::bigint[])

-- :name put_network
-- :cost O(log w)
INSERT INTO network (id, name, space, document) VALUES ($1, $2, $3, $4)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, document = excluded.document

-- :name delete_networks
-- :cost O(k log w)
DELETE FROM network WHERE id = ANY ($1::bigint[])

-- :name locate_networks
-- :cost O(k log w)
SELECT name, space FROM network WHERE name = ANY ($1::text[])

-- :name changes_at
-- :cost O(k log c + k limit): c changes kept
SELECT found.seq, found.at_us, found.verb, found.space, found.network, found.first, found.last, found.owner,
       found.slot, found.generation, found.request, found.details
FROM unnest($1::bytea[]) AS place (first) CROSS JOIN LATERAL (
    SELECT * FROM change WHERE change.first = place.first AND change.verb <> 'grant' AND change.seq > $2
    ORDER BY change.seq LIMIT $3
) AS found
ORDER BY found.seq LIMIT $3

-- :name hold_archive
-- :cost O(1): waits for whoever moves changes into the archive of this schema, until the transaction ends
SELECT pg_advisory_xact_lock($1, 'archive'::regclass::oid::integer)

-- :name try_archive
-- :cost O(1): as hold_archive, but waits for nobody
SELECT pg_try_advisory_xact_lock($1, 'archive'::regclass::oid::integer)

-- :name insert_archive_page
-- :cost O(log a + bytes + places): a pages of the archive
INSERT INTO archive (first_seq, last_seq, first_us, last_us, body, places) VALUES ($1, $2, $3, $4, $5, $6)

-- :name archive_page_after
-- :cost O(log a + a page)
SELECT first_seq, last_seq, first_us, last_us, body FROM archive WHERE last_seq > $1 ORDER BY last_seq LIMIT 1

-- :name archive_begins
-- :cost O(log a): the number behind which changes are kept, in the archive or in the log
SELECT coalesce((SELECT first_seq - 1 FROM archive ORDER BY last_seq LIMIT 1), oldest) FROM ledger WHERE id = 1

-- :name archive_pages_at
-- :cost O(k log places + answer): k marks
SELECT last_seq FROM archive_pages_v1($1) WHERE last_seq > $2 ORDER BY last_seq

-- :name delete_archive_pages
-- :cost O(pages dropped)
DELETE FROM archive WHERE last_seq < $1

-- :name delete_archive_page
-- :cost O(log a)
DELETE FROM archive WHERE last_seq = $1

-- :name size
-- :cost O(r + files): r answers kept are counted, and the files of all tables and indexes asked for their size
SELECT seq, oldest, coalesce((SELECT first_seq - 1 FROM archive ORDER BY last_seq LIMIT 1), oldest),
       (SELECT count(*) FROM reply),
       (SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
        WHERE relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'ledger'::regclass) AND relkind = 'r')
FROM ledger WHERE id = 1
