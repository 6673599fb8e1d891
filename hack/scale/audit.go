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
	last time.Time
}

func newCounter(path string) (*counter, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the audit log: %w", err)
	}
	return &counter{file: f, log: bufio.NewReaderSize(f, 1<<20), sum: counts{}}, nil
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
	if r.byCapstan() && r.writes() && e.At.After(c.last) {
		c.last = e.At
	}
}

// take the counts since the last time.
func (c *counter) take() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := c.sum
	c.sum = counts{}
	return sum
}

// lastWrite of Crossplane or the provider.
func (c *counter) lastWrite() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}
