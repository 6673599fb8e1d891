// SPDX-License-Identifier: Apache-2.0

package database

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/release"
)

// TestSettingsAreNoted on the first Credential alone: a note on a pod would restart it.
func TestSettingsAreNoted(t *testing.T) {
	w := running(t, basic)
	before := w.plan()
	w.request.SettingsFrom = "capstan"
	after := w.plan()
	for name := range before.Objects {
		if changed := encodedObject(t, before, name) != encodedObject(t, after, name); changed != (name == names.AccessCredential) {
			t.Errorf("%s: changed %t by a note of the settings", name, changed)
		}
	}
	w.compose(after)
	if got := compose.ComposedWith(w.request.Observed, names.AccessCredential); got != "capstan" {
		t.Errorf("the note of the settings: got %q", got)
	}
	w.request.SettingsFrom = ""
	w.request.SettingsErr = errors.New("gone")
	w.compose(w.plan())
	if got := compose.ComposedWith(w.request.Observed, names.AccessCredential); got != "capstan" {
		t.Errorf("the note of the settings must stay while they are gone: got %q", got)
	}
}

// TestSettingsAreMissed holds every plan without the settings that there were to one thing: whatever is observed, however broken, and
// whatever the spec and the release ask for, nothing changes.
func TestSettingsAreMissed(t *testing.T) {
	specs := []string{
		basic,
		`{engine: postgres, version: "17", replicas: 5, storage: 60Gi, plan: medium}`,
		`{engine: postgres, version: "18", replicas: 1, storage: 50Gi, monitoring: {enabled: false}, consumers: []}`,
		`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, hibernate: true}`,
	}
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 10))
		w := running(t, basic)
		w.request.SettingsFrom = "capstan"
		w.compose(w.plan())
		w.edit(specs[r.IntN(len(specs))])
		w.spoil(r)
		w.request.SettingsFrom, w.request.SettingsErr = "", errors.New(`EnvironmentConfig "capstan" does not exist`)
		w.request.Settings.Database.Plans[0].Memory = resource.MustParse("4Gi")
		w.request.Settings.Database.Image = "registry.example.org/postgres"
		w.planner = Planner(release.Release{Version: []string{"v1", "v2"}[r.IntN(2)]})
		p := w.plan()
		for name, o := range w.request.Observed {
			if diff := cmp.Diff(any(compose.Keep(o)), p.Objects[name].Object); diff != "" {
				t.Fatalf("seed %d: %s changes: -observed, +desired:\n%s", seed, name, diff)
			}
		}
		if len(p.Objects) != len(w.request.Observed) {
			t.Fatalf("seed %d: %d objects, observed %d", seed, len(p.Objects), len(w.request.Observed))
		}
		if _, reason, message := condition(p, string(v1alpha1.TypeAccepted)); reason != string(v1alpha1.ReasonInvalidSettings) {
			t.Fatalf("seed %d: Accepted: %s %q", seed, reason, message)
		}
	}
}

// encodedObject of a plan.
func encodedObject(t *testing.T, p *compose.Plan, name string) string {
	t.Helper()
	return encoded(t, &compose.Plan{Objects: map[string]compose.Desired{name: p.Objects[name]}})
}
