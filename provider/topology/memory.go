// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

const (
	// reportAge is how old a standby's report may be: it reports its position once in each loop of Patroni's, which takes ten
	// seconds in two of three profiles. It is compared with the position of the leader that long ago, so that a standby that
	// follows closely never seems to be behind.
	reportAge = 12 * time.Second

	// silence is how long a standby may report the same position while its leader writes, before nothing of it is believed. That is two
	// of Patroni's loops, and time for a slow API server. Kubernetes takes 40 seconds to notice that a node is lost.
	silence = 25 * time.Second

	// suspicion is how long the leader's lock may be expired before that is reported. A healthy standby is promoted sooner.
	suspicion = 15 * time.Second

	// recently is how long a cause explains a change of the leader.
	recently = 2 * time.Minute
)

// A memory holds what changes too often for a status. Nothing is lost with it: seconds after a restart it knows the same again,
// except how the last leader was.
type memory struct {
	now func() time.Time

	mu  sync.Mutex
	all map[types.NamespacedName]*scope

	// held has the scope of each object that reports something. A scope is there as long as one of its objects is.
	held map[reporter]types.NamespacedName
}

// A reporter for a scope: a pod, or a ConfigMap of members.
type reporter struct {
	pod             bool
	namespace, name string
}

// A scope is what members know their group by.
type scope struct {
	// database that the members are of.
	database string

	// objects that report for it.
	objects map[reporter]bool

	// leader is the pod that holds the lock, renewed the value it last wrote to keep it, if it renews it, and renewedAt when that
	// was seen.
	leader, renewed string
	renews          bool
	renewedAt       time.Time
	ttl             time.Duration

	// suspectedAt is when the lock was first seen expired, expired that it was confirmed.
	suspectedAt time.Time
	expired     bool

	// written are positions of the leader, oldest first; positions are those that the standbys reported last, lag their classes.
	// silent are those that do not report although they would have to. All by the names of pods.
	written   []sample
	positions map[string]sample
	lag       map[string]string
	silent    map[string]bool

	// askedAt is when another leader was last requested.
	askedAt time.Time

	// crashedAt is when the leader's server was seen to have ended.
	crashedAt time.Time

	// `led` is the leader, or the last one, as it was when it was healthy, and previous the one before.
	led, previous led
}

// A sample of a position, and when it was first seen.
type sample struct {
	at       time.Time
	position int64
}

// `led` is how the leader was in that time.
type led struct {
	// member, or "" when it is not known.
	member string

	uid      types.UID
	node     string
	restarts int32
}

func newMemory(now func() time.Time) *memory {
	return &memory{now: now, all: map[types.NamespacedName]*scope{}, held: map[reporter]types.NamespacedName{}}
}

func reporterOf(o client.Object) reporter {
	_, pod := o.(*corev1.Pod)
	return reporter{pod: pod, namespace: o.GetNamespace(), name: o.GetName()}
}

// of returns the scope that an object belongs to, or nil. The lock must be held.
func (m *memory) of(o client.Object) *scope {
	key, id := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetLabels()[v1alpha1.LabelScope]}, reporterOf(o)
	if was, ok := m.held[id]; ok && was != key {
		m.release(id)
	}
	if key.Name == "" {
		return nil
	}
	s := m.all[key]
	if s == nil {
		s = &scope{objects: map[reporter]bool{}, positions: map[string]sample{}, lag: map[string]string{}, silent: map[string]bool{}}
		m.all[key] = s
	}
	s.objects[id], m.held[id] = true, key
	s.database = o.GetLabels()[v1alpha1.LabelDatabase]
	return s
}

// release an object from its scope, which goes with its last one. The lock must be held.
func (m *memory) release(id reporter) {
	key, ok := m.held[id]
	if !ok {
		return
	}
	delete(m.held, id)
	s := m.all[key]
	delete(s.objects, id)
	if id.pod {
		s.unknown(id.name)
	}
	if len(s.objects) == 0 {
		delete(m.all, key)
	}
}

// lose an object that is gone.
func (m *memory) lose(o client.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.release(reporterOf(o))
}

// forget a scope whose Topology is deleted.
func (m *memory) forget(namespace, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if s := m.all[key]; s != nil {
		for id := range s.objects {
			delete(m.held, id)
		}
	}
	delete(m.all, key)
}

// pod records an observed pod, and reports whether a class of lag has changed.
func (m *memory) pod(p *corev1.Pod, gone bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if gone {
		m.release(reporterOf(p))
		return false
	}
	s := m.of(p)
	if s == nil {
		return false
	}
	switch n, err := strconv.ParseInt(p.GetAnnotations()[annotationPosition], 10, 64); {
	case err != nil:
		s.unknown(p.GetName())
	case s.positions[p.GetName()].position != n:
		s.positions[p.GetName()] = sample{at: m.now(), position: n}
	}
	if st := join(p.GetAnnotations()[annotationFacts]).State; p.GetName() == s.leader && (st == members.StateCrashed || st == members.StateStartFailed) {
		s.crashedAt = m.now()
	}
	return s.judge(m.now())
}

// unknown is a pod that reports no position.
func (s *scope) unknown(pod string) {
	delete(s.positions, pod)
	delete(s.lag, pod)
	delete(s.silent, pod)
}

// lead records the observed ConfigMap of the leader, and reports whether the leader, its lock or a class of lag has changed.
func (m *memory) lead(o *metav1.PartialObjectMetadata) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.of(o)
	if s == nil {
		return false
	}
	now, a, changed := m.now(), o.GetAnnotations(), false
	s.renews = renews(a)
	if s.leader != a[members.AnnotationLeader] {
		s.leader, s.written, changed = a[members.AnnotationLeader], nil, true
	}
	if s.renewed != a[annotationRenewed] || changed {
		changed = changed || s.expired
		s.renewed, s.renewedAt, s.ttl = a[annotationRenewed], now, ttlOf(a)
		s.suspectedAt, s.expired = time.Time{}, false
	}
	if n, err := strconv.ParseInt(a[annotationWritten], 10, 64); err == nil &&
		(len(s.written) == 0 || s.written[len(s.written)-1].position != n) {
		s.written = append(s.written, sample{at: now, position: n})
	}
	return s.judge(now) || changed
}

// asked records that another leader is requested.
func (m *memory) asked(o *metav1.PartialObjectMetadata) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := o.GetAnnotations(); a[members.AnnotationLeader] == "" && a[members.AnnotationCandidate] == "" {
		return
	}
	if s := m.of(o); s != nil {
		s.askedAt = m.now()
	}
}

// judge the lag of all standbys and which of them are silent, and report whether that has changed. A standby has to report what its leader
// had written reportAge ago. One that does not, and has reported nothing else for a time, may be gone.
func (s *scope) judge(now time.Time) bool {
	// Keep the newest sample that is at least reportAge old; drop those before it.
	at := -1
	for i, w := range s.written {
		if now.Sub(w.at) >= reportAge {
			at = i
		}
	}
	if at < 0 {
		return false
	}
	s.written = slices.Delete(s.written, 0, at)
	changed := false
	for pod, had := range s.positions {
		if pod == s.leader {
			delete(s.lag, pod)
			delete(s.silent, pod)
			continue
		}
		behind := s.written[0].position - had.position
		if c := class(behind, s.lag[pod]); c != s.lag[pod] {
			s.lag[pod], changed = c, true
		}
		if is := behind > 0 && now.Sub(had.at) >= silence; is != s.silent[pod] {
			s.silent[pod], changed = is, true
		}
	}
	return changed
}

const mebibyte = 1 << 20

// class of a lag in bytes. A class changes to a better one only at half of its lower bound.
func class(behind int64, was string) string {
	far, some := int64(64*mebibyte), int64(mebibyte)
	switch was {
	case v1alpha1.LagFarBehind:
		far, some = far/2, some/2
	case v1alpha1.LagBehind:
		some /= 2
	}
	switch {
	case behind >= far:
		return v1alpha1.LagFarBehind
	case behind >= some:
		return v1alpha1.LagBehind
	default:
		return v1alpha1.LagInSync
	}
}

// A recollection is what the memory knows of a scope.
type recollection struct {
	expired bool
	lag     map[string]string

	// silent standbys, by the names of pods: see scope.judge.
	silent map[string]bool

	// asked for another leader, and crashed, recently.
	asked, crashed bool

	led, previous led
}

// how a member was as a healthy leader; of an unknown member only the name.
func (r recollection) how(name string) led {
	for _, l := range []led{r.led, r.previous} {
		if l.member == name {
			return l
		}
	}
	return led{member: name}
}

// recall what is known of a scope.
func (m *memory) recall(namespace, name string) recollection {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.all[types.NamespacedName{Namespace: namespace, Name: name}]
	if s == nil {
		return recollection{}
	}
	return recollection{
		expired:  s.expired,
		lag:      maps.Clone(s.lag),
		silent:   maps.Clone(s.silent),
		asked:    !s.askedAt.IsZero() && m.now().Sub(s.askedAt) < recently,
		crashed:  !s.crashedAt.IsZero() && m.now().Sub(s.crashedAt) < recently,
		led:      s.led,
		previous: s.previous,
	}
}

// remember how the leader is while it is healthy.
func (m *memory) remember(namespace, name string, l led) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.all[types.NamespacedName{Namespace: namespace, Name: name}]
	if s == nil {
		return
	}
	if s.led.member != l.member {
		s.previous = s.led
	}
	s.led = l
}

// An overdue lock was not renewed in time, according to events.
type overdue struct {
	scope    types.NamespacedName
	database string
	renewed  string
}

// overdue locks, not yet suspected or suspected for long enough.
func (m *memory) overdue() []overdue {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []overdue
	for key, s := range m.all {
		switch now := m.now(); {
		case s.leader == "" || !s.renews || s.expired || now.Sub(s.renewedAt) <= s.ttl:
		case s.suspectedAt.IsZero() || now.Sub(s.suspectedAt) >= suspicion:
			out = append(out, overdue{scope: key, database: s.database, renewed: s.renewed})
		}
	}
	return out
}

// confirm, after the API server has said so, that a lock was not renewed. It reports whether the lock is expired since.
func (m *memory) confirm(o overdue) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.all[o.scope]
	if s == nil || s.renewed != o.renewed || s.expired {
		return false
	}
	if s.suspectedAt.IsZero() {
		s.suspectedAt = m.now()
		return false
	}
	s.expired = m.now().Sub(s.suspectedAt) >= suspicion
	return s.expired
}
