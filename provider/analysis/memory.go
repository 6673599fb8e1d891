// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// A memory holds what is known of each Analysis beside its status. Nothing is lost
// with it: after a restart everything is looked at once more.
type memory struct {
	mu  sync.Mutex
	all map[types.UID]*remembered
}

func newMemory() *memory { return &memory{all: map[types.UID]*remembered{}} }

// remembered of one Analysis.
type remembered struct {
	// used is when it was asked for last, and belongs to the memory.
	used time.Time

	mu sync.Mutex

	// asks is what was looked for last, and when; look is one that is not told yet.
	asks     string
	lookedAt time.Time
	look     *look
	found    discovery

	// replicas that were ready when they last changed, and when that was.
	replicas  string
	ready     int
	growing   bool
	changedAt time.Time

	// trial is what is asked about a canary, and epochAt when its epoch was begun here.
	trial   string
	epochAt time.Time

	// lesson about the replicas of a slot, by a signal.
	lesson *lesson
	about  string

	// missed is how often in a row the pods told a lesser signal than before.
	missed int
}

// forgotten is when an Analysis that nobody asks for is: one that went while it was
// looked at was taken down once more.
const forgotten = 3 * time.Hour

// of an Analysis.
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
func (m *memory) nextLook(uid types.UID, interval time.Duration) time.Time {
	m.mu.Lock()
	r := m.all[uid]
	m.mu.Unlock()

	if r == nil {
		return time.Time{}
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	return r.lookedAt.Add(interval)
}

// forget an Analysis that is gone.
func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()

	delete(m.all, uid)
}

// size is how many are remembered.
func (m *memory) size() int {
	m.mu.Lock()
	defer m.mu.Unlock()

	return len(m.all)
}

// watchReplicas takes down when the replicas that are learned from changed.
func (r *remembered) watchReplicas(cr *v1alpha1.Analysis, pods []corev1.Pod, now time.Time) {
	s := cr.Spec.ForProvider.Metrics.Scaling
	if s == nil {
		return
	}

	var uids []string
	for _, p := range readyOf(pods, s.Slot) {
		uids = append(uids, string(p.GetUID())+p.GetName())
	}

	slices.Sort(uids)

	if all := s.Slot + " " + strings.Join(uids, " "); all != r.replicas {
		r.replicas, r.changedAt = all, now
		r.growing, r.ready = len(uids) > r.ready, len(uids)
	}
}
