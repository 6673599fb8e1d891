// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// RevisionInputs are what a revision was made of. StatefulSets record them, so that a later pass knows what changed, and whether
// the spec or the platform's settings changed it.
type RevisionInputs struct {
	// PodInputs are what the revision is the hash of. Annotations of StatefulSets that exist have them under this key.
	PodInputs podInputs `json:"essence"`

	// Plan, and which values the spec sets itself, distinguish a change of the spec from a change of the platform's settings.
	Plan   string `json:"plan,omitempty"`
	CPU    bool   `json:"ownCPU,omitempty"`
	Memory bool   `json:"ownMemory,omitempty"`
	Issuer bool   `json:"ownIssuer,omitempty"`
}

// podInputs are all that reaches the pods of members, as far as the spec and the platform's settings determine it.
type podInputs map[string]any

// Inputs of the revision that the spec desires.
func Inputs(s *facts.Cluster) RevisionInputs {
	return RevisionInputs{
		PodInputs: podInputsOf(s),
		Plan:      s.PlanName(),
		CPU:       s.Spec.Resources.CPU != nil,
		Memory:    s.Spec.Resources.Memory != nil,
		Issuer:    s.Spec.TLS != nil && s.Spec.TLS.IssuerRef != nil,
	}
}

// written inputs of a member. StatefulSets that an older version of Capstan made have none.
func written(o facts.Set) (RevisionInputs, bool) {
	var inputs RevisionInputs
	text := compose.Text(o.Object.Map(), "metadata", "annotations", names.AnnotationInputs)
	return inputs, json.Unmarshal([]byte(text), &inputs) == nil && inputs.PodInputs != nil
}

// Effects of the desired state on members that run, by field.
func Effects(s *facts.Cluster, target string, holds bool) []v1alpha1.ChangeEffect {
	es := append(restarts(s, target), reloads(s, holds)...)
	if len(s.Sets) != int(s.Spec.Replicas) {
		es = append(es, v1alpha1.ChangeEffect{Field: "spec.replicas", Effect: v1alpha1.EffectScale, Cause: v1alpha1.ChangedBySpec})
	}
	if grows(s) {
		es = append(es, v1alpha1.ChangeEffect{Field: "spec.storage", Effect: v1alpha1.EffectGrow, Cause: v1alpha1.ChangedBySpec})
	}
	if growsWAL(s) {
		es = append(es, v1alpha1.ChangeEffect{Field: "spec.walStorage", Effect: v1alpha1.EffectGrow, Cause: v1alpha1.ChangedBySpec})
	}
	return gathered(es)
}

// growsWAL reports whether a volume for a log alone is smaller than spec.walStorage.
func growsWAL(s *facts.Cluster) bool {
	z := s.Sizes.Logs
	return len(z) > 0 && z[0].Cmp(*s.Spec.WALStorage) < 0
}

// MovesArchive reports whether the leader has yet to restart for another place of backups, another key of them, or another role.
func MovesArchive(s *facts.Cluster) bool {
	set, ok := s.Sets[s.LetterOf(s.Seen.Leader)]
	if !ok {
		return false
	}
	was, known := written(set)
	now := map[string]any{}
	backup.ArchivesAs(s, now)
	return known && slices.ContainsFunc([]string{backup.InputPlace, backup.InputKey, backup.InputRole}, func(key string) bool {
		return !encoding.Same(was.PodInputs[key], now[key])
	})
}

// grows reports whether a volume is smaller than spec.storage.
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

// Fields that several effects name.
const (
	fieldConfig  = "spec.config"
	fieldPlans   = "settings.database.plans"
	FieldVersion = "spec.version"
)

// decodedInputs are inputs after a round trip through JSON, as recorded ones are.
func decodedInputs(inputs RevisionInputs) RevisionInputs {
	var out RevisionInputs
	_ = json.Unmarshal([]byte(encoding.JSON(inputs)), &out) // It was encoded just now.
	return out
}

// differences of two requests, as fields whose change restarts members.
func differences(e engine.Engine, was, now RevisionInputs) []v1alpha1.ChangeEffect {
	var es []v1alpha1.ChangeEffect
	add := func(field, cause string, parameters ...string) {
		es = append(es, v1alpha1.ChangeEffect{Field: field, Effect: v1alpha1.EffectRestart, Parameters: parameters, Cause: cause})
	}
	// sized adds an effect with the field that changed a part of the size.
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
	for _, key := range compose.SortedKeys(encoding.Union(was.PodInputs, now.PodInputs)) {
		if encoding.Same(was.PodInputs[key], now.PodInputs[key]) {
			continue
		}
		switch key {
		case inputImage:
			if !encoding.Same(was.PodInputs[inputVersion], now.PodInputs[inputVersion]) {
				continue // It comes with the version.
			}
			add("settings.database.images", v1alpha1.ChangedBySettings)
		case inputCPU:
			sized(now.CPU, was.CPU, "spec.resources.cpu")
		case inputMemory:
			sized(now.Memory, was.Memory, "spec.resources.memory")
		case inputServer:
			if now.Issuer || was.Issuer {
				add("spec.tls.issuerRef", v1alpha1.ChangedBySpec)
			} else {
				add("settings.database.issuerRef", v1alpha1.ChangedBySettings)
			}
		case inputParameters:
			before, after := compose.Map(was.PodInputs, key), compose.Map(now.PodInputs, key)
			if !encoding.Same(before[inputMemory], after[inputMemory]) {
				sized(now.Memory, was.Memory, "spec.resources.memory", e.Traits().MemoryParameter)
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

// plainFields of the spec by the one pod input that follows from each.
var plainFields = map[string]string{
	inputVersion:     FieldVersion,
	inputSpread:      "spec.availability.spread",
	inputExporter:    "spec.monitoring.enabled",
	inputPullSecrets: "spec.imagePullSecrets",
	inputPod:         "spec.pod",
	inputAffinity:    "spec.pod.affinity",
	inputPodMetadata: "spec.podMetadata",
	inputWAL:         "spec.walStorage",
	inputLogs:        "spec.logs.format",
	inputQueries:     "spec.monitoring.queries",

	backup.InputPlace: "spec.backup",
	backup.InputKey:   "spec.backup.encryption",
	backup.InputRole:  "spec.workloadIdentity",
}

// reloads are effects of another coordination of the members, which take effect at once.
func reloads(s *facts.Cluster, holds bool) []v1alpha1.ChangeEffect {
	live := s.Observed[s.In(names.DCS)]
	if live == nil || len(s.Sets) == 0 {
		return nil
	}
	return s.Engine.Reloaded(engine.Reload{
		Before: compose.Text(live.Map(), "metadata", "annotations", names.AnnotationConfig), After: coordination(s, holds),
		Server: Server(s, holds), Set: loaded(s).Reloaded, OwnMemory: s.Spec.Resources.Memory != nil, HugePages: getsHugePages(s),
	})
}

// getsHugePages reports whether a member has other huge pages than the spec asks for.
func getsHugePages(s *facts.Cluster) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(s.Sets)), func(o facts.Set) bool { return o.HugePages != s.HugePages() })
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
