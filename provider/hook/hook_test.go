// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// guarded sender, which may reach loopback addresses where it says so.
func guarded(loopback bool, secrets ...client.Object) *sender {
	g := &outside.Guard{APIServer: func(context.Context) ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil }}
	if loopback {
		g.Allowed = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
	return &sender{kube: fake.NewClientBuilder().WithObjects(secrets...).Build(), guard: g, now: func() time.Time { return now }}
}

// hookTo a URL, with requests of these keys that may be sent for a minute.
func hookTo(url string, keys ...string) *v1alpha1.Hook {
	cr := &v1alpha1.Hook{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "smoke"}}
	cr.Spec.ForProvider.URL = url
	for _, k := range keys {
		cr.Spec.ForProvider.Requests = append(cr.Spec.ForProvider.Requests, v1alpha1.HookRequest{
			Key: k, Body: `{"key":"` + k + `"}`, Until: metav1.NewTime(now.Add(time.Minute)),
		})
	}
	return cr
}

func TestStatuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		status int
		late   bool
		want   v1alpha1.HookOutcome
		again  bool
	}{
		"OK":        {"it passes", 200, false, v1alpha1.HookPassed, false},
		"NoContent": {"any status of success passes", 204, false, v1alpha1.HookPassed, false},
		"Redirect":  {"redirects may lead anywhere", 307, false, v1alpha1.HookRefused, false},
		"Refused":   {"what is wrong stays wrong", 422, false, v1alpha1.HookRefused, false},
		"NotYet":    {"a gate may answer later", 425, false, "", true},
		"Busy":      {"too many requests", 429, false, "", true},
		"Down":      {"a server that fails may recover", 503, false, "", true},
		"Late":      {"the last try counts", 503, true, v1alpha1.HookRefused, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked := 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, "secret words of somebody else")
			}))
			defer srv.Close()
			s, cr := guarded(true), hookTo(srv.URL, "a")
			if tc.late {
				cr.Spec.ForProvider.Requests[0].Until = metav1.NewTime(now)
			}
			_, err := s.Update(t.Context(), cr)
			if (err != nil) != tc.again {
				t.Errorf("%s: got error %v", tc.reason, err)
			}
			var got v1alpha1.HookOutcome
			for _, r := range cr.Status.AtProvider.Results {
				got = r.Result
				if strings.Contains(r.Message, "words") {
					t.Errorf("it tells what the server says: %s", r.Message)
				}
			}
			if got != tc.want || asked != 1 {
				t.Errorf("%s: got %q after %d requests, want %q", tc.reason, got, asked, tc.want)
			}
		})
	}
}

// TestOrder sends each request once, and the next one after it.
func TestOrder(t *testing.T) {
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.Header.Get("Idempotency-Key")+" "+string(body))
	}))
	defer srv.Close()
	s, cr := guarded(true), hookTo(srv.URL, "a", "b")
	for {
		o, err := s.Observe(t.Context(), cr)
		if err != nil {
			t.Fatal(err)
		}
		if o.ResourceUpToDate {
			break
		}
		if _, err := s.Update(t.Context(), cr); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{`POST a {"key":"a"}`, `POST b {"key":"b"}`}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	// What is not asked for any more is forgotten.
	cr.Spec.ForProvider.Requests = append(cr.Spec.ForProvider.Requests[1:], v1alpha1.HookRequest{Key: "c", Body: "{}", Until: metav1.NewTime(now)})
	if _, err := s.Update(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	if rs := cr.Status.AtProvider.Results; len(rs) != 2 || rs[0].Key != "b" || rs[1].Key != "c" {
		t.Errorf("got %+v", rs)
	}
}

// TestSecret signs, and never tells what is in it.
func TestSecret(t *testing.T) {
	var header http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { header = r.Header }))
	defer srv.Close()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "chat"}, Data: map[string][]byte{
		"url": []byte(srv.URL + "/services/precious\n"), "token": []byte("t"), "signingKey": []byte("k"),
	}}
	cr := hookTo("", "a")
	cr.Spec.ForProvider.SecretName = "chat"
	if _, err := guarded(true, secret).Update(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	if header.Get("Authorization") != "Bearer t" || header.Get("Capstan-Signature") != signature("k", `{"key":"a"}`) {
		t.Errorf("got %v", header)
	}
	srv.Close()
	cr = hookTo("", "a")
	cr.Spec.ForProvider.SecretName = "chat"
	_, err := guarded(true, secret).Update(t.Context(), cr)
	if err == nil || strings.Contains(err.Error(), "precious") {
		t.Errorf("the URL of a Secret is a secret, got %v", err)
	}
	_, err = guarded(true).Update(t.Context(), cr)
	if err == nil || !strings.Contains(err.Error(), `Secret "chat" does not exist`) {
		t.Errorf("got %v", err)
	}
}

// TestGuard refuses what only the provider can reach, at once.
func TestGuard(t *testing.T) {
	for _, target := range []string{
		"http://127.0.0.1:8080/", "http://localhost:8080/", "http://[::1]/", "http://169.254.169.254/latest/meta-data/",
		"http://[::ffff:169.254.169.254]/", "http://10.0.0.1/", "http://0.0.0.0/",
	} {
		cr := hookTo(target, "a")
		if _, err := guarded(false).Update(t.Context(), cr); err != nil {
			t.Errorf("%s: %v", target, err)
		}
		rs := cr.Status.AtProvider.Results
		if len(rs) != 1 || rs[0].Result != v1alpha1.HookRefused || !strings.Contains(rs[0].Message, "must not reach") {
			t.Errorf("%s: got %+v", target, rs)
		}
	}
	cr := hookTo("http://127.0.0.1:1/", "a")
	cr.Spec.ForProvider.Requests[0].Until = metav1.NewTime(now)
	if _, err := guarded(true).Update(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	if rs := cr.Status.AtProvider.Results; len(rs) != 1 || rs[0].Result != v1alpha1.HookUnreachable {
		t.Errorf("nothing listens there, got %+v", rs)
	}
}
