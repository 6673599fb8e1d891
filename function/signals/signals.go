// SPDX-License-Identifier: Apache-2.0

// Package signals says what the Signals to an object ask of it now, and which hooks they run. An Analysis or a Topology reports them as facts.
// A Signal changes no spec: it is an edit that ends by itself.
package signals

import (
	"fmt"
	"time"

	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A Set has the Signals to one object that are in force.
type Set []observev1alpha1.ActiveSignal

// InForce are the Signals that have not ended. The provider may be down and still report others.
func InForce(reported []observev1alpha1.ActiveSignal, now time.Time) Set {
	var s Set
	for _, a := range reported {
		if now.Before(a.Until.Time) {
			s = append(s, a)
		}
	}
	return s
}

// A Hold is a Signal that lets nothing begin. Its zero value holds nothing.
type Hold struct {
	// Signal in words, with its cause.
	Signal string

	// Until is when it ends.
	Until time.Time
}

// Holds reports whether there is a hold.
func (h Hold) Holds() bool { return h.Signal != "" }

// Remedy is how a person ends it, or what happens without one.
func (h Hold) Remedy() string {
	return fmt.Sprintf("it ends at %s, or when the Signal is deleted", h.Until.UTC().Format(time.RFC3339))
}

// Hold of the set that ends last.
func (s Set) Hold() Hold {
	var h Hold
	for _, a := range s {
		if a.Do == string(eventsv1alpha1.ActHold) && a.Until.After(h.Until) {
			h = Hold{Signal: inWords(a), Until: a.Until.Time}
		}
	}
	return h
}

func inWords(a observev1alpha1.ActiveSignal) string {
	if a.Cause == "" {
		return fmt.Sprintf("Signal %q", a.Name)
	}
	return fmt.Sprintf("Signal %q (%s)", a.Name, a.Cause)
}

// Aborted are the revisions that are not to get traffic.
func (s Set) Aborted() []string {
	var all []string
	for _, a := range s {
		if a.Do == string(eventsv1alpha1.ActAbort) {
			all = append(all, a.Revision)
		}
	}
	return all
}

// MinReplicas is the largest number of replicas that is requested, or 0.
func (s Set) MinReplicas() int32 {
	var n int32
	for _, a := range s {
		if a.Do == string(eventsv1alpha1.ActMinReplicas) {
			n = max(n, a.Replicas)
		}
	}
	return n
}

// Backups are the Signals that ask for a backup.
func (s Set) Backups() []observev1alpha1.ActiveSignal {
	var all []observev1alpha1.ActiveSignal
	for _, a := range s {
		if a.Do == string(eventsv1alpha1.ActBackup) {
			all = append(all, a)
		}
	}
	return all
}

// Status of the set and of the runs of its hooks. ignored says why another act has no effect, or is empty.
func (s Set) Status(runs Runs, ignored func(act eventsv1alpha1.Act) string) []v1alpha1.SignalStatus {
	var all []v1alpha1.SignalStatus
	for _, a := range s {
		if a.Do != string(eventsv1alpha1.ActHook) {
			all = append(all, v1alpha1.SignalStatus{
				Name: a.Name, Do: a.Do, Until: a.Until, Cause: a.Cause, Ignored: ignored(eventsv1alpha1.Act(a.Do)),
			})
		}
	}
	return append(all, runs...)
}
