// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// An auditEvent is one completed request in the API server's audit log.
type auditEvent struct {
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	ReceivedAt time.Time `json:"requestReceivedTimestamp"`
}

// String is short enough for a list of a hundred.
func (e auditEvent) String() string {
	what := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		what += "/" + e.ObjectRef.Subresource
	}

	return fmt.Sprintf("%d %s %s %s/%s by %s", e.ResponseStatus.Code, e.Verb, what, e.ObjectRef.Namespace, e.ObjectRef.Name, e.User.Username)
}

// write reports whether the request changes something. Leases do not count, because their holders always renew them.
func (e auditEvent) write() bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return e.ObjectRef.Resource != "leases"
	default:
		return false
	}
}

// byCapstan reports whether Crossplane, the function or the provider sent the request.
func (e auditEvent) byCapstan() bool {
	return strings.HasPrefix(e.User.Username, "system:serviceaccount:crossplane-system:")
}

// audit returns a function that returns the log entries since now.
func audit(t *testing.T) func() []auditEvent {
	t.Helper()
	path := os.Getenv("CAPSTAN_AUDIT_LOG")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatalf("cannot find the audit log: %v", err)
	}
	offset := info.Size()

	return func() []auditEvent {
		f, err := os.Open(path)
		if err != nil {
			t.Fatalf("cannot open the audit log: %v", err)
		}
		defer f.Close()
		if now, err := f.Stat(); err != nil || now.Size() < offset {
			t.Fatalf("the audit log was rotated while it was being read (%v)", err)
		}
		if _, err := f.Seek(offset, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		var events []auditEvent
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			var e auditEvent
			// The last line can be incomplete.
			if err := json.Unmarshal(lines.Bytes(), &e); err == nil {
				events = append(events, e)
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatalf("cannot read the audit log: %v", err)
		}

		return events
	}
}

// writes by Crossplane, the function and the provider.
func writes(events []auditEvent) []auditEvent {
	var out []auditEvent
	for _, e := range events {
		if e.write() && e.byCapstan() {
			out = append(out, e)
		}
	}

	return out
}

// byCapstan returns the requests of Crossplane, the function and the provider to the API server.
func byCapstan(events []auditEvent) []auditEvent {
	return slices.DeleteFunc(slices.Clone(events), func(e auditEvent) bool { return !e.byCapstan() })
}

// of a namespace, the requests of Crossplane, the function and the provider to the API server.
func of(events []auditEvent, ns string) []auditEvent {
	var out []auditEvent
	for _, e := range events {
		if e.byCapstan() && e.ObjectRef.Namespace == ns {
			out = append(out, e)
		}
	}

	return out
}

// tally of requests, by sender and effect, the most frequent first, each divided by n.
func tally(events []auditEvent, n float64) string {
	counts := map[string]float64{}
	for _, e := range events {
		who, _, _ := strings.Cut(strings.TrimPrefix(e.User.Username, "system:serviceaccount:crossplane-system:"), "-capstan")
		what := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			what += "/" + e.ObjectRef.Subresource
		}
		counts[who+" "+e.Verb+" "+what]++
	}
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	words := make([]string, 0, len(keys))
	for _, k := range keys {
		words = append(words, fmt.Sprintf("%.1f %s", counts[k]/n, k))
	}

	return fmt.Sprintf("%.1f: %s", float64(len(events))/n, strings.Join(words, ", "))
}
