// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestParseProcess(t *testing.T) {
	stat := "42 (a ) program) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 9 0 1 2 3\n"
	got, err := parseProcess([]byte(stat), []byte("Name:\ta\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n"))
	want := process{cpu: 2 * time.Second, resident: 1 << 20, peak: 2 << 20}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(process{})); err != nil || diff != "" {
		t.Errorf("time is user and system in hundredths, after a name with parentheses (%v); -want, +got:\n%s", err, diff)
	}
	if _, err := parseProcess([]byte("42"), nil); err == nil {
		t.Error("what is no line of the kernel should be an error")
	}
}

func TestMeter(t *testing.T) {
	m := &meter{}
	for _, p := range []process{
		{pid: 1, cpu: 5 * time.Second, peak: 10 << 20, resident: 9 << 20},
		{pid: 1, cpu: 7 * time.Second, peak: 30 << 20, resident: 8 << 20},
		{pid: 2, cpu: 1 * time.Second, peak: 20 << 20, resident: 7 << 20},
	} {
		m.add(p)
	}
	want := Usage{CPU: 3, Peak: 30, Resident: 7, Starts: 1}
	if diff := cmp.Diff(want, m.take()); diff != "" {
		t.Errorf("the time before the first look does not count, all of a later process does; -want, +got:\n%s", diff)
	}
	m.add(process{pid: 2, cpu: 4 * time.Second, peak: 1 << 20, resident: 1 << 20})
	if diff := cmp.Diff(Usage{CPU: 3, Peak: 1, Resident: 1}, m.take()); diff != "" {
		t.Errorf("a phase begins where the last one ended; -want, +got:\n%s", diff)
	}
}

func TestCounter(t *testing.T) {
	line := func(verb, user, resource, sub, at string) string {
		e := map[string]any{
			"verb": verb, "user": map[string]any{"username": user}, "objectRef": map[string]any{"resource": resource, "subresource": sub}, "stageTimestamp": at,
		}
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return string(data) + "\n"
	}
	path := filepath.Join(t.TempDir(), "audit.log")
	first := line("patch", userCore, "services", "", "2026-01-01T00:00:01Z") +
		line("get", userProvider, "namespaces", "", "2026-01-01T00:00:09Z") +
		line("watch", userCore, "services", "", "2026-01-01T00:00:09Z") +
		line("update", userProvider, "leases", "", "2026-01-01T00:00:09Z") +
		line("patch", userKwok, "deployments", "status", "2026-01-01T00:00:09Z")
	last := line("update", userProvider, "analyses", "status", "2026-01-01T00:00:03Z")
	if err := os.WriteFile(path, []byte(first+last[:20]), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := newCounter(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.read(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(first+last), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.read(); err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2026, 1, 1, 0, 0, 3, 0, time.UTC); !c.lastNews().Equal(want) {
		t.Errorf("the last write of Crossplane or the provider is that of the Analysis, got %s", c.lastNews())
	}
	got := c.take()
	want := counts{
		{core, "patch", "services"}:             1,
		{provider, "get", "namespaces"}:         1,
		{kwok, "patch", "deployments/status"}:   1,
		{provider, "update", "analyses/status"}: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("watches and leases do not count, a line that comes in two parts counts once; -want, +got:\n%s", diff)
	}
	if all, writes := got.of(core, provider); all != 3 || writes != 2 {
		t.Errorf("want 3 requests, 2 of them writes, got %d and %d", all, writes)
	}
	top := []string{"1 provider get namespaces"}
	if diff := cmp.Diff(top, got.top(provider, 1)); diff != "" {
		t.Errorf("top: -want, +got:\n%s", diff)
	}
	if n := len(c.take()); n != 0 {
		t.Errorf("a phase begins without requests, got %d", n)
	}
}

func TestObserver(t *testing.T) {
	f := &observer{objects: map[string]progressed{}, waiting: map[string][]awaited{}}
	begin := time.Now()
	got := map[string]time.Duration{}
	wait := func(what string, generation int64) {
		f.await("a/b", awaited{generation: generation, since: begin, done: func(d time.Duration) { got[what] = d }})
	}
	wait("Ready", 0)
	wait("applied", 2)
	f.see("a/b", progressed{synced: 1}, begin.Add(time.Second))
	f.see("a/b", progressed{synced: 1, ready: true}, begin.Add(2*time.Second))
	f.see("a/b", progressed{synced: 3, ready: true}, begin.Add(3*time.Second))
	if diff := cmp.Diff(map[string]time.Duration{"Ready": 2 * time.Second, "applied": 3 * time.Second}, got); diff != "" {
		t.Errorf("each wait ends with the first event that shows it; -want, +got:\n%s", diff)
	}
	wait("already", 3)
	if _, ended := got["already"]; !ended {
		t.Error("what was seen before ends a wait at once")
	}
	if all, ready := f.count(); all != 1 || ready != 1 {
		t.Errorf("want one object, which is Ready, got %d and %d", all, ready)
	}
	if f.forget("a/b"); len(f.objects) != 0 {
		t.Error("a deleted object should be forgotten")
	}
}

func TestProgressOf(t *testing.T) {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`{status: {conditions: [{type: Ready, status: "True"}, {type: Synced, status: "False", observedGeneration: 7}]}}`), &u.Object); err != nil {
		t.Fatal(err)
	}
	if got := progressOf(u); got != (progressed{ready: true}) {
		t.Errorf("a generation that cannot be applied is not applied, got %+v", got)
	}
}

func TestQuantile(t *testing.T) {
	d := &durations{want: 101}
	if got := d.quantile(0.99); got != 0 {
		t.Errorf("nothing has ended, got %s", got)
	}
	for i := range 100 {
		d.add(time.Duration(100-i) * time.Second)
	}
	for q, want := range map[float64]time.Duration{0: time.Second, 0.5: 50 * time.Second, 0.99: 99 * time.Second, 1: 100 * time.Second} {
		if got := d.quantile(q); got != want {
			t.Errorf("quantile %v: want %s, got %s", q, want, got)
		}
	}
	if d.missing() != 1 {
		t.Errorf("one of 101 is missing, got %d", d.missing())
	}
}

func TestPerHour(t *testing.T) {
	if got := perHour(600, 100, 5*time.Minute); got != 72 {
		t.Errorf("600 requests for 100 Algorithms in five minutes are 72 for each in an hour, got %v", got)
	}
	if got := perHour(1, 0, time.Hour); got != 0 {
		t.Errorf("without Algorithms there is no share, got %v", got)
	}
}

func TestReadGauges(t *testing.T) {
	got, err := readGauges(strings.NewReader(`# HELP workqueue_depth Current depth of workqueue
workqueue_depth{controller="a b",name="x"} 3
workqueue_depth{controller="c",name="y"} 11
crossplane_circuit_breaker_opens_total{controller="a"} 2
crossplane_circuit_breaker_opens_total{controller="b"} 1
go_goroutines 900
`))
	if want := (gauges{queue: 11, breaks: 3}); err != nil || got != want {
		t.Errorf("the longest queue and all breaks, want %+v, got %+v (%v)", want, got, err)
	}
}

func TestNames(t *testing.T) {
	want := []name{{"tenant-000", "reco-00"}, {"tenant-000", "reco-01"}, {"tenant-001", "reco-00"}}
	if diff := cmp.Diff(want, names("tenant", "reco", 3, 2), cmp.AllowUnexported(name{})); diff != "" {
		t.Errorf("names: -want, +got:\n%s", diff)
	}
}

// TestNews has passes that nothing but Crossplane's clock has caused.
func TestNews(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := &counter{sum: counts{}, composites: []string{"algorithms"}, passes: map[string]time.Time{}}
	for _, tc := range []struct {
		reason          string
		by, of, name    string
		after, wantNews time.Duration
	}{
		{"the first pass", userCore, "algorithms", "a", time.Second, time.Second},
		{"an object of a pass, of which one is not known", userCore, "services", "a", 2 * time.Second, time.Second},
		{"the first pass of another", userCore, "algorithms", "b", 3 * time.Second, 3 * time.Second},
		{"a pass because something has changed", userCore, "algorithms", "a", time.Minute, time.Minute},
		{"Crossplane compares again", userCore, "algorithms", "b", 29 * time.Minute, time.Minute},
		{"Crossplane compares again", userCore, "algorithms", "a", 30 * time.Minute, time.Minute},
		{"that has changed something", userCore, "algorithms", "a", 31 * time.Minute, 31 * time.Minute},
		{"the provider writes news only", userProvider, "analyses", "a", 32 * time.Minute, 32 * time.Minute},
	} {
		e := event{Verb: "patch", At: begin.Add(tc.after)}
		e.User.Username, e.ObjectRef.Resource, e.ObjectRef.Name = tc.by, tc.of, tc.name
		c.add(e)
		if got := c.lastNews().Sub(begin); got != tc.wantNews {
			t.Errorf("%s, after %s: want the last news after %s, got %s", tc.reason, tc.after, tc.wantNews, got)
		}
	}
	c.forget()
	e := event{Verb: "patch", At: begin.Add(time.Hour)}
	e.User.Username, e.ObjectRef.Resource, e.ObjectRef.Name = userCore, "algorithms", "b"
	if c.add(e); !c.lastNews().Equal(e.At) {
		t.Error("after a start of core every pass is news")
	}
}

// TestLate has an answer come late and whole, and one part not wait for the one before.
func TestLate(t *testing.T) {
	const by = 50 * time.Millisecond
	var out bytes.Buffer
	begin := time.Now()
	late(&out, strings.NewReader("an answer"), by)
	if took := time.Since(begin); took < by || out.String() != "an answer" {
		t.Errorf("want the answer after %s, got %q after %s", by, out.String(), took)
	}
}

func TestTable(t *testing.T) {
	r := Report{
		Processors: 2, Load: 1.5, Made: []Made{{Kind: "Buckets", Count: 3}, {Kind: "Algorithms", Count: 20, Objects: 12}}, Noisy: 5, Late: "100ms", CoreMemory: 1024,
		Phases: []Phase{{
			Name: idle, Seconds: 60, Waits: 2, P50: 0.5, P99: 1, Load: 2, PerHour: 41.5,
			Use:      map[string]Usage{core: {CPU: 1, Peak: 100, Starts: 1, Queue: 7, Left: 2}},
			Requests: map[string]int{core: 3, provider: 4},
		}},
	}
	want := `3 Buckets, 20 Algorithms of 12 objects each, 5 of a noisy tenant; 2 processors, load 1.5 before; answers of the API server 100ms late

| phase | s | p50, p99 s | core: CPU s, MiB | function | provider | API server | etcd | requests core, provider | each hour | queue of core, of provider: most → left | load |
|---|---|---|---|---|---|---|---|---|---|---|---|
| idle | 60 | 0.50, 1.00 | 1.0, 100 (1 starts) | 0.0, 0 | 0.0, 0 | 0.0, 0 | 0.0, 0 | 3, 4 | 41.5 | 7 → 2, 0 → 0 | 2.0 |

- Requests for each composite resource in an idle hour: 41.5; goal: at most 42. Met.
- Most memory of core: 100 MiB of a limit of 1024; started again by itself: 1 times. Not met.
- Most memory of function: 0 MiB of a limit of 256; started again by itself: 0 times. Met.
- Most memory of provider: 0 MiB of a limit of 256; started again by itself: 0 times. Met.
- Left in queues after phases that end quiet: nothing. Met.
`
	if diff := cmp.Diff(want, r.table()); diff != "" {
		t.Errorf("table: -want, +got:\n%s", diff)
	}
	if got := r.composites(); got != 25 {
		t.Errorf("20 Algorithms and 5 of the noisy tenant are composed, Buckets are not: got %d", got)
	}
}
