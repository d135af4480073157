CREATE TABLE archive (
    last_seq INTEGER PRIMARY KEY,
    first_seq INTEGER NOT NULL,
    first_us INTEGER NOT NULL,
    last_us INTEGER NOT NULL,
    body BLOB NOT NULL
);

CREATE TABLE archive_place (
    place INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    PRIMARY KEY (place, last_seq)
) WITHOUT ROWID;
