// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
	"github.com/capstan-dev/capstan/provider/internal/promq"
)

// tried is an Analysis that asks about a canary.
func tried(mods ...func(*v1alpha1.MetricsParameters)) *v1alpha1.Analysis {
	return measured(append([]func(*v1alpha1.MetricsParameters){func(m *v1alpha1.MetricsParameters) {
		m.Interval = &metav1.Duration{Duration: 15 * time.Second}
		m.Slots = []string{"a", "b"}
		m.Canary = &v1alpha1.CanaryParameters{
			Epoch: 41, Slot: "b", Baseline: "a", Settle: &metav1.Duration{Duration: 30 * time.Second}, MinSamples: 100,
			Checks: []v1alpha1.Check{
				{Name: "success", Kind: v1alpha1.CheckSuccessRatio, Min: new(0.99)},
				{Name: "latency", Kind: v1alpha1.CheckLatency, Percentile: 95, Max: new(200.0)},
			},
		}
	}}, mods...)...)
}

// reported canary.
func (s *stand) reported() *v1alpha1.CanaryObservation {
	s.t.Helper()
	c := s.get().Status.AtProvider.Canary
	if c == nil {
		s.t.Fatal("There should be a canary")
	}
	return c
}

// canary as it is known, of which not all is reported.
func (s *stand) canary() *v1alpha1.CanaryObservation {
	s.t.Helper()
	c := s.reported()
	if m := s.obs.memory.of("watch", s.clock); m.canary != nil && m.canary.StartedAt.Equal(&c.StartedAt) {
		return m.canary
	}
	return c
}

func letters(c *v1alpha1.CanaryObservation) string {
	var all []string
	for _, check := range c.Checks {
		all = append(all, check.Verdicts)
	}
	return strings.Join(all, "/")
}

// pass some looks.
func (s *stand) pass(looks int) *v1alpha1.CanaryObservation {
	s.t.Helper()
	for range looks {
		s.clock = s.clock.Add(15 * time.Second)
		s.reconcile()
	}
	return s.canary()
}

// change the spec as the function does.
func (s *stand) change(mod func(*v1alpha1.MetricsParameters)) {
	s.t.Helper()
	a := s.get()
	mod(a.Spec.ForProvider.Metrics)
	a.Generation++
	if err := s.kube.Update(s.t.Context(), a); err != nil {
		s.t.Fatal(err)
	}
}

func well() *prom {
	return &prom{slots: map[string]told{"a": algorithm(12000, 0, 2), "b": algorithm(3000, 0, 1)}}
}

// TestEpoch follows a canary from the beginning of an epoch to its end.
func TestEpoch(t *testing.T) {
	p := well()
	one := pod("reco-b-1", slot("b"), ready)
	s := newStand(t, p, nil, tried(), &one)
	s.reconcile()
	began := metav1.NewTime(now)
	until := metav1.NewTime(now.Add(3 * time.Minute))
	want := &v1alpha1.CanaryObservation{Epoch: 41, StartedAt: began, LookedAt: began, LooksUntil: &until}
	if diff := cmp.Diff(want, s.canary()); diff != "" {
		t.Fatalf("An epoch should begin at once, and have nothing: -want, +got:\n%s", diff)
	}

	// 30 s to settle, and 20 s until there may be two scrapes.
	if c := s.pass(3); c.Looks != 0 || letters(c) != "" || !c.LookedAt.Time.Equal(s.clock) || !c.StartedAt.Equal(&began) {
		t.Errorf("While it settles nothing counts, and it is seen that somebody looks, got %+v", c)
	}
	if c := s.pass(1); c.Looks != 1 || letters(c) != "P/P" {
		t.Errorf("Then each look counts, got %+v", c)
	}
	s.writes = 0
	if c := s.pass(20); c.Looks != 21 || letters(c) != "PPPPPPPPPP/PPPPPPPPPP" || s.writes > 4 {
		t.Errorf("Looks that change no decision are reported together, and ten letters are kept, got %+v in %d writes", c, s.writes)
	}
	if c := s.reported(); !strings.HasSuffix(letters(c), "PPP") || !c.LooksUntil.After(s.clock) {
		t.Errorf("What decides is reported, and for how long it counts, got %+v", c)
	}
	c := s.canary().Checks[0]
	if *c.Value != 1 || *c.Samples != 3000 || *c.Baseline != 1 || c.Upper == nil || c.Message != "" {
		t.Errorf("The numbers should be told, got %+v", c)
	}

	// Events of pods in between change nothing.
	before := s.canary()
	s.clock = s.clock.Add(5 * time.Second)
	s.reconcile()
	if diff := cmp.Diff(before, s.canary()); diff != "" {
		t.Errorf("Between two looks nothing should be counted: -want, +got:\n%s", diff)
	}

	// Another epoch.
	s.change(func(m *v1alpha1.MetricsParameters) { m.Canary.Epoch = 42 })
	s.reconcile()
	if c := s.canary(); c.Epoch != 42 || c.Looks != 0 || letters(c) != "" || !c.StartedAt.Time.Equal(s.clock) {
		t.Errorf("Another epoch should begin with nothing, got %+v", c)
	}
	s.pass(4)

	// The canary is over.
	s.change(func(m *v1alpha1.MetricsParameters) { m.Canary = nil })
	s.reconcile()
	if c := s.get().Status.AtProvider.Canary; c != nil {
		t.Errorf("A canary that is over should not be told, got %+v", c)
	}
	s.writes = 0
	for range 20 {
		s.clock = s.clock.Add(15 * time.Second)
		s.reconcile()
	}
	if s.writes != 0 {
		t.Errorf("Without a canary nothing should be written, got %d writes", s.writes)
	}
}

// TestEpochOfFrequentScrapes follows a bad canary whose pods are scraped every five seconds: it is looked at as soon as there can be
// evidence, and again as soon as there can be more.
func TestEpochOfFrequentScrapes(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		interval time.Duration
		bad      float64
		// want is after how long there is which evidence.
		want map[time.Duration]string
	}{
		"Bad": {
			"two looks are enough", 30 * time.Second, 300,
			map[time.Duration]string{17 * time.Second: "", 18 * time.Second: "F", 30 * time.Second: "F", 31 * time.Second: "FF"},
		},
		"BadOften": {
			"not more often than asked", 10 * time.Second, 300,
			map[time.Duration]string{17 * time.Second: "", 18 * time.Second: "F", 27 * time.Second: "F", 28 * time.Second: "FF"},
		},
		"Good": {
			"what passes waits for the interval", 30 * time.Second, 0,
			map[time.Duration]string{17 * time.Second: "", 18 * time.Second: "P", 47 * time.Second: "P", 48 * time.Second: "PP"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := well()
			for slot, of := range p.slots {
				of.scrapes = 12
				p.slots[slot] = of
			}
			canary := p.slots["b"]
			canary.failures = tc.bad
			p.slots["b"] = canary
			s := newStand(t, p, nil, tried(func(m *v1alpha1.MetricsParameters) {
				m.Interval, m.Canary.Checks = &metav1.Duration{Duration: tc.interval}, m.Canary.Checks[:1]
			}))
			s.reconcile()
			for at := time.Second; at <= time.Minute; at += time.Second {
				s.clock = s.clock.Add(time.Second)
				s.reconcile()
				if want, ok := tc.want[at]; ok && letters(s.canary()) != want {
					t.Errorf("%s: after %s want %q, got %q", tc.reason, at, want, letters(s.canary()))
				}
			}
		})
	}
}

// TestLoadWhileTried shows that the load of the live slot, which follows its share of requests, is no news while a canary is tried,
// unlike afterwards.
func TestLoadWhileTried(t *testing.T) {
	p, one := well(), pod("reco-a-1", slot("a"), ready)
	s := newStand(t, p, nil, tried(func(m *v1alpha1.MetricsParameters) {
		m.Slots, m.Checks = []string{"a"}, []v1alpha1.Check{{Name: "request-rate", Kind: v1alpha1.CheckRequestRate}}
	}), &one)
	s.reconcile()
	s.pass(2)
	s.writes = 0
	p.slots["a"] = algorithm(6000, 0, 2)
	if s.pass(2); s.writes != 0 {
		t.Errorf("half of the load should be no news, got %d writes", s.writes)
	}
	s.change(func(m *v1alpha1.MetricsParameters) { m.Canary = nil })
	s.reconcile()
	s.clock = s.clock.Add(time.Minute)
	s.reconcile()
	if got := s.get().Status.AtProvider.Metrics; len(got) != 1 || *got[0].Value != 50 {
		t.Errorf("afterwards the load is told as it is, got %+v", got)
	}
}

// TestEpochBeginsAnew shows what ends what was counted, and what does not.
func TestEpochBeginsAnew(t *testing.T) {
	restart := func(s *stand) { s.obs.memory = newMemory() }
	change := func(mod func(*v1alpha1.MetricsParameters)) func(*stand) {
		return func(s *stand) { s.change(mod) }
	}
	cases := map[string]struct {
		reason string
		events []func(*stand)
		again  bool
	}{
		"Nothing":   {reason: "It goes on when nothing happens."},
		"Restart":   {reason: "It goes on after a restart of the provider.", events: []func(*stand){restart}},
		"Restarts":  {reason: "However many there are.", events: []func(*stand){restart, restart}},
		"Interval":  {reason: "How often it is looked at is no part of what is counted.", events: []func(*stand){change(func(m *v1alpha1.MetricsParameters) { m.Slots = []string{"b", "a"} })}},
		"DecidesAt": {reason: "Nor is when it decides.", events: []func(*stand){change(func(m *v1alpha1.MetricsParameters) { m.Canary.DecidesAt = new(metav1.NewTime(now.Add(time.Hour))) })}},
		"Slot":      {reason: "Another slot is another canary.", events: []func(*stand){change(func(m *v1alpha1.MetricsParameters) { m.Canary.Slot, m.Canary.Baseline = "a", "b" })}, again: true},
		"Baseline":  {reason: "Another baseline makes another comparison.", events: []func(*stand){change(func(m *v1alpha1.MetricsParameters) { m.Canary.Baseline = "" })}, again: true},
		"Checks":    {reason: "Verdicts on other bounds are not verdicts on these.", events: []func(*stand){change(func(m *v1alpha1.MetricsParameters) { m.Canary.Checks[0].Min = new(0.9) })}, again: true},
		"Queries":   {reason: "Nor are those on other queries.", events: []func(*stand){change(func(m *v1alpha1.MetricsParameters) { m.Queries = &v1alpha1.Queries{InFlight: "x"} })}, again: true},
		"Meanwhile": {reason: "What changed while the provider was away may have been any of it.", events: []func(*stand){change(func(m *v1alpha1.MetricsParameters) { m.Canary.Checks[0].Min = new(0.9) }), restart}, again: true},
		"ClockBack": {reason: "A clock that went back by an hour does not stop the count for an hour.", events: []func(*stand){func(s *stand) { s.clock = s.clock.Add(-time.Hour) }, restart}, again: true},
		"Lost": {reason: "A status that was lost is not known.", events: []func(*stand){func(s *stand) {
			a := s.get()
			a.Status.AtProvider.Canary = nil
			if err := s.kube.Status().Update(s.t.Context(), a); err != nil {
				s.t.Fatal(err)
			}
		}}, again: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStand(t, well(), nil, tried())
			s.reconcile()
			before, kept := s.pass(8), s.reported()
			for _, e := range tc.events {
				e(s)
			}
			after := s.pass(1)
			want := before.Looks + 1
			if strings.HasPrefix(name, "Restart") {
				// What is reported is all that is known after a restart.
				want = kept.Looks + 1
			}
			if tc.again {
				want = 0
			}
			if after.Looks != want || tc.again == after.StartedAt.Equal(&before.StartedAt) || !after.LookedAt.Time.Equal(s.clock) {
				t.Errorf("\n%s\nwant %d looks, got %+v, before %+v", tc.reason, want, after, before)
			}
			if c := s.pass(5); letters(c) == "" {
				t.Errorf("\n%s\nIt should go on, got %+v", tc.reason, c)
			}
		})
	}
}

// TestClockAhead shows that a clock that jumps ahead does not have counted what was before the epoch.
func TestClockAhead(t *testing.T) {
	m, cr := &remembered{}, tried()
	m.startEpoch(cr, now)
	if got := m.settled(cr, now.Add(40*time.Second)); got != 10*time.Second {
		t.Errorf("40 s after its beginning an epoch is settled for 10 s, got %s", got)
	}

	// What passed by the clock of the process is less than by that on the wall.
	m.epochAt = now.Add(time.Hour)
	if got := m.settled(cr, now.Add(time.Hour+40*time.Second)); got != 10*time.Second {
		t.Errorf("An hour that did not pass should not count, got %s", got)
	}
	cr.Spec.ForProvider.Metrics.Canary.Settle = nil
	if got := m.settled(cr, now.Add(time.Hour+40*time.Second)); got != 40*time.Second-defaultSettle {
		t.Errorf("The time to settle has a default, got %s", got)
	}
}

// TestCanaryOutage shows what is told while Prometheus is away.
func TestCanaryOutage(t *testing.T) {
	p := well()
	s := newStand(t, p, nil, tried(func(m *v1alpha1.MetricsParameters) { m.Checks = nil }))
	s.reconcile()
	before := s.pass(5)
	if letters(before) != "PP/PP" || before.Errors != 0 {
		t.Fatalf("want two passes, got %+v", before)
	}
	p.err = &outside.Failure{Reason: apis.ReasonUnreachable, Message: "nothing answers", Remedy: "check that it runs"}
	c := s.pass(3)
	if letters(c) != "PPEEE/PPEEE" || c.Errors != 3 || c.Looks != 5 || !c.LookedAt.Time.Equal(s.clock) {
		t.Errorf("Each look without an answer is an error of each check, got %+v", c)
	}
	if got := c.Checks[0]; got.Message != "nothing answers: check that it runs" || *got.Samples != 3000 {
		t.Errorf("Why should be told, and what was known stay, got %+v", got)
	}
	if got := s.get().GetCondition(apis.TypeConnected).Reason; got != apis.ReasonUnreachable {
		t.Errorf("Connected: got %s", got)
	}
	p.count()
	s.pass(1)
	if got := p.count(); got != 1 {
		t.Errorf("A Prometheus that does not answer should be asked once a look, got %d", got)
	}
	p.err = nil
	if c := s.pass(1); letters(c) != "PPEEEEP/PPEEEEP" || c.Errors != 0 || c.Checks[0].Message != "" {
		t.Errorf("An answer ends the errors, got %+v", c)
	}
	if got := s.get().GetCondition(apis.TypeConnected).Reason; got != apis.ReasonAnswered {
		t.Errorf("Connected: got %s", got)
	}

	// Errors while an epoch settles are told, and are no verdicts.
	s.change(func(m *v1alpha1.MetricsParameters) {
		m.Canary.Epoch = 42
		m.Checks = everyCheck
	})
	p.err = &outside.Failure{Reason: apis.ReasonUnreachable, Message: "nothing answers"}
	if c := s.pass(2); c.Errors != 2 || letters(c) != "" || c.Looks != 0 {
		t.Errorf("While an epoch settles errors are no verdicts, got %+v", c)
	}

	// So is a config that is not there.
	s = newStand(t, nil, &outside.Failure{Reason: apis.ReasonConfigNotFound, Message: "there is none"}, tried())
	s.reconcile()
	if c := s.pass(4); letters(c) != "E/E" || c.Errors != 5 {
		t.Errorf("A missing config is an error, too, got %+v", c)
	}
}

// TestReports shows which looks are reported: those after which another decision is due, and one before the promise ends.
func TestReports(t *testing.T) {
	p := well()
	s := newStand(t, p, nil, tried(func(m *v1alpha1.MetricsParameters) { m.Checks = nil }))
	s.reconcile()
	s.pass(3)
	bad := algorithm(3000, 1000, 1)
	bad.failures = 1000
	outage := &outside.Failure{Reason: apis.ReasonUnreachable, Message: "nothing answers"}
	steps := []struct {
		reason  string
		do      func()
		looks   int
		want    string
		reports int
	}{
		{"A first pass ends nothing.", nil, 1, "P/P", 0},
		{"Three passes in a row pass a check.", nil, 2, "PPP/PPP", 1},
		{"More of them change nothing, until the promise ends.", nil, 16, "PPPPPPPPPP/PPPPPPPPPP", 1},
		{"Hours later it is one report in nine minutes.", func() { s.pass(240) }, 36, "PPPPPPPPPP/PPPPPPPPPP", 1},
		{"A failure is news.", func() { p.slots["b"] = bad }, 1, "PPPPPPPPPF/PPPPPPPPPP", 1},
		{"A second one fails the check.", nil, 1, "PPPPPPPPFF/PPPPPPPPPP", 1},
		{"More of them change nothing.", nil, 8, "FFFFFFFFFF/PPPPPPPPPP", 0},
		{"An outage is news, and so is each error until the state is unknown.", func() { p.err = outage }, 3, "FFFFFFFEEE/PPPPPPPEEE", 3},
		{"More of them change little.", nil, 4, "", 0},
		{"Its end is news.", func() { p.err = nil; p.slots["b"] = well().slots["b"] }, 1, "", 1},
	}
	for _, st := range steps {
		if st.do != nil {
			st.do()
		}
		writes := s.writes
		for range st.looks {
			s.pass(1)
			if c, is := s.reported(), s.canary(); verdictsDecide(c) != verdictsDecide(is) {
				t.Errorf("%s: reported %s, and it is %s", st.reason, letters(c), letters(is))
			}
		}
		if got := s.writes - writes; got > st.reports || got == 0 && st.reports > 0 {
			t.Errorf("%s: want at most %d reports in %d looks, got %d", st.reason, st.reports, st.looks, got)
		}
		if got := letters(s.canary()); st.want != "" && got != st.want {
			t.Errorf("%s: want %s, got %s", st.reason, st.want, got)
		}
		if c := s.reported(); !c.LooksUntil.After(s.clock) || c.LooksUntil.Sub(s.clock) > 11*time.Minute {
			t.Errorf("%s: what is reported counts until %s, at %s", st.reason, c.LooksUntil, s.clock)
		}
	}
}

// TestReportsUntilItDecides shows which looks are reported before passes can decide, and that the look at that moment is.
func TestReportsUntilItDecides(t *testing.T) {
	bad := algorithm(3000, 1000, 1)
	bad.failures = 1000
	cases := map[string]struct {
		reason, baseline string
		after            time.Duration
		fails            time.Duration
		want             []time.Duration
	}{
		"Step": {
			reason: "passes are news at the end of a step", baseline: "a", after: 130 * time.Second, want: []time.Duration{0, 130 * time.Second},
		},
		"StepPassesLater": {
			reason: "or when there are enough of them", baseline: "a", after: 55 * time.Second, want: []time.Duration{0, 85 * time.Second},
		},
		"Bake": {
			reason: "a bake is seen at its end, and a promise follows", after: 30 * time.Minute, want: []time.Duration{0, 30 * time.Minute},
		},
		"LongBake": {
			reason: "a provider that died is noticed within an hour", after: 2 * time.Hour,
			want: []time.Duration{0, 44*time.Minute + 20*time.Second, 88*time.Minute + 50*time.Second, 2 * time.Hour},
		},
		"Fails": {
			reason: "a failure is news at the look that shows it, and so is a second one", after: 30 * time.Minute, fails: 10 * time.Minute,
			want: []time.Duration{0, 10*time.Minute + 20*time.Second, 10*time.Minute + 40*time.Second},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := well()
			s := newStand(t, p, nil, tried(func(m *v1alpha1.MetricsParameters) {
				m.Checks, m.Interval, m.Canary.Checks = nil, &metav1.Duration{Duration: 30 * time.Second}, m.Canary.Checks[:1]
				m.Canary.Baseline, m.Canary.DecidesAt = tc.baseline, new(metav1.NewTime(now.Add(tc.after)))
			}))
			var got []time.Duration
			for at := time.Duration(0); at <= tc.after+2*time.Minute && (tc.fails == 0 || at <= tc.fails+time.Minute); at += time.Second {
				s.clock = now.Add(at)
				if tc.fails > 0 && at >= tc.fails {
					p.slots["b"] = bad
				}
				writes := s.writes
				s.reconcile()
				if s.writes > writes {
					got = append(got, at)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// verdictsDecide is what decisions take from the verdicts of all checks.
func verdictsDecide(c *v1alpha1.CanaryObservation) string {
	var all strings.Builder
	fmt.Fprint(&all, min(c.Errors, v1alpha1.ErrorsInRow))
	for _, k := range c.Checks {
		if s := v1alpha1.StandingOf(k.Verdicts).Deciding(); s != (v1alpha1.Standing{}) {
			fmt.Fprintf(&all, " %s %+v", k.Name, s)
		}
	}
	return all.String()
}

// TestWrongQuery shows that what is wrong with one query is told of its check only.
func TestWrongQuery(t *testing.T) {
	s := newStand(t, well(), nil, tried(func(m *v1alpha1.MetricsParameters) {
		m.Canary.Checks = append(m.Canary.Checks, v1alpha1.Check{Name: "revenue", Kind: v1alpha1.CheckQuery, Query: "sum(", Min: new(1.0)})
	}))
	s.reconcile()
	if c := s.pass(4); letters(c) != "P/P/E" || c.Errors != 0 || !strings.Contains(c.Checks[2].Message, "parse error") {
		t.Errorf("want an error of one check, got %+v", c)
	}
}

// A recorder tells what was asked, of which pods and about which time.
type recorder struct {
	*prom

	asked []string
}

func (r *recorder) QueryAt(ctx context.Context, pods prometheus.Pods, query string, at time.Time) (model.Value, error) {
	ago := ""
	if !at.IsZero() {
		ago = fmt.Sprintf(" %s ago", now.Sub(at))
	}
	r.mu.Lock()
	r.asked = append(r.asked, fmt.Sprintf("%s%s %s%s", strings.Join(pods.Slots, ""), map[bool]string{true: "*"}[pods.AnySlot], query, ago))
	r.mu.Unlock()
	return r.Query(ctx, pods, query)
}

// TestCanaryRoundTrips counts queries, and tells over which windows they are.
func TestCanaryRoundTrips(t *testing.T) {
	queue := v1alpha1.Check{Name: "queue", Kind: v1alpha1.CheckQuery, Query: "queue[$window]", Max: new(1.0)}
	revenue := v1alpha1.Check{Name: "revenue", Kind: v1alpha1.CheckQuery, Query: "revenue[$window]", Max: new(1.0), RelativeTo: v1alpha1.RelativeToBaseline}
	scores := v1alpha1.Check{Name: "drift", Kind: v1alpha1.CheckDrift, Query: "scores[$window]", Max: new(0.2), RelativeTo: v1alpha1.RelativeToBaseline}
	past := v1alpha1.Check{Name: "past", Kind: v1alpha1.CheckDrift, Query: "past[$window]", Max: new(0.2), Reference: &metav1.Duration{Duration: 24 * time.Hour}}
	built := func(slots, window string) string { return slots + " built " + window }
	cases := map[string]struct {
		reason  string
		settled time.Duration
		mod     func(*v1alpha1.MetricsParameters)
		want    []string
	}{
		"Settling": {reason: "While it settles only what is asked anyway is asked.", settled: 19 * time.Second, want: []string{built("ab", "2m")}},
		"Young":    {reason: "A young epoch is its own recent window.", settled: 45500 * time.Millisecond, want: []string{built("ab", "2m"), built("ab", "45s")}},
		"Full":     {reason: "What is asked anyway is not asked twice.", settled: 2 * time.Minute, want: []string{built("ab", "2m")}},
		"Old":      {reason: "The recent window is that of everything else, and the epoch is asked about beside.", settled: 10 * time.Minute, want: []string{built("ab", "2m"), built("ab", "10m")}},
		"Ancient":  {reason: "There is a longest window.", settled: 100 * time.Hour, want: []string{built("ab", "2m"), built("ab", "6h")}},
		"Baking":   {reason: "Without a baseline only the canary is asked about.", settled: 10 * time.Minute, mod: func(m *v1alpha1.MetricsParameters) { m.Canary.Baseline = "" }, want: []string{built("ab", "2m"), built("b", "2m"), built("b", "10m")}},
		"NoChecks": {
			reason: "Where nothing else is asked there are two.", settled: 10 * time.Minute,
			mod:  func(m *v1alpha1.MetricsParameters) { m.Checks = nil },
			want: []string{built("ab", "2m"), built("ab", "10m")},
		},
		"OtherSlot": {
			reason: "What is not known is found out at once about all slots, and only once.", settled: 10 * time.Minute,
			mod:  func(m *v1alpha1.MetricsParameters) { m.Slots = []string{"c"} },
			want: []string{"abc discovery", built("ab", "2m"), built("ab", "10m")},
		},
		"Queries": {
			reason: "Values are asked over the recent window, and distributions over both. A baseline may miss a value as well.", settled: 10 * time.Minute,
			mod: func(m *v1alpha1.MetricsParameters) {
				m.Canary.Checks = append(m.Canary.Checks, queue, revenue, scores, past)
			},
			want: []string{
				built("ab", "2m"), built("ab", "10m"), "a queue[2m]", "b queue[2m]", "a revenue[2m]", "b revenue[2m]", "a scores[2m]", "b scores[2m]", "a scores[10m]", "b scores[10m]",
				"b past[2m]", "* past[2m] 24h0m0s ago", "b past[10m]", "* past[10m] 24h0m0s ago",
			},
		},
		"DriftOfData": {
			reason: "Data are compared with what all slots told.", settled: time.Second,
			mod:  func(m *v1alpha1.MetricsParameters) { m.Slots, m.Checks = []string{"a"}, []v1alpha1.Check{past} },
			want: []string{"a past[2m]", "* past[2m] 24h0m0s ago"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cr := tried()
			if tc.mod != nil {
				tc.mod(cr.Spec.ForProvider.Metrics)
			}
			start := metav1.NewTime(now)
			cr.Status.AtProvider.Canary = &v1alpha1.CanaryObservation{Epoch: 41, StartedAt: start}
			r := &recorder{prom: well()}
			l := newLooker(func(context.Context, *v1alpha1.Analysis) (promq.Querier, outside.Tenant, error) {
				return r, outside.Tenant{Namespace: "shop"}, nil
			}, func() time.Time { return now }, nil)
			before := found{Discovery: promq.Discovery{Servers: map[string]string{"a": "Algorithm", "b": "Algorithm"}, At: now}}
			l.see(t.Context(), cr, before, tc.settled, now)
			var got []string
			for _, q := range r.asked {
				of, query, _ := strings.Cut(q, " ")
				switch {
				case strings.Contains(query, "nv_inference"):
					query = "discovery"
				case strings.Contains(query, "algorithm_requests_total["):
					_, rest, _ := strings.Cut(query, "algorithm_requests_total[")
					window, _, _ := strings.Cut(rest, "]")
					query = "built " + window
				}
				got = append(got, of+" "+query)
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTwice shows that a look is told once, and not of another epoch.
func TestTwice(t *testing.T) {
	start := metav1.NewTime(now)
	e := &promq.Evidence{Period: time.Minute, Window: time.Minute, Recent: promq.NewSample(), Whole: promq.NewSample()}
	cr := tried()
	cr.Status.AtProvider.Canary = &v1alpha1.CanaryObservation{Epoch: 41, StartedAt: metav1.NewTime(now.Add(time.Minute)), Looks: 3}
	before := cr.DeepCopy()
	m := &remembered{}
	m.seeCanary(cr, seen{evidence: e, since: start}, nil, now)
	if diff := cmp.Diff(before, cr); diff != "" {
		t.Errorf("What was seen in another epoch should not be told: -want, +got:\n%s", diff)
	}
	cr.Spec.ForProvider.Metrics.Canary = nil
	m.seeCanary(cr, seen{evidence: e, since: start}, nil, now)
	m.seeCanary(cr, seen{since: start}, nil, now)
	if got := cr.Status.AtProvider.Canary.Looks; got != 3 {
		t.Errorf("Nor without a canary, got %d looks", got)
	}
}

// TestCounted: checks count from when counting began again, and nothing counts before its epoch has settled.
func TestCounted(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason  string
		from    *metav1.Time
		settled time.Duration
		want    time.Duration
	}{
		"Epoch":   {"Without a fault that both had, all of the epoch counts.", nil, time.Hour, time.Hour},
		"Again":   {"After one, what came later.", new(metav1.NewTime(at.Add(-time.Minute))), time.Hour, time.Minute},
		"Settles": {"An epoch that has not settled does not count yet.", new(metav1.NewTime(at.Add(-time.Minute))), -time.Second, -time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := counted(&v1alpha1.CanaryObservation{CountedFrom: tc.from}, tc.settled, at); got != tc.want {
				t.Errorf("%s: want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}
