CREATE TABLE former (
    network INTEGER NOT NULL,
    owner TEXT NOT NULL,
    slot TEXT NOT NULL,
    first BLOB NOT NULL,
    PRIMARY KEY (network, owner, slot)
) WITHOUT ROWID;
