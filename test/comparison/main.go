// SPDX-License-Identifier: Apache-2.0

//go:build comparison

// Command comparison runs one rollout with Capstan or with Flagger and prints what it cost on one line: see README.md.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/images/demo-algorithm/load"
)

const (
	// gateway is the address of the embedded cluster's Gateway.
	gateway = "http://gateway.gateway.svc"
	// rate of requests per second.
	rate = 60
	// warm is how long the first version serves before the edit: Prometheus discovers a namespace in this time.
	warm = 60 * time.Second
	// after the last phase, late writes are still counted.
	after    = 20 * time.Second
	deadline = 10 * time.Minute
	poll     = 2 * time.Second
	second   = float64(time.Second)
)

// A tool makes rollouts.
type tool struct {
	kind, phase string
	// stable is the phase before the edit, and ends are the last phases of a rollout.
	stable string
	ends   []string
	// by reports whether the tool sent a request to the API server.
	by func(event) bool
}

var tools = map[string]tool{
	"capstan": {
		kind: "algorithm.capstan.dev", phase: "{.status.rollout.phase}", stable: "Stable", ends: []string{"RolledBack", "Stable"},
		by: func(e event) bool {
			return strings.HasPrefix(e.User.Username, "system:serviceaccount:crossplane-system:")
		},
	},
	"flagger": {
		kind: "canary.flagger.app", phase: "{.status.phase}", stable: "Initialized", ends: []string{"Failed", "Succeeded"},
		by: func(e event) bool { return strings.HasPrefix(e.UserAgent, "flagger/") },
	},
}

// A result is what one rollout cost. Times are in seconds after the edit, and -1 for what never happened.
type result struct {
	Tool      string           `json:"tool"`
	ErrorRate string           `json:"errorRate"`
	End       string           `json:"end"`
	FirstBad  float64          `json:"firstBad"`
	LastBad   float64          `json:"lastBad"`
	Weights   []weight         `json:"weights"`
	FirstV2   float64          `json:"firstV2"`
	LastV1    float64          `json:"lastV1"`
	Ended     float64          `json:"ended"`
	BadToZero float64          `json:"badToZero"`
	Sent      int64            `json:"sent"`
	Lost      int64            `json:"lost"`
	Failed    map[string]int64 `json:"failed"`
	// Writes of the tool, and of everyone in the namespace, leases and the manifest's own excepted.
	Writes    int            `json:"writes"`
	AllWrites int            `json:"allWrites"`
	By        map[string]int `json:"by"`
	Lines     int            `json:"lines"`
}

// A weight of the candidate in percent, at a time in seconds after the edit.
type weight struct {
	Percent int     `json:"percent"`
	At      float64 `json:"at"`
	at      time.Time
}

type options struct {
	tool, manifest, namespace, image, errors string
}

func main() {
	var o options
	flag.StringVar(&o.tool, "tool", "capstan", "capstan or flagger")
	flag.StringVar(&o.errors, "error-rate", "0.05", "share of requests that version 2 fails")
	flag.StringVar(&o.image, "image", "", "image of the demo server")
	flag.StringVar(&o.namespace, "namespace", "", "namespace to create and to delete")
	flag.StringVar(&o.manifest, "manifests", ".", "folder of the manifests")
	flag.Parse()
	o.manifest = filepath.Join(o.manifest, o.tool+".yaml")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	r, err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "comparison:", err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(r)
}

func run(ctx context.Context, o options) (*result, error) {
	t, ok := tools[o.tool]
	if !ok || o.image == "" || o.namespace == "" {
		return nil, errors.New("name a tool, an image and a namespace")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*deadline)
	defer cancel()
	defer tidy(o, t)
	if err := begin(ctx, o, t); err != nil {
		return nil, err
	}
	routes, err := watch(ctx, o)
	if err != nil {
		return nil, err
	}
	calls := call(ctx, o.host())
	time.Sleep(warm)
	audit := os.Getenv("CAPSTAN_AUDIT_LOG")
	before, err := os.Stat(audit)
	if err != nil {
		return nil, fmt.Errorf("cannot find the audit log: %w", err)
	}
	edited := time.Now()
	if err := o.apply(ctx, "v2", o.errors); err != nil {
		return nil, err
	}
	end, ended, err := t.end(ctx, o)
	if err != nil {
		return nil, err
	}
	time.Sleep(after)
	report, err := calls()
	if err != nil {
		return nil, err
	}
	events, err := read(audit, before.Size(), o.namespace)
	if err != nil {
		return nil, err
	}
	r := &result{Tool: o.tool, ErrorRate: o.errors, End: end, Ended: round(ended.Sub(edited)), Weights: routes.since(edited)}
	if r.Lines, err = o.lines(); err != nil {
		return nil, err
	}
	r.ofClients(report, edited)
	r.ofRoute(report.FirstFailure)
	r.ofAudit(events, t)

	return r, nil
}

// begin creates the namespace and waits until version 1 serves.
func begin(ctx context.Context, o options, t tool) error {
	ns := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q,"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`, o.namespace)
	if _, err := kubectl(ctx, ns, "apply", "-f", "-"); err != nil {
		return err
	}
	if err := o.apply(ctx, "v1", "0"); err != nil {
		return err
	}

	return until(ctx, "version 1 to serve", func() bool {
		return t.phaseOf(ctx, o) == t.stable && answers(ctx, o.host())
	})
}

// tidy removes everything. Crossplane must delete composed objects before the deletion of the namespace blocks it.
func tidy(o options, t tool) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	_, err := kubectl(ctx, "", "-n", o.namespace, "delete", t.kind, "--all")
	_, nsErr := kubectl(ctx, "", "delete", "namespace", o.namespace)
	if err := errors.Join(err, nsErr); err != nil {
		fmt.Fprintln(os.Stderr, "comparison: cannot tidy up:", err)
	}
}

func (o options) host() string { return "reco." + o.namespace + ".example.org" }

// text of the manifest for a version.
func (o options) text(version, errorRate string) (string, error) {
	data, err := os.ReadFile(o.manifest)
	if err != nil {
		return "", fmt.Errorf("cannot read the manifest: %w", err)
	}
	values := map[string]string{"NAMESPACE": o.namespace, "IMAGE": o.image, "HOST": o.host(), "VERSION": version, "ERROR_RATE": errorRate}
	text := string(data)
	for name, v := range values {
		text = strings.ReplaceAll(text, "${"+name+"}", v)
	}

	return text, nil
}

// lines of YAML, without comments.
func (o options) lines() (int, error) {
	text, err := o.text("", "")
	if err != nil {
		return 0, err
	}
	n := 0
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			n++
		}
	}

	return n, nil
}

func (o options) apply(ctx context.Context, version, errorRate string) error {
	text, err := o.text(version, errorRate)
	if err != nil {
		return err
	}
	_, err = kubectl(ctx, text, "apply", "--server-side", "--field-manager=team", "--force-conflicts", "-f", "-")

	return err
}

func (t tool) phaseOf(ctx context.Context, o options) string {
	// What does not exist yet has no phase.
	out, _ := kubectl(ctx, "", "-n", o.namespace, "get", t.kind, "reco", "-o", "jsonpath="+t.phase)

	return out
}

// end waits for the last phase of a rollout, which must have begun first.
func (t tool) end(ctx context.Context, o options) (string, time.Time, error) {
	last := t.stable
	began := false
	err := until(ctx, "the rollout to end", func() bool {
		phase := t.phaseOf(ctx, o)
		if phase != last {
			fmt.Fprintln(os.Stderr, time.Now().Format(time.TimeOnly), o.tool, phase)
			last = phase
		}
		began = began || phase != t.stable

		return began && slices.Contains(t.ends, phase)
	})

	return last, time.Now(), err
}

func until(ctx context.Context, what string, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for %s: %w", what, ctx.Err())
		case <-time.After(poll):
		}
	}

	return nil
}

func answers(ctx context.Context, host string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, gateway+"/predict", http.NoBody)
	if err != nil {
		return false
	}
	req.Host = host
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = rsp.Body.Close()

	return rsp.StatusCode == http.StatusOK
}

// call sends requests until the returned function is called, which returns what became of them.
func call(ctx context.Context, host string) func() (*load.Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	var (
		report *load.Report
		err    error
		done   = make(chan struct{})
	)
	go func() {
		defer close(done)
		report, err = load.Run(ctx, load.Options{URL: gateway + "/predict", Host: host, Concurrency: 8, Rate: rate, Timeout: 10 * time.Second})
	}()

	return func() (*load.Report, error) {
		cancel()
		<-done

		return report, err
	}
}

// routed are the weights of the candidate that an HTTPRoute had.
type routed struct {
	mu   sync.Mutex
	seen []weight
}

// watch the HTTPRoute until the context is done.
func watch(ctx context.Context, o options) (*routed, error) {
	c := exec.CommandContext(ctx, "kubectl", "-n", o.namespace, "get", "httproute", "reco", "--watch", "-o", "json")
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot watch the HTTPRoute: %w", err)
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("cannot watch the HTTPRoute: %w", err)
	}
	r := &routed{}
	go func() {
		defer func() { _ = c.Wait() }()
		for d := json.NewDecoder(out); ; {
			var route httpRoute
			if err := d.Decode(&route); err != nil {
				return
			}
			r.add(route.candidate())
		}
	}()

	return r, nil
}

func (r *routed) add(percent int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.seen); n == 0 || r.seen[n-1].Percent != percent {
		r.seen = append(r.seen, weight{Percent: percent, at: time.Now()})
	}
}

func (r *routed) since(start time.Time) []weight {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []weight
	for _, w := range r.seen {
		if w.at.After(start) {
			w.At = round(w.at.Sub(start))
			out = append(out, w)
		}
	}

	return out
}

type httpRoute struct {
	Spec struct {
		Rules []struct {
			BackendRefs []struct {
				Name   string `json:"name"`
				Weight *int   `json:"weight"`
			} `json:"backendRefs"`
		} `json:"rules"`
	} `json:"spec"`
}

// candidate is its weight in percent. Each run is a first rollout, so that Capstan's candidate has slot b.
func (r httpRoute) candidate() int {
	if len(r.Spec.Rules) == 0 {
		return 0
	}
	share, total := 0, 0
	for _, b := range r.Spec.Rules[len(r.Spec.Rules)-1].BackendRefs {
		w := 1
		if b.Weight != nil {
			w = *b.Weight
		}
		total += w
		if strings.HasSuffix(b.Name, "-slot-b") || strings.HasSuffix(b.Name, "-canary") {
			share += w
		}
	}

	return 100 * share / max(total, 1)
}

func (r *result) ofClients(report *load.Report, edited time.Time) {
	r.Sent, r.Lost, r.Failed = report.Sent, report.Lost(), report.Failed
	r.FirstBad, r.LastBad, r.FirstV2, r.LastV1 = -1, -1, -1, -1
	if r.Lost > 0 {
		r.FirstBad, r.LastBad = round(report.FirstFailure.Sub(edited)), round(report.LastFailure.Sub(edited))
	}
	if v := report.Versions["v2"]; v != nil {
		r.FirstV2 = round(v.First.Sub(edited))
	}
	if v := report.Versions["v1"]; v != nil {
		r.LastV1 = round(v.Last.Sub(edited))
	}
}

// ofRoute computes the time from the first bad answer until the route sent the candidate nothing.
func (r *result) ofRoute(bad time.Time) {
	r.BadToZero = -1
	for _, w := range r.Weights {
		if !bad.IsZero() && w.Percent == 0 && w.at.After(bad) {
			r.BadToZero = round(w.at.Sub(bad))

			return
		}
	}
}

// An event is a request in the audit log.
type event struct {
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
	} `json:"objectRef"`
}

func (e event) write() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb) &&
		e.ObjectRef.Resource != "leases" && !strings.HasPrefix(e.UserAgent, "kubectl/")
}

// read the writes in a namespace from the audit log.
func read(path string, offset int64, ns string) ([]event, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the audit log: %w", err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || info.Size() < offset {
		return nil, errors.New("cannot read the audit log: it was rotated")
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("cannot read the audit log: %w", err)
	}
	var events []event
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e event
		// The last line can be incomplete.
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.ObjectRef.Namespace == ns && e.write() {
			events = append(events, e)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cannot read the audit log: %w", err)
	}

	return events, nil
}

func (r *result) ofAudit(events []event, t tool) {
	r.AllWrites = len(events)
	r.By = map[string]int{}
	for _, e := range events {
		if !t.by(e) {
			continue
		}
		r.Writes++
		what := e.Verb + " " + e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			what += "/" + e.ObjectRef.Subresource
		}
		r.By[what]++
	}
}

func round(d time.Duration) float64 { return math.Round(float64(d)/second*10) / 10 }

func kubectl(ctx context.Context, input string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "kubectl", args...)
	c.Stdin = strings.NewReader(input)
	var out, words bytes.Buffer
	c.Stdout, c.Stderr = &out, &words
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("cannot run kubectl %s: %w: %s", strings.Join(args, " "), err, words.String())
	}

	return out.String(), nil
}
