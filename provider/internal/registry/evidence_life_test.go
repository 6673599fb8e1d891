// SPDX-License-Identifier: Apache-2.0

//go:build integration

package registry_test

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	servers "github.com/capstan-dev/capstan/test/outside"
)

const (
	setVersionTag    = "POST /api/2.0/mlflow/model-versions/set-tag"
	deleteVersionTag = "DELETE /api/2.0/mlflow/model-versions/delete-tag"
	getVersion       = "GET /api/2.0/mlflow/model-versions/get"
)

// says sets evidence.
func says(evidence map[string]string) func(*v1alpha1.ModelAlias) {
	return func(cr *v1alpha1.ModelAlias) { cr.Spec.ForProvider.Evidence = evidence }
}

// moves the alias to a version, with evidence.
func moves(version string, evidence map[string]string) func(*v1alpha1.ModelAlias) {
	return func(cr *v1alpha1.ModelAlias) {
		cr.Spec.ForProvider.Version, cr.Spec.ForProvider.Evidence = version, evidence
	}
}

// tag a version as somebody who knows nothing of us.
func (b *bench) tag(model, version, key, value string) {
	b.t.Helper()
	b.must(http.MethodPost, "model-versions/set-tag", fields{"name": model, "version": version, "key": key, "value": value})
}

// tagged are the tags of a version.
func (b *bench) tagged(model, version string) mlflow.Tags {
	b.t.Helper()
	for _, v := range b.versions(model) {
		if string(v.Version) == version {
			return v.Tags
		}
	}
	b.t.Fatalf("model %q has no version %s", model, version)
	return nil
}

// TestEvidenceLife shows what is said of versions that an alias points to, and that nothing else is touched.
func TestEvidenceLife(t *testing.T) {
	b, name := newBench(t), unique(t)
	b.settle(add(b, &v1alpha1.RegisteredModel{}, "shop", name))
	theirs := mlflow.Tags{
		v1alpha1.TagOwner: cluster + "/pay/x", "team": "pay", "champion.revision": "x",
		"capstan.dev/champ.revision": "x", "capstan.dev/champion-2.revision": "x", "capstan.dev/championrevision": "x",
		"capstan.dev/champion.Revision": "x", "capstan.dev/champion.a/b": "x", "capstan.dev/alias.champion": "x",
	}
	for v := 1; v <= 2; v++ {
		b.must(http.MethodPost, "model-versions/create", fields{"name": name, "source": "s3://models/1"})
		for k, value := range theirs {
			b.tag(name, strconv.Itoa(v), k, value)
		}
	}
	b.proxy.Reset()
	cr := b.aliased("shop", name, name, "champion", "1", policies("*"))
	change(b, cr, says(map[string]string{"revision": "a", "note": ""}))
	b.settle(cr)
	if diff := cmp.Diff([]string{setTag, setVersionTag, setVersionTag, setAlias}, b.writes()); diff != "" {
		t.Errorf("The owner comes first and the alias last: -want, +got:\n%s", diff)
	}
	steps := []struct {
		reason string
		do     func()
		// first and second are what is said of the versions.
		first, second map[string]string
		keys          []string
	}{
		{reason: "It is said.", do: func() {}, first: map[string]string{"revision": "a", "note": ""}, keys: []string{"note", "revision"}},
		{
			reason: "What somebody changed, took away and added is put right.",
			do: func() {
				b.tag(name, "1", "capstan.dev/champion.revision", "evil")
				b.tag(name, "1", "capstan.dev/champion.stray", "evil")
				b.must(http.MethodDelete, "model-versions/delete-tag", fields{"name": name, "version": "1", "key": "capstan.dev/champion.note"})
			},
			first: map[string]string{"revision": "a", "note": ""}, keys: []string{"note", "revision"},
		},
		{
			reason: "What is no longer said goes.",
			do:     func() { change(b, cr, says(map[string]string{"revision": "b"})) },
			first:  map[string]string{"revision": "b"}, keys: []string{"revision"},
		},
		{
			reason: "What was said of the version before is its history.",
			do:     func() { change(b, cr, moves("2", map[string]string{"revision": "c"})) },
			first:  map[string]string{"revision": "b"}, second: map[string]string{"revision": "c"}, keys: []string{"revision"},
		},
		{
			reason: "When the alias comes back, what was said long ago does not mix with what is said now.",
			do:     func() { change(b, cr, moves("1", map[string]string{"since": "noon"})) },
			first:  map[string]string{"since": "noon"}, second: map[string]string{"revision": "c"}, keys: []string{"since"},
		},
		{
			reason: "An alias that somebody moved and that is put back says what it said.",
			do:     func() { b.alias(name, "champion", "2") },
			first:  map[string]string{"since": "noon"}, second: map[string]string{"revision": "c"}, keys: []string{"since"},
		},
		{
			reason: "Nothing more is said, and what was said goes.",
			do:     func() { change(b, cr, says(nil)) },
			second: map[string]string{"revision": "c"},
		},
		{
			reason: "Who says nothing takes nothing away.",
			do:     func() { change(b, cr, moves("2", nil)) },
			second: map[string]string{"revision": "c"},
		},
		{
			reason: "Something is said again.",
			do:     func() { change(b, cr, says(map[string]string{"last": "word"})) },
			second: map[string]string{"last": "word"}, keys: []string{"last"},
		},
		{
			reason: "Nothing more is said, of another version: that is history, too.",
			do:     func() { change(b, cr, moves("1", nil)) },
			second: map[string]string{"last": "word"},
		},
		{
			reason: "With policy Delete the alias goes, and what was said stays.",
			do: func() {
				change(b, cr, says(map[string]string{"end": "near"}))
				b.settle(cr)
				b.gone(cr)
			},
			first: map[string]string{"end": "near"}, second: map[string]string{"last": "word"},
		},
	}
	for _, s := range steps {
		s.do()
		if b.read(cr) {
			b.settle(cr)
			if diff := cmp.Diff(s.keys, cr.Status.AtProvider.EvidenceKeys); diff != "" {
				t.Errorf("\n%s\nkeys in status: -want, +got:\n%s", s.reason, diff)
			}
			if got := b.registered(name).Alias("champion"); got != cr.Spec.ForProvider.Version {
				t.Errorf("\n%s\nwant the alias to point to %s, got %s", s.reason, cr.Spec.ForProvider.Version, got)
			}
		}
		for v, said := range map[string]map[string]string{"1": s.first, "2": s.second} {
			want := maps.Clone(theirs)
			for k, value := range said {
				want["capstan.dev/champion."+k] = value
			}
			if diff := cmp.Diff(want, b.tagged(name, v)); diff != "" {
				t.Errorf("\n%s\ntags of version %s: -want, +got:\n%s", s.reason, v, diff)
			}
		}
	}
	if m := b.registered(name); m.Alias("champion") != "" || m.Tags[v1alpha1.TagAliasPrefix+"champion"] != "" {
		t.Errorf("Alias and tag must be gone, got %v", m)
	}
}

// TestEvidenceLongest shows that the registry takes all that the schema lets through.
func TestEvidenceLongest(t *testing.T) {
	b, name := newBench(t), unique(t)
	b.settle(add(b, &v1alpha1.RegisteredModel{}, "shop", name))
	b.must(http.MethodPost, "model-versions/create", fields{"name": name, "source": "s3://models/1"})
	all, want := map[string]string{}, mlflow.Tags{}
	alias := strings.Repeat("a", 200)
	for i := range 20 {
		k := strings.Repeat(string(rune('a'+i)), 35) + ".-"
		all[k] = strings.Repeat("ß", 1023) + "\n"
		want["capstan.dev/"+alias+"."+k] = all[k]
	}
	cr := b.aliased("shop", name, name, alias, "1")
	change(b, cr, says(all))
	b.settle(cr)
	if diff := cmp.Diff(want, b.tagged(name, "1")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	change(b, cr, says(nil))
	b.settle(cr)
	if got := b.tagged(name, "1"); len(got) != 0 {
		t.Errorf("All of it can be taken back, got %v", got)
	}
}

// TestEvidenceCrash lets the provider die before and after each of the calls that move an alias with its evidence. Who follows
// the alias always finds the evidence, and in the end all is as it should be.
func TestEvidenceCrash(t *testing.T) {
	want := map[string]string{"a": "2", "b": "2", "c": "2"}

	// Three tags to set, two to remove, the alias to move.
	const calls = 6
	for n := range calls {
		for name, arrives := range map[string]bool{"Before": false, "After": true} {
			t.Run(fmt.Sprintf("%s%d", name, n+1), func(t *testing.T) {
				b, name := newBench(t), unique(t)
				b.settle(add(b, &v1alpha1.RegisteredModel{}, "shop", name))
				for range 2 {
					b.must(http.MethodPost, "model-versions/create", fields{"name": name, "source": "s3://models/1"})
				}
				cr := b.aliased("shop", name, name, "champion", "2")
				change(b, cr, says(map[string]string{"old": "1", "older": "1", "a": "1"}))
				b.settle(cr)
				change(b, cr, moves("1", map[string]string{"x": "1"}))
				b.settle(cr)
				change(b, cr, moves("2", want))
				b.proxy.Reset()
				writes := 0
				from := func(r *http.Request) bool {
					if r.Method != http.MethodGet {
						writes++
					}
					return writes > n
				}

				// From this call on nobody hears anything, and maybe it still arrives.
				b.proxy.Fail(from, map[bool]servers.Fault{true: servers.Drop(), false: servers.Close()}[arrives])
				died := cr.Status.DeepCopy()
				b.reconcile(cr)
				if got := len(b.writes()); got != n+1 {
					t.Fatalf("It must die at call %d, got %v", n+1, b.writes())
				}
				said := b.tagged(name, "2")
				if b.registered(name).Alias("champion") == "2" && (said["capstan.dev/champion.a"] != "2" || said["capstan.dev/champion.old"] != "") {
					t.Errorf("The alias points to what nothing was said of yet: %v", said)
				}

				// Nothing of what happened was stored.
				cr.Status = *died
				if err := b.Status().Update(t.Context(), cr); err != nil {
					t.Fatal(err)
				}
				b.proxy.Clear()
				b.settle(cr)
				tags := mlflow.Tags{}
				for k, v := range want {
					tags["capstan.dev/champion."+k] = v
				}
				if diff := cmp.Diff(tags, b.tagged(name, "2")); diff != "" || b.registered(name).Alias("champion") != "2" {
					t.Errorf("Alias %s, tags -want, +got:\n%s", b.registered(name).Alias("champion"), diff)
				}
				if diff := cmp.Diff(mlflow.Tags{"capstan.dev/champion.x": "1"}, b.tagged(name, "1")); diff != "" {
					t.Errorf("History: -want, +got:\n%s", diff)
				}
			})
		}
	}
}

// TestEvidenceTrouble shows what is told when the version cannot be looked at or written to, and that nothing is taken for gone
// because of it.
func TestEvidenceTrouble(t *testing.T) {
	evidence := map[string]string{"a": "1"}
	cases := map[string]struct {
		reason string
		fault  func(*bench, string)
		change func(*v1alpha1.ModelAlias)
		want   xpv2.ConditionReason
		ready  corev1.ConditionStatus
		writes []string
	}{
		"Page404": {
			reason: "A page of a proxy does not say that the version is gone.",
			fault: func(b *bench, _ string) {
				b.proxy.Fail(servers.Call(getVersion), servers.Answer(404, "<html>404</html>"))
			},
			want: apis.ReasonUnknownAnswer, ready: corev1.ConditionTrue,
		},
		"Failed": {
			reason: "The registry says that it failed.",
			fault: func(b *bench, _ string) {
				b.proxy.Fail(servers.Call(getVersion), servers.MLflowError(500, "INTERNAL_ERROR", "x"))
			},
			want: apis.ReasonServerError, ready: corev1.ConditionTrue,
		},
		"Gone": {
			reason: "Somebody deleted the version. The registry leaves the alias, and we tell.",
			fault: func(b *bench, name string) {
				b.must(http.MethodDelete, "model-versions/delete", fields{"name": name, "version": "1"})
			},
			want: apis.ReasonNotFound, ready: corev1.ConditionFalse,
		},
		"NoTarget": {
			reason: "The version to move to is not there: nothing is said, and nothing moves.",
			fault:  func(*bench, string) {}, change: moves("9", map[string]string{"a": "2"}),
			want: apis.ReasonNotFound, ready: corev1.ConditionFalse,
		},
		"Refused": {
			reason: "What cannot be said keeps the alias where it is.",
			fault: func(b *bench, _ string) {
				b.proxy.Fail(servers.Call(setVersionTag), servers.MLflowError(403, "PERMISSION_DENIED", "x"))
			},
			change: moves("2", map[string]string{"a": "2"}),
			want:   apis.ReasonForbidden, ready: corev1.ConditionFalse, writes: []string{setVersionTag},
		},
		"NotRemoved": {
			reason: "What cannot be taken back is told, and the alias stands.",
			fault: func(b *bench, _ string) {
				b.proxy.Fail(servers.Call(deleteVersionTag), servers.Answer(503, "<html>503</html>"))
			},
			change: says(nil),
			want:   apis.ReasonServerError, ready: corev1.ConditionTrue, writes: []string{deleteVersionTag},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, name := newBench(t), unique(t)
			b.settle(add(b, &v1alpha1.RegisteredModel{}, "shop", name))
			for range 2 {
				b.must(http.MethodPost, "model-versions/create", fields{"name": name, "source": "s3://models/1"})
			}
			cr := b.aliased("shop", name, name, "champion", "1")
			change(b, cr, says(evidence))
			b.settle(cr)
			b.proxy.Reset()
			tc.fault(b, name)
			if tc.change != nil {
				change(b, cr, tc.change)
			}
			b.reconcile(cr)
			c, r := cr.GetCondition(apis.TypeConnected), cr.GetCondition(xpv2.TypeReady)
			if c.Reason != tc.want || cr.GetCondition(xpv2.TypeSynced).Status != corev1.ConditionFalse || r.Status != tc.ready {
				t.Errorf("\n%s\nwant %s, not synced, ready %s; got %s: %s, ready %s", tc.reason, tc.want, tc.ready, c.Reason, c.Message, r.Status)
			}
			if diff := cmp.Diff(append([]string{}, tc.writes...), b.writes()); diff != "" {
				t.Errorf("\n%s\nwrites: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff([]string{"a"}, cr.Status.AtProvider.EvidenceKeys); diff != "" || b.registered(name).Alias("champion") != "1" {
				t.Errorf("\n%s\nwhat was said is still known, and the alias where it was: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
