// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// roles of accounts whose rights come from several roles: for a request that more than one of them allows, the API server names any.
var roles = map[string]string{
	"system:serviceaccount:crossplane-system:crossplane":       roleCompose,
	"system:serviceaccount:crossplane-system:provider-capstan": "capstan:provider",
}

// allowedBy finds the ClusterRole in the reason that the API server gives for an allowed request.
var allowedBy = regexp.MustCompile(`^RBAC: allowed by \S+ "[^"]*" of ClusterRole "([^"]+)"`)

// set of rights.
type set map[right]bool

// addLog adds the granted rights that an audit log shows in use: each for which a request was allowed. Requests from before a time are
// another version's.
func (s set) addLog(log io.Reader, granted []right, since time.Time) error {
	known := set{}
	for _, r := range granted {
		known[r.key()] = true
	}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e struct {
			Verb string `json:"verb"`
			User struct {
				Username string `json:"username"`
			} `json:"user"`
			Object struct {
				Group       string `json:"apiGroup"`
				Resource    string `json:"resource"`
				Subresource string `json:"subresource"`
			} `json:"objectRef"`
			Annotations map[string]string `json:"annotations"`
			Received    time.Time         `json:"requestReceivedTimestamp"`
		}
		// The last line can be incomplete.
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Received.Before(since) || e.Annotations["authorization.k8s.io/decision"] != "allow" {
			continue
		}
		resource := e.Object.Resource
		if e.Object.Subresource != "" {
			resource += "/" + e.Object.Subresource
		}
		r := right{Resource: resourceIn(e.Object.Group, resource), Verb: e.Verb}
		r.Role = roles[e.User.Username]
		if by := allowedBy.FindStringSubmatch(e.Annotations["authorization.k8s.io/reason"]); by != nil && r.Role == "" {
			r.Role = by[1] // members and activators have an account each
		}
		if known[r] {
			s[r] = true
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("cannot read an audit log: %w", err)
	}
	return nil
}

// addText adds what text printed.
func (s set) addText(text string) error {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 3 {
			return fmt.Errorf("want a role, a resource and a verb, got %q", line)
		}
		s[right{Role: words[0], Resource: words[1], Verb: words[2]}] = true
	}
	return nil
}

// text has one right in a line, sorted.
func (s set) text() string {
	lines := make([]string, 0, len(s))
	for r := range maps.Keys(s) {
		lines = append(lines, r.String()+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
