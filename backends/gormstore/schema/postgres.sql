-- Tables of Pawl for PostgreSQL. Times are microseconds since 1970 UTC, on the server's clock.
-- Keys and resources are bytes: bind []byte, never a string (its backslashes would be read as escapes).
-- To read them: SELECT encode(lock_key, 'escape'), * FROM pawl_locks

-- One row a key. It outlives the hold: seq and seq_at order the holders.
-- Half of each page is left free, so that a renewal rewrites its row in place.
CREATE TABLE IF NOT EXISTS pawl_locks (
  lock_key   BYTEA            NOT NULL PRIMARY KEY,
  owner      TEXT COLLATE "C" NOT NULL, -- of the last grant
  released   TEXT COLLATE "C" NOT NULL, -- by whom the key was given back last
  token      BIGINT           NOT NULL, -- of the last grant
  seq        BIGINT           NOT NULL, -- of the last grant
  seq_at     BIGINT           NOT NULL, -- when it was made, in ticks of 16 us
  expires_at BIGINT           NOT NULL  -- of the last hold; negative: given back at that time
) WITH (fillfactor = 50);

-- The register of each protected resource: the greatest token admitted. Rows are never deleted.
CREATE TABLE IF NOT EXISTS pawl_fences (
  resource BYTEA            NOT NULL PRIMARY KEY,
  origin   TEXT COLLATE "C" NOT NULL DEFAULT '', -- the store whose order the token belongs to, empty: any may adopt it
  token    BIGINT           NOT NULL
) WITH (fillfactor = 50);
