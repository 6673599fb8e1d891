// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
)

// TestRegistered shows which servers see the token of a Secret: of those that a model registry names only the ones that the spec or
// the Secret names as well.
func TestRegistered(t *testing.T) {
	cases := map[string]struct {
		reason     string
		registered bool
		// trusted and endpoint are URLs with HOST for the server's own.
		trusted, endpoint string
		sent              bool
	}{
		"Spec":     {reason: "The spec names the server itself.", sent: true},
		"Registry": {reason: "Who may write a version must not get the credentials of its readers.", registered: true},
		"Other":    {reason: "The registry's own server is another.", registered: true, trusted: "https://mlflow.example.org"},
		"Same":     {reason: "The registry's own server has the files.", registered: true, trusted: "http://HOST", sent: true},
		"Secret":   {reason: "The Secret says whom it is for.", registered: true, endpoint: "http://HOST/", sent: true},
		"Port":     {reason: "Another port is another server.", registered: true, trusted: "http://HOST1"},
		"Weaker":   {reason: "What is for TLS is not sent without.", registered: true, trusted: "https://HOST"},
		"NoURL":    {reason: "Nothing is named by what is no URL.", registered: true, endpoint: "HOST"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			srv := newServer(t, func(w http.ResponseWriter, r *http.Request) {
				if got = r.Header.Get("Authorization"); got == "" {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				_, _ = w.Write([]byte("model"))
			})
			here := func(text string) string {
				return strings.Replace(text, "HOST", strings.TrimPrefix(srv.URL, "http://"), 1)
			}
			o := Options{
				Credentials: Credentials{Token: "secret", Endpoint: here(tc.endpoint)}, Log: slog.New(slog.DiscardHandler),
				Registered: tc.registered, Trusted: here(tc.trusted),
			}
			_, err := fetchAll(t, srv.URL+"/m.bin", o)
			if sent := got == "Bearer secret"; sent != tc.sent || sent != (err == nil) {
				t.Errorf("%s\nwant sent %t, the server got %q, %v", tc.reason, tc.sent, got, err)
			}
			if err != nil && (!failure.Is(err, failure.Forbidden) || !strings.Contains(err.Error(), "only the model registry names") ||
				!strings.Contains(remedyOf(err), "key endpoint")) {
				t.Errorf("%s\nthe reason and the remedy should be told, got %v", tc.reason, err)
			}
		})
	}
}

// TestRegisteredCredentials are what is left of a Secret for a server that only a registry names, by kind of source.
func TestRegisteredCredentials(t *testing.T) {
	all := Credentials{
		Token: "t", Username: "u", Password: "p", ServiceAccountKey: "{}", AccessKeyID: "a", SecretAccessKey: "s",
		Docker: map[string]authn.AuthConfig{"r.example.org": {Username: "d"}},
	}
	o := Options{Credentials: all, Registered: true}
	for scheme, uri := range map[string]string{
		"gs": "gs://bucket/reco", "hf": "hf://org/reco", "oci": "oci://other.example.org/reco:7", "https": "https://other.example.org/reco",
		"http": "http://other.example.org/reco",
	} {
		server, ok := serverOf(scheme, uri, o)
		if !ok {
			t.Errorf("%s: there should be a server", uri)
			continue
		}
		left := o.toward(server)
		if c := left.Credentials; c.Token != "" || c.Username != "" || c.Password != "" || !left.withheld {
			t.Errorf("%s: nothing that any server accepts should be left, got %+v", uri, c)
		}
		if c := left.Credentials; c.ServiceAccountKey == "" || c.AccessKeyID == "" || c.Docker == nil {
			t.Errorf("%s: what says itself whom it is for, and what is not sent, should stay, got %+v", uri, c)
		}
	}
	if _, ok := serverOf("mlflow-artifacts", "mlflow-artifacts:/1/7", o); ok {
		t.Error("the registry's own server is always named by the spec or the credentials")
	}
}

func remedyOf(err error) string {
	var f *failure.Failure
	if errors.As(err, &f) {
		return f.Remedy
	}
	return ""
}
