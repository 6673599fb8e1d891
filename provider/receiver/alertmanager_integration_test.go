// SPDX-License-Identifier: Apache-2.0

//go:build integration

package receiver

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/capstan-dev/capstan/apis/events/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/signals"
	"github.com/capstan-dev/capstan/test/outside"
)

// snippet of docs/signals.md that begins with a line.
func snippet(t *testing.T, first string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "signals.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(page), "```yaml\n"+first)
	text, _, ends := strings.Cut(after, "```\n")
	if !ok || !ends {
		t.Fatalf("docs/signals.md has no YAML that begins with %q", first)
	}
	return first + text
}

// replaced text, which must be there.
func replaced(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("docs/signals.md does not have %q in:\n%s", pairs[i], text)
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// A cast of the real parts: Alertmanager with the configuration of docs/signals.md, a Server with the Receiver of docs/signals.md, and an
// API server.
type cast struct {
	*outside.AlertmanagerServer

	t     *testing.T
	kube  client.Client
	token string // file
	ahead atomic.Int64
}

func newCast(t *testing.T) *cast {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, observev1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cl, err := cluster.New(outside.APIServer(t), func(o *cluster.Options) {
		o.Scheme = scheme
		o.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan error)
	go func() { stopped <- cl.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	c := &cast{t: t, kube: cl.GetClient(), token: filepath.Join(t.TempDir(), "token")}
	cr := &v1alpha1.Receiver{}
	if err := yaml.UnmarshalStrict([]byte(snippet(t, "apiVersion: events.capstan.dev/v1alpha1\nkind: Receiver\n")), cr); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cr.Namespace}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cr.Namespace, Name: cr.Spec.ForProvider.SecretName}, StringData: map[string]string{v1alpha1.KeyToken: token}},
		cr,
	} {
		if err := c.kube.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer((&Server{Cache: c.kube, Kube: c.kube, Now: c.now, Log: logging.NewNopLogger()}).Handler())
	t.Cleanup(server.Close)
	c.hold(token)
	c.AlertmanagerServer = outside.Alertmanager(t, "route: {receiver: capstan, group_by: [alertname], group_wait: 10ms, group_interval: 1s, repeat_interval: 1s}\n"+
		replaced(t, snippet(t, "receivers:\n"), "http://capstan-events.crossplane-system.svc", server.URL, "/etc/alertmanager/capstan/token", c.token))
	return c
}

// now is the time of the Server, which can be ahead.
func (c *cast) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// hold this token from now on, in the file of Alertmanager.
func (c *cast) hold(token string) {
	c.t.Helper()
	if err := os.WriteFile(c.token, []byte(token), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// fires an alert that began a while ago, with labels.
func fires(name string, ago time.Duration, labels ...string) outside.Alert {
	a := outside.Alert{
		Labels:      map[string]string{"alertname": name, "severity": "critical"},
		Annotations: map[string]string{"summary": "from a test"},
		StartsAt:    time.Now().Add(-ago).Truncate(time.Second), EndsAt: time.Now().Add(time.Hour),
	}
	for i := 0; i < len(labels); i += 2 {
		a.Labels[labels[i]] = labels[i+1]
	}
	return a
}

func resolved(a outside.Alert) outside.Alert {
	a.EndsAt = time.Now()
	return a
}

// made Signals for an act.
func (c *cast) made(do v1alpha1.Act) []v1alpha1.Signal {
	c.t.Helper()
	l := &v1alpha1.SignalList{}
	if err := c.kube.List(c.t.Context(), l); err != nil {
		c.t.Fatal(err)
	}
	var of []v1alpha1.Signal
	for _, s := range l.Items {
		if s.Spec.ForProvider.Do == do {
			of = append(of, s)
		}
	}
	return of
}

// until a state is there, which is described otherwise.
func (c *cast) until(what string, state func() string) {
	c.t.Helper()
	last := ""
	if err := wait.PollUntilContextTimeout(c.t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = state()
		return last == "", nil
	}); err != nil {
		c.t.Fatalf("%s: %v: %s", what, err, last)
	}
}

// repeats waits for so many notifications more.
func (c *cast) repeats(n int) {
	c.t.Helper()
	before, _ := c.Notified(c.t)
	c.until("Alertmanager repeats", func() string {
		if now, _ := c.Notified(c.t); now < before+n {
			return fmt.Sprintf("%d notifications", now-before)
		}
		return ""
	})
}

// TestAlertmanager has a real Alertmanager send alerts to a Receiver, both as docs/signals.md has them.
func TestAlertmanager(t *testing.T) {
	c := newCast(t)

	errors := fires("CheckoutErrors", time.Minute)
	c.Send(t, errors)
	c.until("a firing alert makes a Signal", func() string {
		s := c.made(v1alpha1.ActHold)
		if len(s) != 1 || s[0].Spec.ForProvider.Target.Name != "reco" || s[0].Spec.ForProvider.Reason != "CheckoutErrors: from a test" {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	first := c.made(v1alpha1.ActHold)[0]
	c.ahead.Store(int64(3 * time.Hour))
	c.until("a repetition extends it", func() string {
		s := c.made(v1alpha1.ActHold)
		if len(s) != 1 || s[0].UID != first.UID || !s[0].Spec.ForProvider.ExpiresAt.After(first.Spec.ForProvider.ExpiresAt.Time) {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	c.Send(t, resolved(errors))
	c.until("it ends when the alert is resolved", func() string {
		s := c.made(v1alpha1.ActHold)
		if len(s) != 1 || s[0].Spec.ForProvider.ExpiresAt.After(c.now()) {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})

	stale := fires("StaleCache", time.Minute)
	c.Send(t, stale)
	c.repeats(3)
	if s := c.made(v1alpha1.ActHook); len(s) != 1 || s[0].Spec.ForProvider.Hook != "flush-cache" {
		t.Errorf("an alert that fires runs its hook once, got %+v", s)
	}
	c.Send(t, resolved(stale))
	c.repeats(1)
	c.Send(t, fires("StaleCache", 0))
	c.until("and once more when it fires again", func() string {
		if s := c.made(v1alpha1.ActHook); len(s) != 2 {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})

	c.hold("a-token-of-another-system")
	_, before := c.Notified(t)
	c.Send(t, fires("CheckoutErrors", 0, "route", "pay"))
	c.until("a wrong token is refused", func() string {
		if _, failed := c.Notified(t); failed == before {
			return "no notification failed"
		}
		return ""
	})
	if s := c.made(v1alpha1.ActHold); len(s) != 1 {
		t.Errorf("a wrong token makes nothing, got %+v", s)
	}
	c.hold(token)
	c.until("with the right one the same alert makes a Signal", func() string {
		if s := c.made(v1alpha1.ActHold); len(s) != 2 {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})

	// A storm: Alertmanager sends as many alerts as docs/signals.md allows, and as many Signals count as the object can hold.
	storm := make([]outside.Alert, 0, 3*maxAlerts)
	for i := range cap(storm) {
		storm = append(storm, fires("CheckoutErrors", 0, "pod", fmt.Sprintf("p-%d", i)))
	}
	c.Send(t, storm...)
	c.until("a storm makes as many Signals as a message has alerts", func() string {
		if n := len(c.made(v1alpha1.ActHold)); n < maxAlerts {
			return fmt.Sprintf("%d Signals", n)
		}
		return ""
	})
	c.repeats(2)
	if n := len(c.made(v1alpha1.ActHold)); n > maxSignals {
		t.Errorf("a storm made %d Signals, want %d at most", n, maxSignals)
	}
	board := &signals.Board{}
	board.Open(c.kube)
	active, err := board.Active(t.Context(), signals.Target{
		Kind: v1alpha1.TargetAlgorithm, NamespacedName: types.NamespacedName{Namespace: first.Namespace, Name: "reco"},
	}, nil, c.now())
	if err != nil || len(active) != observev1alpha1.MaxSignals {
		t.Errorf("%d Signals count, want %d: %v", len(active), observev1alpha1.MaxSignals, err)
	}
}
