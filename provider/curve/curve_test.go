// SPDX-License-Identifier: Apache-2.0

package curve

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

var now = time.Unix(1_800_000_000, 0).UTC()

// fakePrometheus has pods of the demo server in the slots a and b, whose numbers are the same at each moment.
type fakePrometheus struct {
	t *testing.T
	// since is when the pods of slot b began. Before that, others were there.
	since time.Time
	// status in place of an answer.
	status int
	// late is called in place of an answer, if it is set.
	late func()

	mu    sync.Mutex
	asked []string
	token string
}

// line of an answer.
type line struct {
	labels map[string]string
	value  float64
}

// lines of a query at a time.
func (f *fakePrometheus) lines(query string, at time.Time) []line {
	var all []line
	for _, slot := range []string{"a", "b"} {
		if !strings.Contains(query, fmt.Sprintf("slot=%q", slot)) && !strings.Contains(query, `slot=~"a|b"`) {
			continue
		}
		add := func(v float64, pairs ...string) {
			l := line{labels: map[string]string{"slot": slot}, value: v}
			for i := 0; i < len(pairs); i += 2 {
				l.labels[pairs[i]] = pairs[i+1]
			}
			all = append(all, l)
		}
		bad := slot == "b"
		pick := func(good, other float64) float64 {
			if bad {
				return other
			}
			return good
		}
		switch {
		case strings.HasPrefix(query, "up{"):
			pod := slot + "-1"
			if bad && at.Before(f.since) {
				pod = "another"
			}
			add(1, "pod", pod)
		case strings.Contains(query, `"distribution"`):
			add(1, "capstan_measure", "up")
			add(1, "capstan_measure", "series", "__name__", "algorithm_requests_total")
		case strings.Contains(query, "capstan_measure"):
			add(1, "capstan_measure", "up")
			add(1, "capstan_measure", "series", "__name__", "algorithm_requests_total")
			add(1000, "capstan_measure", "requests")
			add(pick(5, 50), "capstan_measure", "failures")
			for le, share := range map[string]float64{"0.02": pick(0.9, 0), "0.04": pick(1, 0.9), "0.08": 1, "+Inf": 1} {
				add(1000*share, "capstan_measure", "latency", "le", le)
			}
		case strings.HasPrefix(query, "revenue"):
			add(pick(10, 9))
		case strings.HasPrefix(query, "scores"):
			for le, n := range map[string]float64{"0.5": pick(500, 100), "1": 1000, "+Inf": 1000} {
				add(n, "le", le)
			}
		}
	}
	return all
}

func (f *fakePrometheus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	query := r.Form.Get("query")
	f.mu.Lock()
	f.asked = append(f.asked, query)
	f.token = r.Header.Get("Authorization")
	f.mu.Unlock()
	if r.URL.Path != "/api/v1/query_range" {
		f.t.Errorf("asked for %s", r.URL.Path)
	}
	if f.late != nil {
		f.late()
		<-r.Context().Done()
	}
	w.Header().Set("Content-Type", "application/json")
	if f.status != 0 {
		w.WriteHeader(f.status)
		_, _ = w.Write([]byte(`{"status":"error","errorType":"internal","error":"secret words"}`))
		return
	}
	number := func(name string) float64 {
		v, err := strconv.ParseFloat(r.Form.Get(name), 64)
		if err != nil {
			f.t.Errorf("%s is %q", name, r.Form.Get(name))
		}
		return v
	}
	type series struct {
		Metric map[string]string `json:"metric"`
		Values [][2]any          `json:"values"`
	}
	by := map[string]*series{}
	for at := number("start"); at <= number("end"); at += number("step") {
		for _, l := range f.lines(query, time.Unix(int64(at), 0)) {
			key := fmt.Sprint(l.labels)
			if by[key] == nil {
				by[key] = &series{Metric: l.labels}
			}
			by[key].Values = append(by[key].Values, [2]any{at, strconv.FormatFloat(l.value, 'g', -1, 64)})
		}
	}
	result := []*series{}
	for _, s := range by {
		result = append(result, s)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": result}}) //nolint:errchkjson // A test answers.
}

func start(t *testing.T, f *fakePrometheus) *Source {
	t.Helper()
	f.t = t
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	s, err := Open(Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// beside each other: a candidate in slot b and the live revision in slot a, with some checks.
func beside(checks ...v1alpha1.Check) *v1alpha1.MetricsParameters {
	return &v1alpha1.MetricsParameters{
		Window: &metav1.Duration{Duration: 2 * time.Minute}, Slots: []string{"a", "b"}, Canary: &v1alpha1.CanaryParameters{Epoch: 3, Slot: "b", Baseline: "a", Checks: checks},
	}
}

// TestCurves has the values that the provider reads, and what they are compared with.
func TestCurves(t *testing.T) {
	relative := v1alpha1.RelativeToBaseline
	cases := map[string]struct {
		reason                       string
		check                        v1alpha1.Check
		live, candidate, least, most *float64
		missing                      string
	}{
		"Success":  {"A share, with its least.", v1alpha1.Check{Kind: v1alpha1.CheckSuccessRatio, Min: new(0.99)}, new(0.995), new(0.95), new(0.99), nil, ""},
		"Against":  {"A margin follows the live revision.", v1alpha1.Check{Kind: v1alpha1.CheckSuccessRatio, Max: new(0.005), RelativeTo: relative}, new(0.995), new(0.95), new(0.99), nil, ""},
		"Latency":  {"A percentile in milliseconds.", v1alpha1.Check{Kind: v1alpha1.CheckLatency, Percentile: 90, Max: new(30.0)}, new(20.0), new(40.0), nil, new(30.0), ""},
		"Slower":   {"A ratio is drawn as both values, and the bound follows.", v1alpha1.Check{Kind: v1alpha1.CheckLatency, Percentile: 90, Max: new(1.5), RelativeTo: relative}, new(20.0), new(40.0), nil, new(30.0), ""},
		"Query":    {"A query of the spec, with two bounds.", v1alpha1.Check{Kind: v1alpha1.CheckQuery, Query: "revenue", Min: new(8.0), Max: new(12.0)}, new(10.0), new(9.0), new(8.0), new(12.0), ""},
		"Ratio":    {"Its ratio to the live revision.", v1alpha1.Check{Kind: v1alpha1.CheckQuery, Query: "revenue", Min: new(0.95), RelativeTo: relative}, new(10.0), new(9.0), new(9.5), nil, ""},
		"Drift":    {"A distance is between the two, and the candidate's.", v1alpha1.Check{Kind: v1alpha1.CheckDrift, Query: "scores", Method: v1alpha1.DriftKS, Max: new(0.2), RelativeTo: relative}, nil, new(0.398), nil, new(0.2), ""},
		"Earlier":  {"A distance to what was is each slot's own.", v1alpha1.Check{Kind: v1alpha1.CheckDrift, Query: "scores", Method: v1alpha1.DriftKS, Max: new(0.2), Reference: &metav1.Duration{Duration: time.Hour}}, nil, nil, nil, new(0.2), "of the reference: there is no such series: correct the query, or wait until the pods expose it"},
		"Missing":  {"Why there is no value.", v1alpha1.Check{Kind: v1alpha1.CheckQuery, Query: "never", Max: new(1.0)}, nil, nil, nil, new(1.0), "there is no such series: correct the query, or wait until the pods expose it"},
		"Nonsense": {"Words of others are not repeated.", v1alpha1.Check{Kind: v1alpha1.CheckQuery, Query: "sum(", Max: new(1.0)}, nil, nil, nil, new(1.0), "Prometheus cannot evaluate the query of this check: the conditions of the Algorithm say why"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.check.Name = "check"
			f := &fakePrometheus{since: now.Add(-20 * time.Minute)}
			got, err := start(t, f).Of(t.Context(), "shop", "reco", beside(tc.check), now)
			if err != nil || len(got.Checks) != 1 || len(got.Moments) < 2 {
				t.Fatalf("%s Got %d moments, %+v, %v", tc.reason, len(got.Moments), got.Checks, err)
			}
			c := got.Checks[0]
			n := len(got.Moments)
			for what, l := range map[string]struct {
				line Line
				want *float64
			}{"live": {c.Live, tc.live}, "candidate": {c.Candidate, tc.candidate}, "least": {c.Least, tc.least}, "most": {c.Most, tc.most}} {
				if l.line == nil && l.want == nil {
					continue
				}
				if len(l.line) != n {
					t.Errorf("%s The line %s has %d values of %d", tc.reason, what, len(l.line), n)

					continue
				}
				for _, v := range []*float64{l.line[0], l.line[n-1]} {
					if diff := cmp.Diff(ptr.Deref(l.want, -1), ptr.Deref(v, -1)); diff != "" {
						t.Errorf("%s The line %s: -want, +got:\n%s", tc.reason, what, diff)
					}
				}
			}
			if diff := cmp.Diff(tc.missing, c.Missing); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSubject is which slots and checks are drawn, and since when.
func TestSubject(t *testing.T) {
	success := v1alpha1.Check{Name: "success", Kind: v1alpha1.CheckSuccessRatio, Min: new(0.99)}
	rate := v1alpha1.Check{Name: "rate", Kind: v1alpha1.CheckRequestRate}
	many := make([]v1alpha1.Check, 15)
	for i := range many {
		many[i] = success
		many[i].Name = fmt.Sprintf("success-%d", i)
	}
	type drawn struct {
		Live, Candidate, First string
		Checks, More, Points   int
		Back                   time.Duration
	}
	cases := map[string]struct {
		reason string
		m      *v1alpha1.MetricsParameters
		since  time.Duration
		want   drawn
	}{
		"Canary":    {"A rollout from when the pods of its candidate began, rounded up.", beside(success), 23 * time.Minute, drawn{"a", "b", "success", 1, 0, 61, 25 * time.Minute}},
		"Beginning": {"Points are no closer than Prometheus scrapes.", beside(success), time.Minute, drawn{"a", "b", "success", 1, 0, 31, 5 * time.Minute}},
		"Long":      {"Not further back than evidence counts.", beside(success), 99 * time.Hour, drawn{"a", "b", "success", 1, 0, 61, 6 * time.Hour}},
		"Bake":      {"A candidate that has all requests is the live revision.", &v1alpha1.MetricsParameters{Slots: []string{"b"}, Canary: &v1alpha1.CanaryParameters{Slot: "b", Checks: []v1alpha1.Check{success}}}, 55 * time.Minute, drawn{"b", "", "success", 1, 0, 61, time.Hour}},
		"Coming":    {"A candidate without evidence yet.", &v1alpha1.MetricsParameters{Slots: []string{"a", "b"}, Checks: []v1alpha1.Check{rate, success}}, time.Minute, drawn{"a", "b", "success", 1, 0, 31, 5 * time.Minute}},
		"Alone":     {"The last hour without a rollout. A load has no bound.", &v1alpha1.MetricsParameters{Slots: []string{"a"}, Checks: []v1alpha1.Check{rate, success}}, 0, drawn{"a", "", "success", 1, 0, 61, time.Hour}},
		"Many":      {"Not more than a page can have.", &v1alpha1.MetricsParameters{Slots: []string{"a"}, Checks: many}, 0, drawn{"a", "", "success-0", 12, 3, 61, time.Hour}},
		"None":      {"Nothing to draw takes no query.", &v1alpha1.MetricsParameters{Slots: []string{"a"}, Checks: []v1alpha1.Check{rate}}, 0, drawn{Live: "a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fakePrometheus{since: now.Add(-tc.since)}
			c, err := start(t, f).Of(t.Context(), "shop", "reco", tc.m, now)
			if err != nil {
				t.Fatal(err)
			}
			got := drawn{Live: c.Live, Candidate: c.Candidate, Checks: len(c.Checks), More: c.More, Points: len(c.Moments)}
			if len(c.Checks) > 0 {
				got.First, got.Back = c.Checks[0].Check.Name, now.Sub(c.Moments[0])
			} else if len(f.asked) > 0 {
				t.Errorf("%s It was asked %q", tc.reason, f.asked)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			// What the provider asks once is asked once for all moments.
			if asked := slices.Compact(slices.Sorted(slices.Values(f.asked))); len(asked) != len(f.asked) || len(asked) > 4 {
				t.Errorf("%s It was asked %d queries: %q", tc.reason, len(f.asked), f.asked)
			}
		})
	}
}

// TestOthersAreNotSeen: an Analysis that a tenant wrote, however it is forged, asks for series of the pods of this Algorithm only.
func TestOthersAreNotSeen(t *testing.T) {
	hostile := []string{
		`sum(revenue{namespace="bank"})`, `revenue{namespace=~".*"} or up{namespace!="shop"}`, `{__name__=~".+"}`, `up{algorithm="other",slot=~".*"}`,
		`max_over_time(rate({namespace="bank"}[$window])[5m:1m] offset -1h) @ end()`, `label_replace(up, "namespace", "bank", "", "")`, `absent(up{namespace="bank"})`,
		`up{namespace="bank"} # }`, `info(up)`, `revenue) or (up`, `topk(scalar(up{namespace="bank"}), up)`, "count_values(\"namespace\", up)",
	}
	m := beside()
	for i, q := range hostile {
		m.Canary.Checks = append(m.Canary.Checks,
			v1alpha1.Check{Name: fmt.Sprintf("query-%d", i), Kind: v1alpha1.CheckQuery, Query: q, Max: new(1.0)},
			v1alpha1.Check{Name: fmt.Sprintf("drift-%d", i), Kind: v1alpha1.CheckDrift, Query: q, Max: new(1.0), Reference: &metav1.Duration{Duration: time.Hour}})
	}
	forged := map[string]func(*v1alpha1.MetricsParameters){
		"Queries": func(m *v1alpha1.MetricsParameters) {
			m.Queries = &v1alpha1.Queries{Requests: hostile[0], Failures: hostile[1], Latency: hostile[2], InFlight: hostile[3]}
			m.Canary.Checks = []v1alpha1.Check{{Name: "s", Kind: v1alpha1.CheckSuccessRatio, Min: new(0.9)}, {Name: "l", Kind: v1alpha1.CheckLatency, Max: new(1.0)}}
		},
		"Slots": func(m *v1alpha1.MetricsParameters) {
			m.Canary.Slot, m.Canary.Baseline = `a"} or up{namespace="bank`, `.*|b`
			m.Canary.Checks = []v1alpha1.Check{{Name: "s", Kind: v1alpha1.CheckSuccessRatio, Min: new(0.9)}, {Name: "q", Kind: v1alpha1.CheckQuery, Query: "up", Max: new(1.0)}}
		},
		"No slot": func(m *v1alpha1.MetricsParameters) { m.Canary.Slot = "" },
	}
	for i := range 2 * len(hostile) {
		forged[m.Canary.Checks[i].Name] = func(m *v1alpha1.MetricsParameters) { m.Canary.Checks = m.Canary.Checks[i : i+1] }
	}
	for name, forge := range forged {
		t.Run(name, func(t *testing.T) {
			m := m.DeepCopy()
			forge(m)
			f := &fakePrometheus{since: now}
			_, _ = start(t, f).Of(t.Context(), "shop", "reco", m, now)
			for _, q := range f.asked {
				e, err := parser.NewParser(parser.Options{}).ParseExpr(q)
				if err != nil {
					t.Fatalf("%q is no PromQL: %v", q, err)
				}
				parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
					s, ok := n.(*parser.VectorSelector)
					if !ok {
						return nil
					}
					for label, value := range map[string]string{"namespace": "shop", "algorithm": "reco"} {
						if !slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool {
							return m.Type == labels.MatchEqual && m.Name == label && m.Value == value
						}) {
							t.Errorf("%s of %q does not require %s=%q", s, q, label, value)
						}
					}
					return nil
				})
			}
		})
	}
}

// deadline is a context whose time is over when a channel is closed.
type deadline struct {
	context.Context //nolint:containedctx // It is one.

	over chan struct{}
}

func (d deadline) Done() <-chan struct{} { return d.over }

func (d deadline) Err() error {
	select {
	case <-d.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestPrometheusFails is about a Prometheus as a whole: one error, soon, without words of it.
func TestPrometheusFails(t *testing.T) {
	success := v1alpha1.Check{Name: "success", Kind: v1alpha1.CheckSuccessRatio, Min: new(0.99)}
	over := make(chan struct{})
	for name, tc := range map[string]struct {
		reason string
		f      *fakePrometheus
		want   string
	}{
		"Failing":   {"It fails.", &fakePrometheus{status: http.StatusInternalServerError}, "cannot ask Prometheus: ServerError"},
		"Forbidden": {"It wants credentials.", &fakePrometheus{status: http.StatusUnauthorized}, "cannot ask Prometheus: CredentialsRefused"},
		"Slow":      {"It does not answer in time.", &fakePrometheus{late: func() { close(over) }}, "cannot ask Prometheus: TimedOut"},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, tc.f)
			ctx := t.Context()
			if tc.f.late != nil {
				ctx = deadline{ctx, over} // the server says when, so that it is asked in any case
			}
			_, err := s.Of(ctx, "shop", "reco", &v1alpha1.MetricsParameters{Slots: []string{"a"}, Checks: []v1alpha1.Check{success}}, now)
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s Want %q, got %v", tc.reason, tc.want, err)
			}
			if len(tc.f.asked) != 1 {
				t.Errorf("%s It was asked %d times", tc.reason, len(tc.f.asked))
			}
		})
	}
}

// TestOpen takes addresses and files as the provider takes configs, and reads a token again when it is replaced.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	write := func(text string) {
		if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	f := &fakePrometheus{t: t}
	server := httptest.NewTLSServer(f)
	t.Cleanup(server.Close)
	ca := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Options{URL: server.URL, CAFile: ca, TokenFile: token})
	if err != nil {
		t.Fatal(err)
	}
	m := &v1alpha1.MetricsParameters{Slots: []string{"a"}, Checks: []v1alpha1.Check{{Name: "success", Kind: v1alpha1.CheckSuccessRatio, Min: new(0.99)}}}
	for _, want := range []string{"first", "second"} {
		write(want + "\n")
		if _, err := s.Of(t.Context(), "shop", "reco", m, now); err != nil || f.token != "Bearer "+want {
			t.Errorf("Want the token %s, got %q, %v", want, f.token, err)
		}
	}
	for reason, o := range map[string]Options{
		"no scheme":                 {URL: "prometheus:9090"},
		"another scheme":            {URL: "ftp://prometheus"},
		"no host":                   {URL: "https://"},
		"a password":                {URL: "https://user:secret@prometheus"},
		"a query":                   {URL: "https://prometheus?x=y"},
		"a token in clear text":     {URL: "http://prometheus", TokenFile: token},
		"no such token":             {URL: "https://prometheus", TokenFile: filepath.Join(dir, "none")},
		"no such authority":         {URL: "https://prometheus", CAFile: filepath.Join(dir, "none")},
		"an authority that is none": {URL: "https://prometheus", CAFile: token},
	} {
		if _, err := Open(o); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("An address with %s should be refused: %v", reason, err)
		}
	}
}
