// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

const (
	// remembered is how many ids are kept, and shown how many are reported.
	remembered, shown = 64, 8

	// switchoverLimit is how long members may take. In the slowest profile a leader releases its lock after 90 s.
	switchoverLimit = 2 * time.Minute

	// switchoverRefused is how long to wait before a request that the members have removed without a new leader counts as refused. The
	// observations come by several ways.
	switchoverRefused = 15 * time.Second

	// switchoverPace is how often to look in between.
	switchoverPace = 2 * time.Second
)

// outcomes that are recorded, oldest first. An unreadable record is none.
func outcomes(annotations map[string]string) []v1alpha1.SwitchoverOutcome {
	var all []v1alpha1.SwitchoverOutcome
	if json.Unmarshal([]byte(annotations[annotationSwitchovers]), &all) != nil {
		return nil
	}
	var known []v1alpha1.SwitchoverOutcome
	for _, o := range all {
		for _, field := range []*string{&o.ID, &o.From, &o.To, &o.State} {
			*field = words.Bounded(words.OneLine(*field), maxReason)
		}
		o.Message = words.Bounded(words.OneLine(o.Message), maxMessage)

		// A list by id, or the API server would not take the status.
		if !slices.ContainsFunc(known, func(k v1alpha1.SwitchoverOutcome) bool { return k.ID == o.ID }) {
			known = append(known, o)
		}
	}
	return known[max(0, len(known)-remembered):]
}

// switchovers are the last outcomes, and the one of the requested switchover.
func (v *view) switchovers() []v1alpha1.SwitchoverOutcome {
	all := outcomes(v.records[members.SuffixConfig])
	last := all[max(0, len(all)-shown):]
	if w := v.parameters.Switchover; w != nil {
		i := slices.IndexFunc(all, func(o v1alpha1.SwitchoverOutcome) bool { return o.ID == w.ID })
		if i >= 0 && i < len(all)-len(last) {
			return append([]v1alpha1.SwitchoverOutcome{all[i]}, last...)
		}
	}
	return last
}

// A duty is what to do about a switchover.
type duty int

const (
	// nothing to do.
	nothing duty = iota
	// await the outcome of one.
	await
	// begin the requested one.
	begin
	// end one that has an outcome.
	end
)

// due is what to do, and the outcome to record. It does not decide whether the leader should change, only what became of a
// request.
func due(known []v1alpha1.SwitchoverOutcome, w *v1alpha1.TopologySwitchover, leader string, failover map[string]string, now time.Time) (duty, v1alpha1.SwitchoverOutcome) {
	if i := slices.IndexFunc(known, func(o v1alpha1.SwitchoverOutcome) bool { return o.State == v1alpha1.SwitchoverAsked }); i >= 0 {
		o := known[i]
		age := now.Sub(o.At.Time)
		put := failover[members.AnnotationLeader] == "" && failover[members.AnnotationCandidate] == ""
		switch {
		case leader != "" && leader != o.From && leader == o.To:
			o.State = v1alpha1.SwitchoverDone
		case leader != "" && leader != o.From:
			o.State, o.Message = v1alpha1.SwitchoverDone, fmt.Sprintf("member %s is the leader instead of %s", leader, o.To)
			o.To = leader
		case leader == o.From && put && age > switchoverRefused:
			o.State = v1alpha1.SwitchoverFailed
			o.Message = fmt.Sprintf("the members refused it: the log of member %s has the reason", o.From)
		case age > switchoverLimit:
			o.State = v1alpha1.SwitchoverFailed
			o.Message = fmt.Sprintf("no other member became the leader within %s: see the logs of the members", switchoverLimit)
		default:
			return await, o
		}
		return end, o
	}
	if w == nil || slices.ContainsFunc(known, func(o v1alpha1.SwitchoverOutcome) bool { return o.ID == w.ID }) {
		return nothing, v1alpha1.SwitchoverOutcome{}
	}
	o := v1alpha1.SwitchoverOutcome{ID: w.ID, From: w.From, To: w.To, State: v1alpha1.SwitchoverAsked, At: metav1.NewTime(now).Rfc3339Copy()}
	switch {
	case leader == "":
		return await, o
	case leader == w.To:
		o.State, o.Message = v1alpha1.SwitchoverDone, fmt.Sprintf("member %s was the leader already", w.To)
		return end, o
	case leader != w.From:
		o.State, o.Message = v1alpha1.SwitchoverFailed, fmt.Sprintf("member %s is the leader, and not %s", leader, w.From)
		return end, o
	}
	return begin, o
}

// due for a view.
func (v *view) due(leader string) (duty, v1alpha1.SwitchoverOutcome) {
	return due(outcomes(v.records[members.SuffixConfig]), v.parameters.Switchover, leader, v.records[members.SuffixFailover], v.now)
}
