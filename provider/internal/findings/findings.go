// SPDX-License-Identifier: Apache-2.0

// Package findings turns the pods of an Algorithm into findings: what keeps them from being ready, in words that stay the same as
// long as the cause does.
package findings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
)

// maxFindings is as many as the API takes.
const maxFindings = 8

// Of pods that are not ready: what hits most pods first, at most eight, none twice. Container is the name of the Algorithm's own
// container; others have been added by Capstan, or by a program of the cluster. Missing are the Secrets that the pods need and
// that are not there.
//
// The same causes give the same findings: they hold no name of a pod, no time and no count that would change by itself, and do
// not depend on the order of the pods.
func Of(pods []corev1.Pod, container string, missing []string, now time.Time) []v1alpha1.Finding {
	found, spread := map[group]*tally{}, map[trouble]hit{}
	for i := range pods {
		for _, h := range hindrances(&pods[i], container, missing, now) {
			of := trouble{placeOf(&pods[i]), h.Reason}
			if spread[of] == nil {
				spread[of] = hit{}
			}
			spread[of][i] = true
			g := group{placeOf(&pods[i]), h}
			g.Detail = ""
			if found[g] == nil {
				found[g] = &tally{details: map[string]int{}}
			}
			found[g].pods++
			if at := pods[i].CreationTimestamp; at.After(found[g].since.Time) {
				found[g].since = at
			}
			found[g].details[h.Detail]++
		}
	}
	groups := slices.SortedFunc(maps.Keys(found), func(a, b group) int {
		return cmp.Or(
			cmp.Compare(found[b].pods, found[a].pods),
			cmp.Compare(a.Reason, b.Reason),
			cmp.Compare(a.slot, b.slot),
			cmp.Compare(a.revision, b.revision),
			cmp.Compare(a.What, b.What),
			cmp.Compare(a.Remedy, b.Remedy),
			cmp.Compare(a.Cause, b.Cause),
		)
	})
	out := make([]v1alpha1.Finding, 0, min(len(groups), maxFindings))
	for _, g := range groups[:min(len(groups), maxFindings)] {
		extent := spread[trouble{g.place, g.Reason}].extent(g.place, pods)
		of := found[g]
		g.Detail = of.detail()
		finding := v1alpha1.Finding{
			Reason: string(g.Reason), Message: g.Message(), Slot: g.slot, Revision: g.revision, Cause: g.Cause, Extent: extent,
		}
		if !of.since.IsZero() {
			finding.Since = &of.since
		}
		out = append(out, finding)
	}
	return out
}

// NextChange is when findings may change next without any change of the pods: when the first container has been silent, or busy
// with the model, for too long. It is zero if none will.
func NextChange(pods []corev1.Pod, container string, now time.Time) time.Time {
	next := time.Time{}
	for i := range pods {
		for _, s := range subjects(&pods[i], container, now) {
			_, dueAt := s.checks()
			at, ok := dueAt(s)
			for _, at := range []time.Time{at, s.CalmAt()} {
				if ok && at.After(now) && (next.IsZero() || at.Before(next)) {
					next = at
				}
			}
		}
	}
	return next
}

// A place of pods.
type place struct{ slot, revision string }

func placeOf(p *corev1.Pod) place {
	return place{p.GetLabels()[v1alpha1.LabelSlot], p.GetAnnotations()[v1alpha1.AnnotationRevision]}
}

// A group of hindrances, alike except for their details, makes one finding.
type group struct {
	place
	podhealth.Hindrance
}

// A tally counts the pods of a group, and their details. Since is when the youngest of them was created.
type tally struct {
	pods    int
	since   metav1.Time
	details map[string]int
}

// detail of most pods, of equals the first in the alphabet.
func (t *tally) detail() string {
	return slices.MinFunc(slices.Collect(maps.Keys(t.details)), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.details[b], t.details[a]), cmp.Compare(a, b))
	})
}

type check func(subject) *podhealth.Hindrance

// checks of a container, in order: the first that finds something wins. DueAt is when a container that runs has done so for too
// long, if that counts.
func (s subject) checks() (all []check, dueAt func(subject) (time.Time, bool)) {
	switch {
	case s.is(containerModel):
		return []check{imagePull, config, fetching, crash}, subject.fetchingAt
	case s.is(containerWarmUp):
		return []check{imagePull, config, notWarm, crash}, subject.coldAt
	default:
		return []check{
			imagePull,    // It is not there,
			config,       // or cannot be created,
			notListening, // or runs and does not answer,
			crash,        // or does not keep running.
		}, subject.silentAt
	}
}

// hindrances of a pod, each once.
func hindrances(p *corev1.Pod, container string, missing []string, now time.Time) []podhealth.Hindrance {
	if h := placement.Unscheduled(p); h != nil {
		return []podhealth.Hindrance{*h}
	}
	if all := withoutSecrets(p, missing); len(all) > 0 {
		return all
	}
	var out []podhealth.Hindrance
	for _, s := range subjects(p, container, now) {
		all, _ := s.checks()
		for _, check := range all {
			h := check(s)
			if h == nil {
				continue
			}
			if s.Status.Name != s.container && !s.companion() {
				h.Remedy = fmt.Sprintf("container %q is not the Algorithm's own: correct its entry in spec.pod, or ask the people who add it to the pods", s.Status.Name)
			}
			if !slices.Contains(out, *h) {
				out = append(out, *h)
			}
			break
		}
	}
	return out
}

// A subject is a container that is not ready, of a pod that should be.
type subject struct {
	podhealth.Subject

	// container is the name of the Algorithm's own.
	container string
}

func subjects(p *corev1.Pod, container string, now time.Time) []subject {
	all := podhealth.Subjects(p)
	out := make([]subject, 0, len(all))
	for _, s := range all {
		s.Now = now
		out = append(out, subject{Subject: s, container: container})
	}
	return out
}

// is reports whether the container is one that Capstan adds under this name.
func (s subject) is(name string) bool { return s.Status.Name != s.container && s.Status.Name == name }

// companion reports whether the container is one that Capstan adds.
func (s subject) companion() bool { return s.is(containerModel) || s.is(containerWarmUp) }

func lived(t *corev1.ContainerStateTerminated) time.Duration {
	return max(t.FinishedAt.Sub(t.StartedAt.Time), 0)
}
