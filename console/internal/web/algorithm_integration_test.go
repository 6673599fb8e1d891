// SPDX-License-Identifier: Apache-2.0

//go:build integration

package web

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/curve"
	"github.com/capstan-dev/capstan/test/browser"
	"github.com/capstan-dev/capstan/test/outside"
)

// A scrapedPod is one of the demo server, as Prometheus has scraped it for a while.
type scrapedPod struct {
	namespace, pod, slot string
	since                time.Duration
	// perScrape is how many requests there were, and the share of them that fails.
	perScrape, failing float64
	// first and last are the longest that requests took at both ends, in milliseconds. Between them all times are as frequent.
	first, last float64
}

// history of pods in the text format of OpenMetrics, scraped every 15 seconds.
func history(now time.Time, pods ...scrapedPod) string {
	const every = 15 * time.Second
	var up, requests, latency strings.Builder
	for _, p := range pods {
		of := fmt.Sprintf("namespace=%q,pod=%q,algorithm=\"reco\",slot=%q", p.namespace, p.pod, p.slot)
		counted := map[string]float64{}
		for age := p.since; age > 0; age -= every {
			write := func(out *strings.Builder, name, more string, v float64) {
				fmt.Fprintf(out, "%s{%s%s} %g %d\n", name, of, more, v, now.Add(-age).Unix())
			}
			count := func(out *strings.Builder, name, more string, v float64) {
				counted[name+more] += v
				write(out, name, more, counted[name+more])
			}
			// Load and latency swing a little.
			swing := 1 + 0.05*math.Sin(age.Seconds()/97)
			sent, longest := p.perScrape*swing, (p.last+(p.first-p.last)*age.Seconds()/p.since.Seconds())*swing
			write(&up, "up", "", 1)
			count(&requests, "algorithm_requests_total", `,code="200"`, sent*(1-p.failing))
			count(&requests, "algorithm_requests_total", `,code="500"`, sent*p.failing)
			for _, le := range []float64{10, 20, 30, 40, 50, 60, 75, 100} {
				count(&latency, "algorithm_request_duration_seconds_bucket", fmt.Sprintf(",le=\"%g\"", le/1000), sent*min(1, le/longest))
			}
			count(&latency, "algorithm_request_duration_seconds_bucket", `,le="+Inf"`, sent)
		}
	}

	return up.String() + requests.String() + latency.String() + "# EOF\n"
}

// composedOf an example, the Analysis that the planner makes of a canary, for namespace shop.
func composedOf(t *testing.T, example string) *unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "algorithm", example, "want.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.SplitSeq(string(data), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		if u.GetKind() == "Analysis" {
			u.SetNamespace("shop")
			u.SetOwnerReferences(nil)

			return u
		}
	}
	t.Fatalf("%s composes no Analysis", example)

	return nil
}

// TestAlgorithmOnPage is the journey of a rollout through real pages: an Algorithm is created by the form and edited, its candidate is seen
// beside the live revision with the curves of a real Prometheus, a share of traffic is approved, and a bad candidate aborted. The API server
// is real, and what controllers would write is written here.
func TestAlgorithmOnPage(t *testing.T) {
	prometheus := outside.Prometheus(t)
	prometheus.Backfill(history(time.Now(),
		scrapedPod{"shop", "reco-a-1", "a", 50 * time.Minute, 500, 0.002, 38, 40},
		scrapedPod{"shop", "reco-b-1", "b", 25 * time.Minute, 125, 0.02, 39, 62},
		// Another tenant has pods of the same names, of which nearly all requests fail.
		scrapedPod{"bank", "reco-a-1", "a", 50 * time.Minute, 5000, 0.9, 9000, 9000},
		scrapedPod{"bank", "reco-b-1", "b", 50 * time.Minute, 5000, 0.9, 9000, 9000}))
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, prometheus.CA, 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := curve.Open(curve.Options{URL: prometheus.URL, CAFile: ca})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(o *Options) { o.Curves = source })
	shop, bank := w.person("shop"), w.person("bank")
	w.logIn(shop)

	w.Open("/n/shop/algorithms/new")
	w.Fill("f-name", "reco")
	w.Fill("f-image", "registry.example.org/algo/reco:1")
	w.Fill("f-replicas", "2")
	yaml := browser.Value[string](w.Browser, "document.getElementById('yaml').value")
	w.Set("yaml", strings.Replace(yaml, "spec: {}", "spec:\n  lifecycle: {approval: EveryStep, steps: [20, 50]}\n  objectives: {successRatio: 0.99, latencyMs: 50}", 1))
	w.Click("check")
	w.Sees("The API server accepts it", "+     approval: EveryStep")
	w.Click("apply")
	w.Sees("Algorithm reco", "It is created", "Evidence")
	w.Until(30*time.Second, "document.body.innerText.includes('Nothing is measured yet.')")
	path := "/n/shop/algorithms/o/reco"
	algorithms := w.admin.Resource(v1alpha1.GroupVersion.WithResource("algorithms")).Namespace("shop")
	report := func(status map[string]any) {
		t.Helper()
		a, err := algorithms.Get(t.Context(), "reco", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		a.Object["status"] = status
		if _, err := algorithms.UpdateStatus(t.Context(), a, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	of := func(name string) any {
		t.Helper()
		a, err := algorithms.Get(t.Context(), "reco", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		v, _, _ := unstructured.NestedFieldNoCopy(a.Object, "spec", "rollout", name)

		return v
	}
	report(map[string]any{
		"phase": "Ready", "replicas": int64(2), "readyReplicas": int64(2), "endpoint": "http://reco.shop.svc",
		"revision": map[string]any{"live": "aaaaaaaaaa", "slot": "a"}, "rollout": map[string]any{"phase": "Stable", "epoch": int64(0), "weight": int64(0), "stable": "aaaaaaaaaa"},
	})
	w.Until(20*time.Second, "document.getElementById('phase').textContent === 'Ready'")
	w.Sees("live, slot a", "100 % of traffic", "2 of 2 ready")

	// Another image begins a candidate.
	w.Click("edit")
	w.Fill("f-image", "registry.example.org/algo/reco:2")
	w.Click("check")
	w.Sees("The API server accepts it", "reco:2")
	w.Click("apply")
	w.Sees("The change is applied")
	if _, err := w.admin.Resource(analyses).Namespace("shop").Create(t.Context(), composedOf(t, "canary"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	candidate := func(phase, reason, message string) map[string]any {
		return map[string]any{
			"phase": "Ready", "replicas": int64(3), "readyReplicas": int64(3), "endpoint": "http://reco.shop.svc",
			"revision": map[string]any{"live": "aaaaaaaaaa", "slot": "a", "candidate": "bbbbbbbbbb"},
			"rollout": map[string]any{
				"phase": phase, "reason": reason, "message": message, "epoch": int64(3), "weight": int64(20), "stable": "aaaaaaaaaa", "candidate": "bbbbbbbbbb",
				"evidence": []any{map[string]any{"name": "success", "verdicts": "FF"}},
			},
		}
	}
	report(candidate("Holding", "AwaitingApproval", "20 % of requests may reach revision bbbbbbbbbb; 50 % wait for an approval"))
	w.Until(20*time.Second, "document.body.innerText.includes('revision bbbbbbbbbb')")
	w.Open(path)
	w.Until(30*time.Second, "document.querySelectorAll('svg.chart').length === 4")
	w.Sees("80 % of traffic", "20 % of traffic", "success: share of requests that succeed, at least 99 %", "latency: p95 of the latency, at most 50 ms")
	// What the other tenant has would be far below.
	titles := strings.Join(browser.Value[[]string](w.Browser, "[...document.querySelectorAll('svg.chart')].map((s) => s.getAttribute('aria-label'))"), "\n")
	for _, want := range []string{`^success, .* live revision 99\.[789]\d* %, candidate 9[78](\.\d+)? %`, `\nlatency, .* at most 50 ms, live revision 3\d(\.\d+)? ms, candidate 5\d(\.\d+)? ms`} {
		if !regexp.MustCompile(want).MatchString(titles) {
			t.Errorf("want %q of the charts, got\n%s", want, titles)
		}
	}
	// Since the pods of the candidate began, rounded up.
	if rows := browser.Value[int](w.Browser, "document.querySelectorAll('#numbers-success tbody tr').length"); rows < 50 || rows > 70 {
		t.Errorf("the table has %d rows", rows)
	}
	w.Screenshot("console-algorithm")
	// A person is about to press a button when an event or a curve arrives: it has to stay where it is.
	if moved := browser.Value[int](w.Browser, `(() => {
		const at = () => Math.round(document.getElementById('act-abort').getBoundingClientRect().top + scrollY);
		const before = at();
		document.querySelectorAll('[data-live], #curves').forEach((part) => { part.innerHTML = ''; });
		return before - at();
	})()`); moved != 0 {
		t.Errorf("what comes after the page moves its buttons by %d pixels", moved)
	}
	w.audit(path + "?curves=yes")
	w.Open(path)

	w.Click("act-approve")
	w.Fill("i-weight", "50")
	w.Press("main form button")
	w.Sees("Revision bbbbbbbbbb may get up to 50 % of traffic")
	w.Click("confirm")
	w.Sees("It is requested")
	if got := fmt.Sprint(of("approve")); got != "[bbbbbbbbbb:50]" {
		t.Errorf("want the approval in the spec, got %s", got)
	}
	report(candidate("Stepping", "Soaking", "50 % of requests may reach revision bbbbbbbbbb, and evidence is being gathered"))
	w.Open(path)
	w.Click("act-abort")
	w.Sees("What will happen")
	w.Click("confirm")
	w.Sees("It is requested")
	if got := of("abort"); got != "bbbbbbbbbb" {
		t.Errorf("want the abort in the spec, got %v", got)
	}

	// Prometheus ends, and takes nothing with it.
	prometheus.Stop()
	w.Open(path)
	w.Until(30*time.Second, "document.body.innerText.includes('There are no curves now. Prometheus does not answer.')")
	w.Sees("Algorithm reco", "80 % of traffic", "Edit")
	prometheus.Start()

	// A user of another namespace.
	w.Press("body > header button")
	w.logIn(bank)
	for _, page := range []string{path, path + "/curves", path + "?curves=yes"} {
		w.Open(page)
		w.Sees("You may not get ")
		w.SeesNot("99.9", "bbbbbbbbbb", "svg")
	}
	if ran := w.Ran(); len(ran) > 0 {
		t.Errorf("scripts opened dialogs or failed: %q", ran)
	}
}
