// SPDX-License-Identifier: Apache-2.0

package access

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// quiet is how long no session of a role may be seen before it counts as idle:
	// longer than a Secret takes to reach pods that have it mounted, and than most clients leave between two connections.
	quiet = 10 * time.Minute

	// gap between two looks after which the time in between counts as unknown.
	gap = 2 * time.Minute
)

// idleness of replaced roles. It is lost with the process; then they have to be idle for the full time again.
type idleness struct {
	now func() time.Time

	mu  sync.Mutex
	all map[types.UID]map[string]span
}

// A span in which no session was seen.
type span struct{ since, last time.Time }

func newIdleness(now func() time.Time) *idleness {
	return &idleness{now: now, all: map[types.UID]map[string]span{}}
}

// look records the sessions of a role of an Access, and reports whether it is idle.
func (i *idleness) look(uid types.UID, role string, sessions int) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if sessions > 0 {
		delete(i.all[uid], role)
		return false
	}
	if i.all[uid] == nil {
		i.all[uid] = map[string]span{}
	}
	now := i.now()
	s, ok := i.all[uid][role]
	if !ok || now.Sub(s.last) > gap {
		s.since = now
	}
	s.last = now
	i.all[uid][role] = s
	return now.Sub(s.since) >= quiet
}

// busy records that a role is in use, or not kept any more.
func (i *idleness) busy(uid types.UID, role string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.all[uid], role)
}

// forget a deleted Access.
func (i *idleness) forget(uid types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.all, uid)
}
