// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/images/demo-algorithm/load"
)

// evidenceEvery is the interval of evaluations here; two failures take as long as two of them.
const evidenceEvery = 10 * time.Second

// rolling has the shortest possible steps, with modifications.
func rolling(modify ...func(*v1alpha1.Lifecycle)) func(*v1alpha1.Algorithm) {
	return func(a *v1alpha1.Algorithm) {
		l := &v1alpha1.Lifecycle{
			Soak: &metav1.Duration{Duration: 10 * time.Second}, Bake: &metav1.Duration{Duration: 20 * time.Second},
			// 0.95 needs 52 requests without a failure, and 0.99 would need 268.
			MinSamples: new(int32(50)), SuccessThreshold: new(0.95),
		}
		for _, m := range modify {
			m(l)
		}
		a.Spec.Lifecycle = l
		a.Spec.Metrics = &v1alpha1.Metrics{
			Window: &metav1.Duration{Duration: 2 * evidenceEvery},
		}
	}
}

// requesting something of the rollout.
func requesting(a *v1alpha1.Algorithm, r v1alpha1.RolloutRequests) *v1alpha1.Algorithm {
	a.Spec.Rollout = &r

	return a
}

func steps(weights ...int32) func(*v1alpha1.Lifecycle) {
	return func(l *v1alpha1.Lifecycle) { l.Steps = weights }
}

func canary(weight int32) func(*v1alpha1.Lifecycle) {
	return func(l *v1alpha1.Lifecycle) { l.CanaryWeight = new(weight) }
}

func baking(d time.Duration) func(*v1alpha1.Lifecycle) {
	return func(l *v1alpha1.Lifecycle) { l.Bake = &metav1.Duration{Duration: d} }
}

// asking requires this share of requests to succeed.
func asking(threshold float64) func(*v1alpha1.Lifecycle) {
	return func(l *v1alpha1.Lifecycle) { l.SuccessThreshold = new(threshold) }
}

// rollout fails until the rollout of an Algorithm is in a phase, for a reason if one is named, with words that name the
// remedy.
func rollout(ns, name string, phase v1alpha1.RolloutPhase, reason string, words ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		a, err := get(ctx, &v1alpha1.Algorithm{}, ns, name)
		if err != nil {
			return err
		}
		r := a.Status.Rollout
		if r == nil {
			return errors.New("nothing is reported of a rollout")
		}
		if r.Phase != phase || reason != "" && r.Reason != reason {
			return fmt.Errorf("the rollout is %s, %s: %s (%s)", r.Phase, r.Reason, r.Message, letters(r.Evidence))
		}
		for _, w := range words {
			if !strings.Contains(r.Message, w) {
				return fmt.Errorf("the message of %s lacks %q: %s", r.Phase, w, r.Message)
			}
		}

		return nil
	}
}

// stepping fails until there is evidence about a share of traffic.
func stepping(ns, name string, weight int32) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := rollout(ns, name, v1alpha1.RolloutStepping, string(v1alpha1.ReasonSoaking))(ctx); err != nil {
			return err
		}
		if got := rolloutOf(ctx, ns, name).Weight; got != weight {
			return fmt.Errorf("the weight is %d", got)
		}

		return nil
	}
}

// rolloutOf an Algorithm, empty without a rollout.
func rolloutOf(ctx context.Context, ns, name string) v1alpha1.RolloutStatus {
	a, err := get(ctx, &v1alpha1.Algorithm{}, ns, name)
	if err != nil || a.Status.Rollout == nil {
		return v1alpha1.RolloutStatus{}
	}

	return *a.Status.Rollout
}

// runs fails until a Deployment runs a version of the demo server.
func runs(ctx context.Context, ns, deployment, version string) error {
	d, err := get(ctx, &appsv1.Deployment{}, ns, deployment)
	if err != nil {
		return err
	}
	for _, e := range d.Spec.Template.Spec.Containers[0].Env {
		if e.Name == "VERSION" && e.Value == version {
			return nil
		}
	}

	return fmt.Errorf("%s does not run %s", deployment, version)
}

// letters of the verdicts of each check.
func letters(evidence []v1alpha1.EvidenceStatus) string {
	var words []string
	for _, e := range evidence {
		words = append(words, e.Name+" "+e.Verdicts)
	}

	return strings.Join(words, ", ")
}

// A course is the history of a rollout, from the Algorithm, its Analysis and its HTTPRoute.
type course struct {
	mu sync.Mutex

	// stages of the rollout, one per epoch.
	stages []stage
	// shares of traffic in percent that the HTTPRoute sent to slot b.
	shares []routedShare
	// failing is when the first evaluation failed, and of which check.
	failing time.Time
	check   string

	stop []func()
}

type stage struct {
	v1alpha1.RolloutStatus

	at time.Time
}

type routedShare struct {
	percent int64
	at      time.Time
}

// courseOf the rollouts of an Algorithm from now on, until the test ends.
func courseOf(t *testing.T, ns, name string) *course {
	t.Helper()
	c := &course{}
	in := client.InNamespace(ns)
	named := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)}
	c.stop = []func(){
		watching(t, &v1alpha1.AlgorithmList{}, c.seeAlgorithm, in, named),
		watching(t, &observev1alpha1.AnalysisList{}, c.seeAnalysis, in, named),
	}
	if a, err := get(t.Context(), &v1alpha1.Algorithm{}, ns, name); err == nil && a.Spec.Route != nil {
		routes := &unstructured.UnstructuredList{}
		routes.SetAPIVersion("gateway.networking.k8s.io/v1")
		routes.SetKind("HTTPRouteList")
		c.stop = append(c.stop, watching(t, routes, c.seeRoute, in, named))
	}
	t.Cleanup(func() { t.Logf("the course of %s:\n%s", name, c.story()) })

	return c
}

func (c *course) seeAlgorithm(_ watch.EventType, a *v1alpha1.Algorithm) {
	r := a.Status.Rollout
	if r == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.stages); n > 0 {
		if last := &c.stages[n-1]; last.Epoch == r.Epoch {
			// The last message of a stage has the most details.
			last.RolloutStatus = *r

			return
		}
	}
	c.stages = append(c.stages, stage{RolloutStatus: *r, at: time.Now()})
}

func (c *course) seeAnalysis(_ watch.EventType, o *observev1alpha1.Analysis) {
	seen := o.Status.AtProvider.Canary
	if seen == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, check := range seen.Checks {
		if c.failing.IsZero() && strings.Contains(check.Verdicts, "F") {
			c.failing, c.check = time.Now(), check.Name
		}
	}
}

func (c *course) seeRoute(_ watch.EventType, r *unstructured.Unstructured) {
	rules, _, _ := unstructured.NestedSlice(r.Object, "spec", "rules")
	if len(rules) == 0 {
		return
	}
	backends, _, _ := unstructured.NestedSlice(rules[len(rules)-1].(map[string]any), "backendRefs")
	var b, total int64
	for _, ref := range backends {
		m, _ := ref.(map[string]any)
		weight := int64(1)
		if w, ok := m["weight"].(int64); ok {
			weight = w
		}
		total += weight
		if to, _ := m["name"].(string); strings.HasSuffix(to, "-slot-b") {
			b += weight
		}
	}
	if total == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.shares); n == 0 || c.shares[n-1].percent != 100*b/total {
		c.shares = append(c.shares, routedShare{percent: 100 * b / total, at: time.Now()})
	}
}

// story of the course, one line per stage.
func (c *course) story() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, s := range c.stages {
		fmt.Fprintf(&b, "  %6.1f s  %3d  %-12s %3d %%  %s: %s", s.at.Sub(c.stages[0].at).Seconds(), s.Epoch, s.Phase, s.Weight, s.Reason, s.Message)
		if len(s.Evidence) > 0 {
			fmt.Fprintf(&b, " (%s)", letters(s.Evidence))
		}
		b.WriteString("\n")
	}

	return b.String()
}

// took fails the test unless the rollout went through exactly these phases in this order. While conditions change, the
// rest of the status is not written, so that a short phase can be missed; the first and the last cannot.
func (c *course) took(t *testing.T, want ...v1alpha1.RolloutPhase) {
	t.Helper()
	c.tookBut(t, "", want...)
}

// tookBut for what comes and goes, and is not counted.
func (c *course) tookBut(t *testing.T, not v1alpha1.RolloutPhase, want ...v1alpha1.RolloutPhase) {
	t.Helper()
	within(t, 20*time.Second, "the course of the rollout is reported", func(context.Context) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		var got []v1alpha1.RolloutPhase
		for _, s := range c.stages {
			if s.Phase != not {
				got = append(got, s.Phase)
			}
		}
		got = slices.Compact(got)
		left := want
		for _, phase := range got {
			i := slices.Index(left, phase)
			if i < 0 {
				return fmt.Errorf("the phases should be %v, got %v", want, got)
			}
			left = left[i+1:]
		}
		if len(left) > 0 || got[0] != want[0] {
			return fmt.Errorf("the phases should be %v, got %v", want, got)
		}

		return nil
	})
}

// routedTo fails the test unless slot b got these shares of traffic in percent, one after the other.
func (c *course) routedTo() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []int64
	for _, s := range c.shares {
		out = append(out, s.percent)
	}

	return out
}

// routedAt returns when the HTTPRoute first sent this share of traffic to slot b, after a time.
func (c *course) routedAt(percent int64, after time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.shares {
		if s.percent == percent && s.at.After(after) {
			return s.at
		}
	}

	return time.Time{}
}

// firstFailure returns when an evaluation first failed, and of which check.
func (c *course) firstFailure() (time.Time, string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.failing, c.check
}

// calling a host through the Gateway, on persistent connections.
func calling(host string, perSecond float64) load.Options {
	return load.Options{URL: gateway + "/predict", Host: host, Concurrency: 8, Rate: perSecond, Timeout: 10 * time.Second}
}

// sampled is the share of requests in percent that each version gets.
func sampled(t *testing.T, o load.Options, d time.Duration) map[string]float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	r, err := load.Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Lost() != 0 || r.Answered == 0 {
		t.Errorf("%d of %d requests were lost: %v", r.Lost(), r.Sent, r.Failed)
	}
	out := map[string]float64{}
	for v, answers := range r.Versions {
		out[v] = 100 * float64(answers.Answered) / float64(r.Answered)
	}

	return out
}

// uneven is a rate of requests a second for those that are counted by version. The Gateway sends requests to the two backends in a fixed
// order. Beside other callers with a steady rate, a rate in proportion to theirs meets the same places of that order again and again:
// 60 beside 40 met a backend with a share of 20 % in a third of the requests.
const uneven = 43

// meets fails the test unless a version gets a share of requests in percent, within a tolerance. A small sample is
// repeated: the Gateway restarts its rotation, with the previous version, whenever a route of any test changes. A large
// one is too much load.
func meets(t *testing.T, o load.Options, version string, percent, tolerance float64) {
	t.Helper()
	var got map[string]float64
	for range 3 {
		got = sampled(t, o, 5*time.Second)
		t.Logf("of the callers %.1f %% meet %s, %.0f %% should", got[version], version, percent)
		if got[version] >= percent-tolerance {
			break
		}
	}
	if math.Abs(got[version]-percent) > tolerance {
		t.Errorf("%.0f %% of callers should meet %s, got %v", percent, version, got)
	}
}

// behave changes the behaviour of an Algorithm's pods, from a pod that has access.
func behave(t *testing.T, ns, name, query string) {
	t.Helper()
	list := &corev1.PodList{}
	if err := kube.List(t.Context(), list, client.InNamespace(ns), client.MatchingLabels{"capstan.dev/algorithm": name}); err != nil {
		t.Fatal(err)
	}
	var command strings.Builder
	for _, p := range list.Items {
		// NetworkPolicies are enforced for a new pod only a moment after its start.
		fmt.Fprintf(&command, "until timeout 3 wget -q -O - --post-data '' 'http://%s:8080/admin/behaviour?%s'; do sleep 1; done; ", p.Status.PodIP, query)
	}
	if p := caller(t, ns, name+"-behave", command.String()); !ends(t, p) {
		t.Fatalf("the behaviour of %s could not be changed", name)
	}
}

// stable creates an Algorithm with a ready first revision, behind the Gateway if it has a route.
func stable(t *testing.T, a *v1alpha1.Algorithm) {
	t.Helper()
	create(t, a)
	if r := a.Spec.Route; r != nil {
		eventually(t, "the Gateway serves "+a.Name, answers(r.Host, "/predict", http.StatusOK))
	}
	eventually(t, "the rollout of "+a.Name+" is stable", rollout(a.Namespace, a.Name, v1alpha1.RolloutStable, ""))
	// The measurements that follow must not depend on how long Prometheus needs to discover a new namespace.
	within(t, 2*timeout, "Prometheus sees "+a.Name, func(ctx context.Context) error {
		_, err := promQL(ctx, fmt.Sprintf("sum(up{namespace=%q,algorithm=%q,slot=%q})", a.Namespace, a.Name, "a"))

		return err
	})
}
