// SPDX-License-Identifier: Apache-2.0

//go:build integration

package registry_test

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	servers "github.com/capstan-dev/capstan/test/outside"
)

// TestTrouble shows what hears of answers that are no help, and that none of them changes anything in the registry, neither for
// what is there nor for what is yet to be made nor for what is to go.
func TestTrouble(t *testing.T) {
	fault := func(f servers.Fault) func(*bench) { return func(b *bench) { b.proxy.Fail(nil, f) } }
	login := func(user, password string) func(*bench) {
		return func(b *bench) {
			s := b.secret("crossplane-system")
			s.Data = map[string][]byte{"username": []byte(user), "password": []byte(password)}
			if err := b.Update(b.t.Context(), s); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	page := "<!doctype html><html><title>404 Not Found</title></html>"
	cases := map[string]struct {
		reason string
		cause  func(*bench)
		want   xpv2.ConditionReason
		says   string
	}{
		"WrongPassword": {
			reason: "The registry answers 401 in plain text.",
			cause:  login("capstan", "wrong"), want: apis.ReasonCredentialsRefused, says: "Secret",
		},
		"NoRights": {
			reason: "The registry answers 403 in plain text.",
			cause:  login("other", "other-password"), want: apis.ReasonForbidden, says: "permission",
		},
		"UnknownHost": {
			reason: "The registry does not know the name it is called by.",
			cause: func(b *bench) {
				b.proxy.Fail(func(r *http.Request) bool { r.Host = "registry.example.org"; return false }, servers.Fault{})
			},
			want: apis.ReasonHostRefused, says: "--allowed-hosts",
		},
		"Page404": {
			reason: "The page of a proxy does not say that a model does not exist.",
			cause:  fault(servers.Answer(404, page)), want: apis.ReasonUnknownAnswer, says: "not from a model registry",
		},
		"Page200": {
			reason: "A login page is no answer.",
			cause:  fault(servers.Answer(200, page)), want: apis.ReasonUnknownAnswer, says: "proxies",
		},
		"Empty200": {
			reason: "An answer without a model is none.",
			cause:  fault(servers.Answer(200, "{}")), want: apis.ReasonUnknownAnswer, says: "proxies",
		},
		"OtherModel": {
			reason: "An answer about something else is none.",
			cause:  fault(servers.Answer(200, `{"registered_model": {"name": "x"}, "model_version": {"name": "x", "version": "1"}}`)),
			want:   apis.ReasonUnknownAnswer, says: "proxies",
		},
		"Redirect": {
			reason: "A redirect could lead anywhere.",
			cause:  fault(servers.Answer(302, "", "Location", "https://login.example.org/")), want: apis.ReasonUnknownAnswer, says: "another URL",
		},
		"Throttled": {
			reason: "The registry asks for a pause.",
			cause:  fault(servers.Answer(429, "", "Retry-After", "7")), want: apis.ReasonThrottled, says: "nothing to do",
		},
		"Down": {
			reason: "A proxy tells that nothing is behind it.",
			cause:  fault(servers.Answer(503, "<html>503</html>")), want: apis.ReasonServerError, says: "503",
		},
		"Failed": {
			reason: "The registry tells that it failed.",
			cause:  fault(servers.MLflowError(500, "INTERNAL_ERROR", "x")), want: apis.ReasonServerError, says: "500",
		},
		"NotFoundOfOthers": {
			reason: "Only one code says that something does not exist, and not with a server's error.",
			cause:  fault(servers.MLflowError(500, "RESOURCE_DOES_NOT_EXIST", "x")), want: apis.ReasonServerError, says: "500",
		},
		"Truncated": {
			reason: "Half an answer is none.",
			cause:  fault(servers.Truncate(30)), want: apis.ReasonUnknownAnswer, says: "connection broke",
		},
		"Huge": {
			reason: "Nothing larger than sensible is read.",
			cause:  fault(servers.Huge(200, 64, `{"registered_model": {"name": "`)), want: apis.ReasonUnknownAnswer, says: "larger",
		},
		"HugeError": {
			reason: "Nothing larger than sensible is read of errors either.",
			cause:  fault(servers.Huge(404, 64, `{"error_code": "RESOURCE_DOES_NOT_EXIST", `)), want: apis.ReasonUnknownAnswer, says: "larger",
		},
		"Closed": {
			reason: "Nobody answers.",
			cause:  fault(servers.Close()), want: apis.ReasonUnknownAnswer, says: "connection broke",
		},
		"Hangs": {
			reason: "Nobody answers in time.",
			cause:  fault(servers.Hang()), want: apis.ReasonTimedOut, says: "in time",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, name := newBench(t), unique(t)
			b.make(name, "s3://models/1")
			for _, tag := range []string{v1alpha1.TagOwner, v1alpha1.TagAliasPrefix + "champion"} {
				b.must(http.MethodPost, "registered-models/set-tag", fields{"name": name, "key": tag, "value": cluster + "/shop/" + name})
			}
			b.must(http.MethodPost, "model-versions/set-tag",
				fields{"name": name, "version": "1", "key": v1alpha1.TagOwner, "value": cluster + "/shop/" + name})
			b.alias(name, "champion", "1")
			all := []resource.ModernManaged{
				add(b, &v1alpha1.RegisteredModel{}, "shop", name, policies("*")),
				b.version("shop", name, name, "s3://models/1", policies("*")),
				b.aliased("shop", name, name, "champion", "2", policies("*")),
			}
			before := b.registered(name)
			tc.cause(b)
			for _, mg := range all {
				b.reconcile(mg)
				c := mg.GetCondition(apis.TypeConnected)
				if c.Status != corev1.ConditionFalse || c.Reason != tc.want || !strings.Contains(c.Message, tc.says) {
					// After the first refusal the pause holds for all.
					if tc.want != c.Reason || tc.want != apis.ReasonThrottled {
						t.Errorf("\n%s\n%T: want %s with %q, got %s: %s", tc.reason, mg, tc.want, tc.says, c.Reason, c.Message)
					}
				}
				if s := mg.GetCondition(xpv2.TypeSynced); s.Status != corev1.ConditionFalse {
					t.Errorf("\n%s\n%T: must not be synced", tc.reason, mg)
				}
				if err := b.Delete(t.Context(), mg); err != nil {
					t.Fatal(err)
				}

				// The finalizer comes only with the first good answer.
				b.reconcile(mg)
			}
			if got := b.writes(); len(got) > 0 {
				t.Errorf("\n%s\nNothing may be written, got %v", tc.reason, got)
			}
			if after := b.registered(name); after == nil || len(b.versions(name)) != 1 || after.Alias("champion") != before.Alias("champion") {
				t.Errorf("\n%s\nNothing may change, got %v", tc.reason, after)
			}
		})
	}
}

// TestTroubleInDeletion shows that nothing is taken for deleted, and nothing else is deleted, because of an answer that is no
// help.
func TestTroubleInDeletion(t *testing.T) {
	for name, f := range map[string]servers.Fault{
		"Page404":   servers.Answer(404, "<html>404</html>"),
		"Code404":   servers.MLflowError(404, "ENDPOINT_NOT_FOUND", "x"),
		"Truncated": servers.Truncate(10),
		"Closed":    servers.Close(),
		"Failed":    servers.MLflowError(500, "INTERNAL_ERROR", "x"),
	} {
		t.Run(name, func(t *testing.T) {
			b, name := newBench(t), unique(t)
			model := add(b, &v1alpha1.RegisteredModel{}, "shop", name, policies("*"))
			version := b.version("shop", name, name, "s3://models/1", policies("*"))
			alias := b.aliased("shop", name, name, "champion", "1", policies("*"))
			b.settle(model, version, alias)
			b.proxy.Reset()
			b.proxy.Fail(nil, f)
			for _, mg := range []resource.ModernManaged{alias, version, model} {
				if err := b.Delete(t.Context(), mg); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if !b.reconcile(mg) {
						t.Errorf("%T must wait for a good answer", mg)
					}
				}
			}
			if got := b.writes(); len(got) > 0 {
				t.Errorf("Nothing may be written, got %v", got)
			}

			// The server does it, and nobody hears.
			b.proxy.Clear()
			for _, call := range []string{"registered-models/alias", "model-versions/delete", "registered-models/delete"} {
				b.proxy.Fail(servers.Call("DELETE /api/2.0/mlflow/"+call), servers.Drop().Times(1))
			}
			for _, mg := range []resource.ModernManaged{alias, version, model} {
				for range 5 {
					if !b.reconcile(mg) {
						break
					}
				}
				if b.read(mg) {
					t.Errorf("%T must go: %s", mg, mg.GetCondition(xpv2.TypeSynced).Message)
				}
			}
			if m := b.registered(name); m != nil {
				t.Errorf("The model must be gone, got %v", m)
			}
		})
	}
}
