// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// receiving is a web server that keeps what it gets below the name of a hook, and responds with the status that it was told.
const receiving = `
mkdir -p /tmp/www/cgi-bin; touch /tmp/www/log
cat > /tmp/www/cgi-bin/hook <<'END'
#!/bin/sh
body=$(head -c "${CONTENT_LENGTH:-0}")
echo "$QUERY_STRING $body" >> /tmp/www/log
echo "Status: $(cat /tmp/status-$QUERY_STRING 2>/dev/null || echo 200) told"; echo
END
cat > /tmp/www/cgi-bin/set <<'END'
#!/bin/sh
echo "${QUERY_STRING#*=}" > "/tmp/status-${QUERY_STRING%%=*}"
echo "Status: 200 OK"; echo
END
chmod +x /tmp/www/cgi-bin/*
echo 503 > /tmp/status-smoke
exec httpd -f -p 8080 -h /tmp/www`

// A receiver of hooks.
type receiver struct {
	t  *testing.T
	ip string
}

// receiverOf hooks in a namespace, behind the Service hooks.
func receiverOf(t *testing.T, ns string) *receiver {
	t.Helper()
	p := caller(t, ns, "receiver", receiving, func(p *corev1.Pod) { p.Labels = map[string]string{"app": "receiver"} })
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "hooks"}, Spec: corev1.ServiceSpec{
		Selector: p.Labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
	}}
	if err := kube.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	r := &receiver{t: t}
	eventually(t, "the receiver runs", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		r.ip = p.Status.PodIP
		_, err := r.get(ctx, "log")

		return err
	})

	return r
}

func (r *receiver) get(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.ip+":8080/"+path, nil)
	if err != nil {
		return "", err
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = rsp.Body.Close() }()
	raw, err := io.ReadAll(rsp.Body)
	if err == nil && rsp.StatusCode != http.StatusOK {
		err = fmt.Errorf("it responds with %s", rsp.Status)
	}

	return string(raw), err
}

// respond to a hook with a status from now on.
func (r *receiver) respond(hook string, status int) {
	r.t.Helper()
	if _, err := r.get(r.t.Context(), fmt.Sprintf("cgi-bin/set?%s=%d", hook, status)); err != nil {
		r.t.Fatal(err)
	}
}

// got is what a hook has sent, as bodies.
func (r *receiver) got(hook string) []string {
	r.t.Helper()
	text, err := r.get(r.t.Context(), "log")
	if err != nil {
		r.t.Fatal(err)
	}
	var bodies []string
	for line := range strings.Lines(text) {
		if name, body, _ := strings.Cut(strings.TrimSpace(line), " "); name == hook {
			bodies = append(bodies, body)
		}
	}

	return bodies
}

// events that were notified, in their order, each once.
func (r *receiver) events() []string {
	var events []string
	seen := map[string]bool{}
	for _, body := range r.got("chat") {
		var b struct {
			Key   string `json:"key"`
			Event string `json:"event"`
			Text  string `json:"text"`
		}
		if err := json.Unmarshal([]byte(body), &b); err != nil || b.Text == "" {
			r.t.Errorf("a chat cannot show %q: %v", body, err)
		}
		if !seen[b.Key] {
			events, seen[b.Key] = append(events, b.Event), true
		}
	}

	return events
}

// TestHooks has a test before traffic block it, a gate before promotion roll back, a Job run once after promotion, and
// notifications arrive in order.
func TestHooks(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	r := receiverOf(t, ns)
	hook := func(name string, at v1alpha1.HookPoint) v1alpha1.RolloutHook {
		return v1alpha1.RolloutHook{
			Name: name, At: at, URL: fmt.Sprintf("http://hooks.%s.svc/cgi-bin/hook?%s", ns, name), Timeout: metav1.Duration{Duration: 5 * time.Minute},
		}
	}
	job := v1alpha1.RolloutHook{Name: "job", At: v1alpha1.HookAfterPromotion, Timeout: metav1.Duration{Duration: 5 * time.Minute}, Job: &v1alpha1.HookContainer{Core: corev1.Container{
		Image: os.Getenv("CAPSTAN_BUSYBOX"), Command: []string{"sh", "-c", `wget -q -O - --post-data "$CAPSTAN_HOOK_KEY" http://hooks/cgi-bin/hook?job`},
		SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(65532))},
	}}}
	reco := func(v string) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", versioned(v), sized(2), draining(drainSeconds), rolling(canary(50), func(l *v1alpha1.Lifecycle) {
			l.Hooks = []v1alpha1.RolloutHook{
				hook("smoke", v1alpha1.HookBeforeTraffic), hook("gate", v1alpha1.HookBeforePromotion), job,
				hook("clean", v1alpha1.HookAfterRollback), hook("chat", v1alpha1.HookTransition),
			}
		}))
	}
	stable(t, reco("v1"))
	calls := callers(t, ns, "reco", "", insideNew)

	edit(t, reco("v2"))
	within(t, 2*timeout, "the test before traffic is asked", func(context.Context) error {
		if n := len(r.got("smoke")); n < 2 {
			return fmt.Errorf("%d requests arrived", n)
		}

		return nil
	})
	// The status is written in a pass that changes no condition.
	eventually(t, "no request reaches v2 until the test has passed", func(ctx context.Context) error {
		st := rolloutOf(ctx, ns, "reco")
		if st.Phase != v1alpha1.RolloutPreparing || st.Weight != 0 || len(st.Hooks) != 1 || st.Hooks[0].Result != v1alpha1.HookResultRunning {
			return fmt.Errorf("it is %s at %d %%, %+v", st.Phase, st.Weight, st.Hooks)
		}

		return nil
	})
	if bodies := r.got("smoke"); bodies[0] != bodies[1] || !strings.Contains(bodies[0], fmt.Sprintf(`"candidateURL":"http://reco-slot-b.%s.svc"`, ns)) {
		t.Errorf("a repeated request should be the same and name the candidate, got %q", bodies[:2])
	}
	r.respond("smoke", http.StatusOK)
	within(t, 2*timeout, "a share of requests reaches v2", stepping(ns, "reco", 50))
	within(t, 3*timeout, "v2 bakes", rollout(ns, "reco", v1alpha1.RolloutBaking, ""))
	within(t, 2*timeout, "the rollout is over", rollout(ns, "reco", v1alpha1.RolloutStable, ""))
	eventually(t, "the Job has passed", func(ctx context.Context) error {
		for _, h := range rolloutOf(ctx, ns, "reco").Hooks {
			if h.Name == "job" && h.Result == v1alpha1.HookResultPassed {
				return nil
			}
		}

		return fmt.Errorf("hooks are %+v", rolloutOf(ctx, ns, "reco").Hooks)
	})
	told := func(want ...string) func(context.Context) error {
		return func(context.Context) error {
			if got := r.events(); !slices.Equal(got, want) {
				return fmt.Errorf("want notifications %q, got %q", want, got)
			}

			return nil
		}
	}
	eventually(t, "all is told", told("Started", "Promoted", "Ended"))

	r.respond("gate", http.StatusUnprocessableEntity)
	edit(t, reco("v3"))
	within(t, 4*timeout, "v3 is rolled back", rollout(ns, "reco", v1alpha1.RolloutRolledBack, ""))
	if f := rolloutOf(t.Context(), ns, "reco").Failed; len(f) != 1 || f[0].Reason != string(v1alpha1.ReasonHookFailed) || !strings.Contains(f[0].Message, "422") {
		t.Errorf("the gate should have failed, got %+v", f)
	}
	eventually(t, "v2 serves", func(ctx context.Context) error { return runs(ctx, ns, "reco-b", "v2") })
	eventually(t, "clean-up follows", func(context.Context) error {
		if n := len(r.got("clean")); n != 1 {
			return fmt.Errorf("%d requests arrived", n)
		}

		return nil
	})
	eventually(t, "all is told", told("Started", "Promoted", "Ended", "Started", "RolledBack"))
	eventually(t, "the failure is told", algorithmCondition(ns, "reco", v1alpha1.TypeHooksPassed, corev1.ConditionFalse, v1alpha1.ReasonHookFailed, "gate"))
	for hook, want := range map[string]int{"job": 1, "gate": 2} {
		if got := r.got(hook); len(got) != want {
			t.Errorf("hook %s should have run %d times, got %q", hook, want, got)
		}
	}
	calls.end(t)
}
