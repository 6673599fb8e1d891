// SPDX-License-Identifier: Apache-2.0

//go:build integration

package provider

import (
	"fmt"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
)

// TestQuiet shows what ready objects cost while nothing happens: no write to the API server, and few requests to
// outside services.
func TestQuiet(t *testing.T) {
	n, idle := scale(50), lasting(time.Minute)
	b := newBench(t)
	s := b.outside()
	p := b.start("--poll-interval=10m")

	// Ten aliases per model.
	parents := make([]resource.Managed, 0, n/5)
	for i := range n / 10 {
		name := fmt.Sprintf("model-%03d", i)
		parents = append(parents, model("shop", name), version("shop", name, name))
	}

	each(len(parents), func(i int) { b.apply(parents[i]) })
	b.becomeReady(5*time.Minute, parents...)

	all := make([]resource.Managed, 0, 2*n)
	for i := range n {
		all = append(all,
			bucket("shop", fmt.Sprintf("assets-%04d", i)),
			alias("shop", fmt.Sprintf("alias-%04d", i), fmt.Sprintf("model-%03d", i/10), fmt.Sprintf("stage-%d", i%10), "1"))
	}

	each(len(all), func(i int) { b.apply(all[i]) })
	b.becomeReady(5*time.Minute+time.Duration(n)*time.Second, all...)

	// The last events are processed, and the configs are checked for the last time.
	time.Sleep(25 * time.Second)
	s.toS3.Reset()
	s.toMLflow.Reset()

	before := b.writes()
	cpu, _ := p.usage(t)

	time.Sleep(idle)

	after, memory := p.usage(t)
	objects := len(all) + len(parents)
	hours := idle.Hours() * float64(objects)
	t.Logf("%d objects, idle for %s: %.1f calls of S3 and %.1f of MLflow per object and hour, CPU %s, %d MiB resident",
		objects, idle, float64(s.toS3.Count())/hours, float64(s.toMLflow.Count())/hours,
		(after - cpu).Round(10*time.Millisecond), memory>>20)

	if d := more(before, b.writes()); len(d) != 0 {
		t.Errorf("Nothing happened, and yet there was written: %v", d)
	}
}

// TestOutage stops the S3 server. Nothing changes during the outage or afterwards, and soon everything is healthy
// again.
func TestOutage(t *testing.T) {
	n, down := scale(50), lasting(20*time.Second)
	b := newBench(t)
	s := b.outside()
	b.start("--poll-interval=5s")

	all := make([]resource.Managed, 0, n)
	for i := range n {
		all = append(all, bucket("shop", fmt.Sprintf("assets-%04d", i)))
	}

	each(len(all), func(i int) { b.apply(all[i]) })
	b.becomeReady(5*time.Minute, all...)

	s.s3.Stop()
	s.toS3.Reset()

	b.eventually(down+time.Minute, "all of them telling that the server is down", func() string {
		for _, mg := range all {
			b.get(mg)

			if ready(mg) == "" {
				return mg.GetName() + " is well"
			}
		}

		return ""
	})

	before := b.writes()

	time.Sleep(down)

	if d := more(before, b.writes()); len(d) > 1 || d["PATCH events"] == 0 && len(d) != 0 {
		t.Errorf("While the same is wrong there is nothing new to write but the count of an event, got %v", d)
	}

	asked := s.toS3.Count()

	s.s3.Start()

	began := time.Now()
	b.becomeReady(time.Minute, all...)
	t.Logf("%d buckets well again %s after the server, which got %d requests in %s without it",
		n, time.Since(began).Round(time.Second), asked, down)

	for _, r := range s.toS3.Requests() {
		if r[:4] != "GET " && r[:5] != "HEAD " {
			t.Errorf("Nothing may be changed because the server was down, got %s", r)
		}
	}
}
