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
	"pipeline-required": {reason: "Only what is typed, and no block.", values: map[string]any{"image": "registry.example.org/features:1.4.0", "args": []any{"features"}}},
	"pipeline-empty": {reason: "Texts and lists that were emptied again are none.", values: map[string]any{
		"image": "registry.example.org/features:1.4.0", "args": []any{}, "deadline": "", "schedule.cron": "",
	}},
	"pipeline-filled": {reason: "Lists stay lists.", values: map[string]any{
		"image": "registry.example.org/features:1.4.0", "engine": "Container", "args": []any{"features", "--day=\"1\""}, "schedule.cron": "0 3 * * *", "deadline": "2h",
		"resources.cpu": "1", "resources.memory": "2Gi", "resources.gpu": "nvidia.com/gpu",
	}},
	"training-required": {reason: "Only what is typed, and no block.", values: map[string]any{"image": "registry.example.org/fraud-train:2.0.0", "args": []any{"train"}}},
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
			kind, values := form(name)
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
	t.Run("PullRequest", func(t *testing.T) { p.in(t).rehearse("algorithm-required") })

	b := browser.Start(t, p.url)
	p.login(b)
	for _, name := range []string{"algorithm-required", "algorithm-filled", "database-required", "database-filled"} {
		p.isGolden(p.fill(b, name), name)
	}
	p.asks(b)

	for _, name := range []string{"algorithm-filled", "database-filled"} {
		data, err := os.ReadFile(golden(name))
		if err != nil {
			t.Fatal(err)
		}
		c.create(t, object(t, string(data)))
		kind, made, _ := strings.Cut(name, "-")
		got := p.until("component", "demo", made+"-"+kind)
		if diff := cmp.Diff("default/team-reco", got.Spec.Owner); diff != "" {
			t.Errorf("the owner of %s: -want, +got:\n%s", name, diff)
		}
	}
}

func (p portal) in(t *testing.T) portal {
	t.Helper()
	p.t = t
	return p
}

// form has the kind of a form and all of its values. The object has the rest of the form's name.
func form(name string) (kind string, values map[string]any) {
	kind, object, _ := strings.Cut(name, "-")
	values = maps.Clone(forms[name].values)
	values["name"], values["namespace"] = object, "demo"
	return kind, values
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
	if diff := cmp.Diff("demo/"+name+".yaml", file); diff != "" {
		p.t.Errorf("%s The file: -want, +got:\n%s", forms[name].reason, diff)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		p.t.Errorf("%s -want, +got:\n%s", forms[name].reason, diff)
	}
}

// rehearse a template with a repository for its pull request, as Backstage's editor of templates does: all but the request to the host runs.
func (p portal) rehearse(name string) {
	p.t.Helper()
	kind, values := form(name)
	var text [2]string
	for i, file := range []string{"template.yaml", "manifest.njk"} {
		data, err := os.ReadFile(filepath.Join("../../integrations/backstage", kind, file))
		if err != nil {
			p.t.Fatal(err)
		}
		text[i] = string(data)
	}
	repository := "github.com?owner=example&repo=clusters"
	template := object(p.t, strings.ReplaceAll(text[0], "${{ environment.parameters.capstanRepository }}", repository))
	var done struct {
		Output struct {
			Links []struct {
				URL string `json:"url"`
			} `json:"links"`
		} `json:"output"`
		Files []struct {
			Path    string `json:"path"`
			Content []byte `json:"base64Content"`
		} `json:"directoryContents"`
	}
	p.call(http.MethodPost, "/api/scaffolder/v2/dry-run", map[string]any{
		"template": template, "values": values, "directoryContents": []any{map[string]any{"path": "manifest.njk", "base64Content": []byte(text[1])}},
	}, &done)
	if len(done.Output.Links) != 1 || done.Output.Links[0].URL != repository {
		p.t.Errorf("want one link, to the pull request: %+v", done.Output.Links)
	}
	if len(done.Files) != 1 || done.Files[0].Path != "demo/"+name+".yaml" {
		p.t.Errorf("want one file in the pull request: %+v", done.Files)
	}
}

// login as a guest.
func (p portal) login(b *browser.Browser) {
	b.Open("/create")
	p.press(b, "Enter")
	b.Until(timeout, "!"+button("Enter"))
}

func present(id string) string { return fmt.Sprintf("(document.getElementById(%q) !== null)", id) }

// button is true once there is a button with this text that can be pressed, or an option of an open list.
func button(text string) string { return fmt.Sprintf("(%s !== undefined)", find(text)) }

func find(text string) string {
	return fmt.Sprintf("[...document.querySelectorAll('button:enabled, [role=option]')].find(b => b.textContent.trim() === %q)", text)
}

func (p portal) press(b *browser.Browser, text string) {
	b.Until(timeout, button(text))
	browser.Value[any](b, find(text)+".click()")
}

// fill the form of a template in the browser, page by page, and return the task.
func (p portal) fill(b *browser.Browser, name string) string {
	p.t.Helper()
	kind, left := form(name)
	b.Open("/create/templates/default/capstan-" + kind)
	b.Until(timeout, present("root_name"))
	for {
		entered := p.page(b, left)
		if browser.Value[bool](b, button("Review")) {
			break
		}
		p.press(b, "Next")
		b.Until(timeout, "!"+present(entered))
	}
	if len(left) > 0 {
		p.t.Fatalf("the form has no %v", left)
	}
	b.Screenshot("backstage-" + name)
	p.press(b, "Review")
	p.press(b, "Create")
	b.Until(timeout, "location.pathname.startsWith('/create/tasks/')")
	return path.Base(browser.Value[string](b, "location.pathname"))
}

// page enters the values whose fields it has, and takes them from the others. It returns the input of one of them.
func (p portal) page(b *browser.Browser, left map[string]any) (entered string) {
	p.t.Helper()
	for field, v := range left {
		if id := "root_" + field; browser.Value[bool](b, present(id)) {
			p.enter(b, id, v)
			delete(left, field)
			entered = id
		}
	}
	return entered
}

// asks for the field without which the block of another is refused, once that one is filled.
func (p portal) asks(b *browser.Browser) {
	p.t.Helper()
	b.Open("/create/templates/default/capstan-algorithm")
	b.Until(timeout, present("root_name"))
	entered := p.page(b, map[string]any{"name": "a", "namespace": "demo"})
	p.press(b, "Next")
	b.Until(timeout, "!"+present(entered))
	needed := `document.getElementById("root_scaling.maxReplicas").required`
	if browser.Value[bool](b, needed) {
		p.t.Error("an Algorithm without scaling needs no number of replicas to scale to")
	}
	p.page(b, map[string]any{"scaling.targetLatencyMs": 50})
	b.Until(timeout, needed)
}

// enter a value as a person does: text is typed, and an option is chosen. The form shows it before the next one is entered.
func (p portal) enter(b *browser.Browser, id string, v any) {
	p.t.Helper()
	click := func(id string) {
		b.Do("click "+id, chromedp.Click(chromedp.CSS(fmt.Sprintf("[id=%q]", id))))
	}
	element, text := fmt.Sprintf("document.getElementById(%q)", id), fmt.Sprint(v)
	switch _, yesNo := v.(bool); {
	case yesNo:
		id += map[bool]string{true: "-0", false: "-1"}[v == true]
		click(id)
		b.Until(timeout, fmt.Sprintf("document.getElementById(%q).checked", id))
	case browser.Value[string](b, element+".tagName") == "INPUT":
		b.Fill(id, text)
		b.Until(timeout, fmt.Sprintf("%s.value === %q", element, text))
	default:
		click(id)
		p.press(b, text)
		b.Until(timeout, fmt.Sprintf("!%s && %s.textContent === %q", button(text), element, text))
	}
}
