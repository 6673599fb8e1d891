// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// bar is how many columns all requests are.
const bar = 40

// Algorithm is what was seen of one at a time.
type Algorithm struct {
	Now         time.Time
	Object      v1alpha1.Algorithm
	Deployments []appsv1.Deployment

	// Canary has the numbers of the evidence, if they could be read.
	Canary *observev1alpha1.CanaryObservation
}

// slot that a Deployment is for.
func slot(d appsv1.Deployment) string { return d.Name[strings.LastIndex(d.Name, "-")+1:] }

func revision(d appsv1.Deployment) string {
	return d.Annotations[observev1alpha1.AnnotationRevision]
}

// slots are the Deployments of slots. An activator has one as well.
func (v Algorithm) slots() []appsv1.Deployment {
	var all []appsv1.Deployment
	for _, d := range v.Deployments {
		if s := slot(d); (s == "a" || s == "b") && revision(d) != "" {
			all = append(all, d)
		}
	}

	return all
}

func (v Algorithm) live() string {
	if r := v.Object.Status.Revision; r != nil {
		return r.Slot
	}

	return ""
}

// phase of the rollout, or what there is without one.
func (v Algorithm) phase() string {
	if r := v.Object.Status.Rollout; r != nil {
		return string(r.Phase)
	}

	return "unknown: spec.lifecycle is not set"
}

// Phase of the rollout, and whether it is about the latest spec. Crossplane sets conditions before the rest of the status, so that for a
// moment they are about another revision than the phase.
func (v Algorithm) Phase() (phase string, current bool) {
	phase = v.phase()
	all := v.Object.Status.Conditions
	if !synced(all, v.Object.Generation) {
		return phase, false
	}
	updated := condition(all, v1alpha1.TypeUpdated)
	switch v1alpha1.RolloutPhase(phase) {
	case v1alpha1.RolloutStable, v1alpha1.RolloutBaking, v1alpha1.RolloutDraining:
		return phase, updated.Status == corev1.ConditionTrue
	case v1alpha1.RolloutRolledBack:
		return phase, updated.Reason == v1alpha1.ReasonRolledBack || updated.Reason == v1alpha1.ReasonCoolingDown
	default:
		return phase, true
	}
}

// share of requests in percent that may reach a slot.
func (v Algorithm) share(d appsv1.Deployment) float64 {
	r := v.Object.Status.Rollout
	tried := r != nil && r.Candidate != ""
	switch live := v.live() == slot(d); {
	case tried && r.Candidate == revision(d) && r.Share != nil:
		return *r.Share
	case tried && r.Candidate == revision(d):
		return float64(r.Weight)
	case live && tried && r.Share != nil:
		return 100 - *r.Share
	case live && tried:
		return float64(100 - r.Weight)
	case live:
		return 100
	default:
		return 0
	}
}

// Draw the Algorithm.
func (v Algorithm) Draw(columns int) []string {
	p := &picture{columns: columns}
	a := v.Object
	p.add(bold, fmt.Sprintf("Algorithm %s/%s is %s", a.Namespace, a.Name, a.Status.Phase))
	if e := strings.TrimSpace(a.Status.Endpoint + "  " + a.Status.Route); e != "" {
		p.add(faint, e)
	}
	r := a.Status.Rollout
	if r == nil {
		p.add("", "the rollout is "+v.phase())
		p.slots(v)
		p.blocks(a.Status.Conditions)

		return p.lines
	}

	title := string(r.Phase)
	if r.Held != "" {
		title += " " + string(r.Held)
	}
	if r.Reason != "" {
		title += ", " + r.Reason
	}
	words := ""
	if r.Since != nil {
		words = "  for " + span(v.Now.Sub(r.Since.Time))
	}
	if r.Until != nil && r.Until.After(v.Now) {
		words += ", " + span(r.Until.Sub(v.Now)) + " to go"
	}
	p.parts(part{colourOf(r.Phase) + bold, title}, part{"", words}, part{faint, fmt.Sprintf("  epoch %d", r.Epoch)})
	p.wrap("", "", r.Message)
	p.add("", "")
	p.slots(v)
	p.add("", "")
	p.checks(v)
	if d := r.LastDecision; d != nil && d.Message != r.Message {
		p.wrap(faint, "last decision  ", fmt.Sprintf("%s → %s, %s: %s", d.From, d.To, d.Reason, d.Message))
	}
	for _, f := range r.Failed {
		p.wrap(red, "failed         ", fmt.Sprintf("%s, attempt %d, %s: %s", f.Revision, f.Attempts, f.Reason, f.Message))
	}
	// What the rollout waits for is above.
	p.blocks(slices.DeleteFunc(slices.Clone(a.Status.Conditions), func(c xpv2.Condition) bool {
		return c.Type == v1alpha1.TypeUpdated && r.Message != "" && strings.HasPrefix(c.Message, r.Message)
	}))

	return p.lines
}

// Line is the rollout in one line.
func (v Algorithm) Line() string {
	r := v.Object.Status.Rollout
	if r == nil {
		return fmt.Sprintf("%s, the rollout is %s", v.Object.Status.Phase, v.phase())
	}
	words := []string{fmt.Sprintf("%-13s %3d %%  %s", r.Phase, r.Weight, r.Reason)}
	for _, d := range v.slots() {
		words = append(words, fmt.Sprintf("slot %s: %s %d/%d", slot(d), revision(d), d.Status.AvailableReplicas, wanted(d)))
	}
	for _, e := range r.Evidence {
		told := strings.TrimSpace(fmt.Sprintf("%s: %s %s", e.Name, e.Verdicts, number(v.measured(e.Name).Value)))
		if e.Samples != nil {
			told += " of " + samples(e)
		}
		words = append(words, told)
	}

	return strings.Join(append(words, r.Message), "  ")
}

// measured are the numbers of a check.
func (v Algorithm) measured(name string) observev1alpha1.CanaryCheck {
	if v.Canary == nil || v.Object.Status.Rollout == nil || v.Canary.Epoch != v.Object.Status.Rollout.Epoch {
		return observev1alpha1.CanaryCheck{}
	}
	for _, c := range v.Canary.Checks {
		if c.Name == name {
			return c
		}
	}

	return observev1alpha1.CanaryCheck{}
}

func wanted(d appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}

	return *d.Spec.Replicas
}

// slots with what runs in them, and the share of requests that may reach it.
func (p *picture) slots(v Algorithm) {
	for _, d := range v.slots() {
		share := v.share(d)
		full := int(math.Round(share / 100 * bar))
		role := "live     "
		if r := v.Object.Status.Rollout; r != nil && r.Candidate != "" && r.Candidate == revision(d) {
			role = "candidate"
		} else if slot(d) != v.live() {
			role = "idle     "
		}
		p.parts(
			part{"", fmt.Sprintf("slot %s  %s  %-10s  %2d of %2d replicas  ", slot(d), role, revision(d), d.Status.AvailableReplicas, wanted(d))},
			part{green, strings.Repeat("█", full)},
			part{faint, strings.Repeat("░", bar-full)},
			part{bold, fmt.Sprintf(" %5.4g %%", share)},
		)
	}
}

// checks with what is known of the candidate.
func (p *picture) checks(v Algorithm) {
	all := v.Object.Status.Rollout.Evidence
	if len(all) == 0 {
		return
	}
	p.add(faint, fmt.Sprintf("%-25s %-10s %9s %19s %9s %8s  %s", "check", "verdicts", "value", "between", "baseline", "of", "asked"))
	for _, e := range all {
		m := v.measured(e.Name)
		between := ""
		if m.Lower != nil && m.Upper != nil {
			between = number(m.Lower) + " and " + number(m.Upper)
		}
		verdicts := make([]part, 0, len(e.Verdicts)+1)
		for _, letter := range e.Verdicts {
			colour := yellow
			switch letter {
			case 'P':
				colour = green
			case 'F':
				colour = red + bold
			}
			verdicts = append(verdicts, part{colour, string(letter)})
		}
		verdicts = append(verdicts, part{"", strings.Repeat(" ", max(10-len(e.Verdicts), 0))})
		p.parts(append(append([]part{{"", fmt.Sprintf("%-25s ", e.Name)}}, verdicts...),
			part{bold, fmt.Sprintf(" %9s", number(m.Value))},
			part{"", fmt.Sprintf(" %19s %9s %8s  %s", between, number(m.Baseline), samples(e), e.Asked)})...)
		if e.Message != "" {
			p.wrap(yellow, "  ", e.Message)
		}
	}
	p.add("", "")
}

// number to four digits, as a person reads them.
func number(v *float64) string {
	if v == nil {
		return ""
	}

	return fmt.Sprintf("%.4g", *v)
}

func samples(e v1alpha1.EvidenceStatus) string {
	if e.Samples == nil {
		return ""
	}

	return strconv.FormatInt(*e.Samples, 10)
}

func colourOf(phase v1alpha1.RolloutPhase) string {
	switch phase {
	case v1alpha1.RolloutRollingBack, v1alpha1.RolloutRolledBack:
		return red
	case v1alpha1.RolloutHolding:
		return yellow
	default:
		return green
	}
}
