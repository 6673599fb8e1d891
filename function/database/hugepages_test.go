// SPDX-License-Identifier: Apache-2.0

package database

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

const hugePages = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, resources: {cpu: 500m, memory: 1Gi, hugePages: {amount: 8192Mi, size: 2Mi}}}`

// huge is what the containers of members have of huge pages, by letter: their resources, and the parameters of their own.
func (w *world) huge() map[string]any {
	out := map[string]any{}
	for _, letter := range names.Letters {
		o := w.request.Observed[names.MemberPrefix+letter]
		if o == nil {
			continue
		}
		all := compose.List(o.Map(), "spec", "template", "spec", "containers")
		for _, c := range all {
			for _, v := range []string{"requests", "limits"} {
				if n := compose.Map(c.(map[string]any), "resources", v)["hugepages-2Mi"]; n != nil {
					out[letter+" "+compose.Text(c.(map[string]any), "name")+" "+v] = n
				}
			}
		}
		if e := facts.Entry(compose.List(facts.Entry(all, "postgres"), "env"), "CAPSTAN_PARAMETERS"); e != nil {
			out[letter] = e["value"]
		}
	}
	return out
}

// hugeOf members of these letters.
func hugeOf(letters string) map[string]any {
	out := map[string]any{}
	for letter := range strings.SplitSeq(letters, "") {
		out[letter] = `{"huge_page_size":"2MB","huge_pages":"on","shared_buffers":"7930MB"}`
		out[letter+" postgres requests"], out[letter+" postgres limits"] = "8Gi", "8Gi"
	}
	return out
}

// TestHugePages of a Database that is made with them: the server's container has them beside its memory, and no other has.
func TestHugePages(t *testing.T) {
	w := running(t, hugePages)
	if diff := cmp.Diff(hugeOf("abc"), w.huge()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	server := facts.Entry(compose.List(w.request.Observed["member-a"].Map(), "spec", "template", "spec", "containers"), "postgres")
	if got := compose.Text(server, "resources", "limits", "memory"); got != "1Gi" {
		t.Errorf("the memory is %q", got)
	}
	for _, v := range compose.List(w.request.Observed["member-a"].Map(), "spec", "template", "spec", "volumes") {
		if medium := compose.Text(v.(map[string]any), "emptyDir", "medium"); strings.HasPrefix(medium, "HugePages") {
			t.Errorf("a volume is mounted, which PostgreSQL does not use: %v", v)
		}
	}
}

// TestHugePagesAreAdded to a Database that runs, one member after the other. What all members share is never about pages that a pod has not.
func TestHugePagesAreAdded(t *testing.T) {
	w := running(t, `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, resources: {cpu: 500m, memory: 1Gi}}`)
	w.edit(hugePages)
	change := told(t, w.plan()).Change
	if change == nil {
		t.Fatal("no change is told")
	}
	want := []v1alpha1.ChangeEffect{
		{Field: "spec.resources.hugePages", Effect: v1alpha1.EffectReload, Cause: v1alpha1.ChangedBySpec, Parameters: []string{"effective_cache_size"}},
		{
			Field: "spec.resources.hugePages", Effect: v1alpha1.EffectRestart, Cause: v1alpha1.ChangedBySpec,
			Parameters: []string{"huge_page_size", "huge_pages", "shared_buffers"},
		},
	}
	if diff := cmp.Diff(want, change.Effects); diff != "" {
		t.Errorf("effects: -want, +got:\n%s", diff)
	}
	seen := []string{""}
	for range 12 {
		w.pass()
		var with strings.Builder
		for _, letter := range []string{"a", "b", "c"} {
			if w.huge()[letter] != nil {
				with.WriteString(letter)
			}
		}
		if seen[len(seen)-1] != with.String() {
			seen = append(seen, with.String())
		}
		dynamic := compose.Text(w.request.Observed[names.DCS].Map(), "metadata", "annotations", names.AnnotationConfig)
		for _, word := range []string{`"huge_pages":"off"`, `"shared_buffers":"256MB"`} {
			if !strings.Contains(dynamic, word) {
				t.Errorf("while %q have huge pages, members do not share %s", with.String(), word)
			}
		}
	}
	if diff := cmp.Diff([]string{"", "b", "bc", "abc"}, seen); diff != "" {
		t.Errorf("members with huge pages: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(hugeOf("abc"), w.huge()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if change := told(t, w.plan()).Change; change != nil {
		t.Errorf("a change is left: %+v", change)
	}
}

// TestHugePagesAreRefused before anything moves.
func TestHugePagesAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, from, to string
		condition        string
		words            []string
	}{
		"TooFew": {
			"A server that does not fit them would not start.", basic,
			strings.Replace(hugePages, "resources:", `config: {shared_buffers: 8GB}, resources:`, 1), string(v1alpha1.ReasonInvalidSpec),
			[]string{"spec.resources.hugePages.amount", `"8Gi"`, "shares up to 8460Mi", "raise it to at least 8460Mi", "lower spec.config.shared_buffers"},
		},
		"MySQL": {
			"It would take ordinary memory in silence.", group,
			`{engine: mysql, version: "9.7", replicas: 3, storage: 50Gi, resources: {cpu: 500m, memory: 1Gi, hugePages: {amount: 8Gi}}}`, string(v1alpha1.ReasonUnsupportedByEngine),
			[]string{"spec.resources.hugePages", `"8Gi"`, "without an error", "raise spec.resources.memory"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, tc.from)
			w.edit(tc.to)
			p := w.plan()
			status, reason, message := condition(p, string(v1alpha1.TypeAccepted))
			if status != "False" || reason != tc.condition {
				t.Errorf("%s\nAccepted is %s, %s: %s", tc.reason, status, reason, message)
			}
			for _, word := range tc.words {
				if !strings.Contains(message, word) {
					t.Errorf("the message lacks %q: %s", word, message)
				}
			}
			for name, o := range w.request.Observed {
				if strings.HasPrefix(name, names.MemberPrefix) {
					if diff := cmp.Diff(any(compose.Keep(o)), p.Objects[name].Object); diff != "" {
						t.Errorf("%s changes: -observed, +desired:\n%s", name, diff)
					}
				}
			}
		})
	}
}
