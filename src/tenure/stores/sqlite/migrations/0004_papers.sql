CREATE TABLE paper (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
