package gormguard

import (
	"reflect"

	"gorm.io/gorm"
)

// Names of gorm.io/plugin/dbresolver, which lets a statement choose the primary
// by them. It is not imported.
const (
	resolver      = "gorm:db_resolver"
	resolverWrite = "gorm:db_resolver:write"
)

// pin puts the connection of a statement under the fence, and a statement under
// a hold on the primary.
func (f *fence) pin(db *gorm.DB) {
	if db.Error != nil || db.DryRun {
		return
	}
	stmt := db.Statement
	stmt.ConnPool = f.wrap(stmt.ConnPool)
	p, outside := stmt.ConnPool.(*pool)
	if !outside || p == f.main || !carries(stmt.Context) {
		return
	}
	if resolve := db.Callback().Query().Get(resolver); resolve != nil {
		stmt.Settings.Store(resolverWrite, struct{}{})
		resolve(db)
		stmt.ConnPool = f.wrap(stmt.ConnPool)
	}
}

// wrap puts conn under the fence. A session that prepares statements is put
// below it, so that the fence sees their text. A transaction that nobody saw
// begin lets no hold pass.
func (f *fence) wrap(conn gorm.ConnPool) gorm.ConnPool {
	switch c := conn.(type) {
	case *pool, *fencedTx:
		return c
	case *gorm.PreparedStmtDB:
		if p, ok := c.ConnPool.(*pool); ok {
			return &pool{fence: p.fence, memory: p.memory, conn: &gorm.PreparedStmtDB{Stmts: c.Stmts, Mux: c.Mux, ConnPool: p.bare()}}
		}
	case *gorm.PreparedStmtTX:
		if t, ok := c.Tx.(*fencedTx); ok {
			return t.prepared(c.PreparedStmtDB)
		}
	}
	if t, ok := conn.(transaction); ok {
		return &fencedTx{fence: f, conn: t, state: &state{late: true}}
	}
	if f.main != nil && reflect.TypeOf(conn).Comparable() && conn == f.main.conn {
		return f.main
	}
	return &pool{fence: f, conn: conn}
}

// prepared is t with prepared statements.
func (t *fencedTx) prepared(with *gorm.PreparedStmtDB) *fencedTx {
	inner, ok := t.conn.(gorm.Tx)
	if !ok {
		return t
	}
	if p, ok := inner.(*gorm.PreparedStmtTX); ok {
		inner = p.Tx
	}
	return &fencedTx{fence: t.fence, state: t.state, conn: &gorm.PreparedStmtTX{Tx: inner, PreparedStmtDB: with}}
}
