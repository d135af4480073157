-- What the writer's connection has of its own: rows that are inserted here are grants, and become what a grant writes.
-- Each row says which numbers it takes and under which version; the first that cannot have them undoes the statement.
-- One row of them looks whether the time of a holding in the space is over: what is due is removed before anything is granted.

CREATE TEMP VIEW granting (
    version, seq, space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details,
    log_details, key, body, answer, looks
) AS SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL;

CREATE TEMP TRIGGER grant INSTEAD OF INSERT ON granting WHEN new.seq IS NOT NULL BEGIN
    SELECT raise(ABORT, 'the ledger moved on') WHERE NOT EXISTS (
        SELECT 1 FROM ledger, space
        WHERE ledger.id = 1 AND ledger.seq = new.seq - 1 AND ledger.generation = new.generation - 1
          AND space.id = new.space AND space.version = new.version);
    SELECT raise(ABORT, 'something is due') WHERE new.looks AND EXISTS (
        SELECT 1 FROM holding INDEXED BY holding_due WHERE space = new.space AND until_us <= new.since_us);
    SELECT raise(ABORT, 'somebody is in the way') WHERE coalesce((
        SELECT held.last FROM holding AS held WHERE held.space = new.space AND held.first <= new.last
        ORDER BY held.first DESC LIMIT 1), x'') >= new.first;
    INSERT INTO holding (
        space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details)
    VALUES (
        new.space, new.network, new.first, new.last, new.owner, new.slot, new.state, new.generation, new.since_us,
        new.until_us, new.request, new.details);
    INSERT INTO change (seq, at_us, verb, space, network, first, last, owner, slot, generation, request, details)
    VALUES (
        new.seq, new.since_us, 'grant', new.space, new.network, new.first, new.last, new.owner, new.slot,
        new.generation, new.request, new.log_details);
    INSERT INTO reply (key, body, at_us, space, network, first, last, generation, until_us, answer)
    SELECT new.key, new.body, new.since_us, new.space, new.network, new.first, new.last, new.generation, new.until_us,
           new.answer
    WHERE new.key IS NOT NULL;
    UPDATE ledger SET seq = new.seq, generation = new.generation WHERE id = 1;
END;
