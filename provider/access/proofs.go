// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// proven is how long a login that worked counts as working: its holder may change the password in the server.
	proven = time.Hour

	// forgotten is when the proofs of an Access that is not used are dropped.
	forgotten = 3 * time.Hour
)

// proofs that logins work, or do not. They are digests, with a key that only this process has.
type proofs struct {
	now func() time.Time
	key []byte

	mu  sync.Mutex
	all map[types.UID]map[string]proof
}

type proof struct {
	of string
	at time.Time

	// wrong means that it did not work.
	wrong bool
}

func newProofs(now func() time.Time) *proofs {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key)
	return &proofs{now: now, key: key, all: map[types.UID]map[string]proof{}}
}

func (p *proofs) digest(l login) string {
	h := hmac.New(sha256.New, p.key)
	for _, s := range []string{l.name, l.database, l.password} {
		_, _ = h.Write([]byte(s))
		_, _ = h.Write([]byte{0})
	}
	return string(h.Sum(nil))
}

// known reports whether a login has worked not long ago.
func (p *proofs) known(uid types.UID, l login) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.all[uid][l.name]
	return !was.wrong && was.of == p.digest(l) && p.now().Sub(was.at) < proven
}

// refused reports whether a login did not work not long ago.
func (p *proofs) refused(uid types.UID, l login) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.all[uid][l.name]
	return was.wrong && was.of == p.digest(l) && p.now().Sub(was.at) < proven
}

// tried records whether a login has worked.
func (p *proofs) tried(uid types.UID, l login, worked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[uid] == nil {
		maps.DeleteFunc(p.all, func(_ types.UID, of map[string]proof) bool {
			for _, q := range of {
				if p.now().Sub(q.at) < forgotten {
					return false
				}
			}
			return true
		})
		p.all[uid] = map[string]proof{}
	}
	p.all[uid][l.name] = proof{of: p.digest(l), at: p.now(), wrong: !worked}
}

// outdated records that a login got another password.
func (p *proofs) outdated(uid types.UID, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all[uid], name)
}

// forget a deleted Access.
func (p *proofs) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, uid)
}

// Codes of PostgreSQL that a log-in ends with.
const (
	codeWrongPassword      = "28P01"
	codeTooManyConnections = "53300"
)

// opens reports whether a password opens a login. When the server has no connection left, the answer is unknown and counts as
// yes: a password is not changed on a guess.
func (e *external) opens(ctx context.Context, l login) (bool, error) {
	if e.proofs.known(e.cr.GetUID(), l) {
		return true, nil
	}

	// One connection at a time.
	_ = e.Disconnect(ctx)
	cfg, err := e.config(ctx)
	if err != nil {
		return false, err
	}
	cfg.User, cfg.Password, cfg.Database = l.name, l.password, l.database
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err == nil {
		_ = conn.Close(ctx)
		e.proofs.tried(e.cr.GetUID(), l, true)
		return true, nil
	}
	if p := (*pgconn.PgError)(nil); errors.As(err, &p) {
		switch {
		case p.Code == codeWrongPassword:
			e.proofs.tried(e.cr.GetUID(), l, false)
			return false, nil
		// A step that waits for a login to work must not take it for granted.
		case p.Code == codeTooManyConnections && !l.staged:
			return true, nil
		}
	}
	return false, err
}
