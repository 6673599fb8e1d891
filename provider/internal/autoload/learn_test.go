// SPDX-License-Identifier: Apache-2.0

package autoload

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/stats"
)

// A replica works on its requests at once, each getting an equal share of its cores, and at most one core: the queueing model
// G/G/c with processor sharing.
type replica struct {
	cores float64

	// attained is how much work a request that was there all the time would have got. Requests leave when it reaches what they
	// need.
	attained, at float64
	jobs         jobs

	// busy is the integral of the requests in flight.
	busy float64
}

type job struct{ until, arrived float64 }

// jobs are a heap: the first leaves first.
type jobs []job

func (j *jobs) push(x job) {
	*j = append(*j, x)
	h := *j
	for i := len(h) - 1; i > 0 && h[i].until < h[(i-1)/2].until; i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

func (j *jobs) pop() job {
	h := *j
	x := h[0]
	h[0] = h[len(h)-1]
	h = h[:len(h)-1]
	for i := 0; ; {
		least := i
		for _, k := range []int{2*i + 1, 2*i + 2} {
			if k < len(h) && h[k].until < h[least].until {
				least = k
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	*j = h
	return x
}

// forward to a time. done is told how long each request took that has left.
func (r *replica) forward(to float64, done func(took float64)) {
	for len(r.jobs) > 0 {
		share := min(1, r.cores/float64(len(r.jobs)))
		leaves := r.at + (r.jobs[0].until-r.attained)/share
		if leaves > to {
			r.attained += (to - r.at) * share
			r.busy += (to - r.at) * float64(len(r.jobs))
			break
		}
		r.attained = r.jobs[0].until
		r.busy += (leaves - r.at) * float64(len(r.jobs))
		r.at = leaves
		done(leaves - r.jobs.pop().arrived)
	}
	r.at = to
}

// A farm of replicas behind an autoscaler that follows the load per replica, as the HPA of an Algorithm does. Times are in
// seconds.
type farm struct {
	r *rand.Rand

	// service is the mean of the work of a request, which is drawn for each.
	service float64
	cores   float64

	// slow is what each request takes besides, whatever the load.
	slow float64

	replicas  []*replica
	ready     []float64 // since when
	now       float64
	histogram []stats.Bucket
	count     float64

	most int

	// target of the latency in milliseconds, above which it brings more replicas as a guard beside the load. Zero without one.
	target float64

	inFlight   float64 // summed up over the window
	wanted     []float64
	scaledUp   float64
	scaledDown float64
}

var edges = []float64{1, 2.5, 5, 10, 20, 30, 40, 50, 60, 75, 100, 150, 250, 500, 1000, 2500, 5000, 10000} //nolint:gochecknoglobals // Those of the demo server.

func newFarm(seed uint64, service, cores float64, n, most int) *farm {
	f := &farm{r: rand.New(rand.NewPCG(seed, seed)), service: service, cores: cores, most: most}
	f.scale(n)
	for i := range f.ready {
		f.ready[i] = -1000
	}
	return f
}

func (f *farm) scale(n int) {
	for len(f.replicas) < n {
		// A pod takes half a minute to become ready.
		f.replicas, f.ready = append(f.replicas, &replica{cores: f.cores, at: f.now}), append(f.ready, f.now+30)
	}
	f.replicas, f.ready = f.replicas[:n], f.ready[:n]
}

// run for some seconds at some requests per second.
func (f *farm) run(seconds, rate float64) {
	end := f.now + seconds
	var ready []*replica
	for i, r := range f.replicas {
		if f.ready[i] <= f.now {
			ready = append(ready, r)
		}
	}
	took := func(t float64) {
		ms := 1000 * (t + f.slow)
		f.count++
		for i, e := range edges {
			if ms <= e {
				f.histogram[i].Count++
			}
		}
	}
	if f.histogram == nil {
		f.empty()
	}

	// By Little's law so many wait for what is slow besides.
	f.inFlight += f.slow * rate * seconds
	for t := f.now + f.r.ExpFloat64()/rate; t < end; t += f.r.ExpFloat64() / rate {
		r := ready[f.r.IntN(len(ready))]
		r.forward(t, took)

		// Servers do not queue without end, and neither do those wait who ask.
		if len(r.jobs) >= 200 {
			continue
		}
		r.jobs.push(job{until: r.attained + f.service*f.r.ExpFloat64(), arrived: t})
	}
	f.now = end
	for _, r := range f.replicas {
		r.forward(end, took)
		f.inFlight += r.busy
		r.busy = 0
	}
}

func (f *farm) empty() {
	f.histogram, f.count, f.inFlight = nil, 0, 0
	for _, e := range edges {
		f.histogram = append(f.histogram, stats.Bucket{End: e})
	}
}

// readyNow are the replicas that take requests.
func (f *farm) readyNow() int {
	n := 0
	for _, at := range f.ready {
		if at <= f.now {
			n++
		}
	}
	return n
}

// A course is how the load per replica went.
type course struct {
	perReplica, replicas, latency []float64
}

// A half of a minute's half: what was counted in 15 s.
type half struct {
	buckets  []stats.Bucket
	n        float64
	inFlight float64
}

// recordedLatency is the percentile of the latency over two minutes, as the platform's rules record it.
func recordedLatency(windows []half, p float64) float64 {
	sum := make([]stats.Bucket, len(edges)+1)
	n := 0.0
	for _, h := range windows[max(len(windows)-8, 0):] {
		for i, b := range h.buckets {
			sum[i] = stats.Bucket{End: b.End, Count: sum[i].Count + b.Count}
		}
		n += h.n
	}
	sum[len(edges)] = stats.Bucket{End: math.Inf(1), Count: n}
	if n == 0 {
		return 0
	}
	return stats.NewHistogram(sum).Quantile(p, 0).Value
}

// guard is the number of replicas that the latency asks for by itself, as an HPA computes it from a value that is recorded: the
// latency where it is above the target by more than a twentieth, and else zero.
func (f *farm) guard(latency float64, independent bool) float64 {
	if f.target == 0 || independent || latency <= 1.05*f.target {
		return 0
	}
	ratio := latency / f.target
	if ratio < 1.1 {
		return float64(len(f.replicas))
	}
	return math.Ceil(float64(f.readyNow()) * ratio)
}

// learning runs a farm for some minutes at a rate, with windows of two minutes and a look each half of one.
func (f *farm) learning(l *lesson, minutes int, rate func(minute float64) float64, target, p float64, signal string) course {
	var (
		c       course
		windows []half
		changed = -1000.0
		ready   int
		growing bool
	)
	began := f.now
	start := time.Unix(0, 0)
	for range 2 * minutes {
		for range 2 { // The HPA looks each 15 s.
			f.empty()
			lambda := rate((f.now - began) / 60)
			f.run(15, lambda)
			windows = append(windows, half{f.histogram, f.count, f.inFlight})
			if n := f.readyNow(); n != ready {
				growing = n > ready
				ready, changed = n, f.now
			}
			load := f.inFlight / 15
			if signal == "rate" {
				load = f.count / 15
			}
			f.autoscale(load, l.perReplica, f.guard(recordedLatency(windows, p), l.independent))
		}
		if len(windows) < 8 {
			continue
		}
		windows = windows[len(windows)-8:]
		sum := make([]stats.Bucket, len(edges)+1)
		w := term{}
		for _, h := range windows {
			for i, b := range h.buckets {
				sum[i] = stats.Bucket{End: b.End, Count: sum[i].Count + b.Count}
			}
			w.requests += h.n
			w.inFlight += h.inFlight
		}
		sum[len(edges)] = stats.Bucket{End: math.Inf(1), Count: w.requests}
		h := stats.NewHistogram(sum)
		w.inFlight /= 120 * float64(ready)
		w.load = w.inFlight
		if signal == "rate" {
			w.load = w.requests / 120 / float64(ready)
		}
		w.latency = h.Quantile(p, stats.Certain)
		w.settled, w.growing = f.now-changed >= 120, growing
		*l = l.learn(w, target, false, start.Add(time.Duration(f.now*float64(time.Second))))
		c.perReplica = append(c.perReplica, l.perReplica)
		c.replicas = append(c.replicas, float64(ready))
		c.latency = append(c.latency, w.latency.Value)
	}
	return c
}

// autoscale as an HPA of an Algorithm: 10 % tolerance, half as many more or two a minute, a tenth fewer a minute after five
// minutes.
// Of the load and the guard it takes what asks for more.
func (f *farm) autoscale(load, perReplica, guard float64) {
	n := float64(len(f.replicas))
	ready := f.readyNow()
	want := math.Ceil(load / perReplica)
	if r := load / perReplica / float64(ready); r > 0.9 && r < 1.1 {
		want = n
	}
	want = min(max(want, guard, 1), float64(f.most))
	f.wanted = append(f.wanted, want)
	if len(f.wanted) > 20 {
		f.wanted = f.wanted[1:]
	}
	switch {
	case want > n && f.now-f.scaledUp >= 60:
		f.scale(int(min(want, max(n*1.5, n+2))))
		f.scaledUp = f.now
	case want < n && f.now-f.scaledDown >= 60:
		highest := want
		for _, w := range f.wanted {
			highest = max(highest, w)
		}
		if highest < n {
			f.scale(int(max(highest, min(n-1, math.Floor(n*0.9)))))
			f.scaledDown = f.now
		}
	}
}

// knee is the load per replica at which the latency is the target: found by bisection with one long run each.
func knee(service, cores, target, p float64, signal string) float64 {
	low, high := 0.001*cores/service, 0.999*cores/service
	var load float64
	for range 9 {
		rate := (low + high) / 2
		f := newFarm(7, service, cores, 1, 1)
		f.run(200, rate)
		f.empty()
		f.run(2000, rate)
		h := stats.NewHistogram(append(f.histogram, stats.Bucket{End: math.Inf(1), Count: f.count}))
		load = f.inFlight / 2000
		if signal == "rate" {
			load = rate
		}
		if h.Quantile(p, 0).Value > target {
			high = rate
		} else {
			low = rate
		}
	}
	return load
}

// steps that the load per replica made in the last minutes, of which each has two looks.
func (c course) steps(minutes int) int {
	n, last := 0, c.perReplica[len(c.perReplica)-2*minutes:]
	for i := range last[1:] {
		if last[i] != last[i+1] {
			n++
		}
	}
	return n
}

func (c course) end() float64 { return c.perReplica[len(c.perReplica)-1] }

// TestLearn shows that the load per replica comes to rest near the edge, from far below and far above, and stays there although
// every window is another one.
func TestLearn(t *testing.T) {
	for name, tc := range map[string]struct {
		service, cores, target float64
		signal                 string
		rate                   float64
	}{
		"InFlightOneCore":   {service: 0.010, cores: 1, target: 80, signal: "inflight", rate: 600},
		"InFlightFourCores": {service: 0.040, cores: 4, target: 240, signal: "inflight", rate: 500},
		"RateOneCore":       {service: 0.010, cores: 1, target: 80, signal: "rate", rate: 600},
		"RateFourCores":     {service: 0.040, cores: 4, target: 240, signal: "rate", rate: 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := knee(tc.service, tc.cores, tc.target, 0.95, tc.signal)
			for _, times := range []float64{0.1, 10} {
				l := &lesson{perReplica: stats.Rounded(k*times, 2), proportional: tc.signal == "inflight"}
				f := newFarm(3, tc.service, tc.cores, 10, 60)
				c := f.learning(l, 200, func(float64) float64 { return tc.rate }, tc.target, 0.95, tc.signal)
				t.Logf("edge %.3g, from %.3g to %.3g: %.3g", k, k*times, c.end(), every(c.perReplica))
				if c.end() < 0.8*k || c.end() > 1.2*k {
					t.Errorf("From %g times the edge at %.3g: want to come to rest within 20 %% of it, got %.3g", times, k, c.end())
				}
				if n := c.steps(45); n > 1 {
					t.Errorf("From %g times the edge: want at most one step in the last 45 minutes, got %d", times, n)
				}
			}
		})
	}
}

// TestLearnOtherLoad shows that what was learned holds when the load is another.
func TestLearnOtherLoad(t *testing.T) {
	const service, cores, target = 0.010, 1.0, 80.0
	t.Parallel()
	k := knee(service, cores, target, 0.95, "inflight")
	l := &lesson{perReplica: stats.Rounded(k, 2), proportional: true}
	f := newFarm(5, service, cores, 10, 60)

	// Waves of an hour between 200 and 800 a second, and a burst of twice that.
	c := f.learning(l, 240, func(m float64) float64 {
		if m > 150 && m < 155 {
			return 1600
		}
		return 500 + 300*math.Sin(m/60*2*math.Pi)
	}, target, 0.95, "inflight")
	t.Logf("edge %.3g: %.3g, replicas %.3g", k, every(c.perReplica), every(c.replicas))
	for i, p := range c.perReplica {
		if p < 0.7*k || p > 1.3*k {
			t.Fatalf("After %d minutes of waves: want to stay near the edge at %.3g, got %.3g", i/2, k, p)
		}
	}
}

// TestLearnWithoutLoad shows that replicas are not added for a latency that they do not cause, and that it is told.
func TestLearnWithoutLoad(t *testing.T) {
	const service, cores, target = 0.010, 1.0, 80.0
	for _, signal := range []string{"inflight", "rate"} {
		t.Run(signal, func(t *testing.T) {
			t.Parallel()
			k := knee(service, cores, target, 0.95, signal)
			l := &lesson{perReplica: stats.Rounded(0.8*k, 2), proportional: signal == "inflight"}
			f := newFarm(9, service, cores, 12, 60)
			rate := func(float64) float64 { return 400 }
			well := f.learning(l, 40, rate, target, 0.95, signal)
			if l.independent {
				t.Errorf("While the latency holds it does not depend on anything else")
			}

			// Something that each request waits for takes a fifth of a second from now on.
			f.slow = 0.2
			ill := f.learning(l, 60, rate, target, 0.95, signal)
			t.Logf("%.3g, then %.3g, replicas %.3g", every(well.perReplica), every(ill.perReplica), every(ill.replicas))
			if !l.independent {
				t.Errorf("It should be told that more replicas do not help")
			}
			if ill.end() < 0.25*well.end() {
				t.Errorf("The load per replica should not be given up for it: was %.3g, got %.3g", well.end(), ill.end())
			}
			f.slow = 0
			again := f.learning(l, 90, rate, target, 0.95, signal)
			if l.independent {
				t.Errorf("It should no longer be told when it is over")
			}
			if again.end() < 0.75*well.end() {
				t.Errorf("The load per replica should come back: was %.3g, got %.3g", well.end(), again.end())
			}
		})
	}
}

// TestPeakPasses shows that the replicas of a peak go again, also where the latency of a single request is near its target, and
// that the latency keeps its target in the peak.
func TestPeakPasses(t *testing.T) {
	for name, tc := range map[string]struct {
		service, slow, target float64
	}{
		"Far":  {service: 0.010, target: 80},
		"Near": {service: 0.010, slow: 0.040, target: 88}, // p95 is 81 ms where nothing waits: 0.92 of the target
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &lesson{perReplica: 2, proportional: true}
			f := newFarm(11, tc.service, 1, 4, 20)
			f.slow, f.target = tc.slow, tc.target
			rate := func(minute float64) float64 {
				if minute < 30 {
					return 300
				}
				return 20
			}
			c := f.learning(l, 90, rate, tc.target, 0.95, "inflight")
			peak, end := c.replicas[2*26], c.replicas[len(c.replicas)-1]
			t.Logf("replicas %.3g, latency %.3g", every(c.replicas), every(c.latency))
			if peak < 4 {
				t.Errorf("The peak should take replicas, got %g", peak)
			}
			if end > 2 {
				t.Errorf("An hour after the peak there should be one replica, or two, got %g of %g", end, peak)
			}
		})
	}
}

// TestSlowAlone shows that replicas are not added to the last one for a latency that they do not cause: the first of them that
// are added unsettle all.
func TestSlowAlone(t *testing.T) {
	t.Parallel()
	l := &lesson{perReplica: 4, proportional: true}
	f := newFarm(13, 0.010, 1, 2, 60)
	f.slow, f.target = 0.2, 80
	c := f.learning(l, 60, func(float64) float64 { return 6 }, 80, 0.95, "inflight")
	t.Logf("replicas %.3g", every(c.replicas))
	if most := slices.Max(c.replicas); !l.independent || most > 30 {
		t.Errorf("Replicas with little to do should not be added to, got %g of 60, independent %t", most, l.independent)
	}
}

// TestBoundsOutliveTheProcess shows that another process of the provider knows the edge that was felt.
func TestBoundsOutliveTheProcess(t *testing.T) {
	now := time.Unix(1_000_000, 0).UTC()
	felt := lesson{perReplica: 6, held: 5.52, heldInFlight: 5.52, broke: 6.94, brokeAt: now, proportional: true}
	var o v1alpha1.ScalingObservation
	felt.report(&o, o)
	o.PerReplica = new(felt.perReplica)
	next := lesson{proportional: true}.resumed(o)
	want := lesson{perReplica: 6, held: 5.5, heldInFlight: 5.5, broke: 6.9, brokeAt: now, proportional: true}
	if next != want {
		t.Errorf("Another process should go on with\n%+v, got\n%+v", want, next)
	}
	// With room in the latency it does not rise over the edge that broke.
	fast := term{load: 6, inFlight: 6, latency: stats.Quantile{Value: 20, Lower: 15, Upper: 25}, requests: 1000, settled: true}
	if got := next.learn(fast, 100, false, now.Add(time.Hour)); got.perReplica > below*6.9 {
		t.Errorf("It should stay below the load that broke, got %g", got.perReplica)
	}
	// What moves a little is not reported again.
	var again v1alpha1.ScalingObservation
	next.held, next.brokeAt = 5.9, now.Add(5*time.Minute)
	next.report(&again, o)
	if *again.Held != 5.5 || !again.BrokeAt.Time.Equal(now) {
		t.Errorf("The report should be quiet, got held %g, broke at %s", *again.Held, again.BrokeAt)
	}
}

// TestLearnNot shows from which windows nothing is learned.
func TestLearnNot(t *testing.T) {
	slow := stats.Quantile{Value: 200, Lower: 150, Upper: 250}
	fast := stats.Quantile{Value: 20, Lower: 15, Upper: 25}
	now := time.Unix(10_000, 0)
	cases := map[string]struct {
		reason string
		asked  bool
		after  time.Duration
		w      term
		want   float64
	}{
		"Slow":       {reason: "A latency above its target lowers the load.", w: term{load: 10, inFlight: 10, latency: slow, requests: 1000, settled: true}, want: 8},
		"Fast":       {reason: "One far below raises it.", w: term{load: 10, inFlight: 10, latency: fast, requests: 1000, settled: true}, want: 12},
		"Unsettled":  {reason: "Replicas that are new or cold teach nothing.", w: term{load: 10, inFlight: 10, latency: slow, requests: 1000}, want: 10},
		"Few":        {reason: "Neither do a few requests.", w: term{load: 10, inFlight: 10, latency: slow, requests: 99, settled: true}, want: 10},
		"Uncertain":  {reason: "Nor what may as well be chance.", w: term{load: 10, inFlight: 10, latency: stats.Quantile{Value: 105, Lower: 99, Upper: 111}, requests: 1000, settled: true}, want: 10},
		"Idle":       {reason: "That idle replicas are fast is no news.", w: term{load: 8, inFlight: 8, latency: fast, requests: 1000, settled: true}, want: 10},
		"Overloaded": {reason: "What overloaded replicas do not bear is no news either.", w: term{load: 13, inFlight: 13, latency: slow, requests: 1000, settled: true}, want: 10},
		"Alone":      {reason: "Requests that are alone wait for something else.", w: term{load: 5, inFlight: 0.5, latency: slow, requests: 1000, settled: true}, want: 10},
		"TooSoon":    {reason: "There is a step a minute.", after: -30 * time.Second, w: term{load: 10, inFlight: 10, latency: slow, requests: 1000, settled: true}, want: 10},
		"Asked":      {reason: "What was asked for stays.", asked: true, w: term{load: 10, inFlight: 10, latency: slow, requests: 1000, settled: true}, want: 10},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := lesson{perReplica: 10, proportional: true, steppedAt: now.Add(-time.Minute)}
			l = l.learn(tc.w, 100, tc.asked, now.Add(tc.after))
			if l.perReplica != tc.want {
				t.Errorf("\n%s\nlearn(...): want %g, got %g", tc.reason, tc.want, l.perReplica)
			}
		})
	}
	l := lesson{perReplica: leastLoad, proportional: true}
	l = l.learn(term{load: 0.1, inFlight: 10, latency: slow, requests: 1000, settled: true}, 100, false, now)
	if l.perReplica != leastLoad {
		t.Errorf("The load does not fall below %g, got %g", leastLoad, l.perReplica)
	}
	l = lesson{perReplica: mostLoad, proportional: true}
	l = l.learn(term{load: mostLoad, inFlight: 10, latency: fast, requests: 1000, settled: true}, 100, false, now)
	if l.perReplica != mostLoad {
		t.Errorf("The load does not rise above %g, got %g", mostLoad, l.perReplica)
	}
}

// every tenth look, for people.
func every(in []float64) []float64 {
	var out []float64
	for i := 0; i < len(in); i += 10 {
		out = append(out, in[i])
	}
	return out
}
