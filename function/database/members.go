// SPDX-License-Identifier: Apache-2.0

package database

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/encoding"
)

// A set is the StatefulSet of a member, as it was observed.
type set struct {
	letter string
	object compose.Object

	// revision, restarted and version as annotations tell, identity as the labels of the volume do.
	revision, restarted, version, identity string

	// storage that the volume was asked for with.
	storage string

	// serverSecret is the Secret with the certificate that clients see.
	serverSecret string

	// bucketSecret is the Secret that opens the bucket for backups, if it has one.
	bucketSecret string

	// backupKey is where the key of those backups is, if they are encrypted.
	backupKey keyRef

	// template is the revision of its pod template, once the controller has looked at it, and rolledOut reports that a pod of it
	// was ready since.
	template  string
	rolledOut bool

	// replicas that it asks for, emptied that its controller knows of no pod, and stopped what the member was when it was stopped
	// on purpose.
	replicas int64
	emptied  bool
	stopped  string

	// memory of its server, in bytes.
	memory int64
}

func observeSet(letter string, o compose.Object, server string) set {
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
		if container, ok := c.(map[string]any); ok && container["name"] == server {
			q, err := resource.ParseQuantity(compose.Text(container, "resources", "limits", "memory"))
			if err == nil {
				v.memory = q.Value()
			}
		}
	}
	volumes := compose.List(m, "spec", "template", "spec", "volumes")
	v.serverSecret, v.bucketSecret, v.backupKey = secretOf(volumes, volumeServer), secretOf(volumes, volumeBackup), keyIn(volumes, volumeBackupKey)
	return v
}

// members that are asked for and those that exist: new ones are made, and at most one that exists is changed or removed (see
// order.go).
func members(d *compose.Draft, s *decision, awaits *awaited) {
	for _, letter := range s.expected() {
		if _, exists := s.sets[letter]; exists || awaits != nil || s.asleep() {
			continue
		}
		d.Add(s.in(nameMemberPrefix+letter), s.newSet(letter, s.target), s.side)
	}
	for _, letter := range compose.SortedKeys(s.sets) {
		switch resource := s.in(nameMemberPrefix + letter); letter {
		case s.order.remove:
			d.Remove(resource)
		case s.order.change:
			d.Add(resource, s.changed(letter, s.target), s.side)
		default:
			d.Add(resource, s.same(letter), s.side)
		}
	}
}

// decide what happens to the active generation. It comes before anything is composed: what members are configured with depends on
// it.
func decide(c *cluster) *decision {
	target := c.revision()
	sit := c.situation(target)
	m := c.requestedMove(sit)
	sit.applied, sit.hibernated, sit.moving, sit.fenced, sit.handing = c.coordinationApplied(), c.spec.Hibernated, c.moving(m), c.fenced(), c.fence() != ""
	id := c.changeHash(target, sit, m)
	sit.gate, sit.freeze = gateOf(c.spec.Maintenance, id, c.Now), frozen(c.spec.Maintenance, c.Now)
	var hooks hooking
	hooks, sit.hooks = c.decideHooks(sit, target, id)
	o := sit.decide()
	d := &decision{
		cluster: c, before: sit, order: o, target: target, changeID: id, hooks: hooks,
		holds: (sit.gate.closed() || sit.hooks.closed()) && !o.touches() && !o.done,
	}
	if m != nil {
		d.move = c.judged(*m, sit, o)
	}
	if c.identity != "" {
		d.planned = c.effects(target, d.holds)
	}
	return d
}

// same StatefulSet as there is, but for what hibernation wants of it. One that is as the spec asks is told what that is, where a
// version before has not done so.
func (s *decision) same(letter string) kept {
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
	case s.sets[letter].revision == s.target && annotations[annotationInputs] == nil:
		annotations[annotationInputs] = encoding.JSON(s.revisionInputs())
		fallthrough
	default:
		return with(k, annotations, nil)
	}
	return with(k, annotations, map[string]any{"replicas": replicas})
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

// awaits is what members that do not exist yet wait for, if there is anything.
func (s *state) awaits() *awaited { return s.missingFor(s.isMemoryPending()) }

// missingFor members that do not exist yet, while a memory is or is not to be written first.
func (s *cluster) missingFor(isMemoryPending bool) *awaited {
	making := func(message string) *awaited { return &awaited{reason: v1alpha1.ReasonMakingReady, message: message} }
	switch {
	case isMemoryPending && len(s.sets) == 0:
		return making(fmt.Sprintf("waiting for the Secret of Credential %q to remember which generation there is: see whether provider-capstan runs", s.called(suffixAccess)))
	case s.Kinds[CertificateGVK] == compose.Unavailable:
		return &awaited{reason: v1alpha1.ReasonCertManagerMissing, message: "certificates of members come from cert-manager, which the cluster does not have: install cert-manager"}
	case s.identity == "":
		return making(fmt.Sprintf("waiting for the identity of Credential %q: see whether provider-capstan runs", s.called(suffixAccess)))
	case !s.observed:
		return making(fmt.Sprintf("waiting for Topology %q to tell of nodes and zones: see whether provider-capstan runs", s.base()))
	}
	for _, c := range s.wantedCertificates() {
		switch o := s.Observed[c.resource]; {
		case o == nil:
			return making(fmt.Sprintf("waiting for Certificate %q", c.name))
		case !compose.IsTrue(o.Map(), "Ready"):
			reason, message := certificateTrouble(o.Map())
			return &awaited{reason: reason, message: fmt.Sprintf("waiting for Certificate %q%s", c.name, message)}
		}
	}
	needed := []string{s.in(nameConfig), s.in(nameServiceAccount), s.in(nameRoleBinding), s.in(nameDCS), namePods}
	if !s.knowsVolumes() || slices.ContainsFunc(needed, func(resource string) bool { return s.Observed[resource] == nil }) {
		return making("waiting for what members need to start: see the condition Composed")
	}
	return nil
}

// situation of the members.
func (s *cluster) situation(target string) situation {
	sit := situation{
		known:       s.observed,
		leads:       s.leads(),
		paused:      s.seen.Paused,
		resume:      s.traits.Resume,
		synchronous: s.synchronous(false),
	}
	all := map[string]bool{}
	for _, letter := range s.expected() {
		all[letter] = true
	}
	for letter := range s.sets {
		all[letter] = true
	}
	for _, letter := range compose.SortedKeys(all) {
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

// plain data of an apply configuration.
func plain(o any) kept {
	m, err := compose.AsMap(o)
	if err != nil {
		panic(err) // It is none.
	}
	return m
}

// kept object, as a named one.
type kept map[string]any

// GetKind of the object.
func (k kept) GetKind() *string { return new(compose.Text(k, "kind")) }

// GetName of the object.
func (k kept) GetName() *string { return new(compose.Text(k, "metadata", "name")) }

// changed StatefulSet: with the template that the spec asks for, and with all else as it is. Its claims cannot be changed.
func (s *decision) changed(letter, target string) kept {
	live := s.sets[letter].object
	k := kept(compose.Keep(live))
	annotations := map[string]any{}
	maps.Copy(annotations, compose.Map(k, "metadata", "annotations"))
	annotations[annotationRevision] = target
	annotations[annotationVersion] = s.data
	annotations[annotationInputs] = encoding.JSON(s.revisionInputs())
	delete(annotations, annotationRestarted)
	if s.order.again {
		annotations[annotationRestarted] = target
	}
	return with(k, annotations, map[string]any{
		"template":             map[string]any(plain(s.podTemplate(letter, target, s.order.again))),
		"volumeClaimTemplates": compose.List(live.Map(), "spec", "volumeClaimTemplates"),
	})
}

// newSet of a member that does not exist.
func (s *cluster) newSet(letter, target string) *applyappsv1.StatefulSetApplyConfiguration {
	return applyappsv1.StatefulSet(s.member(letter), s.namespace).
		WithLabels(s.memberLabels(letter)).
		WithAnnotations(map[string]string{annotationRevision: target, annotationVersion: s.data, annotationInputs: encoding.JSON(s.revisionInputs())}).
		WithSpec(s.setSpec(letter, target))
}

// memberLabels of what belongs to one member.
func (s *names) memberLabels(letter string) map[string]string {
	l := s.ownLabels()
	l[observev1alpha1.LabelMember] = s.member(letter)
	return l
}
