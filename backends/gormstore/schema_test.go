package gormstore_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"github.com/pawl-go/pawl/backends/gormstore"
	"github.com/pawl-go/pawl/internal/servertest"
)

var update = flag.Bool("update", false, "write golden files")

// The schema is a promise: tables of an earlier release go on working. A change
// needs a migration, and then -update.
func TestSchema_IsWhatItWas(t *testing.T) {
	for _, dialect := range []string{"postgres", "mysql", "sqlite"} {
		got, err := gormstore.Schema(dialect)
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", "schema_"+dialect+".golden")
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("schema of %s (-want +got):\n%s", dialect, diff)
		}
	}
	if _, err := gormstore.Schema("oracle"); err == nil {
		t.Error("schema of another dialect: got nil, want an error")
	}
}

// Statements are separated as the comment of Schema says.
func TestSchema_RunsStatementByStatement(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.empty(t)
			db := d.connect(t, dsn)
			text, err := gormstore.Schema(db.Name())
			if err != nil {
				t.Fatal(err)
			}
			for statement := range strings.SplitSeq(strings.TrimSpace(text), ";\n") {
				exec(t, db, strings.TrimSuffix(statement, ";"))
			}
			s := storeOn(t, db)
			release(t, s, acquire(t, s, request("k")))
		})
	}
}

func TestMigrate_KeepsWhatIsThere(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.empty(t)
			s, db := d.migrated(t, dsn)
			g := acquire(t, s, request("k"))
			exec(t, db, "INSERT INTO pawl_fences (token, resource) VALUES (?, ?)", 7, []byte("k"))
			for range 2 {
				if err := gormstore.Migrate(t.Context(), db); err != nil {
					t.Fatalf("Migrate repeated: got %v, want nil", err)
				}
			}
			if _, err := s.Renew(t.Context(), g); err != nil {
				t.Errorf("Renew after Migrate: got %v, want nil", err)
			}
			if got := ask[int](t, db, "SELECT token FROM pawl_fences WHERE origin = ''"); got != 7 {
				t.Errorf("fence after Migrate: got %d, want 7", got)
			}
		})
	}
}

func TestMigrate_RunsInManyProcessesAtOnce(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.empty(t)
			processes := make([]*gorm.DB, 4)
			for i := range processes {
				processes[i] = d.connect(t, dsn)
			}
			for range servertest.Count(4, 40) {
				var wg sync.WaitGroup
				for _, db := range processes {
					wg.Go(func() {
						if err := gormstore.Migrate(t.Context(), db); err != nil {
							t.Errorf("Migrate beside others: got %v, want nil", err)
						}
					})
				}
				wg.Wait()
				for _, table := range []string{"pawl_locks", "pawl_fences"} {
					exec(t, processes[0], "DROP TABLE "+table)
				}
			}
		})
	}
}

// Bytes that look alike stay different resources, as they do as keys.
func TestSchema_FencesTellBytesApart(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.empty(t)
			_, db := d.migrated(t, dsn)
			names := []string{"k", "K", "k ", "k\t", "k\x00", "\u00e9", "e\u0301", "\\x6b", strings.Repeat("k", 600), strings.Repeat("k", 599)}
			for i, name := range names {
				exec(t, db, "INSERT INTO pawl_fences (token, resource) VALUES (?, ?)", i, []byte(name))
			}
			for i, name := range names {
				if got := ask[int](t, db, "SELECT token FROM pawl_fences WHERE resource = ?", []byte(name)); got != i {
					t.Errorf("fence of %.20q: got that of %.20q", name, names[got])
				}
			}
			if got := ask[int](t, db, "SELECT count(*) FROM pawl_fences"); got != len(names) {
				t.Errorf("fences: got %d, want %d", got, len(names))
			}
		})
	}
}
