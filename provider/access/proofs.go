// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-dev/capstan/provider/access/internal/engine"
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

func (p *proofs) digest(l engine.Login) string {
	h := hmac.New(sha256.New, p.key)
	for _, s := range []string{l.Name, l.Database, l.Password} {
		_, _ = h.Write([]byte(s))
		_, _ = h.Write([]byte{0})
	}
	return string(h.Sum(nil))
}

// known reports whether a login has worked not long ago.
func (p *proofs) known(uid types.UID, l engine.Login) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.all[uid][l.Name]
	return !was.wrong && was.of == p.digest(l) && p.now().Sub(was.at) < proven
}

// refused reports whether a login did not work not long ago.
func (p *proofs) refused(uid types.UID, l engine.Login) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.all[uid][l.Name]
	return was.wrong && was.of == p.digest(l) && p.now().Sub(was.at) < proven
}

// tried records whether a login has worked.
func (p *proofs) tried(uid types.UID, l engine.Login, worked bool) {
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
	p.all[uid][l.Name] = proof{of: p.digest(l), at: p.now(), wrong: !worked}
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

// opens reports whether a password opens a login. When the server has no connection left, the answer is unknown and counts as
// yes: a password is not changed on a guess.
func (e *external) opens(ctx context.Context, l engine.Login) (bool, error) {
	if e.proofs.known(e.cr.GetUID(), l) {
		return true, nil
	}
	server, err := e.at(ctx)
	if err != nil {
		return false, err
	}
	switch answer, err := server.LogIn(ctx, l); {
	case answer == engine.Opened, answer == engine.WrongPassword:
		e.proofs.tried(e.cr.GetUID(), l, answer == engine.Opened)
		return answer == engine.Opened, nil
	// A step that waits for a login to work must not take it for granted.
	case answer == engine.Full && !l.Staged:
		return true, nil
	default:
		return false, err
	}
}
