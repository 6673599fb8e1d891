// SPDX-License-Identifier: Apache-2.0

package database

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
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

	// bucketSecret is the Secret that opens the bucket for backups, if it has one.
	bucketSecret string

	// backupKey is where the key of those backups is, if they are encrypted.
	backupKey keyRef

	// template is the revision of its pod template, once the controller has looked
	// at it, and rolledOut tells that a pod of it was ready since.
	template  string
	rolledOut bool

	// replicas that it asks for, emptied that its controller knows of no pod, and
	// stopped what the member was when it was stopped on purpose.
	replicas int64
	emptied  bool
	stopped  string

	// memory of its server, in bytes.
	memory int64
}

func observeSet(letter string, o compose.Object) set {
	m := o.Map()

	v := set{
		letter:    letter,
		object:    o,
		revision:  compose.Text(m, "metadata", "annotations", annotationRevision),
		restarted: compose.Text(m, "metadata", "annotations", annotationRestarted),
		version:   compose.Text(m, "metadata", "annotations", annotationVersion),
		stopped:   compose.Text(m, "metadata", "annotations", annotationStopped),
		replicas:  compose.Number(m, 1, "spec", "replicas"),
	}

	if compose.Number(m, 0, "status", "observedGeneration") >= compose.Number(m, 0, "metadata", "generation") {
		v.template = compose.Text(m, "status", "updateRevision")
		v.rolledOut = cmp.Or(compose.Text(m, "status", "currentRevision"), v.template) == v.template
		v.emptied = compose.Number(m, 0, "status", "replicas") == 0
	}

	for _, c := range compose.List(m, "spec", "volumeClaimTemplates") {
		if claim, ok := c.(map[string]any); ok {
			v.identity = compose.Text(claim, "metadata", "labels", observev1alpha1.LabelIdentity)
			v.storage = compose.Text(claim, "spec", "resources", "requests", "storage")
		}
	}

	for _, c := range compose.List(m, "spec", "template", "spec", "containers") {
		if container, ok := c.(map[string]any); ok && container["name"] == containerPostgres {
			q, err := resource.ParseQuantity(compose.Text(container, "resources", "limits", "memory"))
			if err == nil {
				v.memory = q.Value()
			}
		}
	}

	for _, c := range compose.List(m, "spec", "template", "spec", "volumes") {
		if volume, ok := c.(map[string]any); ok && volume["name"] == volumeServer {
			v.serverSecret = compose.Text(volume, "secret", "secretName")
		}
	}

	v.bucketSecret = secretOf(compose.List(m, "spec", "template", "spec", "volumes"), volumeBackup)
	v.backupKey = keyIn(compose.List(m, "spec", "template", "spec", "volumes"), volumeBackupKey)

	return v
}

// members that are asked for and those that exist: new ones are made, and at most
// one that exists is changed or let go (see order.go).
func members(s *state) error {
	s.prerequisites()

	for _, letter := range s.expected() {
		if _, exists := s.sets[letter]; exists || s.awaits != nil || s.asleep() {
			continue
		}

		set, err := s.newSet(letter, s.target)
		if err != nil {
			return err
		}

		s.ask(s.in(nameMemberPrefix+letter), set)
	}

	for _, letter := range sortedKeys(s.sets) {
		switch resource := s.in(nameMemberPrefix + letter); letter {
		case s.order.remove:
			s.letGo(resource)
		case s.order.change:
			changed, err := s.changed(letter, s.target)
			if err != nil {
				return err
			}

			s.ask(resource, changed)
		default:
			same, err := s.same(letter)
			if err != nil {
				return err
			}

			s.ask(resource, same)
		}
	}

	return nil
}

// ordered decides what happens to the members in this pass, before anything is
// composed: what Patroni is told depends on it.
func ordered(s *state) error {
	target, err := s.revision()
	if err != nil {
		return err
	}

	s.target = target

	sit := s.situation(target)
	s.move = s.moves(sit)
	sit.applied, sit.hibernated, sit.moving, sit.fenced, sit.handing = s.dcsApplied(), s.spec.Hibernated, s.moving(), s.fenced(), s.fence() != ""
	s.changeID = s.changeHash(target, sit)
	sit.gate, sit.freeze = s.gate(s.changeID), s.frozen()
	sit.hooks = s.hookUp(sit)
	s.before, s.order = sit, sit.decide()
	s.holds = (sit.gate.closed() || sit.hooks.closed()) && !s.order.touches() && !s.order.done

	if s.move != nil && !s.move.asked && !sit.handing {
		s.judge(s.move, sit)
	}

	if s.identity != "" {
		s.planned = s.effects(target)
	}

	return nil
}

// same StatefulSet as there is, but for what hibernation wants of it. One that is as
// the spec asks is told what that is, where a version before has not done so.
func (s *state) same(letter string) (kept, error) {
	k := kept(compose.Keep(s.sets[letter].object))
	annotations := map[string]any{}
	maps.Copy(annotations, compose.Map(k, "metadata", "annotations"))

	replicas := 1.0

	switch {
	case slices.Contains(s.order.stop, letter):
		replicas, annotations[annotationStopped] = 0, stoppedFollowing
		if led := cmp.Or(s.seen.Leader, s.kept().Led); led == s.member(letter) {
			annotations[annotationStopped] = stoppedLeading
		}
	case slices.Contains(s.order.start, letter):
		delete(annotations, annotationStopped)
	case s.sets[letter].revision == s.target && annotations[annotationWish] == nil:
		text, err := s.wishText()
		if err != nil {
			return nil, err
		}

		annotations[annotationWish] = text

		fallthrough
	default:
		return with(k, annotations, nil), nil
	}

	return with(k, annotations, map[string]any{"replicas": replicas}), nil
}

// with other annotations and some other fields of its spec.
func with(k kept, annotations, fields map[string]any) kept {
	metadata := maps.Clone(compose.Map(k, "metadata"))
	if metadata == nil {
		metadata = map[string]any{}
	}

	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}

	k = maps.Clone(k)
	k["metadata"] = metadata

	if len(fields) > 0 {
		spec := map[string]any{}
		maps.Copy(spec, compose.Map(k, "spec"))
		maps.Copy(spec, fields)
		k["spec"] = spec
	}

	return k
}

// wishText is what a revision is made of, as it is written down.
func (s *state) wishText() (string, error) {
	raw, err := json.Marshal(s.wish())
	if err != nil {
		return "", fmt.Errorf("cannot write down what the spec asks for: %w", err)
	}

	return string(raw), nil
}

// prerequisites of members that do not exist yet.
func (s *state) prerequisites() {
	switch {
	case s.unwritten() && len(s.sets) == 0:
		s.await(v1alpha1.ReasonMakingReady, fmt.Sprintf("waiting for the Secret of Credential %q to remember which generation there is: see whether provider-capstan runs", s.called(suffixAccess)))
	case s.Kinds[CertificateGVK] == compose.Unavailable:
		s.await(v1alpha1.ReasonCertManagerMissing, "certificates of members come from cert-manager, which the cluster does not have: install cert-manager")
	case s.identity == "":
		s.await(v1alpha1.ReasonMakingReady, fmt.Sprintf("waiting for the identity of Credential %q: see whether provider-capstan runs", s.called(suffixAccess)))
	case !s.observed:
		s.await(v1alpha1.ReasonMakingReady, fmt.Sprintf("waiting for Topology %q to tell of nodes and zones: see whether provider-capstan runs", s.base()))
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

	for _, resource := range []string{s.in(nameConfig), s.in(nameServiceAccount), s.in(nameRoleBinding), s.in(nameDCS), namePods} {
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
			rolling:        exists && (o.template == "" || !o.rolledOut || m.Revision != "" && o.template != m.Revision),
			stopped:        exists && (o.stopped != "" || o.replicas == 0),
			ledLast:        o.stopped == stoppedLeading,
			emptied:        exists && o.emptied,
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

	template, err := compose.AsMap(s.podTemplate(letter, target, s.order.again))
	if err != nil {
		return nil, fmt.Errorf("cannot render the pod of member %s: %w", s.member(letter), err)
	}

	text, err := s.wishText()
	if err != nil {
		return nil, err
	}

	annotations := map[string]any{}
	maps.Copy(annotations, compose.Map(k, "metadata", "annotations"))
	annotations[annotationRevision] = target
	annotations[annotationVersion] = s.spec.Version
	annotations[annotationWish] = text
	delete(annotations, annotationRestarted)

	if s.order.again {
		annotations[annotationRestarted] = target
	}

	return with(k, annotations, map[string]any{
		"template":             template,
		"volumeClaimTemplates": compose.List(live.Map(), "spec", "volumeClaimTemplates"),
	}), nil
}

// newSet of a member that does not exist.
func (s *state) newSet(letter, target string) (*applyappsv1.StatefulSetApplyConfiguration, error) {
	text, err := s.wishText()
	if err != nil {
		return nil, err
	}

	return applyappsv1.StatefulSet(s.member(letter), s.namespace).
		WithLabels(s.memberLabels(letter)).
		WithAnnotations(map[string]string{annotationRevision: target, annotationVersion: s.spec.Version, annotationWish: text}).
		WithSpec(s.setSpec(letter, target)), nil
}

// memberLabels of what belongs to one member.
func (s *state) memberLabels(letter string) map[string]string {
	l := s.ownLabels()
	l[observev1alpha1.LabelMember] = s.member(letter)

	return l
}
