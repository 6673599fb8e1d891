// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/internal/stats"
)

// A pace is how often Prometheus reads the counters of a pod, all of them at the same moment, and how a step of a rollout is taken:
// how long requests reach the pods before the epoch settles, when it is looked at first and how often, over which window, and how
// long it lasts at least.
type pace struct{ scrape, lead, first, every, window, soak time.Duration }

// usually pods are scraped each quarter of a minute, and looked at as often. Quickly is with the shortest interval and window, and
// scrapes that allow for it.
func usually() pace {
	return pace{15 * time.Second, 30 * time.Second, promq.LeastPeriod, 15 * time.Second, 2 * time.Minute, 2 * time.Minute}
}

func quickly() pace {
	found := promq.Discovery{Scrapes: 5 * time.Second}
	return pace{found.Scrapes, found.Settle(10 * time.Second), found.LeastPeriod(), 10 * time.Second, 20 * time.Second, 10 * time.Second}
}

// trialFor is how long a step is followed.
const trialFor = 30 * time.Minute

// trials are how often each case is drawn. make test has few, which take seconds; the figures in the documentation are those of
// CAPSTAN_TRIALS=4000.
func trials() int {
	if n, err := strconv.Atoi(os.Getenv("CAPSTAN_TRIALS")); err == nil {
		return n
	}
	return 40
}

// rolledBack and goesOn are the rules of the function.
func rolledBack(verdicts string) bool {
	last := verdicts[max(len(verdicts)-5, 0):]
	return strings.HasSuffix(verdicts, "FF") || strings.Count(last, "F") >= 3
}

func goesOn(verdicts string) bool { return strings.HasSuffix(verdicts, "PPP") }

// poisson draws how many arrive when so many are expected.
func poisson(r *rand.Rand, mean float64) float64 {
	if mean > 200 {
		return max(math.Round(mean+math.Sqrt(mean)*r.NormFloat64()), 0)
	}
	n := -1.0
	for left := mean; left >= 0; n++ {
		left -= r.ExpFloat64()
	}
	return n
}

// A population of requests: how many a second, the share that succeeds, and the shares of them by bucket of the latency and of
// the score. What arrives at random and is divided at random arrives at random in each part.
type population struct {
	rate, success   float64
	latency, scores []float64
}

// Ends of the buckets of both histograms.
func latencyEnds() []float64 {
	return []float64{5, 10, 25, 50, 75, 100, 150, 200, 250, 300, 400, 500, 750, 1000, 2500, math.Inf(1)}
}

func scoreEnds(n int) []float64 {
	ends := make([]float64, 0, n)
	for i := range n - 1 {
		ends = append(ends, float64(i+1)/float64(n))
	}
	return append(ends, math.Inf(1))
}

// exponential latencies of a mean, as shares of buckets.
func exponential(mean float64) []float64 {
	return shares(latencyEnds(), func(x float64) float64 { return 1 - math.Exp(-x/mean) })
}

// scored is a distribution of scores around a center, as shares of so many buckets.
func scored(n int, center float64) []float64 {
	return shares(scoreEnds(n), func(x float64) float64 { return 0.5 * math.Erfc(-(x-center)/0.15/math.Sqrt2) })
}

func shares(ends []float64, cumulative func(float64) float64) []float64 {
	var (
		out   []float64
		below float64
	)
	for _, e := range ends {
		c := cumulative(e)
		out = append(out, c-below)
		below = c
	}
	return out
}

// forgotten is the time after which Prometheus does not take an old sample for a present one.
const forgotten = 5 * time.Minute

// A counter of a pod, as it was scraped: one series. It is born with the first event that it counts, as those of most libraries
// are, and its first sample is the scrape after that.
type counter struct {
	at, value []float64
	total     float64
}

func (c *counter) add(n float64) { c.total += n }

func (c *counter) scrape(at float64) {
	if c.total > 0 {
		c.at, c.value = append(c.at, at), append(c.value, c.total)
	}
}

// counted in a window up to a time, as the provider's query reads it from Prometheus: from zero where the series was not there
// when the window began although its pod was scraped in it before, and by increase otherwise.
func (c *counter) counted(window, now float64, scrapes []float64, births bool) float64 {
	first, _ := slices.BinarySearch(c.at, math.Nextafter(now-window, math.Inf(1)))
	n := len(c.at) - first
	there := first > 0 && now-window-c.at[first-1] < forgotten.Seconds()
	since, _ := slices.BinarySearch(scrapes, math.Nextafter(now-window, math.Inf(1)))
	if n > 0 && births && !there && n < len(scrapes)-since {
		return c.value[len(c.value)-1]
	}
	if n < 2 {
		return 0
	}
	return increase(c.at[first:], c.value[first:], window, now)
}

// increase as Prometheus computes it: extrapolated to the ends of the window, unless they are too far away, and not below zero.
func increase(at, value []float64, window, now float64) float64 {
	last := len(at) - 1
	sampled, delta := at[last]-at[0], value[last]-value[0]
	average := sampled / float64(last)
	toStart, toEnd := at[0]-(now-window), now-at[last]
	if toStart >= 1.1*average {
		toStart = average / 2
	}
	if delta > 0 {
		toStart = min(toStart, sampled*value[0]/delta)
	}
	if toEnd >= 1.1*average {
		toEnd = average / 2
	}
	return delta * (sampled + toStart + toEnd) / sampled
}

// A pod of a slot, scraped at its own moments.
type pod struct {
	next, every     float64
	scrapes         []float64
	good, bad       counter
	latency, scores []counter
}

// until a time, its share of the requests of a population reaches it.
func (p *pod) until(now float64, of population, r *rand.Rand) {
	for ; p.next <= now; p.next += p.every {
		mean := of.rate * p.every
		p.bad.add(poisson(r, mean*(1-of.success)))
		p.good.add(poisson(r, mean*of.success))
		p.bad.scrape(p.next)
		p.good.scrape(p.next)
		for _, buckets := range []struct {
			of     *[]counter
			shares []float64
		}{{&p.latency, of.latency}, {&p.scores, of.scores}} {
			if *buckets.of == nil {
				*buckets.of = make([]counter, len(buckets.shares))
			}
			for i, s := range buckets.shares {
				c := &(*buckets.of)[i]
				c.add(poisson(r, mean*s))
				c.scrape(p.next)
			}
		}
		p.scrapes = append(p.scrapes, p.next)
	}
}

// An arm is the pods of a slot.
type arm struct {
	pods   []pod
	births bool
}

func newArm(n int, births bool, at pace, r *rand.Rand) *arm {
	a := &arm{pods: make([]pod, n), births: births}
	for i := range a.pods {
		a.pods[i].every = at.scrape.Seconds()
		a.pods[i].next = -at.lead.Seconds() + at.scrape.Seconds()*r.Float64()
	}
	return a
}

func (a *arm) until(now time.Duration, of population, r *rand.Rand) {
	of.rate /= float64(len(a.pods))
	for i := range a.pods {
		a.pods[i].until(now.Seconds(), of, r)
	}
}

// seen by Prometheus in a window, as a sample of a slot.
func (a *arm) seen(s *promq.Sample, slot string, window, now time.Duration) {
	var (
		good, bad       float64
		latency, scores []float64
	)
	for i := range a.pods {
		p := &a.pods[i]
		in := func(c *counter) float64 { return c.counted(window.Seconds(), now.Seconds(), p.scrapes, a.births) }
		good, bad = good+in(&p.good), bad+in(&p.bad)
		for _, buckets := range []struct {
			of  []counter
			sum *[]float64
		}{{p.latency, &latency}, {p.scores, &scores}} {
			if *buckets.sum == nil {
				*buckets.sum = make([]float64, len(buckets.of))
			}
			for i := range buckets.of {
				(*buckets.sum)[i] += in(&buckets.of[i])
			}
		}
	}
	m := &promq.Measures{Requests: promq.Reading{Value: good + bad}, Failures: promq.Reading{Value: bad}, Latency: promq.Distribution{Reading: promq.NoData(promq.NotFound)}}
	if len(latency) > 0 {
		m.Latency = promq.Distribution{Histogram: summed(latency, latencyEnds())}
	}
	if len(scores) > 0 {
		s.Distributions[promq.Place{Slot: slot, Check: "check"}] = promq.Distribution{Histogram: summed(scores, scoreEnds(len(scores)))}
	}
	s.Slots[slot] = m
}

func summed(of []float64, ends []float64) stats.Histogram {
	all, n := make([]stats.Bucket, 0, len(of)), 0.0
	for i, c := range of {
		n += c
		all = append(all, stats.Bucket{End: ends[i], Count: n})
	}
	return stats.NewHistogram(all)
}

// A fate is how one step of a rollout ends: after how long it is rolled back or goes on, or never.
type fate struct{ back, on time.Duration }

// try a canary of a population beside a baseline, which later turns into another.
func try(r *rand.Rand, c v1alpha1.Check, canary, later, baseline population, turns time.Duration, pods int, births bool, step pace) fate {
	of := &v1alpha1.CanaryParameters{Slot: "b", Baseline: "a", MinSamples: 100}
	c.Name = "check"
	var (
		one, two = newArm(pods, births, step, r), newArm(pods, births, step, r)
		verdicts string
		f        fate
	)

	one.until(0, canary, r)
	two.until(0, baseline, r)
	for at := step.first; at <= trialFor; at += step.every {
		if at > turns {
			canary = later
		}
		one.until(at, canary, r)
		two.until(at, baseline, r)
		e := &promq.Evidence{Window: min(step.window, at), Period: at, Recent: promq.NewSample(), Whole: promq.NewSample()}
		for slot, a := range map[string]*arm{"b": one, "a": two} {
			a.seen(&e.Recent, slot, e.Window, at)
			a.seen(&e.Whole, slot, e.Period, at)
		}
		v, _ := weigh(c, of, e, func(string) int { return 1 })
		verdicts += string(v[:1])
		if f.on == 0 && at >= step.soak && goesOn(verdicts) {
			f.on = at
		}
		if rolledBack(verdicts) {
			f.back = at
			break
		}
	}
	return f
}

// TestRates draws rollouts and counts how often a good canary is rolled back and a bad one is not, and how long it takes. Seeds
// are fixed.
func TestRates(t *testing.T) {
	success := v1alpha1.Check{Kind: v1alpha1.CheckSuccessRatio, Min: new(0.99)}
	against := v1alpha1.Check{Kind: v1alpha1.CheckSuccessRatio, Max: new(0.0025), RelativeTo: v1alpha1.RelativeToBaseline}
	latency := v1alpha1.Check{Kind: v1alpha1.CheckLatency, Percentile: 95, Max: new(300.0)}
	slower := v1alpha1.Check{Kind: v1alpha1.CheckLatency, Percentile: 95, Max: new(1.1), RelativeTo: v1alpha1.RelativeToBaseline}
	drift := func(by v1alpha1.DriftMethod, most float64) v1alpha1.Check {
		return v1alpha1.Check{Kind: v1alpha1.CheckDrift, Max: &most, Method: by, RelativeTo: v1alpha1.RelativeToBaseline}
	}
	good := func(p float64) population { return population{success: p} }
	slow := func(mean float64) population { return population{success: 1, latency: exponential(mean)} }
	score := func(n int, center float64) population { return population{success: 1, scores: scored(n, center)} }
	p95 := func(ms float64) float64 { return ms / -math.Log(0.05) }
	never, seldom := 0.01, 0.05
	for _, s := range []scenario{
		{name: "success: good, 99.5 %", check: success, canary: good(0.995), back: never},
		{name: "success: just good enough, 99 %", check: success, canary: good(0.99), back: seldom},
		{name: "success: 98.5 %", check: success, canary: good(0.985), baseline: good(0.995), least: [3]float64{0, 0.6, 0.99}, missed: [3]float64{0.1, 0.05, 0.01}},
		{name: "success: 98 %", check: success, canary: good(0.98), baseline: good(0.995), least: [3]float64{0.1, 0.95, 0.99}, missed: [3]float64{0.05, 0.01, 0.01}},
		{name: "success: 95 %", check: success, canary: good(0.95), baseline: good(0.995), least: [3]float64{0.95, 0.99, 0.99}, missed: [3]float64{0.01, 0.01, 0.01}},
		{name: "success: 95 % after 15 min", check: success, canary: good(0.95), baseline: good(0.995), turns: 15 * time.Minute, least: [3]float64{0.5, 0.98, 0.98}},
		{name: "success: 95 %, as the baseline", check: success, canary: good(0.95), back: never},
		{name: "success: 50 %, as the baseline", check: success, canary: good(0.5), back: never},
		{name: "success: 80 of 95 %", check: success, canary: good(0.8), baseline: good(0.95), least: [3]float64{0.2, 0.95, 0.99}, missed: [3]float64{0.01, 0.01, 0.01}},
		{name: "against: equal, 99.5 %", check: against, canary: good(0.995), back: never},
		{name: "against: equal, 90 %", check: against, canary: good(0.9), back: never},
		{name: "against: 98.5 of 99.5 %", check: against, canary: good(0.985), baseline: good(0.995), least: [3]float64{0, 0.95, 0.99}, missed: [3]float64{0.6, 0.4, 0.05}},
		{name: "against: 98 of 99.5 %", check: against, canary: good(0.98), baseline: good(0.995), least: [3]float64{0.02, 0.95, 0.99}, missed: [3]float64{0.4, 0.1, 0.01}},
		{name: "against: 95 of 99.5 %", check: against, canary: good(0.95), baseline: good(0.995), least: [3]float64{0.95, 0.99, 0.99}, missed: [3]float64{0.05, 0.01, 0.01}},
		{name: "against: 95 % after 15 min", check: against, canary: good(0.95), baseline: good(0.995), turns: 15 * time.Minute, least: [3]float64{0.3, 0.95, 0.95}},
		{name: "latency: 240 of 300 ms", check: latency, canary: slow(p95(240)), back: never},
		{name: "latency: just 300 ms", check: latency, canary: slow(p95(300)), back: seldom},
		{name: "latency: 360 ms", check: latency, canary: slow(p95(360)), baseline: slow(p95(240)), least: [3]float64{0.5, 0.98, 0.99}, missed: [3]float64{0.01, 0.01, 0.01}},
		{name: "latency: 480 ms", check: latency, canary: slow(p95(480)), baseline: slow(p95(240)), least: [3]float64{0.95, 0.99, 0.99}, missed: [3]float64{0.01, 0.01, 0.01}},
		{name: "latency: 480 ms, as the baseline", check: latency, canary: slow(p95(480)), back: never},
		{name: "slower: equal", check: slower, canary: slow(80), back: never},
		{name: "slower: just 10 %", check: slower, canary: slow(88), baseline: slow(80), back: seldom},
		{name: "slower: 30 %", check: slower, canary: slow(104), baseline: slow(80), least: [3]float64{0.2, 0.98, 0.99}, missed: [3]float64{0.01, 0.01, 0.01}},
		{name: "slower: 100 %", check: slower, canary: slow(160), baseline: slow(80), least: [3]float64{0.95, 0.99, 0.99}, missed: [3]float64{0.01, 0.01, 0.01}},
		{name: "PSI 0.2, 10 buckets: none", check: drift(v1alpha1.DriftPSI, 0.2), canary: score(10, 0.5), back: never},
		{name: "PSI 0.05, 40 buckets: none", check: drift(v1alpha1.DriftPSI, 0.05), canary: score(40, 0.5), back: never},
		{name: "PSI 0.05, 40 buckets, few used: none", check: drift(v1alpha1.DriftPSI, 0.05), canary: score(40, 0.9), back: never},
		{name: "PSI 0.2, 10 buckets: just 0.2", check: drift(v1alpha1.DriftPSI, 0.2), canary: score(10, 0.5675), baseline: score(10, 0.5), back: seldom},
		{name: "PSI 0.2, 10 buckets: 0.45", check: drift(v1alpha1.DriftPSI, 0.2), canary: score(10, 0.6), baseline: score(10, 0.5), least: [3]float64{0.9, 0.99, 0.99}, missed: [3]float64{0.01, 0.01, 0.01}},
		{name: "PSI 0.2, 40 buckets: 1", check: drift(v1alpha1.DriftPSI, 0.2), canary: score(40, 0.65), baseline: score(40, 0.5), least: [3]float64{0.99, 0.99, 0.99}, missed: [3]float64{0.01, 0.01, 0.01}},
		{name: "KS 0.05: none", check: drift(v1alpha1.DriftKS, 0.05), canary: score(20, 0.5), back: never},
		{name: "KS 0.1: 0.26", check: drift(v1alpha1.DriftKS, 0.1), canary: score(20, 0.6), baseline: score(20, 0.5), least: [3]float64{0.98, 0.99, 0.99}, missed: [3]float64{0.01, 0.01, 0.01}},
	} {
		for i, rate := range []float64{0.5, 5, 50} {
			t.Run(fmt.Sprintf("%s, %g rps", s.name, rate), func(t *testing.T) { s.at(t, rate, s.least[i], s.missed[i]) })
		}
	}
}

// TestQuickRates shows that what decides as early as frequent scrapes allow does not err more often. The first decision is due 22.5
// seconds after the epoch has settled.
func TestQuickRates(t *testing.T) {
	success := v1alpha1.Check{Kind: v1alpha1.CheckSuccessRatio, Min: new(0.99)}
	against := v1alpha1.Check{Kind: v1alpha1.CheckSuccessRatio, Max: new(0.0025), RelativeTo: v1alpha1.RelativeToBaseline}
	latency := v1alpha1.Check{Kind: v1alpha1.CheckLatency, Percentile: 95, Max: new(300.0)}
	slow := func(mean float64) population { return population{success: 1, latency: exponential(mean)} }
	p95 := func(ms float64) float64 { return ms / -math.Log(0.05) }
	good, bad := population{success: 0.995}, population{success: 0.95}
	for _, s := range []scenario{
		{name: "success: good, 99.5 %", check: success, canary: good, back: 0.01},
		{name: "success: 95 %", check: success, canary: bad, baseline: good, least: [3]float64{0.95, 0.99, 0.99}, missed: [3]float64{0.01, 0.01, 0.01}},
		{name: "against: equal, 99.5 %", check: against, canary: good, back: 0.01},
		{name: "against: 95 of 99.5 %", check: against, canary: bad, baseline: good, least: [3]float64{0.9, 0.99, 0.99}, missed: [3]float64{0.05, 0.01, 0.01}},
		{name: "latency: 240 of 300 ms", check: latency, canary: slow(p95(240)), back: 0.01},
		{name: "latency: 480 ms", check: latency, canary: slow(p95(480)), baseline: slow(p95(240)), least: [3]float64{0.95, 0.99, 0.99}, missed: [3]float64{0.01, 0.01, 0.01}},
	} {
		s.pace = quickly()
		for i, rate := range []float64{0.5, 5, 50} {
			t.Run(fmt.Sprintf("%s, %g rps", s.name, rate), func(t *testing.T) { s.at(t, rate, s.least[i], s.missed[i]) })
		}
	}
}

// TestBirths shows what it is worth to count failures from the birth of their counters: without it, revisions that fail twice as
// much as they may are promoted.
func TestBirths(t *testing.T) {
	success := v1alpha1.Check{Kind: v1alpha1.CheckSuccessRatio, Min: new(0.99)}
	promoted := func(unborn bool) float64 {
		n, r := 0, rand.New(rand.NewPCG(7, 7))
		for range max(trials(), 40) {
			of := population{success: 0.98, rate: 5}
			f := try(r, success, of, of, population{success: 0.995, rate: 20}, 0, 30, !unborn, usually())
			if f.on > 0 && (f.back == 0 || f.on < f.back) {
				n++
			}
		}
		return float64(n) / float64(max(trials(), 40))
	}
	before, now := promoted(true), promoted(false)
	t.Logf("of revisions that fail 2 %% of 5 requests a second on 30 pods, %.1f %% were promoted without births, %.1f %% with them", 100*before, 100*now)
	if before < 0.05 || now > 0.025 {
		t.Errorf("Births should show the failures: want at most 2.5 %% promoted, and more without them, got %.1f and %.1f %%", 100*now, 100*before)
	}
}

// A scenario of rollouts.
type scenario struct {
	name  string
	check v1alpha1.Check

	// canary that is tried, and the baseline, which is the same when there is none.
	canary, baseline population

	// turns is when a canary that was like the baseline becomes what it is.
	turns time.Duration

	// back is the share of rollouts of a good canary that may be rolled back.
	back float64

	// least is the share of rollouts of a bad one that must be, and missed the share that may go on before, at half a request a
	// second, 5 and 50.
	least, missed [3]float64

	// pace of the step.
	pace pace

	// unborn means that failures are not counted from the birth of their counters.
	unborn bool
}

// pods of each slot. The more there are, the more counters are born.
func (s scenario) pods() int {
	if s.check.Kind == v1alpha1.CheckSuccessRatio {
		return 10
	}
	return 2
}

// at a rate of requests to the canary, and four times as many to the baseline.
func (s scenario) at(t *testing.T, rate, least, missed float64) {
	t.Helper()
	if s.baseline.success == 0 {
		s.baseline = s.canary
	}
	if s.pace == (pace{}) {
		s.pace = usually()
	}
	first, later, baseline := s.canary, s.canary, s.baseline
	if s.turns > 0 {
		first = s.baseline
	}
	first.rate, later.rate, baseline.rate = rate, rate, 4*rate
	var back, on []time.Duration
	r, n, early := rand.New(rand.NewPCG(5, uint64(10*rate))), trials(), 0
	for range n {
		f := try(r, s.check, first, later, baseline, s.turns, s.pods(), !s.unborn, s.pace)
		switch {
		case f.back > 0 && f.back <= s.turns:
			early++
		case f.back > 0:
			back = append(back, f.back-s.turns)
		}
		if f.on > 0 && (f.back == 0 || f.on < f.back) {
			on = append(on, f.on)
		}
	}
	slices.Sort(back)
	slices.Sort(on)
	share := func(all []time.Duration) float64 { return float64(len(all)) / float64(n) }
	after := func(all []time.Duration, share float64) string {
		if len(all) == 0 {
			return "-"
		}
		return all[int(share*float64(len(all)-1))].String()
	}
	t.Logf("| %s | %g | %.2f %% | %s | %s | %.2f %% | %s |", s.name, rate,
		100*share(back), after(back, 0.5), after(back, 0.95), 100*share(on), after(on, 0.5))

	// A few more or less are chance when there are few trials.
	chance := 2 / float64(n)
	switch {
	case float64(early) > float64(n)*0.01+2:
		t.Errorf("%d of %d were rolled back before they were bad", early, n)
	case s.back > 0 && share(back) > s.back+chance:
		t.Errorf("want at most %g %% rolled back, got %g %%", 100*s.back, 100*share(back))
	case s.back == 0 && share(back) < least-chance:
		t.Errorf("want at least %g %% rolled back, got %g %%", 100*least, 100*share(back))
	case s.back == 0 && s.turns == 0 && share(on) > missed+chance:
		t.Errorf("want at most %g %% to go on before, got %g %%", 100*missed, 100*share(on))
	}
}
