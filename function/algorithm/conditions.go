// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
)

// tell a condition. No message holds what changes by itself, such as a number
// of pods: each write of one wakes the Algorithm up again.
func (s *state) tell(c xpv2.Condition) { s.plan.Conditions = append(s.plan.Conditions, c) }

func accepted(s *state) error {
	s.plan.Conditions = append(s.plan.Conditions, check.Accepted(s.problems))

	return nil
}

func composed(s *state) error {
	s.plan.Conditions = append(s.plan.Conditions, compose.Composed(s.Request, s.asked, s.withholding, len(s.problems) == 0))

	return nil
}

func healthy(s *state) error {
	c := xpv2.Condition{Type: v1alpha1.TypePodsHealthy, Status: corev1.ConditionFalse}
	reason, message := s.trouble(s.ledger.Slot)

	switch {
	case !s.running.exists && len(s.problems) > 0:
		c.Reason, c.Message = v1alpha1.ReasonStarting, "nothing runs, because the spec is not accepted: see the condition Accepted"
	case !s.running.exists && s.awaits != nil:
		c.Reason, c.Message = v1alpha1.ReasonStarting, "nothing runs yet: see the condition Updated"
	case !s.running.exists:
		c.Reason, c.Message = v1alpha1.ReasonStarting, "the Deployment does not exist yet: see the condition Composed"
	case s.stopped():
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, v1alpha1.ReasonStopped, "zero replicas are asked for: raise spec.replicas to serve"
	case reason != "":
		c.Reason, c.Message = reason, message
	case s.rolledOut() && s.serving():
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, v1alpha1.ReasonServing, "pods serve, and nothing hinders them"
	case s.unhindered() && compose.IsTrue(s.Composite.Map(), v1alpha1.TypePodsHealthy):
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, v1alpha1.ReasonServing, "pods serve, and nothing hinders them"
	case s.running.stalled:
		c.Reason, c.Message = v1alpha1.ReasonStarting, fmt.Sprintf(
			"pods are not ready after the time they have, and no cause was found: read their logs with kubectl logs -n %s -l %s",
			s.namespace, query(s.selector(s.ledger.Slot)))
	case s.serving():
		c.Reason, c.Message = v1alpha1.ReasonStarting, "new pods are starting, and those before them serve until then"
	default:
		c.Reason, c.Message = v1alpha1.ReasonStarting, "pods are starting"
	}

	s.tell(c)

	return nil
}

// unhindered tells whether pods serve and those that are missing are on their
// way, as after a change of size. What was well until then stays well: the phase
// tells of the progress.
func (s *state) unhindered() bool {
	reason, _ := s.trouble(s.ledger.Slot)
	return s.running.available > 0 && reason == "" && !s.running.stalled
}

// trouble that keeps the pods of a slot from serving, as reason and message.
// While every pod serves there is none, whatever was found before.
func (s *state) trouble(slot string) (xpv2.ConditionReason, string) {
	r := s.slots[slot]
	refusal := withoutPod(r.refusal)

	switch {
	case r.complete():
		return "", ""
	case strings.Contains(refusal, "exceeded quota"):
		return v1alpha1.ReasonQuotaExceeded, refusal +
			": raise the quota of the namespace, or lower spec.replicas or spec.resources"
	case refusal != "":
		return v1alpha1.ReasonPodsRefused, refusal +
			": satisfy what refuses the pods, or correct the field of the spec that it names"
	}

	reason, message := s.finding(slot)

	return xpv2.ConditionReason(reason), message
}

// usedOfQuota is the part of a refusal by a quota that tells what is used:
//
//	exceeded quota: q, requested: cpu=2, used: cpu=9, limited: cpu=10
var usedOfQuota = regexp.MustCompile(`used: .*?, limited:`)

// withoutPod is a refusal without the name of the pod, which is another one at
// every try:
//
//	pods "reco-a-7d9f8-x2b4c" is forbidden: exceeded quota: …
func withoutPod(refusal string) string {
	// What others use of a quota changes without us.
	refusal = usedOfQuota.ReplaceAllString(refusal, "limited:")

	before, rest, ok := strings.Cut(refusal, `pods "`)
	if !ok {
		return refusal
	}

	if _, after, ok := strings.Cut(rest, `"`); ok {
		return before + "every pod" + after
	}

	return refusal
}

// query is a selector in the form of a label query.
func query(selector map[string]string) string {
	words := make([]string, 0, len(selector))
	for _, k := range slices.Sorted(maps.Keys(selector)) {
		words = append(words, k+"="+selector[k])
	}

	return strings.Join(words, ",")
}
