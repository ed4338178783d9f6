-- Tables of Pawl for MySQL and MariaDB. Times are microseconds since 1970 UTC, on the server's clock.
-- Keys and resources are bytes: bind []byte.

-- One row a key. It outlives the hold: seq and seq_at order the holders.
CREATE TABLE IF NOT EXISTS pawl_locks (
  lock_key   VARBINARY(640) NOT NULL PRIMARY KEY,
  owner      VARBINARY(255) NOT NULL, -- of the last grant
  released   VARBINARY(255) NOT NULL, -- by whom the key was given back last
  token      BIGINT         NOT NULL, -- of the last grant
  seq        BIGINT         NOT NULL, -- of the last grant
  seq_at     BIGINT         NOT NULL, -- when it was made, in ticks of 16 us
  expires_at BIGINT         NOT NULL  -- of the last hold; negative: given back at that time
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The register of each protected resource: the greatest token admitted. Rows are never deleted.
CREATE TABLE IF NOT EXISTS pawl_fences (
  resource VARBINARY(640) NOT NULL PRIMARY KEY,
  origin   VARBINARY(255) NOT NULL DEFAULT '', -- the store whose order the token belongs to, empty: any may adopt it
  token    BIGINT         NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
