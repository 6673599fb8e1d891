// SPDX-License-Identifier: Apache-2.0

//go:build backstage

package backstage

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-dev/capstan/test/browser"
)

// forms as people fill them, by the names of the fields. Each is one of testdata, which has the object.
var forms = map[string]struct {
	reason string
	values map[string]any
}{
	"algorithm-required": {reason: "Only what is typed, and no block.", values: map[string]any{"image": "registry.example.org/algo/reco:2.1.4"}},
	"algorithm-filled": {reason: "Every field is where the schema has it, numbers stay numbers, and 0 is a value.", values: map[string]any{
		"image": "registry.example.org/algo/reco:2.1.4", "replicas": 0, "port": 9000, "resources.cpu": "1", "resources.memory": "2Gi", "resources.gpu": "nvidia.com/gpu",
		"scaling.maxReplicas": 10, "scaling.targetLatencyMs": 50, "route.host": "reco.example.org", "lifecycle.canaryWeight": 20, "lifecycle.successThreshold": 0.95,
		"model.uri": "s3://models/reco/7",
	}},
	"algorithm-hostile": {reason: "No text begins another field, and none is a template.", values: map[string]any{
		"image": "a\"\n  replicas: 9 # ${{ values.name }} {% if true %}'", "model.uri": "pvc://a/b\n---\nkind: Secret", "resources.cpu": "",
	}},
	"database-required": {reason: "Only what is typed, and no block.", values: map[string]any{"engine": "postgres", "version": "17", "replicas": 3, "storage": "50Gi"}},
	"database-filled": {reason: "False is a value: backups are off.", values: map[string]any{
		"engine": "postgres", "version": "17", "replicas": 3, "storage": "50Gi", "resources.cpu": "2", "resources.memory": "8Gi", "backup.enabled": false,
		"backup.schedule": "0 3 * * *", "backup.retention": "30d", "availability.durability": "Strict", "pooler.mode": "Transaction", "deletionProtection": true,
	}},
	"pipeline-required": {reason: "A list that nobody filled is none.", values: map[string]any{"image": "registry.example.org/features:1.4.0", "args": []any{}}},
	"pipeline-filled": {reason: "Lists stay lists.", values: map[string]any{
		"image": "registry.example.org/features:1.4.0", "engine": "Container", "args": []any{"features", "--day=\"1\""}, "schedule.cron": "0 3 * * *", "deadline": "2h",
		"resources.cpu": "1", "resources.memory": "2Gi", "resources.gpu": "nvidia.com/gpu",
	}},
	"training-required": {reason: "Only what is typed, and no block.", values: map[string]any{"image": "registry.example.org/fraud-train:2.0.0"}},
	"training-filled": {reason: "Every field is where the schema has it.", values: map[string]any{
		"image": "registry.example.org/fraud-train:2.0.0", "args": []any{"--epochs=3"}, "workers": 4, "spares": 1, "deadline": "8h", "checkpoint.claimName": "fraud",
		"resources.cpu": "8", "resources.memory": "32Gi", "resources.gpu": "nvidia.com/gpu",
	}},
}

// TestPortal fills the forms, in the browser and by the API that it uses. Then the API server gets the objects, and the catalog shows them.
func TestPortal(t *testing.T) {
	c := newCluster(t)
	p := newPortal(t, c)
	for _, kind := range []string{"algorithm", "database", "pipeline", "training"} {
		p.until("template", "default", "capstan-"+kind)
	}
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		t.Run(name, func(t *testing.T) {
			p := p.in(t)
			kind, _, _ := strings.Cut(name, "-")
			values := maps.Clone(forms[name].values)
			values["name"], values["namespace"] = name, "demo"
			p.isGolden(p.run("capstan-"+kind, values), name)
		})
	}
	t.Run("Path", func(t *testing.T) {
		values := map[string]any{"name": "../a", "namespace": "demo", "image": "a"}
		err := p.in(t).try(http.MethodPost, "/api/scaffolder/v2/tasks", map[string]any{"templateRef": "template:default/capstan-algorithm", "values": values}, nil)
		if err == nil || !strings.Contains(err.Error(), "does not match pattern") {
			t.Errorf("a name must not be a path to another file of the repository: %v", err)
		}
	})

	b := browser.Start(t, p.url)
	p.login(b)
	for _, name := range []string{"algorithm-required", "algorithm-filled", "database-required"} {
		p.isGolden(p.fill(b, name), name)
	}

	for _, name := range []string{"algorithm-filled", "database-filled"} {
		data, err := os.ReadFile(golden(name))
		if err != nil {
			t.Fatal(err)
		}
		o := object(t, string(data))
		c.create(t, o)
		kind := (&unstructured.Unstructured{Object: o}).GetKind()
		got := p.until("component", "demo", name+"-"+strings.ToLower(kind))
		if diff := cmp.Diff("group:default/team-reco", got.Spec.Owner); diff != "" {
			t.Errorf("the owner of %s: -want, +got:\n%s", name, diff)
		}
	}
}

func (p portal) in(t *testing.T) portal {
	t.Helper()
	p.t = t
	return p
}

func golden(name string) string { return filepath.Join("testdata", name+".yaml") }

// isGolden compares what a task wrote with testdata, letter by letter.
func (p portal) isGolden(task, name string) {
	p.t.Helper()
	want, err := os.ReadFile(golden(name))
	if err != nil {
		p.t.Fatal(err)
	}
	file, got := p.manifest(task)
	kind, _, _ := strings.Cut(name, "-")
	if diff := cmp.Diff(fmt.Sprintf("demo/%s-%s.yaml", kind, name), file); diff != "" {
		p.t.Errorf("%s The file: -want, +got:\n%s", forms[name].reason, diff)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		p.t.Errorf("%s -want, +got:\n%s", forms[name].reason, diff)
	}
}

// login as a guest.
func (p portal) login(b *browser.Browser) {
	b.Open("/create")
	b.Until(patience, button("Enter"))
	p.press(b, "Enter")
}

// button is true once there is a button with this text that can be pressed.
func button(text string) string {
	return fmt.Sprintf("[...document.querySelectorAll('button:enabled')].some(b => b.innerText.trim() === %q)", text)
}

func (p portal) press(b *browser.Browser, text string) {
	b.Until(patience, button(text))
	browser.Value[any](b, fmt.Sprintf("[...document.querySelectorAll('button:enabled')].find(b => b.innerText.trim() === %q).click()", text))
}

// fill the form of a template in the browser, page by page, and return the task.
func (p portal) fill(b *browser.Browser, name string) string {
	p.t.Helper()
	kind, _, _ := strings.Cut(name, "-")
	b.Open("/create/templates/default/capstan-" + kind)
	left := maps.Clone(forms[name].values)
	left["name"], left["namespace"] = name, "demo"
	for len(left) > 0 {
		b.Until(patience, "document.querySelectorAll('[id^=root_]').length > 0")
		for field, v := range left {
			if !browser.Value[bool](b, fmt.Sprintf("document.getElementById(%q) !== null", "root_"+field)) {
				continue
			}
			p.enter(b, "root_"+field, v)
			delete(left, field)
		}
		p.press(b, "Next")
	}
	b.Screenshot("backstage-" + name)
	p.press(b, "Review")
	p.press(b, "Create")
	b.Until(patience, "location.pathname.startsWith('/create/tasks/')")
	return path.Base(browser.Value[string](b, "location.pathname"))
}

// enter a value as a person does: text is typed, and an option is chosen from its list.
func (p portal) enter(b *browser.Browser, id string, v any) {
	p.t.Helper()
	if browser.Value[string](b, fmt.Sprintf("document.getElementById(%q).tagName", id)) == "INPUT" {
		b.Fill(id, fmt.Sprint(v))
		return
	}
	option := chromedp.CSS(fmt.Sprintf("li[data-value=%q]", v))
	b.Do("choose "+id, chromedp.Click(chromedp.CSS(fmt.Sprintf("[id=%q]", id))), chromedp.Click(option), chromedp.WaitNotPresent(option))
}
