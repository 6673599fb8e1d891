// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"time"
)

// A view is what was seen at a time. Its types have the fields of apis that are shown; apis is another module.
type view struct {
	now         time.Time
	algorithm   algorithm
	deployments []deployment

	// trouble is why nothing was seen.
	trouble string
}

type algorithm struct {
	Metadata struct {
		Name       string `json:"name"`
		Namespace  string `json:"namespace"`
		Generation int64  `json:"generation"`
	} `json:"metadata"`
	Status struct {
		Phase    string `json:"phase"`
		Revision struct {
			Live string `json:"live"`
			Slot string `json:"slot"`
		} `json:"revision"`
		Rollout    *rollout    `json:"rollout"`
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

type condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	ObservedGeneration int64  `json:"observedGeneration"`
}

type rollout struct {
	Phase        string     `json:"phase"`
	Reason       string     `json:"reason"`
	Message      string     `json:"message"`
	Held         string     `json:"held"`
	Epoch        int64      `json:"epoch"`
	Weight       int        `json:"weight"`
	Share        *float64   `json:"share"`
	Stable       string     `json:"stable"`
	Candidate    string     `json:"candidate"`
	Since        time.Time  `json:"since"`
	Until        time.Time  `json:"until"`
	Evidence     []evidence `json:"evidence"`
	LastDecision *decision  `json:"lastDecision"`
	Failed       []failure  `json:"failed"`
}

type evidence struct {
	Name     string   `json:"name"`
	Verdicts string   `json:"verdicts"`
	Value    *float64 `json:"value"`
	Lower    *float64 `json:"lower"`
	Upper    *float64 `json:"upper"`
	Baseline *float64 `json:"baseline"`
	Samples  *int64   `json:"samples"`
	Asked    string   `json:"asked"`
}

type decision struct {
	From    string    `json:"from"`
	To      string    `json:"to"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

type failure struct {
	Revision   string    `json:"revision"`
	Reason     string    `json:"reason"`
	Message    string    `json:"message"`
	Attempts   int       `json:"attempts"`
	RetryAfter time.Time `json:"retryAfter"`
}

type deployment struct {
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Replicas int `json:"replicas"`
	} `json:"spec"`
	Status struct {
		Available int `json:"availableReplicas"`
	} `json:"status"`
}

// slot that a Deployment is for.
func (d deployment) slot() string {
	return d.Metadata.Name[strings.LastIndex(d.Metadata.Name, "-")+1:]
}

func (d deployment) revision() string { return d.Metadata.Annotations["capstan.dev/revision"] }

// phase of the rollout, or what there is without one.
func (v view) phase() string {
	if r := v.algorithm.Status.Rollout; r != nil {
		return r.Phase
	}

	return "unknown: spec.lifecycle is not set"
}

// rolledBack is a phase, and the reason of the condition Updated in it.
const rolledBack = "RolledBack"

// current reports whether the phase is about the latest spec. Crossplane sets conditions before the rest of the status, so
// that for a moment they are about another revision than the phase.
func (v view) current() bool {
	synced, updated := v.condition("Synced"), v.condition("Updated")
	if synced.Status != "True" || synced.ObservedGeneration != v.algorithm.Metadata.Generation {
		return false
	}
	switch v.phase() {
	case "Stable", "Baking", "Draining":
		return updated.Status == "True"
	case rolledBack:
		return updated.Reason == rolledBack || updated.Reason == "CoolingDown"
	default:
		return true
	}
}

// condition of a type, or none.
func (v view) condition(name string) condition {
	for _, c := range v.algorithm.Status.Conditions {
		if c.Type == name {
			return c
		}
	}

	return condition{}
}

// share of requests in percent that may reach a slot.
func (v view) share(d deployment) float64 {
	r := v.algorithm.Status.Rollout
	live := v.algorithm.Status.Revision.Slot == d.slot()
	switch {
	case r != nil && r.Candidate == d.revision() && r.Candidate != "" && r.Share != nil:
		return *r.Share
	case r != nil && r.Candidate == d.revision() && r.Candidate != "":
		return float64(r.Weight)
	case live && r != nil && r.Candidate != "" && r.Share != nil:
		return 100 - *r.Share
	case live && r != nil && r.Candidate != "":
		return float64(100 - r.Weight)
	case live:
		return 100
	default:
		return 0
	}
}
