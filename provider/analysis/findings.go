// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

const (
	// maxFindings is as many as the API takes.
	maxFindings = 8

	// maxMessage bounds a message in bytes. Causes are cut much earlier: this
	// holds whatever an image reference or a registry comes up with.
	maxMessage = 1024
)

// Findings tell what hinders those of the pods that are not ready, what hinders
// most pods first: at most eight, none twice. Container is the name of the
// Algorithm's own container; others have been added by Capstan, or by somebody
// else. Missing are the Secrets that the pods need and that are not there.
//
// The same causes give the same findings: they hold no name of a pod, no time
// and no count that would change by itself, and do not depend on the order of
// the pods.
func Findings(pods []corev1.Pod, container string, missing []string, now time.Time) []v1alpha1.Finding {
	found := map[group]*tally{}

	for i := range pods {
		for _, c := range hindrances(&pods[i], container, missing, now) {
			g := group{
				slot: pods[i].GetLabels()[v1alpha1.LabelSlot], revision: pods[i].GetAnnotations()[v1alpha1.AnnotationRevision],
				reason: c.reason, what: c.what, remedy: c.remedy,
			}
			if found[g] == nil {
				found[g] = &tally{details: map[string]int{}}
			}

			found[g].pods++
			found[g].details[c.detail]++
		}
	}

	groups := slices.SortedFunc(maps.Keys(found), func(a, b group) int {
		return cmp.Or(
			cmp.Compare(found[b].pods, found[a].pods),
			cmp.Compare(a.reason, b.reason),
			cmp.Compare(a.slot, b.slot),
			cmp.Compare(a.revision, b.revision),
			cmp.Compare(a.what, b.what),
			cmp.Compare(a.remedy, b.remedy),
		)
	})

	out := make([]v1alpha1.Finding, 0, min(len(groups), maxFindings))
	for _, g := range groups[:min(len(groups), maxFindings)] {
		out = append(out, v1alpha1.Finding{
			Reason:   string(g.reason),
			Message:  message(g.what, found[g].detail(), g.remedy),
			Slot:     g.slot,
			Revision: g.revision,
		})
	}

	return out
}

// NextChange is when findings may change next without any change of the pods:
// when the first container has been silent, or busy with the model, for too long.
// Zero if none will.
func NextChange(pods []corev1.Pod, container string, now time.Time) time.Time {
	next := time.Time{}

	for i := range pods {
		for _, s := range subjects(&pods[i], container, now) {
			at, ok := s.tellsAt()
			if !ok || !at.After(now) {
				continue
			}

			if next.IsZero() || at.Before(next) {
				next = at
			}
		}
	}

	return next
}

// A cause keeps a pod from being ready.
type cause struct {
	reason xpv2.ConditionReason

	// what is wrong, in words that are the same for every pod it hits.
	what string

	// detail in the words of a pod or registry, which may differ from pod to
	// pod. May be empty.
	detail string

	// remedy names the field of the Algorithm's spec to change, if one helps.
	remedy string
}

// A group of causes makes one finding.
type group struct {
	slot         string
	revision     string
	reason       xpv2.ConditionReason
	what, remedy string
}

// A tally counts the pods of a group, and what they say.
type tally struct {
	pods    int
	details map[string]int
}

// detail that most pods give, of equals the first in the alphabet.
func (t *tally) detail() string {
	return slices.MinFunc(slices.Collect(maps.Keys(t.details)), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.details[b], t.details[a]), cmp.Compare(a, b))
	})
}

func message(what, detail, remedy string) string {
	m := what
	if detail != "" {
		m += ": " + detail
	}

	if remedy != "" {
		m += "; " + remedy
	}

	return bounded(m, maxMessage)
}

// checks of a container, in order. The first that finds a cause wins.
func (s subject) checks() []func(subject) *cause {
	switch name := s.status.Name; {
	case s.companion() && name == containerModel:
		return []func(subject) *cause{imagePull, config, fetching, crash}
	case s.companion() && name == containerWarmUp:
		return []func(subject) *cause{imagePull, config, notWarm, crash}
	default:
		return []func(subject) *cause{
			imagePull,    // It is not there,
			config,       // or cannot be made,
			notListening, // or runs and does not answer,
			crash,        // or does not keep running.
		}
	}
}

// tellsAt is when a container that runs has done so for too long, if that counts.
func (s subject) tellsAt() (time.Time, bool) {
	switch name := s.status.Name; {
	case s.companion() && name == containerModel:
		return s.fetchingAt()
	case s.companion() && name == containerWarmUp:
		return s.coldAt()
	default:
		return s.silentAt()
	}
}

// hindrances of a pod, each once.
func hindrances(p *corev1.Pod, container string, missing []string, now time.Time) []cause {
	if c := unscheduled(p); c != nil {
		return []cause{*c}
	}

	if all := withoutSecrets(p, missing); len(all) > 0 {
		return all
	}

	var out []cause

	for _, s := range subjects(p, container, now) {
		for _, check := range s.checks() {
			c := check(s)
			if c == nil {
				continue
			}

			if !s.ours() {
				c.remedy = fmt.Sprintf("container %q is not the Algorithm's own: ask whoever adds it to the pods", s.status.Name)
			}

			if !slices.Contains(out, *c) {
				out = append(out, *c)
			}

			break
		}
	}

	return out
}

// A subject is a container that is not ready, of a pod that is meant to be.
type subject struct {
	pod    *corev1.Pod
	spec   corev1.Container
	status corev1.ContainerStatus
	now    time.Time

	// container is the name of the Algorithm's own.
	container string
}

// ours tells whether the container is the Algorithm's own, or Capstan's.
func (s subject) ours() bool {
	return s.status.Name == s.container || s.companion()
}

// companion tells whether the container is one that Capstan adds.
func (s subject) companion() bool {
	return s.status.Name != s.container && (s.status.Name == containerModel || s.status.Name == containerWarmUp)
}

func subjects(p *corev1.Pod, container string, now time.Time) []subject {
	if leaving(p) || is(p, corev1.PodReady) {
		return nil
	}

	var out []subject

	for _, st := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if st.Ready {
			continue
		}

		s := subject{pod: p, status: st, now: now, container: container}
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			if c.Name == st.Name {
				s.spec = c
			}
		}

		out = append(out, s)
	}

	return out
}

// leaving tells whether nobody waits for the pod any more: it is being deleted,
// or has ended for good (evicted, say) and its ReplicaSet makes another one.
func leaving(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
}

func is(p *corev1.Pod, t corev1.PodConditionType) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == t {
			return c.Status == corev1.ConditionTrue
		}
	}

	return false
}
