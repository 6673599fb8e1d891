// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// A wish is what a revision was made of, as it is written down on the StatefulSets that have it, so that one can tell later what
// has changed and by whom.
type RevisionInputs struct {
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

func Inputs(s *facts.Cluster) RevisionInputs {
	return RevisionInputs{
		Essence: essenceOf(s),
		Plan:    s.PlanName(),
		CPU:     s.Spec.Resources.CPU != nil,
		Memory:  s.Spec.Resources.Memory != nil,
		Issuer:  s.Spec.TLS != nil && s.Spec.TLS.IssuerRef != nil,
	}
}

// written wish of a member, the way that JSON has it. There is none on those that were made by an older version.
func written(o facts.Set) (RevisionInputs, bool) {
	var w RevisionInputs
	text := compose.Text(o.Object.Map(), "metadata", "annotations", names.AnnotationInputs)
	return w, json.Unmarshal([]byte(text), &w) == nil && w.Essence != nil
}

// Effects of what is asked for on what runs, by field.
func Effects(s *facts.Cluster, target string, holds bool) []v1alpha1.ChangeEffect {
	es := append(restarts(s, target), reloads(s, holds)...)
	if n, wanted := len(s.Sets), int(s.Spec.Replicas); n != wanted {
		es = append(es, v1alpha1.ChangeEffect{Field: "spec.replicas", Effect: v1alpha1.EffectScale, Cause: v1alpha1.ChangedBySpec})
	}
	if grows(s) {
		es = append(es, v1alpha1.ChangeEffect{Field: "spec.storage", Effect: v1alpha1.EffectGrow, Cause: v1alpha1.ChangedBySpec})
	}
	return gathered(es)
}

// grows reports whether a volume has less than is asked for.
func grows(s *facts.Cluster) bool {
	for letter := range s.Sets {
		size, err := resource.ParseQuantity(s.SeenMember(letter).VolumeSize)
		if err == nil && size.Cmp(s.Spec.Storage) < 0 {
			return true
		}
	}
	return false
}

// restarts are effects that need a restart of members.
func restarts(s *facts.Cluster, target string) []v1alpha1.ChangeEffect {
	var es []v1alpha1.ChangeEffect
	now := decodedInputs(Inputs(s))
	for _, letter := range compose.SortedKeys(s.Sets) {
		o := s.Sets[letter]
		m := s.SeenMember(letter)
		if o.Revision == target {
			if len(m.PendingRestart) > 0 && o.Restarted != target {
				es = append(es, v1alpha1.ChangeEffect{
					Field: fieldConfig, Effect: v1alpha1.EffectRestart, Parameters: m.PendingRestart, Cause: v1alpha1.ChangedBySpec,
				})
			}
			continue
		}
		was, known := written(o)
		if !known {
			es = append(es, v1alpha1.ChangeEffect{Field: "spec", Effect: v1alpha1.EffectRestart, Cause: v1alpha1.ChangedBySpec})
			continue
		}
		es = append(es, differences(s.Engine, was, now)...)
	}
	return es
}

// Fields that several things are told of.
const (
	fieldConfig  = "spec.config"
	fieldPlans   = "settings.database.plans"
	FieldVersion = "spec.version"
)

// decodedInputs is a wish as it is when it was written down and read.
func decodedInputs(w RevisionInputs) RevisionInputs {
	var out RevisionInputs
	_ = json.Unmarshal([]byte(encoding.JSON(w)), &out) // It was encoded just now.
	return out
}

// differences of two requests, as fields whose change restarts members.
func differences(e engine.Engine, was, now RevisionInputs) []v1alpha1.ChangeEffect {
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
	essenceVersion:     FieldVersion,
	essenceSpread:      "spec.availability.spread",
	essenceExporter:    "spec.monitoring.enabled",
	essencePullSecrets: "spec.imagePullSecrets",
}

// reloads are effects of another coordination of the members, which take effect at once.
func reloads(s *facts.Cluster, holds bool) []v1alpha1.ChangeEffect {
	live := s.Observed[s.In(names.DCS)]
	if live == nil || len(s.Sets) == 0 {
		return nil
	}
	return s.Engine.Reloaded(engine.Reload{
		Before: compose.Text(live.Map(), "metadata", "annotations", names.AnnotationConfig), After: coordination(s, holds),
		Server: Server(s, holds), Set: loaded(s).Reloaded, OwnMemory: s.Spec.Resources.Memory != nil,
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
