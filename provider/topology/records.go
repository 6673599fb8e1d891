// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// What only Patroni keeps (patroni/dcs/kubernetes.py of 4.1), beside what members of every engine do (package members).
const (
	// Annotations of <scope>-leader: when the leader renewed its lock, for how many seconds that is good, and where it is in the
	// write-ahead log. Members of other engines have no lock that expires.
	annotationRenewed = "renewTime"
	annotationTTL     = "ttl"
	annotationWritten = "optime"

	// suffixSync names a ConfigMap with the annotations members.AnnotationLeader, another one than in <scope>-leader, and this.
	suffixSync            = "sync"
	annotationSyncStandby = "sync_standby"

	// annotationScheduled of <scope>-failover is when Patroni has to switch over; Capstan never sets it.
	annotationScheduled = "scheduled_at"
)

// annotationSwitchovers of <scope>-config holds the switchovers that were requested, as the JSON of outcomes. It exists as long as
// the Database, so that no id is carried out twice when a Topology is recreated.
const annotationSwitchovers = "capstan.dev/switchovers"

// Annotations that objects have in the cache only. The first two are of a pod: where in the write-ahead log its member is, and
// what else its status says; in the API server both are one. The third is part of what members follow there.
const (
	annotationPosition = "cache.capstan.dev/position"
	annotationFacts    = "cache.capstan.dev/facts"
	annotationPause    = "cache.capstan.dev/pause"
)

func keptAnnotations() []string {
	return []string{
		members.AnnotationLeader, members.AnnotationAcquired, annotationRenewed, annotationTTL, annotationWritten,
		members.AnnotationInitialize, annotationSyncStandby, members.AnnotationCandidate, annotationSwitchovers,
	}
}

// said is what the status of a member says, as far as it is a fact.
type said struct {
	State       string   `json:"state,omitempty"`
	Role        string   `json:"role,omitempty"`
	Timeline    int64    `json:"timeline,omitempty"`
	Replication string   `json:"replication_state,omitempty"`
	Synchronous bool     `json:"synchronous,omitempty"`
	Lag         string   `json:"lag,omitempty"`
	Restart     []string `json:"restart,omitempty"`
	Pause       bool     `json:"pause,omitempty"`
}

// roleMaster is what Patroni called members.StatusPrimary before 4.0.
const roleMaster = "master"

// primary reports whether the member says that its server runs, and takes writes.
func (s said) primary() bool {
	return s.State == members.StateRunning && (s.Role == members.StatusPrimary || s.Role == roleMaster)
}

// split the status of a member into facts and the position in the write-ahead log, "" if it is not reported. What cannot be read
// says nothing.
func split(text string) (facts, position string) {
	var all struct {
		said

		Position int64                      `json:"xlog_location"`
		Restart  map[string]json.RawMessage `json:"pending_restart_reason"`
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return "", ""
	}
	s := all.said
	s.Restart = slices.Sorted(maps.Keys(all.Restart))
	b, err := json.Marshal(s)
	if err != nil {
		return "", ""
	}
	if all.Position > 0 {
		position = strconv.FormatInt(all.Position, 10)
	}
	return string(b), position
}

// join reads what split has written.
func join(facts string) said {
	s := said{}
	if err := json.Unmarshal([]byte(facts), &s); err != nil {
		return said{}
	}
	return s
}

// paused reports whether a configuration switches failover off.
func paused(config string) bool {
	var c struct {
		Pause bool `json:"pause"`
	}
	return json.Unmarshal([]byte(config), &c) == nil && c.Pause
}

// names in a list of Patroni's.
func names(list string) []string {
	var out []string
	for n := range strings.SplitSeq(list, ",") {
		if n = strings.TrimSpace(n); n != "" {
			out = append(out, n)
		}
	}
	return out
}

// renews reports whether a leader keeps its lock by renewing it, as Patroni's do. Another one keeps it until the members choose the
// next leader.
func renews(annotations map[string]string) bool {
	return annotations[annotationRenewed] != "" || annotations[annotationTTL] != ""
}

// defaultTTL is how long a lead lasts that does not say so, as in Patroni.
const defaultTTL = 30 * time.Second

// ttlOf a lead.
func ttlOf(annotations map[string]string) time.Duration {
	n, err := strconv.Atoi(annotations[annotationTTL])
	if err != nil || n <= 0 {
		return defaultTTL
	}
	return time.Duration(n) * time.Second
}

// member whose pod has this name: each member is a StatefulSet of one.
func member(pod string) string { return strings.TrimSuffix(pod, "-0") }

// suffixOf one of the ConfigMaps of members.
func suffixOf(o client.Object) string {
	s, ok := strings.CutPrefix(o.GetName(), o.GetLabels()[v1alpha1.LabelScope]+"-")
	if !ok {
		return ""
	}
	return s
}
