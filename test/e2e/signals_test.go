// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

const eventsKey = "a-signing-key-of-the-test"

// TestSignals: an alert holds a rollout until it is resolved, another one has the revision under test rolled back, and a third one runs a hook
// once. The Algorithm is not edited for it.
func TestSignals(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	reco := func(v string) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", versioned(v), draining(drainSeconds), routed(host), rolling(canary(50), func(l *v1alpha1.Lifecycle) {
			l.Soak = &metav1.Duration{Duration: 5 * time.Minute}
			l.Hooks = []v1alpha1.RolloutHook{{
				Name: "flush", At: v1alpha1.HookSignal, Timeout: metav1.Duration{Duration: time.Minute},
				URL: fmt.Sprintf("http://hooks.%s.svc/cgi-bin/hook?flush", ns),
			}}
		}))
	}
	stable(t, reco("v1"))
	calls := callers(t, ns, "reco", host, outsideKept)
	hooks := receiverOf(t, ns)
	address := events(t)
	rule := func(name, alert string, do eventsv1alpha1.Act) eventsv1alpha1.ReceiverRule {
		return eventsv1alpha1.ReceiverRule{
			Name: name, Match: map[string]string{"alertname": alert}, Do: do,
			Target: eventsv1alpha1.SignalTarget{Kind: eventsv1alpha1.TargetAlgorithm, Name: "reco"},
		}
	}
	flush := rule("cache", "StaleCache", eventsv1alpha1.ActHook)
	flush.Hook = "flush"
	for _, o := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "keys"}, StringData: map[string]string{eventsv1alpha1.KeySigning: eventsKey}},
		&eventsv1alpha1.Receiver{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "alerts"}, Spec: eventsv1alpha1.ReceiverSpec{
			ForProvider: eventsv1alpha1.ReceiverParameters{
				Format: eventsv1alpha1.FormatAlertmanager, SecretName: "keys", Rules: []eventsv1alpha1.ReceiverRule{
					rule("checkout", "CheckoutErrors", eventsv1alpha1.ActHold), rule("complaints", "Complaints", eventsv1alpha1.ActAbort), flush,
				},
			},
		}},
	} {
		if err := kube.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the Receiver is ready", func(ctx context.Context) error {
		cr, err := get(ctx, &eventsv1alpha1.Receiver{}, ns, "alerts")
		if err != nil {
			return err
		}

		return well(cr)(ctx)
	})
	url := address + "/v1/" + ns + "/alerts"

	// A stranger does nothing, and neither does a replay.
	firing := alerted("firing", "CheckoutErrors")
	if got := deliver(t, url, "another-key-of-somebody", firing, time.Now()); got != http.StatusUnauthorized {
		t.Errorf("a wrong signature: status %d", got)
	}
	at := time.Now()
	if got := deliver(t, url, eventsKey, firing, at); got != http.StatusOK {
		t.Fatalf("the alert: status %d", got)
	}
	if got := deliver(t, url, eventsKey, firing, at); got != http.StatusConflict {
		t.Errorf("a replay: status %d", got)
	}

	eventually(t, "the status has the Signal", func(ctx context.Context) error {
		a, err := get(ctx, &v1alpha1.Algorithm{}, ns, "reco")
		if err != nil {
			return err
		}
		if s := a.Status.Signals; len(s) != 1 || s[0].Do != string(eventsv1alpha1.ActHold) || !strings.Contains(s[0].Cause, "CheckoutErrors") {
			return fmt.Errorf("signals are %+v", s)
		}

		return nil
	})
	edit(t, reco("v2"))
	eventually(t, "the rollout is held", func(ctx context.Context) error {
		r := rolloutOf(ctx, ns, "reco")
		a, err := get(ctx, &v1alpha1.Algorithm{}, ns, "reco")
		if err != nil {
			return err
		}
		for _, c := range a.Status.Conditions {
			if c.Type == v1alpha1.TypeUpdated && strings.Contains(c.Message, "CheckoutErrors") && r.Weight == 0 {
				return nil
			}
		}

		return fmt.Errorf("the rollout is %s, %s: %s", r.Phase, r.Reason, r.Message)
	})

	// The alert is resolved.
	if got := deliver(t, url, eventsKey, alerted("resolved", "CheckoutErrors"), time.Now()); got != http.StatusOK {
		t.Fatalf("the resolved alert: status %d", got)
	}
	within(t, 2*timeout, "v2 is under test", func(ctx context.Context) error {
		if r := rolloutOf(ctx, ns, "reco"); r.Phase != v1alpha1.RolloutStepping || r.Weight != 50 {
			return fmt.Errorf("the rollout is %s with %d %%: %s", r.Phase, r.Weight, r.Message)
		}

		return nil
	})
	candidate := rolloutOf(t.Context(), ns, "reco").Candidate
	if got := deliver(t, url, eventsKey, alerted("firing", "Complaints"), time.Now()); got != http.StatusOK {
		t.Fatalf("the second alert: status %d", got)
	}
	within(t, 2*timeout, "v2 is rolled back", rollout(ns, "reco", v1alpha1.RolloutRolledBack, ""))
	l := &eventsv1alpha1.SignalList{}
	if err := kube.List(t.Context(), l, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	for _, s := range l.Items {
		if p := s.Spec.ForProvider; p.Do == eventsv1alpha1.ActAbort && p.Revision != candidate {
			t.Errorf("the Signal aborts %s, and %s was under test", p.Revision, candidate)
		}
	}

	// The second request is another one, about the same alert.
	for i := range 2 {
		if got := deliver(t, url, eventsKey, alerted("firing", "StaleCache"), time.Now().Add(time.Duration(i)*time.Second)); got != http.StatusOK {
			t.Fatalf("the third alert: status %d", got)
		}
		eventually(t, "the hook has passed", func(ctx context.Context) error {
			a, err := get(ctx, &v1alpha1.Algorithm{}, ns, "reco")
			if err != nil {
				return err
			}
			for _, s := range a.Status.Signals {
				if s.Hook != nil && s.Hook.Result == v1alpha1.HookResultPassed {
					return nil
				}
			}

			return fmt.Errorf("signals are %+v", a.Status.Signals)
		})
	}
	if got := hooks.got("flush"); len(got) != 1 || !strings.Contains(got[0], `"cause":"receiver alerts: StaleCache: from a test"`) {
		t.Errorf("the hook should run once for the alert and get its cause, got %q", got)
	}
	calls.end(t)
}

// alerted message of Alertmanager.
func alerted(status, name string) string {
	return fmt.Sprintf(`{"version":"4","alerts":[{"status":%q,"labels":{"alertname":%q},"annotations":{"summary":"from a test"},"startsAt":"2026-11-26T12:00:00Z"}]}`, status, name)
}

// deliver a signed message, and return the status of the answer.
func deliver(t *testing.T, url, key, body string, at time.Time) int {
	t.Helper()
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(stamp + ":" + body))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Capstan-Timestamp", stamp)
	req.Header.Set("Capstan-Signature", hex.EncodeToString(mac.Sum(nil)))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	said, _ := io.ReadAll(res.Body)
	t.Logf("%d %s", res.StatusCode, said)

	return res.StatusCode
}

var forwarded = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+)`)

// events returns the address of the Service that docs/signals.md has people apply, by a forwarded port.
func events(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "kubectl", "apply", "-f", filepath.Join(os.Getenv("CAPSTAN_ROOT"), "install", "events", "events.yaml")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, "kubectl", "--namespace=crossplane-system", "port-forward", "service/capstan-events", ":80")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if m := forwarded.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, stdout) }()

			return "http://" + m[1]
		}
	}
	t.Fatal("kubectl port-forward has ended")

	return ""
}
