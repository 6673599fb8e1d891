// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Report of one run.
type Report struct {
	// Time of the start.
	Time time.Time `json:"time"`
	// Processors of the machine, and Load: how many processes waited for one on average in the minute before. Others may use the machine.
	Processors int     `json:"processors"`
	Load       float64 `json:"load"`
	// Made are the objects of tenants, by kind, and Noisy the Algorithms of a tenant who edits them all the time.
	Made  []Made `json:"made"`
	Noisy int    `json:"noisyAlgorithms,omitempty"`
	// Late is how much later answers of the API server came.
	Late string `json:"answersLate,omitempty"`
	// CoreMemory is the memory of core in MiB.
	CoreMemory int `json:"coreMemoryMiB"`
	// CoreFlags and ProviderFlags beyond those that every run has.
	CoreFlags     []string `json:"coreFlags,omitempty"`
	ProviderFlags []string `json:"providerFlags,omitempty"`
	Phases        []Phase  `json:"phases"`
}

// Made are all objects of a kind that tenants have.
type Made struct {
	// Kind in the plural.
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	// Objects that each is composed of; 0 for what the provider alone works for.
	Objects int `json:"objectsOfEach,omitempty"`
}

// A Phase of a run.
type Phase struct {
	Name string `json:"name"`
	// Ended are the components that were ended on purpose.
	Ended []string `json:"ended,omitempty"`
	// Seconds until what it is about was done: its own, without the time for which there had to be quiet.
	Seconds float64 `json:"seconds"`
	// Load of the machine in its last minute.
	Load float64 `json:"load"`
	// P50 and P99 of the waits of Waits objects, in seconds.
	Waits int     `json:"waits,omitempty"`
	P50   float64 `json:"p50,omitempty"`
	P99   float64 `json:"p99,omitempty"`
	// Use of each component.
	Use map[string]Usage `json:"use"`
	// Requests of Crossplane and the provider to the API server, Writes among them, Top the most frequent of each.
	Requests map[string]int `json:"requests"`
	Writes   map[string]int `json:"writes"`
	Top      []string       `json:"top,omitempty"`
	// PerHour is the number of requests for each composite resource and hour.
	PerHour float64 `json:"perCompositeAndHour,omitempty"`
	// Breaks is how often Crossplane's circuit breaker had opened by its end, since Crossplane's start.
	Breaks int `json:"breakerOpened,omitempty"`
}

// composites are how many objects Crossplane composes.
func (r Report) composites() int {
	n := r.Noisy
	for _, m := range r.Made {
		if m.Objects > 0 {
			n += m.Count
		}
	}
	return n
}

// perHour of all requests, for each of n objects.
func perHour(requests, n int, during time.Duration) float64 {
	if n == 0 || during <= 0 {
		return 0
	}
	return float64(requests) / float64(n) / during.Hours()
}

// table of a report, as Markdown.
func (r Report) table() string {
	var b strings.Builder
	for _, m := range r.Made {
		fmt.Fprintf(&b, "%d %s", m.Count, m.Kind)
		if m.Objects > 0 {
			fmt.Fprintf(&b, " of %d objects each", m.Objects)
		}
		b.WriteString(", ")
	}
	fmt.Fprintf(&b, "%d of a noisy tenant", r.Noisy)
	fmt.Fprintf(&b, "; %d processors, load %.1f before", r.Processors, r.Load)
	if r.Late != "" {
		fmt.Fprintf(&b, "; answers of the API server %s late", r.Late)
	}
	b.WriteString("\n\n| phase | s | p50, p99 s | core: CPU s, MiB | function | provider | API server | etcd | requests core, provider | each hour | queue of core, of provider: most → left | load |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, p := range r.Phases {
		waits := ""
		if p.Waits > 0 {
			waits = fmt.Sprintf("%.2f, %.2f", p.P50, p.P99)
		}
		hour := ""
		if p.PerHour > 0 {
			hour = fmt.Sprintf("%.1f", p.PerHour)
		}
		cells := make([]string, 0, 7+len(watched()))
		cells = append(cells, p.Name, fmt.Sprintf("%.0f", p.Seconds), waits)
		for _, name := range watched() {
			u := p.Use[name]
			cell := fmt.Sprintf("%.1f, %.0f", u.CPU, u.Peak)
			if u.Starts > 0 {
				cell += fmt.Sprintf(" (%d starts)", u.Starts)
			}
			cells = append(cells, cell)
		}
		cells = append(cells,
			fmt.Sprintf("%d, %d", p.Requests[core], p.Requests[provider]), hour,
			fmt.Sprintf("%s, %s", p.Use[core].queue(), p.Use[provider].queue()), fmt.Sprintf("%.1f", p.Load))
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	b.WriteString("\n")
	for _, v := range r.verdicts() {
		fmt.Fprintf(&b, "- %s\n", v)
	}
	return b.String()
}

// write the report as JSON, and its table, into a folder.
func (r Report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("cannot make a folder for the report: %w", err)
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode the report: %w", err)
	}
	base := filepath.Join(dir, fmt.Sprintf("scale-%d-%s", r.composites(), r.Time.UTC().Format("20060102-150405")))
	for end, content := range map[string][]byte{".json": append(data, '\n'), ".md": []byte(r.table())} {
		if err := os.WriteFile(base+end, content, 0o600); err != nil {
			return fmt.Errorf("cannot write the report: %w", err)
		}
	}
	return nil
}

// machineLoad is how many processes have waited for a processor or used one, on average in the last minute.
func machineLoad() float64 {
	var load float64
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	_, _ = fmt.Sscan(string(data), &load)
	return load
}
