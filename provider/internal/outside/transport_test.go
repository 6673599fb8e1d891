// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// open guards nothing.
func open() *Guard {
	return &Guard{
		Allowed:   []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		APIServer: func(context.Context) ([]netip.Addr, error) { return nil, nil },
	}
}

func httpClient(t *testing.T, c *Connection, g *Guard) *http.Client {
	t.Helper()
	h, err := newHTTPClient(c, g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.CloseIdleConnections)
	return h
}

func get(t *testing.T, c *http.Client, url string) (int, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

func TestPause(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		status int
		after  string
		want   time.Duration
	}{
		"Seconds":     {reason: "A number is seconds.", status: 429, after: "7", want: 7 * time.Second},
		"Unavailable": {reason: "503 may say it, too.", status: 503, after: "7", want: 7 * time.Second},
		"Date":        {reason: "A date is a date.", status: 429, after: "Sat, 21 Nov 2026 12:00:30 GMT", want: 30 * time.Second},
		"Past":        {reason: "What is over is over.", status: 429, after: "Sat, 21 Nov 2026 11:00:00 GMT"},
		"Long":        {reason: "Nobody may stop us for a day.", status: 429, after: "86400", want: maxWait},
		"Negative":    {reason: "Time does not run backwards.", status: 429, after: "-5"},
		"Nonsense":    {reason: "What is no time is ignored.", status: 429, after: "soon"},
		"Nothing":     {reason: "Without the header each managed resource backs off by itself.", status: 429},
		"OtherStatus": {reason: "An answer that is well asks for nothing.", status: 200, after: "7"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			res := &http.Response{StatusCode: tc.status, Header: http.Header{}}
			res.Header.Set("Retry-After", tc.after)
			if got := pause(res, now); got != tc.want {
				t.Errorf("\n%s\npause(%q): want %s, got %s", tc.reason, tc.after, tc.want, got)
			}
		})
	}
}

func TestPoliteWaits(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer s.Close()
	c := httpClient(t, &Connection{Backend: S3}, open())
	if _, err := get(t, c, s.URL); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		_, err := get(t, c, s.URL)
		if f := Explain(err); f == nil || f.Reason != v1alpha1.ReasonThrottled {
			t.Errorf("While the service wants a pause, requests should fail as throttled, got %v", err)
		}
	}
	if asked != 1 {
		t.Errorf("The service asked for a pause and got %d requests", asked)
	}
}

func TestLimitedAnswers(t *testing.T) {
	cases := map[string]struct {
		reason string
		size   int
		want   error
	}{
		"Whole":   {reason: "An answer of exactly the limit is whole.", size: maxBody},
		"TooLong": {reason: "A longer one must not be taken for whole.", size: maxBody + 1, want: ErrTooLarge},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := &limited{ReadCloser: io.NopCloser(strings.NewReader(strings.Repeat("x", tc.size))), left: maxBody}
			n, err := io.Copy(io.Discard, l)
			if !errors.Is(err, tc.want) || n != int64(min(tc.size, maxBody)) {
				t.Errorf("\n%s\nread %d bytes, want error %v, got %v", tc.reason, n, tc.want, err)
			}
		})
	}
}

func TestNoRedirect(t *testing.T) {
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("A redirect was followed")
	}))
	defer secret.Close()
	s := httptest.NewServer(http.RedirectHandler(secret.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	status, err := get(t, httpClient(t, &Connection{Backend: MLflow, Shared: true}, open()), s.URL)
	if err != nil || status != http.StatusTemporaryRedirect {
		t.Errorf("want the redirect itself, got %v, %v", status, err)
	}
}

func TestTenantsAreGuarded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	strict := &Guard{APIServer: open().APIServer}
	_, err := get(t, httpClient(t, &Connection{Backend: S3}, strict), s.URL)
	if f := Explain(err); f == nil || f.Reason != v1alpha1.ReasonAddressRefused {
		t.Errorf("A ProviderConfig must not reach a loopback address, got %v", err)
	}
	if _, err := get(t, httpClient(t, &Connection{Backend: S3, Shared: true}, strict), s.URL); err != nil {
		t.Errorf("The platform's own ClusterProviderConfig may, got %v", err)
	}
}

func TestProxyIsThePlatforms(t *testing.T) {
	for _, shared := range []bool{true, false} {
		c := httpClient(t, &Connection{Backend: S3, Shared: shared}, open())
		p, ok := c.Transport.(*polite)
		if !ok {
			t.Fatalf("want a polite transport, got %T", c.Transport)
		}
		if got := p.inner.Proxy != nil; got != shared {
			t.Errorf("Shared %t: a proxy of the environment is used: %t", shared, got)
		}
	}
}

func TestCABundle(t *testing.T) {
	if _, err := newHTTPClient(&Connection{CABundle: "-----BEGIN CERTIFICATE-----\nnonsense"}, open()); err == nil {
		t.Error("A bundle without a certificate should be refused")
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	_, err := get(t, httpClient(t, &Connection{Backend: S3}, open()), s.URL)
	if f := Explain(err); f == nil || f.Reason != v1alpha1.ReasonTLSFailed || !strings.Contains(f.Remedy, "caBundle") {
		t.Errorf("An unknown authority should be told with its remedy, got %v", err)
	}
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer plain.Close()
	_, err = get(t, httpClient(t, &Connection{Backend: S3}, open()), strings.Replace(plain.URL, "http:", "https:", 1))
	if f := Explain(err); f == nil || f.Reason != v1alpha1.ReasonTLSFailed || !strings.Contains(f.Message, "does not speak TLS") {
		t.Errorf("A server without TLS should be told, got %v", err)
	}
}
