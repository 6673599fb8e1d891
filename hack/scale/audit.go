// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// An event is one completed request in the API server's audit log.
type event struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	At time.Time `json:"stageTimestamp"`
}

// Names of who sends requests. The function sends none.
const (
	core     = "core"
	function = "function"
	provider = "provider"
	kwok     = "kwok"
)

// sender of a request, or an empty text for the others.
func (e event) sender() string {
	return map[string]string{userCore: core, userProvider: provider, userKwok: kwok}[e.User.Username]
}

// A request of a kind, and who sent it.
type request struct {
	by, verb, resource string
}

func (e event) request() request {
	r := request{by: e.sender(), verb: e.Verb, resource: e.ObjectRef.Resource}
	if e.ObjectRef.Subresource != "" {
		r.resource += "/" + e.ObjectRef.Subresource
	}
	return r
}

func (r request) writes() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.verb)
}

// byCapstan reports whether Crossplane or the provider sent it.
func (r request) byCapstan() bool { return r.by == core || r.by == provider }

// counts of requests.
type counts map[request]int

// of Crossplane and the provider: all, and those that write.
func (c counts) of(by ...string) (all, writes int) {
	for r, n := range c {
		if !slices.Contains(by, r.by) {
			continue
		}
		all += n
		if r.writes() {
			writes += n
		}
	}
	return all, writes
}

// top are the most frequent requests of a sender, one a line.
func (c counts) top(by string, n int) []string {
	of := maps.Clone(c)
	maps.DeleteFunc(of, func(r request, _ int) bool { return r.by != by })
	sorted := slices.SortedFunc(maps.Keys(of), func(a, b request) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a.verb, b.verb), cmp.Compare(a.resource, b.resource))
	})
	lines := make([]string, 0, n)
	for _, r := range sorted[:min(n, len(sorted))] {
		lines = append(lines, fmt.Sprintf("%d %s %s %s", of[r], r.by, r.verb, r.resource))
	}
	return lines
}

// A counter of requests reads the audit log as it grows. Watches and leases do not count: there are as many with one object as with a
// thousand.
type counter struct {
	mu   sync.Mutex
	file *os.File
	log  *bufio.Reader
	part []byte
	sum  counts

	// composites are the resources of composite resources, and passes when core wrote each of them last.
	composites []string
	passes     map[string]time.Time
	news       time.Time
}

// compares is how long after its last pass Crossplane compares a composite resource again, less some minutes: it adds a little to half an hour,
// and takes it from another.
const compares = 25 * time.Minute

func newCounter(path string, composites ...string) (*counter, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the audit log: %w", err)
	}
	return &counter{file: f, log: bufio.NewReaderSize(f, 1<<20), sum: counts{}, composites: composites, passes: map[string]time.Time{}}, nil
}

// read what was written since the last time.
func (c *counter) read() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		line, err := c.log.ReadBytes('\n')
		c.part = append(c.part, line...)
		if errors.Is(err, io.EOF) {
			return nil // The end of a line follows.
		}
		if err != nil {
			return fmt.Errorf("cannot read the audit log: %w", err)
		}
		var e event
		if err := json.Unmarshal(c.part, &e); err != nil {
			return fmt.Errorf("cannot read a line of the audit log: %w", err)
		}
		c.part = c.part[:0]
		c.add(e)
	}
}

func (c *counter) add(e event) {
	r := e.request()
	if r.verb == "watch" || r.resource == "leases" {
		return
	}
	c.sum[r]++
	if r.byCapstan() && r.writes() && c.isNews(r, e) && e.At.After(c.news) {
		c.news = e.At
	}
}

// isNews reports whether a write belongs to a pass that something has caused. Thousands of composite resources that Crossplane compares again
// every half hour are never without a write.
func (c *counter) isNews(r request, e event) bool {
	if r.by != core {
		return true
	}
	if !slices.Contains(c.composites, r.resource) {
		return len(c.passes) == 0 // The log does not say whose pass it belongs to.
	}
	of := r.resource + "/" + key(e.ObjectRef.Namespace, e.ObjectRef.Name)
	before, passed := c.passes[of]
	c.passes[of] = e.At
	return !passed || e.At.Sub(before) < compares
}

// forget when core wrote what: it looks at everything once more after its start, and that is news.
func (c *counter) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.passes)
}

// take the counts since the last time.
func (c *counter) take() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := c.sum
	c.sum = counts{}
	return sum
}

// lastNews is when Crossplane or the provider wrote last because something had changed.
func (c *counter) lastNews() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.news
}
