// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/console/internal/kube"
	"github.com/capstan-dev/capstan/console/internal/session"
	"github.com/capstan-dev/capstan/provider/curve"
)

const (
	recoPage     = "/n/shop/algorithms/o/reco"
	recoPath     = "/apis/capstan.dev/v1alpha1/namespaces/shop/algorithms/reco"
	analysisPath = "/apis/observe.capstan.dev/v1alpha1/namespaces/shop/analyses/reco"
)

// A fakePrometheus answers each query with one series of 7.
type fakePrometheus struct {
	mu    sync.Mutex
	asked []string
	// hung answers nothing, and failing answers with an error.
	hung, failing bool
}

func (f *fakePrometheus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	f.mu.Lock()
	f.asked = append(f.asked, r.Form.Get("query"))
	f.mu.Unlock()
	switch {
	case f.hung:
		<-r.Context().Done()

		return
	case f.failing:
		http.Error(w, "<b>words</b>", http.StatusInternalServerError)

		return
	}
	var values []any
	start, end, step := json.Number(r.Form.Get("start")), json.Number(r.Form.Get("end")), json.Number(r.Form.Get("step"))
	at, _ := start.Float64()
	last, _ := end.Float64()
	every, _ := step.Float64()
	for ; at <= last; at += every {
		values = append(values, []any{at, "7"})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{ //nolint:errchkjson // A test answers.
		"resultType": "matrix", "result": []any{map[string]any{"metric": map[string]string{"pod": "reco-b-1"}, "values": values}},
	}})
}

// measuredRig has an Algorithm with its Analysis, and a Prometheus.
func measuredRig(t *testing.T, change ...func(*observev1alpha1.Analysis)) (*rig, *fakePrometheus) {
	t.Helper()
	f := &fakePrometheus{}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	source, err := curve.Open(curve.Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(o *Options) { o.Curves = source })
	r.api.objects[recoPath] = &v1alpha1.Algorithm{
		TypeMeta:   metav1.TypeMeta{APIVersion: "capstan.dev/v1alpha1", Kind: "Algorithm"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "reco", ResourceVersion: "1"},
		Spec:       v1alpha1.AlgorithmSpec{Image: "registry.example.org/reco:2", Lifecycle: &v1alpha1.Lifecycle{}},
	}
	a := &observev1alpha1.Analysis{
		TypeMeta:   metav1.TypeMeta{APIVersion: "observe.capstan.dev/v1alpha1", Kind: "Analysis"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "reco"},
		Spec: observev1alpha1.AnalysisSpec{ForProvider: observev1alpha1.AnalysisParameters{Algorithm: "reco", Metrics: &observev1alpha1.MetricsParameters{
			Slots: []string{"a", "b"}, Canary: &observev1alpha1.CanaryParameters{
				Epoch: 1, Slot: "b", Baseline: "a", Checks: []observev1alpha1.Check{{Name: "queue", Kind: observev1alpha1.CheckQuery, Query: "queue", Max: new(9.0)}},
			},
		}}},
	}
	for _, c := range change {
		c(a)
	}
	r.api.objects[analysisPath] = a

	return r, f
}

// TestCurves: the page of an Algorithm is there without Prometheus, its curves come after it or by a button, and without the flag there are
// none.
func TestCurves(t *testing.T) {
	r, f := measuredRig(t)
	r.logIn("alices")
	code, page := r.get(recoPage)
	if code != http.StatusOK || len(f.asked) > 0 {
		t.Errorf("the page should not wait for curves: %d, asked %q", code, f.asked)
	}
	sees(t, page, `data-curves="`+recoPage+`/curves"`, "Show the curves")
	rsp, err := r.client.Get(r.address + recoPage + "/curves") //nolint:bodyclose // read closes it.
	code, part := r.read(rsp, err)
	if code != http.StatusOK || rsp.Header.Get("X-Part") != "curves" || strings.Contains(part, "<body") {
		t.Errorf("want a part of a page, got %d %v\n%s", code, rsp.Header, part)
	}
	drawn := []string{
		"value of its query, at most 9", "live revision", "candidate", "Numbers of queue", `<path class="bound"`, `<path class="candidate"`,
		`aria-label="queue, value of its query, at most 9. Now: at most 9, live revision 7, candidate 7"`, `<td>7</td>`,
	}
	sees(t, part, drawn...)
	harmless(t, recoPage, part)
	_, page = r.get(recoPage + "?curves=yes")
	sees(t, page, append(drawn, `aria-label="Change it"`)...)
	if strings.Contains(page, "data-curves") {
		t.Error("curves that are there are not wanted")
	}
	for _, asked := range r.api.asked {
		if !strings.HasPrefix(asked, "alice ") {
			t.Errorf("a request without the user: %s", asked)
		}
	}

	without := newRig(t)
	without.api.objects[recoPath], without.api.objects[analysisPath] = r.api.objects[recoPath], r.api.objects[analysisPath]
	without.logIn("alices")
	for _, path := range []string{recoPage, recoPage + "?curves=yes"} {
		if _, page := without.get(path); strings.Contains(strings.ToLower(page), "curves") || strings.Contains(page, "Evidence") {
			t.Errorf("without a Prometheus the page says nothing of it:\n%s", page)
		}
	}
	if code, _ := without.get(recoPage + "/curves"); code != http.StatusNotFound {
		t.Errorf("without a Prometheus there is no such page: %d", code)
	}
}

// TestNoCurves: why there are none is one line, and the page is whole.
func TestNoCurves(t *testing.T) {
	cases := map[string]struct {
		reason string
		user   string
		change func(*rig, *fakePrometheus, *observev1alpha1.Analysis)
		want   string
		asks   bool
	}{
		"Failing":    {"Prometheus fails.", "alices", func(_ *rig, f *fakePrometheus, _ *observev1alpha1.Analysis) { f.failing = true }, "There are no curves now. Prometheus does not answer.", true},
		"Right":      {"The right that is missing is named, and Prometheus is not asked.", "bobs", nil, "You may not get analyses.observe.capstan.dev in namespace shop", false},
		"None":       {"An Algorithm that has just been created.", "alices", func(r *rig, _ *fakePrometheus, _ *observev1alpha1.Analysis) { delete(r.api.objects, analysisPath) }, "Nothing is measured yet.", false},
		"Unmeasured": {"Without metrics.", "alices", func(_ *rig, _ *fakePrometheus, a *observev1alpha1.Analysis) { a.Spec.ForProvider.Metrics = nil }, "Nothing is measured yet.", false},
		"Unbounded":  {"Without a bound.", "alices", func(_ *rig, _ *fakePrometheus, a *observev1alpha1.Analysis) { a.Spec.ForProvider.Metrics.Canary = nil }, "No check of it has a bound.", false},
		"Own": {"A namespace with a Prometheus of its own.", "alices", func(_ *rig, _ *fakePrometheus, a *observev1alpha1.Analysis) {
			a.Spec.ProviderConfigReference = &xpv2.ProviderConfigReference{Kind: "ProviderConfig", Name: "ours"}
		}, "Its numbers are in the Prometheus of ProviderConfig ours, which the console does not use.", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var a *observev1alpha1.Analysis
			r, f := measuredRig(t, func(one *observev1alpha1.Analysis) { a = one })
			if tc.change != nil {
				tc.change(r, f, a)
			}
			r.api.may["bob"] = append(r.api.may["bob"], "/algorithms/")
			r.logIn(tc.user)
			code, part := r.get(recoPage + "/curves")
			if code != http.StatusOK {
				t.Errorf("%s Got %d", tc.reason, code)
			}
			sees(t, part, tc.want)
			code, page := r.get(recoPage + "?curves=yes")
			if code != http.StatusOK {
				t.Errorf("%s Got %d for the page", tc.reason, code)
			}
			sees(t, page, tc.want, `aria-label="Change it"`, "The manifest")
			if asked := len(f.asked) > 0; asked != tc.asks {
				t.Errorf("%s Prometheus was asked %q", tc.reason, f.asked)
			}
		})
	}
}

// TestCurvesLate: a Prometheus that hangs takes its time from the curves alone.
func TestCurvesLate(t *testing.T) {
	r, f := measuredRig(t)
	f.hung = true
	s := &Server{Options: r.options, drawings: newTurns(mostCurves, curvesAtOnce, 50*time.Millisecond, errCurvesBusy)}
	client, err := r.options.Kube.As("alices")
	if err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	kind, _ := kube.KindOf("algorithms")
	c := &call{r: req, session: &session.Session{User: "alice"}, client: client, now: time.Now(), kind: kind, namespace: "shop", name: "reco"}
	d, err := s.draw(c)
	if err != nil || d.Problem != errNoAnswer {
		t.Errorf("want that it does not answer, got %+v, %v", d, err)
	}
	for range mostCurves / 5 {
		if _, err := s.drawings.wanted.take("alice"); err != nil {
			t.Fatal(err)
		}
	}
	if d, err = s.draw(c); err != nil || d.Problem != errCurvesBusy {
		t.Errorf("a user has a fifth of them, got %+v, %v", d, err)
	}
}

// TestCurvesOfOthers: what an editor of an Analysis writes into it reaches the series of this Algorithm only.
func TestCurvesOfOthers(t *testing.T) {
	r, f := measuredRig(t, func(a *observev1alpha1.Analysis) {
		a.Namespace, a.Name = "bank", "vault"
		a.Spec.ForProvider.Algorithm = "vault"
		a.Spec.ForProvider.Metrics.Canary.Checks[0].Query = `sum(queue{namespace="bank"}) or up{algorithm!="reco"}`
		a.Status.AtProvider.Canary = &observev1alpha1.CanaryObservation{Checks: []observev1alpha1.CanaryCheck{{Name: `up{namespace="bank"}`}}}
	})
	r.logIn("alices")
	if code, _ := r.get(recoPage + "/curves"); code != http.StatusOK || len(f.asked) == 0 {
		t.Errorf("got %d, asked %q", code, f.asked)
	}
	for _, q := range f.asked {
		for _, only := range []string{`namespace="shop"`, `algorithm="reco"`} {
			if strings.Count(q, only) != strings.Count(q, "{") {
				t.Errorf("each selector should have %s: %s", only, q)
			}
		}
	}
	asked := len(f.asked)
	r.logIn("bobs")
	for _, path := range []string{recoPage + "/curves", recoPage + "?curves=yes"} {
		if _, page := r.get(path); strings.Contains(page, "queue") {
			t.Errorf("bob reads %s:\n%s", path, page)
		}
	}
	if len(f.asked) != asked {
		t.Errorf("bob asked %q", f.asked[asked:])
	}
}
