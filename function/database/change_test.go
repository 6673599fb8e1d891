// SPDX-License-Identifier: Apache-2.0

package database

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// TestChange tells of an edit what it will do, while it is held.
func TestChange(t *testing.T) {
	const frozen = `, maintenance: {freeze: {until: "2027-01-01T00:00:00Z"}}}`
	effect := func(field, effect, cause string, parameters ...string) v1alpha1.ChangeEffect {
		return v1alpha1.ChangeEffect{Field: field, Effect: effect, Cause: cause, Parameters: parameters}
	}
	all := []string{"orders-db-b", "orders-db-c", "orders-db-a"}
	cases := map[string]struct {
		reason   string
		spec     string
		settings func(*inputv1alpha1.Settings)
		effects  []v1alpha1.ChangeEffect
		order    []string
	}{
		"Nothing": {reason: "Without a difference there is no change.", spec: `{engine: postgres, version: "17", replicas: 3, storage: 50Gi`},
		"Parameter": {
			reason: "A parameter that needs a restart is named, and who is restarted in which order.",
			spec:   `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, config: {max_connections: "200", wal_level: logical}`,
			effects: []v1alpha1.ChangeEffect{
				effect("spec.config", v1alpha1.EffectRestart, v1alpha1.ChangedBySpec, "max_connections", "wal_level"),
			},
			order: all,
		},
		"Memory": {
			reason:  "What follows from the memory belongs to it.",
			spec:    `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, resources: {memory: 2Gi}`,
			effects: []v1alpha1.ChangeEffect{effect("spec.resources.memory", v1alpha1.EffectRestart, v1alpha1.ChangedBySpec, "shared_buffers")},
			order:   all,
		},
		"Scheduling": {
			reason: "Other nodes need other pods.",
			spec:   `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, pod: {nodeSelector: {example.org/pool: databases}}, podMetadata: {labels: {example.org/team: orders}}`,
			effects: []v1alpha1.ChangeEffect{
				effect("spec.pod", v1alpha1.EffectRestart, v1alpha1.ChangedBySpec), effect("spec.podMetadata", v1alpha1.EffectRestart, v1alpha1.ChangedBySpec),
			},
			order: all,
		},
		"Affinity": {
			reason:  "An affinity is told by itself.",
			spec:    `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, pod: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: example.org/disk, operator: Exists}]}]}}}}`,
			effects: []v1alpha1.ChangeEffect{effect("spec.pod.affinity", v1alpha1.EffectRestart, v1alpha1.ChangedBySpec)},
			order:   all,
		},
		"NoAffinity": {
			reason: "An empty affinity is none.",
			spec:   `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, pod: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}, podAffinity: {}}}`,
		},
		"Anywhere": {
			reason: "An empty block means what its absence means.",
			spec:   `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, pod: {nodeSelector: {}}, podMetadata: {labels: {}}`,
		},
		"Plan": {
			reason: "Another plan is the spec's doing.",
			spec:   `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, plan: medium`,
			effects: []v1alpha1.ChangeEffect{
				effect("spec.plan", v1alpha1.EffectReload, v1alpha1.ChangedBySpec, "work_mem"),
				effect("spec.plan", v1alpha1.EffectRestart, v1alpha1.ChangedBySpec, "max_connections", "shared_buffers"),
			},
			order: all,
		},
		"PlanOfPlatform": {
			reason: "Another size of the same plan is the platform's.",
			spec:   `{engine: postgres, version: "17", replicas: 3, storage: 50Gi`,
			settings: func(s *inputv1alpha1.Settings) {
				s.Database.Plans[0].CPU = resource.MustParse("750m")
			},
			effects: []v1alpha1.ChangeEffect{effect("settings.database.plans", v1alpha1.EffectRestart, v1alpha1.ChangedBySettings)},
			order:   all,
		},
		"ImageOfPlatform": {
			reason:   "So is another image.",
			spec:     `{engine: postgres, version: "17", replicas: 3, storage: 50Gi`,
			settings: func(s *inputv1alpha1.Settings) { s.Database.Image = "registry.example.org/postgres:next" },
			effects:  []v1alpha1.ChangeEffect{effect("settings.database.images", v1alpha1.EffectRestart, v1alpha1.ChangedBySettings)},
			order:    all,
		},
		"IssuerOfPlatform": {
			reason: "And another issuer.",
			spec:   `{engine: postgres, version: "17", replicas: 3, storage: 50Gi`,
			settings: func(s *inputv1alpha1.Settings) {
				s.Database.IssuerRef = &v1alpha1.IssuerReference{Kind: "ClusterIssuer", Name: "platform"}
			},
			effects: []v1alpha1.ChangeEffect{effect("settings.database.issuerRef", v1alpha1.EffectRestart, v1alpha1.ChangedBySettings)},
			order:   all,
		},
		"Several": {
			reason: "Fields are told one by one.",
			spec:   `{engine: postgres, version: "17", replicas: 2, storage: 60Gi, extensions: [pg_stat_statements], monitoring: {enabled: false}, availability: {spread: Nodes}`,
			effects: []v1alpha1.ChangeEffect{
				effect("spec.availability.spread", v1alpha1.EffectRestart, v1alpha1.ChangedBySpec),
				effect("spec.extensions", v1alpha1.EffectRestart, v1alpha1.ChangedBySpec, "shared_preload_libraries"),
				effect("spec.monitoring.enabled", v1alpha1.EffectRestart, v1alpha1.ChangedBySpec),
				effect("spec.replicas", v1alpha1.EffectScale, v1alpha1.ChangedBySpec),
				effect("spec.storage", v1alpha1.EffectGrow, v1alpha1.ChangedBySpec),
			},
			order: []string{"orders-db-c", "orders-db-b", "orders-db-a"},
		},
		"Reload": {
			reason: "What takes effect at once is told in the pass that does it.",
			spec:   `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, config: {work_mem: 64MB}, availability: {profile: Fast, durability: Strict}`,
			effects: []v1alpha1.ChangeEffect{
				effect("spec.availability.durability", v1alpha1.EffectReload, v1alpha1.ChangedBySpec),
				effect("spec.availability.profile", v1alpha1.EffectReload, v1alpha1.ChangedBySpec, "wal_receiver_timeout", "wal_sender_timeout"),
				effect("spec.config", v1alpha1.EffectReload, v1alpha1.ChangedBySpec, "work_mem"),
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := running(t, basic)
			w.edit(tc.spec + frozen)
			if tc.settings != nil {
				tc.settings(&w.request.Settings)
			}

			// What is told before is no hindrance.
			delete(w.request.Composite.Map(), "status")
			p := w.plan()
			got := told(t, p).Change
			if tc.effects == nil {
				if got != nil {
					t.Errorf("\n%s\ngot %+v", tc.reason, got)
				}
				return
			}
			if got == nil {
				t.Fatalf("\n%s\nno change is told", tc.reason)
			}
			if diff := cmp.Diff(tc.effects, got.Effects); diff != "" {
				t.Errorf("\n%s\neffects: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.order, got.Order); diff != "" {
				t.Errorf("\n%s\norder: -want, +got:\n%s", tc.reason, diff)
			}
			if wants := map[bool]string{true: "none"}[!slices.Contains(tc.order, "orders-db-a")]; wants != "" && got.WritePause != wants {
				t.Errorf("\n%s\nwrites pause: %s", tc.reason, got.WritePause)
			}
			w.request.Now = now.AddDate(0, 0, 3)
			if again := told(t, w.plan()).Change; again.Hash != got.Hash {
				t.Errorf("\n%s\nthe hash depends on the time", tc.reason)
			}
		})
	}
}

// TestMemoryReachesAll: what follows from the memory and takes effect at once waits for the last member to have it.
func TestMemoryReachesAll(t *testing.T) {
	w := running(t, basic)
	before := compose.Text(w.request.Observed[names.DCS].Map(), "metadata", "annotations", names.AnnotationConfig)
	w.edit(`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, resources: {memory: 2Gi}}`)
	w.pass()
	w.pass()
	cache := func() string {
		return effectiveCache(t, compose.Text(w.request.Observed[names.DCS].Map(), "metadata", "annotations", names.AnnotationConfig))
	}
	if got, want := cache(), effectiveCache(t, before); got != want {
		t.Errorf("while two members have less memory effective_cache_size is %s, want %s", got, want)
	}
	for range 6 {
		w.pass()
	}
	if got := cache(); got != "1536MB" {
		t.Errorf("with all members changed effective_cache_size is %s", got)
	}
}

func effectiveCache(t *testing.T, config string) string {
	t.Helper()
	return compose.Text(parse(t, config), "postgresql", "parameters", "effective_cache_size")
}

// TestWishIsWrittenDown for members of a version that did not, without a restart.
func TestWishIsWrittenDown(t *testing.T) {
	w := running(t, basic)
	for name, o := range w.request.Observed {
		if compose.Text(o.Map(), "kind") == names.KindStatefulSet {
			delete(compose.Map(o.Map(), "metadata", "annotations"), names.AnnotationInputs)
			w.request.Observed[name] = o
		}
	}
	before := w.request.Observed
	w.pass()
	for _, name := range []string{"member-a", "member-b", "member-c"} {
		if diff := cmp.Diff(before[name].Map()["spec"], w.request.Observed[name].Map()["spec"]); diff != "" {
			t.Errorf("%s changes: -before, +after:\n%s", name, diff)
		}
		if compose.Text(w.request.Observed[name].Map(), "metadata", "annotations", names.AnnotationInputs) == "" {
			t.Errorf("%s does not tell what it was made of", name)
		}
	}
}
