// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/machine"
	"github.com/capstan-dev/capstan/hack/internal/netns"
)

// watched are the components whose use is reported.
func watched() []string { return []string{core, function, provider, "apiserver", "etcd"} }

// A sampler looks at the components each second, and at their queues each tenth.
type sampler struct {
	// dir of the machine, namespace of its network.
	dir, namespace string

	mu     sync.Mutex
	meters map[string]*meter
	// queues are the longest of each component since the last time, and left the ones now.
	queues, left map[string]int
	// breaks is how often Crossplane's circuit breaker has opened since its start.
	breaks int
}

func newSampler(dir, namespace string) *sampler {
	return &sampler{dir: dir, namespace: namespace, meters: map[string]*meter{}, queues: map[string]int{}, left: map[string]int{}}
}

// run until ctx ends.
func (s *sampler) run(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		s.processes()
		if i%10 == 0 {
			s.metrics(ctx)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (s *sampler) processes() {
	for _, name := range watched() {
		found, err := machine.Running(s.dir, name)
		if err != nil {
			continue // It is just being started again.
		}
		p, err := look(found.PID)
		if err != nil {
			continue
		}
		s.mu.Lock()
		if s.meters[name] == nil {
			s.meters[name] = &meter{}
		}
		s.meters[name].add(p)
		s.mu.Unlock()
	}
}

func (s *sampler) metrics(ctx context.Context) {
	for name, address := range map[string]string{core: coreMetrics, provider: providerMetrics} {
		g, err := scrape(ctx, s.namespace, address)
		if err != nil {
			continue // It is just being started again.
		}
		s.mu.Lock()
		s.queues[name], s.left[name] = max(s.queues[name], g.queue), g.queue
		if name == core {
			s.breaks = g.breaks
		}
		s.mu.Unlock()
	}
}

// take what each component used since the last time, and how often the breaker has opened since Crossplane's start.
func (s *sampler) take() (map[string]Usage, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]Usage{}
	for name, m := range s.meters {
		u := m.take()
		u.Queue, u.Left = s.queues[name], s.left[name]
		all[name] = u
	}
	s.queues = map[string]int{}
	return all, s.breaks
}

// gauges of a controller.
type gauges struct {
	// queue is the length of its longest work queue, breaks how often a circuit breaker has opened.
	queue, breaks int
}

func scrape(ctx context.Context, namespace, address string) (gauges, error) {
	transport := &http.Transport{DialContext: netns.Dialer(namespace, address), DisableKeepAlives: true}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return gauges{}, fmt.Errorf("cannot ask for metrics: %w", err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return gauges{}, fmt.Errorf("cannot get metrics: %w", err)
	}
	g, err := readGauges(resp.Body)
	return g, errors.Join(err, resp.Body.Close())
}

func readGauges(from io.Reader) (gauges, error) {
	var g gauges
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		series, value, _ := strings.Cut(lines.Text(), " ")
		if i := strings.LastIndex(lines.Text(), "} "); i >= 0 {
			series, value = lines.Text()[:i], lines.Text()[i+2:]
		}
		metric, _, _ := strings.Cut(series, "{")
		queue, breaks := metric == "workqueue_depth", strings.HasSuffix(metric, "circuit_breaker_opens_total")
		if !queue && !breaks {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return gauges{}, fmt.Errorf("cannot read metric %q: %w", metric, err)
		}
		if queue {
			g.queue = max(g.queue, int(n))
		} else {
			g.breaks += int(n)
		}
	}
	if err := lines.Err(); err != nil {
		return gauges{}, fmt.Errorf("cannot read metrics: %w", err)
	}
	return g, nil
}
