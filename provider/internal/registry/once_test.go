// SPDX-License-Identifier: Apache-2.0

//go:build integration

package registry_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	servers "github.com/capstan-dev/capstan/test/outside"
)

const (
	createModel   = "POST /api/2.0/mlflow/registered-models/create"
	createVersion = "POST /api/2.0/mlflow/model-versions/create"
	setAlias      = "POST /api/2.0/mlflow/registered-models/alias"
	setTag        = "POST /api/2.0/mlflow/registered-models/set-tag"
)

// done matches a request after it has been carried out: the server did it, and whatever fault follows is what is heard of it.
func (b *bench) done(call string) func(*http.Request) bool {
	match := servers.Call(call)
	return func(r *http.Request) bool {
		if !match(r) {
			return false
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return false
		}
		var change fields
		if err := json.NewDecoder(bytes.NewReader(body)).Decode(&change); err != nil {
			return false
		}
		status, _ := b.server.Call(r.Method, strings.TrimPrefix(r.URL.Path, "/api/2.0/mlflow/"), change)
		return status == http.StatusOK
	}
}

// TestExactlyOnce shows that whatever happens around the call that makes something, it is there exactly once in the end.
func TestExactlyOnce(t *testing.T) {
	// lost is an API server that forgets the annotations after a creation, as if the provider had died.
	lost := func(b *bench) {
		b.lose = func(o client.Object) bool {
			mg, ok := o.(resource.Managed)
			return ok && (!meta.GetExternalCreateSucceeded(mg).IsZero() || !meta.GetExternalCreateFailed(mg).IsZero())
		}
	}
	fault := func(call string, f servers.Fault) func(*bench) {
		return func(b *bench) { b.proxy.Fail(servers.Call(call), f.Times(1)) }
	}
	after := func(call string, f servers.Fault) func(*bench) {
		return func(b *bench) { b.proxy.Fail(b.done(call), f.Times(1)) }
	}
	internal := servers.MLflowError(500, "INTERNAL_ERROR", "commit")
	cases := map[string]struct {
		reason string
		model  func(*bench)
		ver    func(*bench)
		alias  func(*bench)

		// later is how long the version has to wait: it is not known that nothing was made.
		later time.Duration
	}{
		"Nothing": {reason: "When all goes well there is one."},
		"Dropped": {
			reason: "The registry did it and nobody heard.",
			model:  fault(createModel, servers.Drop()), ver: fault(createVersion, servers.Drop()), alias: fault(setAlias, servers.Drop()),
		},
		"Truncated": {
			reason: "The registry did it and half of its answer came.",
			model:  fault(createModel, servers.Truncate(20)), ver: fault(createVersion, servers.Truncate(20)),
			alias: fault(setAlias, servers.Truncate(1)),
		},
		"ErrorAfterCommit": {
			reason: "The registry did it and says that it failed.",
			model:  after(createModel, internal), ver: after(createVersion, internal), alias: after(setAlias, internal),
		},
		"ProxyGaveUp": {
			reason: "The registry did it and a proxy says that it took too long.",
			model:  after(createModel, servers.Answer(504, "<html>504</html>")), ver: after(createVersion, servers.Answer(504, "<html>504</html>")),
			alias: after(setAlias, servers.Answer(504, "<html>504</html>")),
		},
		"OtherAnswer": {
			reason: "The registry did it and something else answered well.",
			model:  after(createModel, servers.Answer(200, "<html>hello</html>")), ver: after(createVersion, servers.Answer(200, "{}")),
			alias: after(setAlias, servers.Answer(200, "<html>hello</html>")),
		},
		"Died": {reason: "The provider died before it could store anything.", model: lost, ver: lost, alias: lost},
		"NeverHeard": {
			reason: "The registry never heard of it.",
			model:  fault(createModel, servers.Close()), ver: fault(createVersion, servers.Close()), alias: fault(setAlias, servers.Close()),
			later: time.Minute,
		},
		"Failed": {
			reason: "The registry failed before it did anything.",
			model:  fault(createModel, internal), ver: fault(createVersion, internal), alias: fault(setAlias, internal),
			later: time.Minute,
		},
		"Throttled": {
			reason: "The registry had no time.",
			model:  fault(createModel, servers.Answer(429, "")), ver: fault(createVersion, servers.Answer(429, "")),
			alias: fault(setAlias, servers.Answer(429, "")),
		},
		"HalfAnAlias": {
			reason: "The tag is set and the alias is not.",
			alias:  fault(setTag, servers.Drop()),
		},
		"HalfAWord": {
			reason: "The evidence is there and the alias is not.",
			alias:  fault(setVersionTag, servers.Drop()),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, name := newBench(t), unique(t)
			model := add(b, &v1alpha1.RegisteredModel{}, "shop", name)
			version := b.version("shop", name, name, "s3://models/1")
			alias := b.aliased("shop", name, name, "champion", "1")
			change(b, alias, says(map[string]string{"a": "1"}))
			for _, step := range []struct {
				mg    resource.ModernManaged
				spoil func(*bench)
			}{{model, tc.model}, {version, tc.ver}, {alias, tc.alias}} {
				if step.spoil != nil {
					step.spoil(b)
					b.reconcile(step.mg)
					b.lose = nil
					b.proxy.Clear()
				}
				if tc.later > 0 && step.mg == version {
					b.reconcile(version)
					if n := len(b.versions(name)); n != 0 {
						t.Errorf("\n%s\nNobody can know yet whether there is a version, and there are %d", tc.reason, n)
					}
					b.later = tc.later
				}
				b.settle(step.mg)
			}
			vs := b.versions(name)
			if len(vs) != 1 || vs[0].Version != "1" || vs[0].Tags["capstan.dev/champion.a"] != "1" || meta.GetExternalName(version) != "1" {
				t.Errorf("\n%s\nwant one version, got %v, external name %q", tc.reason, vs, meta.GetExternalName(version))
			}
			m := b.registered(name)
			if diff := cmp.Diff(map[string]string{
				v1alpha1.TagOwner:                    cluster + "/shop/" + name,
				v1alpha1.TagAliasPrefix + "champion": cluster + "/shop/" + name,
			}, map[string]string(m.Tags)); diff != "" || m.Alias("champion") != "1" {
				t.Errorf("\n%s\nalias %q, tags -want, +got:\n%s", tc.reason, m.Alias("champion"), diff)
			}
		})
	}
}

// TestDeletedWhileInDoubt shows that a version that the registry made without anybody hearing of it does not stay behind.
func TestDeletedWhileInDoubt(t *testing.T) {
	b, name := newBench(t), unique(t)
	b.settle(add(b, &v1alpha1.RegisteredModel{}, "shop", name))
	cr := b.version("shop", name, name, "s3://models/1", policies("*"))
	b.proxy.Fail(servers.Call(createVersion), servers.Drop().Times(1))
	b.reconcile(cr)
	b.gone(cr)
	if vs := b.versions(name); len(vs) != 0 {
		t.Errorf("The version must go with its ModelVersion, got %v", vs)
	}
}
