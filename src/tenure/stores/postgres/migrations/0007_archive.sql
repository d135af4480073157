CREATE TABLE archive (
    last_seq bigint PRIMARY KEY,
    first_seq bigint NOT NULL,
    first_us bigint NOT NULL,
    last_us bigint NOT NULL,
    body bytea NOT NULL,
    places integer[] NOT NULL
);
ALTER TABLE archive ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX archive_place ON archive USING gin (places);
-- Finds the pages that tell of places. The planner knows nothing of the marks that will be asked for, and would rather
-- read all pages than take its chance with the index: here it must take the index.
CREATE FUNCTION archive_pages_v1(marks integer[])
RETURNS TABLE (last_seq bigint)
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
    SELECT archive.last_seq FROM archive WHERE archive.places && marks;
$$;
