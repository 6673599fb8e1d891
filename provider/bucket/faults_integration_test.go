// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bucket

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	servers "github.com/capstan-dev/capstan/test/outside"
)

func endpoint(url string) setting {
	return func(_ *bench, s *capstan.ClusterProviderConfigSpec) { s.S3.Endpoint = url }
}

// credentials that the provider uses, without the server's consent.
func (b *bench) credentials(id, key string) {
	b.t.Helper()
	s := &corev1.Secret{}
	if err := b.Get(b.t.Context(), client.ObjectKey{Namespace: "crossplane-system", Name: "s3"}, s); err != nil {
		b.t.Fatal(err)
	}
	s.Data = map[string][]byte{capstan.KeyAccessKeyID: []byte(id), capstan.KeySecretAccessKey: []byte(key)}
	if err := b.Update(b.t.Context(), s); err != nil {
		b.t.Fatal(err)
	}
}

// A fault is what goes wrong, and what people are told.
type fault struct {
	reason string

	settings []setting
	prepare  func(b *bench)
	spoil    func(b *bench)

	want string
}

func faults() map[string]fault {
	every := func(f servers.Fault) func(*bench) {
		return func(b *bench) { b.proxy.Fail(nil, f) }
	}

	// bodies spoils answers that have a body, so that HEAD says that the bucket is there.
	bodies := func(f servers.Fault) func(*bench) {
		return func(b *bench) {
			b.proxy.Fail(func(r *http.Request) bool { return r.Method != http.MethodHead }, f)
		}
	}
	return map[string]fault{
		"WrongAccessKey": {
			reason:  "The server does not know who we are.",
			prepare: func(b *bench) { b.credentials("nobody", canary) },
			want:    "CredentialsRefused: the server does not know the access key",
		},
		"WrongSecretKey": {
			reason:  "The server knows that we are not who we say.",
			prepare: func(b *bench) { b.credentials(b.server.AccessKey, canary) },
			want:    "CredentialsRefused: the secret access key does not fit the access key",
		},
		"UnknownHost": {
			reason:   "A name that leads nowhere.",
			settings: []setting{endpoint("https://s3.invalid")},
			want:     `HostUnknown: host "s3.invalid"`,
		},
		"NothingListens": {
			reason:   "An address where nobody is.",
			settings: []setting{endpoint("https://127.0.0.1:1")},
			want:     "Unreachable: nothing answers at the address of the service",
		},
		"UntrustedCertificate": {
			reason:   "A certificate of an authority that nobody has named.",
			settings: []setting{func(_ *bench, s *capstan.ClusterProviderConfigSpec) { s.S3.CABundle = "" }},
			want:     "TLSFailed: the server's certificate is signed by an unknown authority",
		},
		"Forbidden": {
			reason: "403 with a code.",
			spoil:  every(servers.S3Error(403, "AccessDenied", "Access Denied")),
			want:   "Forbidden: ListObjectsV2: the server does not let the provider's user do this",
		},
		"ForbiddenPage": {
			reason: "403 of a proxy.",
			spoil:  every(servers.Answer(403, "<html><body>Blocked by policy.</body></html>")),
			want:   "UnknownAnswer: the answer is not one of an S3 server: HTTP 403 with HTML",
		},
		"MissingPage": {
			reason: "404 of a proxy is no missing bucket.",
			spoil:  every(servers.Answer(404, "<!DOCTYPE html><title>Not Found</title>")),
			want:   "UnknownAnswer: the answer is not one of an S3 server: HTTP 404 with HTML",
		},
		"MissingJSON": {
			reason: "404 of an ingress is no missing bucket.",
			spoil:  every(servers.Answer(404, `{"error": "no route"}`)),
			want:   "UnknownAnswer: the answer is not one of an S3 server: HTTP 404 with JSON",
		},
		"MissingWithoutWords": {
			reason: "404 alone is no missing bucket.",
			spoil:  every(servers.Answer(404, "")),
			want:   "UnknownAnswer: HTTP 404 that does not say what is missing",
		},
		"LoginPage": {
			reason: "200 with a page is no bucket without tags.",
			spoil:  bodies(servers.Answer(200, "<html><body>Please log in.</body></html>")),
			want:   "UnknownAnswer: the answer is not one of an S3 server: HTTP 200 with HTML",
		},
		"EmptyAnswer": {
			reason: "200 with nothing is no bucket without tags.",
			spoil:  bodies(servers.Answer(200, "")),
			want:   "UnknownAnswer: the answer is not one of an S3 server: HTTP 200 with nothing",
		},
		"Truncated": {
			reason: "Half a list of tags is no list of tags.",
			spoil:  bodies(servers.Truncate(40)),
			want:   "UnknownAnswer: the connection broke in the middle of a request",
		},
		"Huge": {
			reason: "An answer that does not end is not read to its end.",
			spoil:  bodies(servers.Huge(200, 20, "<?xml version=\"1.0\"?><Tagging>")),
			want:   "UnknownAnswer: the answer is larger than 8 MiB",
		},
		"Closed": {
			reason: "A connection that breaks.",
			spoil:  every(servers.Close()),
			want:   "UnknownAnswer: the connection broke in the middle of a request",
		},
		"Throttled": {
			reason: "The server wants fewer requests.",
			spoil:  every(servers.S3Error(503, "SlowDown", "Please reduce your request rate.")),
			want:   "Throttled: the server asked for fewer requests",
		},
		"ThrottledWithTime": {
			reason: "And says how long it wants none.",
			spoil:  every(servers.S3Error(429, "TooManyRequests", "Slow down.", "Retry-After", "60")),
			want:   "Throttled: the service asked for fewer requests",
		},
		"Broken": {
			reason: "The server fails.",
			spoil:  every(servers.S3Error(500, "InternalError", "We encountered an internal error. Request 4711.")),
			want:   "ServerError: the server failed: InternalError (HTTP 500)",
		},
		"BadGateway": {
			reason: "The proxy before it fails.",
			spoil:  every(servers.Answer(502, "<html>Bad Gateway</html>")),
			want:   "ServerError: the server, or a proxy before it, failed: HTTP 502 with HTML",
		},
		"Hangs": {
			reason:   "The server does not answer.",
			settings: []setting{timeout(time.Second)},
			spoil:    every(servers.Hang()),
			want:     "TimedOut: the service did not answer in time",
		},
		"Skewed": {
			reason: "The server believes that our clock is wrong.",
			spoil: func(b *bench) {
				b.proxy.Fail(func(r *http.Request) bool { return r.Method == http.MethodHead }, servers.Answer(403, ""))
				b.proxy.Fail(nil, servers.S3Error(403, "RequestTimeTooSkewed", "The difference is too large."))
			},
			want: "ClockSkew: the clocks of the provider and of the server differ too much",
		},
		"Moved": {
			reason: "The bucket is in another region, and nobody follows there.",
			spoil: every(servers.S3Error(301, "PermanentRedirect", "Elsewhere.",
				"X-Amz-Bucket-Region", "eu-central-1", "Location", "https://169.254.169.254/")),
			want: `Rejected: the bucket, or the server, is in region "eu-central-1"`,
		},
	}
}

// TestFaultsBefore is about a Bucket whose bucket is yet to be made.
func TestFaultsBefore(t *testing.T) {
	for name, tc := range faults() {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, servers.SharedS3(t), tc.settings...)
			if tc.prepare != nil {
				tc.prepare(b)
			}
			if tc.spoil != nil {
				tc.spoil(b)
			}
			b.apply(version)
			b.endure(tc)

			// For this one HEAD is answered by the server itself.
			if b.there(b.named()) {
				t.Errorf("%s\nthe bucket was made", tc.reason)
			}
		})
	}
}

// TestFaultsWhileChanging is about a Bucket whose bucket is to be changed: nothing is.
func TestFaultsWhileChanging(t *testing.T) {
	for name, tc := range faults() {
		if len(tc.settings) > 0 && name != "Hangs" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			b := newBench(t, servers.SharedS3(t), tc.settings...)
			b.apply()
			b.settle()
			before := b.tags(b.named())
			if tc.prepare != nil {
				b = b.restarted()
				tc.prepare(b)
			}
			if tc.spoil != nil {
				tc.spoil(b)
			}
			b.change(version)
			b.endure(tc)
			if !b.isReady() {
				t.Errorf("%s\na bucket that nobody could ask about is no longer ready", tc.reason)
			}
			if diff := cmp.Diff(before, b.tags(b.named())); diff != "" {
				t.Errorf("%s\n-before, +after tags:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFaultsWhileDeleting is about a Bucket on its way out: neither the bucket nor the Bucket goes.
func TestFaultsWhileDeleting(t *testing.T) {
	for name, tc := range faults() {
		if len(tc.settings) > 0 && name != "Hangs" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			b := newBench(t, servers.SharedS3(t), tc.settings...)
			b.apply(force)
			b.settle()
			b.put(b.named(), "precious")
			if tc.prepare != nil {
				b = b.restarted()
				tc.prepare(b)
			}
			if tc.spoil != nil {
				tc.spoil(b)
			}
			b.remove()
			b.endure(tc)
			if b.gone() || !b.there(b.named()) {
				t.Errorf("%s\nthe Bucket is gone: %t, its bucket is there: %t", tc.reason, b.gone(), b.there(b.named()))
			}
		})
	}
}

// endure a fault, and check that it is told and that nothing is changed.
func (b *bench) endure(tc fault) {
	b.t.Helper()
	b.proxy.Reset()
	for range 3 {
		b.reconcile()
	}
	if got := b.connected(); !strings.HasPrefix(got, tc.want) {
		b.t.Errorf("%s\nConnected: want %q, got %q", tc.reason, tc.want, got)
	}
	if synced := b.get().GetCondition("Synced"); synced.Status != corev1.ConditionFalse || strings.Contains(synced.Message, "4711") {
		b.t.Errorf("%s\nSynced is %+v", tc.reason, synced)
	}
	if got := b.mutations(); len(got) > 0 {
		b.t.Errorf("%s\nsomething was changed: %v", tc.reason, got)
	}
	text, err := json.Marshal(b.get())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, secret := range []string{canary, b.server.SecretKey, b.server.AccessKey, "nobody"} {
		if strings.Contains(string(text), secret) {
			b.t.Errorf("%s\nthe Bucket tells %q: %s", tc.reason, secret, text)
		}
	}
	b.quiet()
}

// TestOneFeatureFails shows that it holds up no other, and that all that fail are told.
func TestOneFeatureFails(t *testing.T) {
	b := newBench(t, servers.SharedAWS(t))
	b.proxy.Fail(servers.Call("PUT /"+b.named()+"?cors"), servers.S3Error(400, "MalformedXML", "Request 4711 is wrong."))
	b.proxy.Fail(servers.Call("GET /"+b.named()+"?encryption"), servers.S3Error(403, "AccessDenied", "Access Denied 4711"))
	b.apply(func(cr *v1alpha1.Bucket) {
		for _, f := range featureCases() {
			f.then(&cr.Spec.ForProvider)
		}
		fill(&cr.Spec.ForProvider, b.named())
	})
	for range 4 {
		b.reconcile()
	}

	// encryption failed to be read, and cors to be set.
	want := "Forbidden: encryption: GetBucketEncryption: the server does not let the provider's user do this, or the name belongs to another account: " +
		"give the user the rights that docs/connect-s3.md lists, or choose another name; " +
		"corsRules: the server does not accept the request: MalformedXML (HTTP 400): correct what it complains about in spec.forProvider"
	if diff := cmp.Diff(want, b.connected()); diff != "" {
		t.Errorf("-want, +got condition Connected:\n%s", diff)
	}
	if b.isReady() {
		t.Error("a Bucket that was never what was asked for is ready")
	}
	for _, call := range []string{"?lifecycle", "?policy", "?publicAccessBlock", "?versioning", "?tagging"} {
		if !slices.Contains(b.mutations(), "PUT /"+b.named()+call) {
			t.Errorf("%s was held up: %v", call, b.mutations())
		}
	}
	b.writes = 0
	b.reconcile()
	if b.writes != 0 {
		t.Errorf("a Bucket that goes on failing in the same way is written %d times", b.writes)
	}
	b.proxy.Clear()
	b.settle()
	b.quiet()
	if !b.isReady() {
		t.Errorf("the Bucket does not get over it: %+v", b.get().Status)
	}
}

// TestOutage is about a server that is down for a while.
func TestOutage(t *testing.T) {
	server := servers.S3(t)
	b := newBench(t, server)
	b.apply(version)
	b.settle()
	server.Stop()
	b.reconcile()
	if got := b.connected(); !strings.HasPrefix(got, "UnknownAnswer: ") || !b.isReady() {
		t.Errorf("Connected is %q, ready: %t; want a Bucket that is ready and does not hear from its server", got, b.isReady())
	}
	server.Start()
	b.proxy.Reset()
	b.settle()
	if got := b.mutations(); len(got) > 0 || b.connected() != "Answered" {
		t.Errorf("after the outage Connected is %q and there were %v", b.connected(), got)
	}
}

// TestWrongDate is about answers that are two hours old, to go by their headers:
// nobody does.
func TestWrongDate(t *testing.T) {
	b := newBench(t, servers.SharedS3(t))
	b.proxy.Fail(nil, servers.Skew(-2*time.Hour))
	b.apply(version)
	b.settle()
	b.quiet()
	b.remove()
	b.settle()
}
