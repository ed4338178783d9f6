package gormguard

import (
	"strings"
	"testing"
)

func TestScan_FindsTheTargets(t *testing.T) {
	dialects := map[string]syntax{"pg": postgres{}.syntax(), "my": mysql{}.syntax(), "lite": sqlite{}.syntax()}
	tests := []struct {
		name, dialect, text string
		hit                 bool
	}{
		{"Insert", "pg", `INSERT INTO "items" ("sku") VALUES ($1) RETURNING "id"`, true},
		{"InsertSchema", "pg", `insert into public.items values (1)`, true},
		{"InsertElsewhere", "pg", `INSERT INTO "orders" ("items") VALUES ($1)`, false},
		{"InsertReads", "pg", `INSERT INTO orders SELECT * FROM items`, false},
		{"Upsert", "pg", `INSERT INTO items (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2`, true},
		{"UpsertColumn", "my", "INSERT INTO `orders` (`items`) VALUES (?) ON DUPLICATE KEY UPDATE `items`=VALUES(`items`)", false},
		{"UpsertBareColumn", "my", "INSERT INTO orders (items) VALUES (?) ON DUPLICATE KEY UPDATE items=VALUES(items)", false},
		{"InsertWithoutInto", "my", `INSERT IGNORE items VALUES (1)`, true},
		{"Replace", "my", `REPLACE items VALUES (1)`, true},
		{"ReplaceFunction", "pg", `SELECT replace(items, 'a', 'b') FROM orders`, false},
		{"ReplaceFunctionInParentheses", "pg", `SELECT (replace(items, 'a', 'b')) FROM orders`, false},
		{"InsertOrReplace", "lite", `INSERT OR REPLACE INTO items VALUES (1)`, true},
		{"Update", "pg", `UPDATE "items" SET "units"=units - $1 WHERE sku = $2`, true},
		{"UpdateAlias", "pg", `UPDATE ONLY items AS i SET units = 1`, true},
		{"UpdateColumn", "pg", `UPDATE orders SET items = 1`, false},
		{"UpdateReads", "pg", `UPDATE orders SET n = items.n FROM items WHERE items.id = orders.id`, false},
		{"UpdateJoin", "my", "UPDATE orders o JOIN items i ON o.id = i.id SET i.n = 1", true},
		{"UpdateList", "my", "UPDATE orders, items SET items.n = 1", true},
		{"Delete", "pg", `DELETE FROM items`, true},
		{"DeleteSubquery", "pg", `DELETE FROM orders WHERE sku IN (SELECT sku FROM items)`, false},
		{"DeleteAlias", "my", `DELETE i FROM items AS i JOIN orders AS o ON i.id = o.id`, true},
		{"DeleteUsing", "my", `DELETE FROM i USING items i`, true},
		{"Truncate", "pg", `TRUNCATE TABLE orders, items`, true},
		{"Merge", "pg", `MERGE INTO items USING orders ON true WHEN MATCHED THEN DELETE`, true},
		{"Copy", "pg", `COPY items FROM STDIN`, true},
		{"CTE", "pg", `WITH x AS (DELETE FROM items RETURNING *) SELECT * FROM x`, true},
		{"CTEFirst", "pg", `WITH x AS MATERIALIZED (SELECT 1) UPDATE items SET a = 1`, true},
		{"Explain", "pg", `EXPLAIN ANALYZE DELETE FROM items`, true},
		{"Second", "pg", `SELECT 1; DELETE FROM items`, true},
		{"Comment", "pg", `/* a /* b */ */ DELETE -- FROM orders` + "\n FROM items", true},
		{"Executed", "my", `DELETE /*!50000 FROM items */`, true},
		{"Minus", "my", "UPDATE orders SET a = 5--3; DELETE FROM items", true},
		{"Backslash", "my", `UPDATE orders SET a = 'it\'s'; DELETE FROM items`, true},
		{"NoBackslash", "pg", `UPDATE orders SET a = '\'; DELETE FROM items; --'`, true},
		{"Escape", "pg", `UPDATE orders SET a = E'\'; DELETE FROM items; --'`, false},
		{"Dollar", "pg", `UPDATE orders SET a = $x$ '; DELETE FROM items $x$`, false},
		{"String", "pg", `UPDATE orders SET a = '; DELETE FROM items'`, false},
		{"Brackets", "lite", `DELETE FROM [items]`, true},
		{"Select", "pg", `SELECT * FROM items`, false},
		{"ForUpdate", "pg", `SELECT * FROM "items" WHERE a = 1 ORDER BY a LIMIT 1 FOR UPDATE SKIP LOCKED`, true},
		{"ForNoKey", "pg", `SELECT * FROM orders o, items FOR NO KEY UPDATE`, true},
		{"ForShare", "pg", `SELECT * FROM (orders JOIN items ON true) FOR KEY SHARE`, true},
		{"ShareMode", "my", `SELECT * FROM items LOCK IN SHARE MODE`, true},
		{"ForUpdateElsewhere", "pg", `SELECT items FROM orders FOR UPDATE`, false},
		{"Lock", "pg", `LOCK TABLE items IN EXCLUSIVE MODE`, true},
		{"Definition", "pg", `CREATE TABLE x (a int REFERENCES items ON DELETE CASCADE)`, false},
		{"Migration", "lite", "INSERT INTO `items__temp`(`a`) SELECT `a` FROM `items`", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := scan(dialects[test.dialect], test.text)
			if _, hit := a.hits(map[string]struct{}{"items": {}}); hit != test.hit {
				t.Errorf("got hit %v, want %v; scanned %+v", hit, test.hit, a)
			}
		})
	}
}

func TestScan_FindsTheKind(t *testing.T) {
	kinds := func(a access) string {
		var s []string
		for _, k := range []struct {
			is   bool
			name string
		}{
			{a.writes, "writes"},
			{a.locks, "locks"},
			{a.defines, "defines"},
			{a.commits, "commits"},
			{a.controls, "controls"},
			{a.rewinds, "rewinds"},
			{a.own(), "own"},
		} {
			if k.is {
				s = append(s, k.name)
			}
		}
		return strings.Join(s, " ")
	}
	tests := []struct{ text, want string }{
		{"", ""},
		{"SELECT 1", ""},
		{"SAVEPOINT sp1", ""},
		{"RELEASE SAVEPOINT sp1", ""},
		{"ROLLBACK TO SAVEPOINT sp1", "rewinds"},
		{"rollback work to sp1;", "rewinds"},
		{"ROLLBACK", "controls"},
		{"COMMIT; ROLLBACK TO x", "controls rewinds"},
		{"ROLLBACK; SELECT 1", "controls"},
		{"START TRANSACTION", "controls"},
		{"INSERT OR ROLLBACK INTO t VALUES (1)", "writes controls"},
		{"CREATE TABLE x (a int)", "defines commits"},
		{"CREATE TEMPORARY TABLE x (a int)", "defines"},
		{"TRUNCATE t", "writes commits"},
		{"SET LOCAL lock_timeout = '1s'", "defines"},
		{"UPDATE pawl_entries SET a = 1", "writes own"},
		{"UPDATE pawl_entries SET a = (SELECT 1 FROM items)", "writes"},
		{"SELECT * FROM items WHERE a IN (1, 2) FOR UPDATE", "locks"},
	}
	for _, test := range tests {
		if got := kinds(scan(sqlite{}.syntax(), test.text)); got != test.want {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, s := range []string{"SELECT 1", `DELETE FROM "a`, "/*", "$$", "'\\", "(((", "))", "a.b.c,", "ROLLBACK TO"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range []syntax{postgres{}.syntax(), mysql{}.syntax(), sqlite{}.syntax()} {
			alone := scan(s, text)
			after := scan(s, "DELETE FROM items;"+text)
			if _, hit := after.hits(map[string]struct{}{"items": {}}); !hit {
				t.Errorf("what follows hides a statement: %q", text)
			}
			if len(alone.tables) > len(text) {
				t.Errorf("got %d tables from %d bytes", len(alone.tables), len(text))
			}
		}
	})
}
