// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/autoload"
)

// A memory holds what is known of each Analysis beside its status. Nothing is lost with it: after a restart everything is checked
// once more.
type memory struct {
	mu  sync.Mutex
	all map[types.UID]*remembered
}

func newMemory() *memory { return &memory{all: map[types.UID]*remembered{}} }

// remembered of one Analysis.
type remembered struct {
	// used is when it was read last, and belongs to the memory.
	used time.Time
	mu   sync.Mutex
	// asks is what was looked for last, and when; look is one that is not reported yet.
	asks     string
	lookedAt time.Time
	look     *look
	found    found
	// trial has the checks of a canary, and epochAt when its epoch was begun here.
	trial   string
	epochAt time.Time
	// canary is what all looks have shown. The status reports the part that changes a decision.
	canary *v1alpha1.CanaryObservation
	// idleSince is since when no request has come, or zero.
	idleSince time.Time
	// load that a replica bears, as far as it is learned.
	load autoload.Memory
}

// forgotten is when an unused Analysis is forgotten: one that was deleted during a look was remembered once more.
const forgotten = 3 * time.Hour

func (m *memory) of(uid types.UID, now time.Time) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.all[uid]
	if r == nil {
		maps.DeleteFunc(m.all, func(_ types.UID, r *remembered) bool { return now.Sub(r.used) > forgotten })
		r = &remembered{}
		m.all[uid] = r
	}
	r.used = now
	return r
}

// nextLook at Prometheus, or zero when there was none.
func (m *memory) nextLook(cr *v1alpha1.Analysis) time.Time {
	m.mu.Lock()
	r := m.all[cr.GetUID()]
	m.mu.Unlock()
	if r == nil {
		return time.Time{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.due(cr)
}

// forget an Analysis that is gone.
func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, uid)
}
