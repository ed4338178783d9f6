package faults_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/internal/history"
	"github.com/pawl-go/pawl/middleware/gormguard"
)

// accessBound ends an access that a fault has caught.
const accessBound = time.Second

// unprotected names the twin of a resource that is accessed without a fence.
func unprotected(key string) string { return key + " unprotected" }

// client is a child that works on keys as an application would, and writes down
// what it saw. N is its number.
func client(ctx context.Context, s *stage, l *line, m message) {
	said := message{Op: "done"}
	plain, err := connectDB(s.Stock)
	if err == nil {
		defer closeDB(plain)
		var fenced *gorm.DB
		if fenced, err = connectDB(s.Stock); err == nil {
			defer closeDB(fenced)
			err = fenced.Use(gormguard.Plugin())
		}
		if err == nil {
			w := &worker{stage: s, plain: plain, fenced: fenced, keys: m.Keys, number: int(m.N)}
			l.say(message{Op: "ready"})
			w.work(ctx, time.Now().Add(m.For))
			said.Grants, said.Accesses = w.grants, w.accesses
		}
	}
	if err != nil {
		said = message{Op: "failed", Err: err.Error()}
	}
	l.say(said)
}

type worker struct {
	*stage
	plain, fenced *gorm.DB
	keys          []string
	number        int

	mu       sync.Mutex
	wrote    int64
	grants   []history.Grant
	accesses []history.Access
}

// work runs two goroutines, so that there are hand-overs too.
func (w *worker) work(ctx context.Context, end time.Time) {
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				w.hold(ctx, 2*w.number+i, w.keys[rand.IntN(len(w.keys))])
			}
		})
	}
	all.Wait()
}

// hold takes a key and reads, thinks and writes under it, on the resource that is
// fenced and on its twin.
func (w *worker) hold(ctx context.Context, id int, key string) {
	g := history.Grant{Client: id, Key: key, Call: monotonic()}
	_ = w.guard.WithLock(ctx, key, func(ctx context.Context) error { // what it comes to is in the accesses
		g.Return, g.Token = monotonic(), tokenOf(ctx)
		w.mu.Lock()
		w.grants = append(w.grants, g)
		w.mu.Unlock()
		if rand.IntN(2) == 0 {
			ctx = context.WithoutCancel(ctx) // code that does not notice a loss in time
		}
		v := &visitor{worker: w, id: id, token: g.Token}
		if rand.IntN(3) == 0 {
			v.together(ctx, key)
		} else {
			v.apart(ctx, key)
		}
		return nil
	})
}

// visitor is one hold's accesses.
type visitor struct {
	*worker
	id    int
	token fencing.Token
}

// apart reads and writes each by itself.
func (v *visitor) apart(ctx context.Context, key string) {
	db, plain := v.fenced.WithContext(ctx), v.plain.WithContext(context.WithoutCancel(ctx))
	saw, ok := v.read(db, v.access(key))
	sawTwin, okTwin := v.read(plain, v.access(unprotected(key)))
	think()
	if okTwin {
		v.note(v.write(plain, unprotected(key), sawTwin))
	}
	if ok {
		v.note(v.write(db, key, saw))
	}
}

// together reads and writes in one transaction.
func (v *visitor) together(ctx context.Context, key string) {
	var write history.Access
	began := false
	first := v.access(key)
	err := v.fenced.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		began = true
		saw, ok := v.read(tx, first) // the token was admitted when the transaction began
		if !ok {
			return errors.New("not read")
		}
		think()
		write = v.write(tx, key, saw)
		if write.Outcome != history.OK {
			return errors.New("not written")
		}
		return nil
	})
	if !began { // the token may have been admitted all the same
		first.Return, first.Outcome = monotonic(), told(err)
		v.note(first)
	}
	if !write.Write {
		return // it did not come so far
	}
	write.Return = monotonic()
	if err != nil && write.Outcome == history.OK {
		write.Outcome = history.Unknown // of the commit
	}
	v.note(write)
}

func think() { time.Sleep(rand.N(150 * time.Millisecond)) }

func (v *visitor) read(db *gorm.DB, a history.Access) (saw int64, ok bool) {
	err := bounded(db, func(db *gorm.DB) error {
		return db.Raw("SELECT stock FROM items WHERE name = ?", a.Resource).Scan(&a.Saw).Error
	})
	a.Return, a.Outcome = monotonic(), told(err)
	v.note(a)
	return a.Saw, a.Outcome == history.OK
}

// write is not noted yet: in a transaction it is decided later.
func (v *visitor) write(db *gorm.DB, resource string, saw int64) history.Access {
	a := v.access(resource)
	a.Write, a.Saw, a.Wrote = true, saw, v.number64()
	err := bounded(db, func(db *gorm.DB) error {
		return db.Exec("UPDATE items SET stock = ? WHERE name = ?", a.Wrote, resource).Error
	})
	a.Return, a.Outcome = monotonic(), told(err)
	return a
}

func (v *visitor) access(resource string) history.Access {
	return history.Access{Client: v.id, Resource: resource, Token: v.token, Call: monotonic()}
}

// number64 is a value that nobody else writes.
func (v *visitor) number64() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wrote++
	return int64(v.number+1)<<32 + v.wrote
}

func (v *visitor) note(a history.Access) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.accesses = append(v.accesses, a)
}

func bounded(db *gorm.DB, do func(*gorm.DB) error) error {
	ctx, cancel := context.WithTimeout(db.Statement.Context, accessBound)
	defer cancel()
	return do(db.WithContext(ctx))
}

// told is what an error says: nothing, unless the fence refused.
func told(err error) history.Outcome {
	switch {
	case err == nil:
		return history.OK
	case errors.Is(err, fencing.ErrStale):
		return history.Stale
	}
	return history.Unknown
}
