// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/apis"
)

func read(t *testing.T, text []byte) *Definition {
	t.Helper()
	d, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	m := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// spec has some fields of the one of an Algorithm.
type spec struct {
	Image    string `json:"image"`
	Replicas int32  `json:"replicas"`
	Port     int32  `json:"port"`
	Probes   *struct {
		StartupSeconds int32 `json:"startupSeconds"`
	} `json:"probes"`
}

// DeepCopy of a spec.
func (s *spec) DeepCopy() *spec {
	out := *s
	if s.Probes != nil {
		probes := *s.Probes
		out.Probes = &probes
	}
	return &out
}

func TestDecode(t *testing.T) {
	cases := map[string]struct {
		reason   string
		object   string
		want     spec
		problems []string
		ok       bool
	}{
		"Defaults": {
			reason: "What a spec leaves out has the default of the schema.",
			object: "{spec: {image: x, replicas: 3.0}}",
			want:   spec{Image: "x", Replicas: 3, Port: 8080}, ok: true,
		},
		"Null": {
			reason: "A block that is null asks for nothing.",
			object: "{spec: {image: x, rollout: null, lifecycle: {soak: 1m}}}",
			want:   spec{Image: "x", Port: 8080}, ok: true,
		},
		"Bound": {
			reason:   "A value out of bounds is named with the bounds, and decoded nevertheless.",
			object:   "{spec: {image: x, replicas: 2000}}",
			want:     spec{Image: "x", Replicas: 2000, Port: 8080},
			problems: []string{"spec.replicas: 2000: must be from 0 to 1000, for instance 3"}, ok: true,
		},
		"Required": {
			reason:   "A field that is missing comes with an example.",
			object:   "{spec: {}}",
			want:     spec{Port: 8080},
			problems: []string{"spec.image: is missing, for instance registry.example.org/algo/reco:2.1.4"}, ok: true,
		},
		"Type": {
			reason:   "A value of another type cannot be decoded.",
			object:   "{spec: {image: x, replicas: many}}",
			problems: []string{`spec.replicas: "many": must be of type integer, for instance 3`},
		},
		"Enum": {
			reason:   "All values of an enum are named.",
			object:   "{spec: {image: x, availability: {zones: Some}}}",
			want:     spec{Image: "x", Port: 8080},
			problems: []string{`spec.availability.zones: "Some": must be Preferred, Required or None`}, ok: true,
		},
		"Twice": {
			reason:   "An item of a map that is there twice is named by its key.",
			object:   "{spec: {image: x, env: [{name: A}, {name: A}]}}",
			want:     spec{Image: "x", Port: 8080},
			problems: []string{`spec.env[1].name: "A": is there twice: remove one`}, ok: true,
		},
		"Rule": {
			reason:   "A rule brings its own words, which are better than those of a pattern.",
			object:   "{spec: {image: x, resources: {cpu: lots}}}",
			want:     spec{Image: "x", Port: 8080},
			problems: []string{`spec.resources.cpu: "lots": must be a quantity of at least 1m, for instance 500m`}, ok: true,
		},
		"Transition": {
			reason: "Rules about a change are those of the API server: there is nothing to compare with.",
			object: "{spec: {image: x, model: {uri: s3://a1/b, cache: {resources: {requests: {storage: 1Gi}}}}}}",
			want:   spec{Image: "x", Port: 8080}, ok: true,
		},
	}
	d := read(t, apis.Algorithm)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xr := parse(t, tc.object)
			for range 2 { // The second time from memory.
				got, problems, ok := Decode[spec](d, "reco", xr["spec"].(map[string]any))
				var messages []string
				for _, p := range problems {
					messages = append(messages, p.Message)
				}
				if diff := cmp.Diff(tc.problems, messages); diff != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
					t.Errorf("%s: %t, -want, +got:\n%s", tc.reason, ok, diff)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	d, err := Read(apis.Algorithm)
	if err != nil {
		b.Fatal(err)
	}
	spec := map[string]any{"image": "x", "route": map[string]any{"host": "a.example.org"}, "lifecycle": map[string]any{"canaryWeight": 20.0}}
	b.Run("Defaulted", func(b *testing.B) {
		for b.Loop() {
			d.Defaulted(spec)
		}
	})
	b.Run("Check", func(b *testing.B) {
		whole := d.Defaulted(spec)
		d.Check("reco", whole) // compiles
		for b.Loop() {
			d.Check("reco", whole)
		}
	})
}
