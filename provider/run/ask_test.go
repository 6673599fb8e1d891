// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/podask"
)

// guard that knows the address of an API server.
func guard() *outside.Guard {
	return &outside.Guard{APIServer: func(context.Context) ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil }}
}

// redirected to a server of a test, whichever address is dialled.
func redirected(to string) func(net.Dialer) outside.Dial {
	return func(d net.Dialer) outside.Dial {
		return func(ctx context.Context, network, _ string) (net.Conn, error) { return d.DialContext(ctx, network, to) }
	}
}

func TestAsk(t *testing.T) {
	body := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
	}
	cases := map[string]struct {
		reason string
		serve  http.HandlerFunc
		pod    func(*corev1.Pod)
		want   string
	}{
		"State": {reason: "It answers.", serve: body(`{"run":1,"phase":"Running"}`)},
		"Other": {reason: "A companion that does not coordinate has no State.", serve: http.NotFound, want: "HTTP status 404"},
		"Redirect": {
			reason: "A redirect could lead anywhere.",
			serve:  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, want: "HTTP status 302",
		},
		"Large":   {reason: "Nobody may fill the provider's memory.", serve: body(`{"run":1,"phase":"Running","message":"` + strings.Repeat("x", podask.MaxAnswer) + `"}`), want: "longer than any State"},
		"Garbage": {reason: "What a server says that is none of ours is not repeated.", serve: body("secret words"), want: "no State of a run"},
		"Endless": {
			reason: "An answer without an end ends.",
			serve: func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			},
			want: "it does not answer",
		},
		"HostNetwork": {
			reason: "The address of such a pod is the address of its node.", serve: body(`{"run":1,"phase":"Running"}`),
			pod: func(p *corev1.Pod) { p.Spec.HostNetwork = true }, want: "network of its node",
		},
		"Node": {
			reason: "Whoever may write a status may put the node's address there.", serve: body(`{"run":1,"phase":"Running"}`),
			pod: func(p *corev1.Pod) { p.Status.PodIP = p.Status.HostIP }, want: "network of its node",
		},
		"NoAddress": {
			reason: "An empty host would be the provider itself.", serve: body(`{"run":1,"phase":"Running"}`),
			pod: func(p *corev1.Pod) { p.Status.PodIP = "" }, want: "no address",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != crew.StatePath || r.Method != http.MethodGet || r.Host != "10.1.0.1:7701" || r.Header.Get("Authorization") != "" {
					t.Errorf("got %s %s of %s", r.Method, r.URL, r.Host)
				}
				tc.serve(w, r)
			}))
			defer srv.Close()
			p := pod(0)
			if tc.pod != nil {
				tc.pod(&p)
			}
			s, err := newAsker(redirected(srv.Listener.Addr().String()))(t.Context(), &p, 1)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) || (s == nil) == (err == nil) {
				t.Errorf("%s\ngot %v, %v, want %q", tc.reason, s, err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "words") {
				t.Errorf("it tells what the server says: %v", err)
			}
		})
	}
}

// TestGuard refuses addresses for which only the provider's place would be special.
func TestGuard(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1": "a loopback address", "::1": "a loopback address", "169.254.169.254": "a link-local address", "10.0.0.1": "the API server",
		"::ffff:127.0.0.1": "a loopback address", "0.0.0.0": "no address of a host", "fd00:ec2::254": "the metadata service",
	} {
		p := pod(0, func(p *corev1.Pod) { p.Status.PodIP = address })
		_, err := newAsker(guard().PodDialer)(t.Context(), &p, 1)
		var r *podask.Refusal
		if !errors.As(err, &r) || !r.Certain || !strings.Contains(r.Why, want) {
			t.Errorf("%s: want it to be refused as %s, got %v", address, want, err)
		}
	}
	for _, address := range []string{"localhost", "10.1.0.1:80/x?", "10.1.0.1/../", "fe80::1%eth0"} {
		p := pod(0, func(p *corev1.Pod) { p.Status.PodIP = address })
		if s, err := newAsker(guard().PodDialer)(t.Context(), &p, 1); err == nil {
			t.Errorf("%s: got %v", address, s)
		}
	}
}

// TestUnknownAPIServer is no fault of the coordinator.
func TestUnknownAPIServer(t *testing.T) {
	g := &outside.Guard{APIServer: func(context.Context) ([]netip.Addr, error) { return nil, errors.New("boom") }}
	f := newPhone(newAsker(g.PodDialer), time.Now)
	p := pod(0)
	for range 5 {
		if _, silent, err := f.call(t.Context(), runOf(saw()), &p); err == nil || silent != "" {
			t.Fatalf("want an error, got %q, %v", silent, err)
		}
	}
}

// TestPhone asks every 15 seconds, is patient, and asks more and more seldom when nobody answers.
func TestPhone(t *testing.T) {
	var (
		at    = now
		asked []string
		err   error
	)
	f := newPhone(func(context.Context, *corev1.Pod, int32) (*crew.State, error) {
		asked = append(asked, fmt.Sprint(at.Sub(now)))
		if err != nil {
			return nil, err
		}
		return running(), nil
	}, func() time.Time { return at })
	cr, p := runOf(saw()), pod(0)
	var silent []string
	look := func(for_ time.Duration) {
		t.Helper()
		for end := at.Add(for_); at.Before(end); at = at.Add(f.next(cr.GetUID())) {
			s, why, e := f.call(t.Context(), cr, &p)
			if e != nil || (s == nil) == (err == nil) {
				t.Fatalf("got %v, %v", s, e)
			}
			if why != "" {
				silent = append(silent, fmt.Sprint(at.Sub(now)))
			}
		}
	}
	expect := func(what string, want ...string) {
		t.Helper()
		if got, all := strings.Join(asked, " "), strings.Join(want, " "); got != all {
			t.Errorf("%s: want requests at %s, got %s", what, all, got)
		}
		asked = nil
	}
	look(time.Minute)
	expect("It answers", "0s", "15s", "30s", "45s")
	err = &podask.Refusal{Why: "nothing listens"}
	look(8 * time.Minute)
	expect("Nobody answers", "1m0s", "1m15s", "1m30s", "1m45s", "2m15s", "3m15s", "5m15s", "7m15s")
	if got := strings.Join(silent, " "); !strings.HasPrefix(got, "1m30s 1m45s") {
		t.Errorf("want it to be silent with the third refusal, got %s", got)
	}
	err, silent = nil, nil
	p.UID = "again"
	look(time.Second)
	expect("Another pod is asked at once", "9m15s")
	at = now.Add(9*time.Minute + 16*time.Second)
	look(time.Second)
	expect("Between two requests is a pause, whatever wakes the Run")
	err = &podask.Refusal{Why: "hostNetwork", Certain: true}
	at = at.Add(time.Minute)
	look(time.Second)
	if len(silent) != 1 {
		t.Errorf("What is certain is said at once, got %v", silent)
	}
	f.Forget(cr.GetUID())
	if got := f.next(cr.GetUID()); got != time.Second {
		t.Errorf("A Run that is gone should be forgotten, and is asked again in %s", got)
	}
}
