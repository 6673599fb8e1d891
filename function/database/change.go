// SPDX-License-Identifier: Apache-2.0

package database

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// A wish is what a revision was made of, as it is written down on the StatefulSets that have it, so that one can tell later what
// has changed and by whom.
type revisionInputs struct {
	// Essence is what the revision is the hash of.
	Essence essence `json:"essence"`

	// Plan, and what the spec said itself, tell a change of the spec from one of the platform's settings.
	Plan   string `json:"plan,omitempty"`
	CPU    bool   `json:"ownCPU,omitempty"`
	Memory bool   `json:"ownMemory,omitempty"`
	Issuer bool   `json:"ownIssuer,omitempty"`
}

// An essence is all that reaches the pods of members, as far as the spec and the platform's settings say it.
type essence map[string]any

func (s *cluster) revisionInputs() revisionInputs {
	return revisionInputs{
		Essence: s.essence(),
		Plan:    s.planName(),
		CPU:     s.spec.Resources.CPU != nil,
		Memory:  s.spec.Resources.Memory != nil,
		Issuer:  s.spec.TLS != nil && s.spec.TLS.IssuerRef != nil,
	}
}

// written wish of a member, the way that JSON has it. There is none on those that were made by an older version.
func (o set) written() (revisionInputs, bool) {
	var w revisionInputs
	text := compose.Text(o.object.Map(), "metadata", "annotations", annotationInputs)
	return w, json.Unmarshal([]byte(text), &w) == nil && w.Essence != nil
}

// effects of what is asked for on what runs, by field.
func (s *cluster) effects(target string, holds bool) []v1alpha1.ChangeEffect {
	es := append(s.restarts(target), s.reloads(holds)...)
	if n, wanted := len(s.sets), int(s.spec.Replicas); n != wanted {
		es = append(es, v1alpha1.ChangeEffect{Field: "spec.replicas", Effect: v1alpha1.EffectScale, Cause: v1alpha1.ChangedBySpec})
	}
	if s.grows() {
		es = append(es, v1alpha1.ChangeEffect{Field: "spec.storage", Effect: v1alpha1.EffectGrow, Cause: v1alpha1.ChangedBySpec})
	}
	return gathered(es)
}

// grows reports whether a volume has less than is asked for.
func (s *cluster) grows() bool {
	for letter := range s.sets {
		size, err := resource.ParseQuantity(s.seenMember(letter).VolumeSize)
		if err == nil && size.Cmp(s.spec.Storage) < 0 {
			return true
		}
	}
	return false
}

// restarts are effects that need a restart of members.
func (s *cluster) restarts(target string) []v1alpha1.ChangeEffect {
	var es []v1alpha1.ChangeEffect
	now := decodedInputs(s.revisionInputs())
	for _, letter := range compose.SortedKeys(s.sets) {
		o := s.sets[letter]
		m := s.seenMember(letter)
		if o.revision == target {
			if len(m.PendingRestart) > 0 && o.restarted != target {
				es = append(es, v1alpha1.ChangeEffect{
					Field: fieldConfig, Effect: v1alpha1.EffectRestart, Parameters: m.PendingRestart, Cause: v1alpha1.ChangedBySpec,
				})
			}
			continue
		}
		was, known := o.written()
		if !known {
			es = append(es, v1alpha1.ChangeEffect{Field: "spec", Effect: v1alpha1.EffectRestart, Cause: v1alpha1.ChangedBySpec})
			continue
		}
		es = append(es, differences(s.engine, was, now)...)
	}
	return es
}

// Fields that several things are told of.
const (
	fieldConfig  = "spec.config"
	fieldPlans   = "settings.database.plans"
	fieldVersion = "spec.version"
)

// decodedInputs is a wish as it is when it was written down and read.
func decodedInputs(w revisionInputs) revisionInputs {
	var out revisionInputs
	_ = json.Unmarshal([]byte(encoding.JSON(w)), &out) // It was encoded just now.
	return out
}

// differences of two requests, as fields whose change restarts members.
func differences(e engine.Engine, was, now revisionInputs) []v1alpha1.ChangeEffect {
	var es []v1alpha1.ChangeEffect
	add := func(field, cause string, parameters ...string) {
		es = append(es, v1alpha1.ChangeEffect{Field: field, Effect: v1alpha1.EffectRestart, Parameters: parameters, Cause: cause})
	}
	// sized tells by whom a part of the size was changed.
	sized := func(own, owned bool, field string, parameters ...string) {
		switch {
		case own || owned:
			add(field, v1alpha1.ChangedBySpec, parameters...)
		case was.Plan != now.Plan:
			add("spec.plan", v1alpha1.ChangedBySpec, parameters...)
		default:
			add(fieldPlans, v1alpha1.ChangedBySettings, parameters...)
		}
	}
	for _, key := range compose.SortedKeys(encoding.Union(was.Essence, now.Essence)) {
		if encoding.Same(was.Essence[key], now.Essence[key]) {
			continue
		}
		switch key {
		case essenceImage:
			if !encoding.Same(was.Essence[essenceVersion], now.Essence[essenceVersion]) {
				continue // It comes with the version.
			}
			add("settings.database.images", v1alpha1.ChangedBySettings)
		case essenceCPU:
			sized(now.CPU, was.CPU, "spec.resources.cpu")
		case essenceMemory:
			sized(now.Memory, was.Memory, "spec.resources.memory")
		case essenceServer:
			if now.Issuer || was.Issuer {
				add("spec.tls.issuerRef", v1alpha1.ChangedBySpec)
			} else {
				add("settings.database.issuerRef", v1alpha1.ChangedBySettings)
			}
		case essenceParameters:
			before, after := compose.Map(was.Essence, key), compose.Map(now.Essence, key)
			if !encoding.Same(before[essenceMemory], after[essenceMemory]) {
				sized(now.Memory, was.Memory, "spec.resources.memory", "shared_buffers")
			}
			if !encoding.Same(before["connections"], after["connections"]) {
				sized(false, false, fieldPlans, "max_connections")
			}
			es = append(es, e.Restarted(before, after)...)
		default:
			add(cmp.Or(plainFields[key], "spec"), v1alpha1.ChangedBySpec)
		}
	}
	return es
}

// plainFields of the spec that one part of an essence follows from.
var plainFields = map[string]string{
	essenceVersion:     fieldVersion,
	essenceSpread:      "spec.availability.spread",
	essenceExporter:    "spec.monitoring.enabled",
	essencePullSecrets: "spec.imagePullSecrets",
}

// reloads are effects of another coordination of the members, which take effect at once.
func (s *cluster) reloads(holds bool) []v1alpha1.ChangeEffect {
	live := s.Observed[s.in(nameDCS)]
	if live == nil || len(s.sets) == 0 {
		return nil
	}
	return s.engine.Reloaded(engine.Reload{
		Before: compose.Text(live.Map(), "metadata", "annotations", annotationConfig), After: s.coordination(holds),
		Server: s.server(holds), Set: s.loaded().Reloaded, OwnMemory: s.spec.Resources.Memory != nil,
	})
}

// gathered effects: one for each field, effect and cause, sorted.
func gathered(es []v1alpha1.ChangeEffect) []v1alpha1.ChangeEffect {
	var out []v1alpha1.ChangeEffect
	for _, e := range es {
		i := slices.IndexFunc(out, func(o v1alpha1.ChangeEffect) bool {
			return o.Field == e.Field && o.Effect == e.Effect && o.Cause == e.Cause
		})
		if i < 0 {
			out, i = append(out, v1alpha1.ChangeEffect{Field: e.Field, Effect: e.Effect, Cause: e.Cause}), len(out)
		}
		out[i].Parameters = slices.Compact(slices.Sorted(slices.Values(append(out[i].Parameters, e.Parameters...))))
	}
	slices.SortFunc(out, func(a, b v1alpha1.ChangeEffect) int {
		return strings.Compare(a.Field+" "+a.Effect, b.Field+" "+b.Effect)
	})
	return out
}

// change that is still to be done, or nil.
func (s *decision) change() *v1alpha1.DatabaseChange {
	if len(s.problems) > 0 || len(s.sets) == 0 || s.spec.Hibernated {
		return nil
	}
	es := s.planned
	if m := s.move; m != nil && m.own {
		es = append(slices.Clone(es), v1alpha1.ChangeEffect{
			Field: "node " + m.node, Effect: v1alpha1.EffectSwitchover, Cause: v1alpha1.ChangedByNode,
		})
	}
	upgrades := s.upgradeNext(s.before) && (s.move == nil || !s.move.own)
	if upgrades {
		es = append(slices.Clone(es), v1alpha1.ChangeEffect{Field: fieldVersion, Effect: v1alpha1.EffectUpgrade, Cause: v1alpha1.ChangedBySpec})
	}
	if len(es) == 0 {
		return nil
	}
	c := &v1alpha1.DatabaseChange{
		Hash: s.changeID, Effects: es, State: v1alpha1.ChangeRunning,
		Order: s.before.queue(), WritePause: s.before.pause(s.move != nil && s.move.own),
	}
	if upgrades {
		c.WritePause = s.upgradePause()
	}
	c.Summary = summary(c)
	touching := len(c.Order) > 0 || s.move != nil && s.move.own || upgrades
	if !touching {
		return c
	}
	c.Window = windowAt(s.spec.Maintenance, s.Now)
	if upgrades {
		s.describeUpgrade(c)
	} else {
		s.stand(c)
	}
	return c
}

// stand of a change that touches members.
func (s *decision) stand(c *v1alpha1.DatabaseChange) {
	total := len(s.before.having(func(v view) bool { return v.exists }))
	done := total - len(c.Order)
	switch approved := s.spec.Maintenance != nil && s.spec.Maintenance.Approval == v1alpha1.ApprovalManual && s.spec.Maintenance.Approve == c.Hash; {
	case s.order.failed:
		c.State, c.Message = v1alpha1.ChangeFailed, s.order.message
	case s.order.held && approved && s.order.reason != v1alpha1.ReasonChangeNotApproved:
		c.State, c.Message = v1alpha1.ChangeApproved, s.order.message
	case s.order.held:
		c.State, c.Message = v1alpha1.ChangeWaiting, s.order.message
	case s.move != nil && s.move.gate.closed():
		c.State, c.Message = v1alpha1.ChangeWaiting, s.move.gate.message
	case !s.order.touches() && s.order.reason == v1alpha1.ReasonAwaitingTopology, s.order.reason == v1alpha1.ReasonPaused:
		c.State, c.Message = v1alpha1.ChangeWaiting, s.order.message
	case s.order.done:
	default:
		c.Message = fmt.Sprintf("%d of %d members are as asked", done, total)
	}
	if c.State != v1alpha1.ChangeRunning && done > 0 && len(c.Order) > 0 {
		c.Message += fmt.Sprintf("; %d of %d members are as asked", done, total)
	}
}

// queue of the members that are still to be touched, in that order.
func (s situation) queue() []string {
	outdated := s.outdated()
	slices.SortStableFunc(outdated, func(a, b view) int { return rank(a) - rank(b) })
	surplus := s.surplus()
	slices.Reverse(surplus)
	var names []string
	for _, v := range append(surplus, outdated...) {
		if !slices.Contains(names, v.name) {
			names = append(names, v.name)
		}
	}
	return names
}

// pause of writes that clients have to expect.
func (s situation) pause(requestedMove bool) string {
	touched := append(s.outdated(), s.surplus()...)
	leads := requestedMove || slices.ContainsFunc(touched, view.leading)
	switch {
	case leads && len(s.views) == 1:
		return "until the only member has started again, usually less than a minute"
	case leads:
		return "2 to 4 s, once, while the lead moves to a member that has every commit"
	default:
		return "none"
	}
}

// summary of a change in a line.
func summary(c *v1alpha1.DatabaseChange) string {
	fields := map[string][]string{}
	for _, e := range c.Effects {
		if !slices.Contains(fields[e.Effect], e.Field) {
			fields[e.Effect] = append(fields[e.Effect], e.Field)
		}
	}
	var words []string
	for _, e := range []struct{ effect, word string }{
		{v1alpha1.EffectReload, "reload"},
		{v1alpha1.EffectGrow, "grow volumes"},
		{v1alpha1.EffectScale, "add or remove members"},
		{v1alpha1.EffectRestart, fmt.Sprintf("restart %d of the members", len(c.Order))},
		{v1alpha1.EffectSwitchover, "move the lead"},
		{v1alpha1.EffectUpgrade, "upgrade the data"},
	} {
		if fs := fields[e.effect]; len(fs) > 0 {
			words = append(words, fmt.Sprintf("%s for %s", e.word, strings.Join(fs, ", ")))
		}
	}
	return strings.Join(words, "; ") + "; writes pause: " + c.WritePause
}

// surplus members, by letter.
func (s situation) surplus() []view {
	return s.having(func(v view) bool { return v.exists && !v.expected })
}
