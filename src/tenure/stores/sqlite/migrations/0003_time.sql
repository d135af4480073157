ALTER TABLE space ADD COLUMN queued INTEGER NOT NULL DEFAULT 0;

CREATE TABLE waiting (
    ticket INTEGER PRIMARY KEY AUTOINCREMENT,
    space INTEGER NOT NULL,
    network INTEGER NOT NULL,
    owner TEXT NOT NULL,
    slot TEXT NOT NULL,
    since_us INTEGER NOT NULL,
    until_us INTEGER NOT NULL,
    document TEXT NOT NULL
);
CREATE UNIQUE INDEX waiting_claim ON waiting (network, owner, slot);
CREATE INDEX waiting_order ON waiting (space, ticket);

CREATE TABLE reply (
    key TEXT PRIMARY KEY,
    body BLOB NOT NULL,
    at_us INTEGER NOT NULL,
    space INTEGER,
    network INTEGER,
    first BLOB,
    last BLOB,
    generation INTEGER,
    until_us INTEGER,
    answer TEXT
) WITHOUT ROWID;
CREATE INDEX reply_age ON reply (at_us);

CREATE INDEX holding_due ON holding (space, until_us) WHERE until_us IS NOT NULL;
CREATE INDEX change_of_address ON change (first, seq) WHERE first IS NOT NULL AND verb <> 'grant';
