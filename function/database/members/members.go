// SPDX-License-Identifier: Apache-2.0

// Package members composes the members of a generation, and what belongs to them alone: their account, configuration, Topology
// and volumes.
package members

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/certificates"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/objects"
	"github.com/capstan-dev/capstan/function/database/podinputs"
	"github.com/capstan-dev/capstan/function/database/pods"
)

// Compose the members that are desired and those that exist: new ones are made, and at most one that exists is changed or removed
// (see the package order).
func Compose(d *compose.Draft, s *decision.Decision, awaits *facts.Awaited) {
	for _, letter := range s.Expected() {
		if _, exists := s.Sets[letter]; exists || awaits != nil || s.Asleep() {
			continue
		}
		d.Add(s.In(names.MemberPrefix+letter), newSet(s.Cluster, letter, s.Target), s.Side)
	}
	for _, letter := range compose.SortedKeys(s.Sets) {
		switch resource := s.In(names.MemberPrefix + letter); letter {
		case s.Order.Remove:
			d.Remove(resource)
		case s.Order.Change:
			d.Add(resource, changed(s, letter, s.Target), s.Side)
		default:
			d.Add(resource, same(s, letter), s.Side)
		}
	}
}

// same StatefulSet as there is, except for what hibernation changes. One that is as the spec desires gets the annotation with its
// inputs, if an earlier version of Capstan did not write it.
func same(s *decision.Decision, letter string) objects.Kept {
	k := objects.Kept(compose.Keep(s.Sets[letter].Object))
	annotations, replicas := encoding.Union(compose.Map(k, "metadata", "annotations"), nil), 1.0
	switch {
	case slices.Contains(s.Order.Stop, letter):
		replicas, annotations[names.AnnotationStopped] = 0, facts.StoppedFollowing
		if leader := cmp.Or(s.Seen.Leader, s.Kept().Led); leader == s.Member(letter) {
			annotations[names.AnnotationStopped] = facts.StoppedLeading
		}
	case slices.Contains(s.Order.Start, letter):
		delete(annotations, names.AnnotationStopped)
	case s.Sets[letter].Revision == s.Target && annotations[names.AnnotationInputs] == nil:
		annotations[names.AnnotationInputs] = encoding.JSON(podinputs.Inputs(s.Cluster))
		fallthrough
	default:
		return objects.With(k, annotations, nil)
	}
	return objects.With(k, annotations, map[string]any{"replicas": replicas})
}

// Missing is what members that do not exist yet wait for; nil when nothing is missing.
func Missing(s *decision.Pass) *facts.Awaited { return MissingFor(s.Cluster, s.IsMemoryPending()) }

// MissingFor is what new members of a generation wait for; nil when nothing is missing. A pending memory must be written first.
func MissingFor(s *facts.Cluster, isMemoryPending bool) *facts.Awaited {
	making := func(message string) *facts.Awaited {
		return &facts.Awaited{Reason: v1alpha1.ReasonMakingReady, Message: message}
	}
	switch {
	case isMemoryPending && len(s.Sets) == 0:
		return making(fmt.Sprintf("waiting for provider-capstan to write the generation to the Secret of Credential %q: check that provider-capstan runs", s.Called(names.SuffixAccess)))
	case s.Kinds[names.CertificateGVK] == compose.Unavailable:
		return &facts.Awaited{Reason: v1alpha1.ReasonCertManagerMissing, Message: "members need certificates of cert-manager, which the cluster does not have: install cert-manager"}
	case s.Identity == "":
		return making(fmt.Sprintf("waiting for provider-capstan to set the identity of Credential %q: check that provider-capstan runs", s.Called(names.SuffixAccess)))
	case !s.HasTopology:
		return making(fmt.Sprintf("waiting for provider-capstan to report nodes and zones in Topology %q: check that provider-capstan runs", s.Base()))
	}
	if former := podinputs.Former(s); len(former) > 0 {
		return &facts.Awaited{Reason: v1alpha1.ReasonVolumesExist, Message: fmt.Sprintf(
			"there are volumes of an earlier Database of this name, of members %s, and a Preview uses and deletes no data but its own: give the Preview another name, "+
				"or release these volumes and delete them, if no team needs their data", strings.Join(former, ", "))}
	}
	if s.FillsVolume() && !s.Filled() {
		return making(fmt.Sprintf("waiting for provider-capstan to make the volume of member %s from snapshot %q: check VolumeClaim %q", s.Member(names.Letters[0]), s.SourceSnapshot(), s.Base()))
	}
	for _, c := range certificates.Awaited(s) {
		switch o := s.Observed[c.Resource]; {
		case o == nil:
			return making(fmt.Sprintf("waiting for Certificate %q, which does not exist yet: check the condition Composed", c.Name))
		case !compose.IsTrue(o.Map(), "Ready"):
			reason, message := certificates.Trouble(o.Map())
			return &facts.Awaited{Reason: reason, Message: fmt.Sprintf("waiting for Certificate %q%s", c.Name, message)}
		}
	}
	needed := []string{s.In(names.Config), s.In(names.ServiceAccount), s.In(names.RoleBinding), s.In(names.DCS), names.Pods}
	if !podinputs.KnowsVolumes(s) || slices.ContainsFunc(needed, func(resource string) bool { return s.Observed[resource] == nil }) {
		return making("members wait for their configuration, account or Service: check the condition Composed")
	}
	return nil
}

// changed StatefulSet: with the template that the spec desires, and with all else as it is. Its claims cannot be changed.
func changed(s *decision.Decision, letter, target string) objects.Kept {
	live := s.Sets[letter].Object
	k := objects.Kept(compose.Keep(live))
	annotations := encoding.Union(compose.Map(k, "metadata", "annotations"), map[string]any{
		names.AnnotationRevision: target, names.AnnotationVersion: s.Data, names.AnnotationInputs: encoding.JSON(podinputs.Inputs(s.Cluster)),
	})
	delete(annotations, names.AnnotationRestarted)
	if s.Order.Again {
		annotations[names.AnnotationRestarted] = target
	}
	return objects.With(k, annotations, map[string]any{
		"template":             map[string]any(objects.Plain(pods.PodTemplate(s.Cluster, letter, target, s.Order.Again))),
		"volumeClaimTemplates": compose.List(live.Map(), "spec", "volumeClaimTemplates"),
	})
}

// newSet of a member that does not exist.
func newSet(s *facts.Cluster, letter, target string) *applyappsv1.StatefulSetApplyConfiguration {
	return applyappsv1.StatefulSet(s.Member(letter), s.Namespace).
		WithLabels(s.MemberLabels(letter)).
		WithAnnotations(map[string]string{names.AnnotationRevision: target, names.AnnotationVersion: s.Data, names.AnnotationInputs: encoding.JSON(podinputs.Inputs(s))}).
		WithSpec(pods.SetSpec(s, letter, target))
}
