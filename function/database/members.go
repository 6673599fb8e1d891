// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"maps"
	"slices"

	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// A set is the StatefulSet of a member, as it was observed.
type set struct {
	letter string
	object compose.Object

	// revision, restarted and version as annotations tell, identity as the labels of
	// the volume do.
	revision, restarted, version, identity string

	// storage that the volume was asked for with.
	storage string

	// serverSecret is the Secret with the certificate that clients see.
	serverSecret string

	// template is the revision of its pod template, once the controller has looked
	// at it.
	template string
}

func observeSet(letter string, o compose.Object) set {
	m := o.Map()

	v := set{
		letter:    letter,
		object:    o,
		revision:  compose.Text(m, "metadata", "annotations", annotationRevision),
		restarted: compose.Text(m, "metadata", "annotations", annotationRestarted),
		version:   compose.Text(m, "metadata", "annotations", annotationVersion),
	}

	if compose.Number(m, 0, "status", "observedGeneration") >= compose.Number(m, 0, "metadata", "generation") {
		v.template = compose.Text(m, "status", "updateRevision")
	}

	for _, c := range compose.List(m, "spec", "volumeClaimTemplates") {
		if claim, ok := c.(map[string]any); ok {
			v.identity = compose.Text(claim, "metadata", "labels", observev1alpha1.LabelIdentity)
			v.storage = compose.Text(claim, "spec", "resources", "requests", "storage")
		}
	}

	for _, c := range compose.List(m, "spec", "template", "spec", "volumes") {
		if volume, ok := c.(map[string]any); ok && volume["name"] == volumeServer {
			v.serverSecret = compose.Text(volume, "secret", "secretName")
		}
	}

	return v
}

// members that are asked for and those that exist: new ones are made, and at most
// one that exists is changed or let go (see order.go).
func members(s *state) error {
	target, err := s.revision()
	if err != nil {
		return err
	}

	s.order = s.situation(target).decide()

	s.prerequisites()

	for _, letter := range s.expected() {
		if _, exists := s.sets[letter]; !exists && s.awaits == nil {
			s.ask(nameMemberPrefix+letter, s.newSet(letter, target))
		}
	}

	for _, letter := range sortedKeys(s.sets) {
		switch resource := nameMemberPrefix + letter; letter {
		case s.order.remove:
			s.letGo(resource)
		case s.order.change:
			changed, err := s.changed(letter, target)
			if err != nil {
				return err
			}

			s.ask(resource, changed)
		default:
			s.ask(resource, kept(compose.Keep(s.sets[letter].object)))
		}
	}

	return nil
}

// prerequisites of members that do not exist yet.
func (s *state) prerequisites() {
	switch {
	case s.Kinds[CertificateGVK] == compose.Unavailable:
		s.await(v1alpha1.ReasonCertManagerMissing, "certificates of members come from cert-manager, which the cluster does not have: install cert-manager")
	case s.identity == "":
		s.await(v1alpha1.ReasonMakingReady, fmt.Sprintf("waiting for the identity of Credential %q: see whether provider-capstan runs", s.called(suffixAccess)))
	case !s.observed:
		s.await(v1alpha1.ReasonMakingReady, fmt.Sprintf("waiting for Topology %q to tell of nodes and zones: see whether provider-capstan runs", s.name))
	}

	for _, c := range s.wantedCertificates() {
		o := s.Observed[c.resource]

		switch {
		case o == nil:
			s.await(v1alpha1.ReasonMakingReady, fmt.Sprintf("waiting for Certificate %q", c.name))
		case !compose.IsTrue(o.Map(), "Ready"):
			reason, message := certificateTrouble(o.Map())
			s.await(reason, fmt.Sprintf("waiting for Certificate %q%s", c.name, message))
		}
	}

	if !s.remembersVolumes() {
		s.await(v1alpha1.ReasonMakingReady, "waiting for what members need to start: see the condition Composed")
	}

	for _, resource := range []string{nameConfig, nameServiceAccount, nameRoleBinding, nameDCS, namePods} {
		if s.Observed[resource] == nil {
			s.await(v1alpha1.ReasonMakingReady, "waiting for what members need to start: see the condition Composed")
		}
	}
}

// situation of the members.
func (s *state) situation(target string) situation {
	sit := situation{
		known:       s.observed,
		leads:       s.leads(),
		paused:      s.seen.Paused,
		synchronous: s.synchronous(),
		applied:     s.dcsApplied(),
	}

	all := map[string]bool{}
	for _, letter := range s.expected() {
		all[letter] = true
	}

	for letter := range s.sets {
		all[letter] = true
	}

	for _, letter := range sortedKeys(all) {
		o, exists := s.sets[letter]
		m := s.seenMember(letter)
		sit.views = append(sit.views, view{
			letter:         letter,
			name:           s.member(letter),
			exists:         exists,
			expected:       slices.Contains(s.expected(), letter),
			current:        exists && o.revision == target,
			restarted:      exists && o.restarted == target,
			settled:        exists && o.template != "" && o.template == m.Revision,
			TopologyMember: m,
		})
	}

	for _, m := range s.seen.Members {
		if letter := s.letterOf(m.Name); !all[letter] {
			sit.strangers = append(sit.strangers, m.Name)
		}
	}

	return sit
}

// kept object, as a named one.
type kept map[string]any

// GetKind of the object.
func (k kept) GetKind() *string { return new(compose.Text(k, "kind")) }

// GetName of the object.
func (k kept) GetName() *string { return new(compose.Text(k, "metadata", "name")) }

// changed StatefulSet: with the template that the spec asks for, and with all else
// as it is. Its claims cannot be changed.
func (s *state) changed(letter, target string) (kept, error) {
	live := s.sets[letter].object
	k := kept(compose.Keep(live))

	template, err := asMap(s.podTemplate(letter, target, s.order.again))
	if err != nil {
		return nil, fmt.Errorf("cannot render the pod of member %s: %w", s.member(letter), err)
	}

	annotations := map[string]any{}
	maps.Copy(annotations, compose.Map(k, "metadata", "annotations"))
	annotations[annotationRevision] = target
	annotations[annotationVersion] = s.spec.Version
	delete(annotations, annotationRestarted)

	if s.order.again {
		annotations[annotationRestarted] = target
	}

	metadata := maps.Clone(compose.Map(k, "metadata"))
	metadata["annotations"] = annotations

	spec := map[string]any{}
	maps.Copy(spec, compose.Map(k, "spec"))
	spec["template"] = template
	spec["volumeClaimTemplates"] = compose.List(live.Map(), "spec", "volumeClaimTemplates")

	k = maps.Clone(k)
	k["metadata"], k["spec"] = metadata, spec

	return k, nil
}

// newSet of a member that does not exist.
func (s *state) newSet(letter, target string) *applyappsv1.StatefulSetApplyConfiguration {
	return applyappsv1.StatefulSet(s.member(letter), s.namespace).
		WithLabels(s.memberLabels(letter)).
		WithAnnotations(map[string]string{annotationRevision: target, annotationVersion: s.spec.Version}).
		WithSpec(s.setSpec(letter, target))
}

// memberLabels of what belongs to one member.
func (s *state) memberLabels(letter string) map[string]string {
	l := s.labels()
	l[observev1alpha1.LabelMember] = s.member(letter)

	return l
}
