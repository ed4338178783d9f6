-- Tables of Pawl for SQLite. Times are microseconds since 1970 UTC.
-- Keys and resources are bytes: bind []byte, a TEXT is never equal to a BLOB.

-- One row a key. It outlives the hold: seq and seq_at order the holders.
CREATE TABLE IF NOT EXISTS pawl_locks (
  lock_key   BLOB    NOT NULL PRIMARY KEY,
  owner      TEXT    NOT NULL, -- of the last grant
  released   TEXT    NOT NULL, -- by whom the key was given back last
  token      INTEGER NOT NULL, -- of the last grant
  seq        INTEGER NOT NULL, -- of the last grant
  seq_at     INTEGER NOT NULL, -- when it was made, in ticks of 16 us
  expires_at INTEGER NOT NULL  -- of the last hold; negative: given back at that time
) WITHOUT ROWID;

-- The register of each protected resource: the greatest token admitted. Rows are never deleted.
CREATE TABLE IF NOT EXISTS pawl_fences (
  resource BLOB    NOT NULL PRIMARY KEY,
  origin   TEXT    NOT NULL DEFAULT '', -- the store whose order the token belongs to, empty: any may adopt it
  token    INTEGER NOT NULL
) WITHOUT ROWID;
