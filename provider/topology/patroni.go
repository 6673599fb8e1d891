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

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// What Patroni keeps where (patroni/dcs/kubernetes.py of 4.1).
const (
	// annotationStatus of a pod is what its member reports, as JSON.
	annotationStatus = "status"

	// ConfigMaps are named by the scope and one of these.
	suffixLeader   = "leader"
	suffixConfig   = "config"
	suffixSync     = "sync"
	suffixFailover = "failover"

	// Annotations of <scope>-leader.
	annotationLeader   = "leader"
	annotationAcquired = "acquireTime"
	annotationRenewed  = "renewTime"
	annotationTTL      = "ttl"
	annotationWritten  = "optime"

	// Annotations of <scope>-config.
	annotationInitialize = "initialize"
	annotationConfig     = "config"

	// annotationSwitchovers of <scope>-config holds the switchovers that were requested from Patroni, as the JSON of outcomes. It
	// exists as long as the Database, so that no id is carried out twice when a Topology is recreated.
	annotationSwitchovers = "capstan.dev/switchovers"

	// Annotations of <scope>-sync; leader is another one.
	annotationSyncStandby = "sync_standby"

	// Annotations of <scope>-failover; leader is another one.
	annotationCandidate = "member"

	// annotationScheduled is when Patroni has to switch over; Capstan never sets it.
	annotationScheduled = "scheduled_at"
)

// Annotations that objects have in the cache only. The first two are of a pod: where in the write-ahead log its member is, and
// what else Patroni says of it; in the API server both are one. The third is part of Patroni's configuration there.
const (
	annotationPosition = "cache.capstan.dev/position"
	annotationFacts    = "cache.capstan.dev/facts"
	annotationPause    = "cache.capstan.dev/pause"
)

func keptAnnotations() []string {
	return []string{
		annotationLeader, annotationAcquired, annotationRenewed, annotationTTL, annotationWritten,
		annotationInitialize, annotationSyncStandby, annotationCandidate, annotationSwitchovers,
	}
}

// said is what a member reports through Patroni.
type said struct {
	State       string   `json:"state,omitempty"`
	Role        string   `json:"role,omitempty"`
	Timeline    int64    `json:"timeline,omitempty"`
	Replication string   `json:"replication_state,omitempty"`
	Restart     []string `json:"restart,omitempty"`
	Pause       bool     `json:"pause,omitempty"`
}

// Roles that Patroni reports. Before 4.0 the first was called master.
const (
	rolePrimary = "primary"
	roleMaster  = "master"
)

// States that a member reports through Patroni, beside some that begin or end others.
const (
	stateRunning     = "running"
	stateStopped     = "stopped"
	stateCrashed     = "crashed"
	stateStartFailed = "start failed"
)

// split what a member reports into facts and the position in the write-ahead log, "" if it is not reported. What cannot be read says
// nothing.
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

// suffixOf one of Patroni's ConfigMaps.
func suffixOf(o client.Object) string {
	s, ok := strings.CutPrefix(o.GetName(), o.GetLabels()[v1alpha1.LabelScope]+"-")
	if !ok {
		return ""
	}
	return s
}
