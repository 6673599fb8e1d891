// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// gatherFor is how long facts that are not urgent wait for others. A starting member is scheduled, gets its volume, starts and
// reports its version within seconds, one after the other; each status wakes the Database, and Crossplane stops listening to an
// object that is woken too often.
const gatherFor = 5 * time.Second

// diskOK is what a member says of a volume that has room.
const diskOK = "Ok"

// A gathering holds back facts that are not urgent. Nothing is lost with it: the wait begins again.
type gathering struct {
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

func newGathering() *gathering { return &gathering{since: map[types.NamespacedName]time.Time{}} }

// wait is how long a Topology keeps the status that it has, instead of the new one; 0 when the new one must be reported now.
func (g *gathering) wait(of types.NamespacedName, was, is v1alpha1.TopologyObservation, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	begun, waits := g.since[of]
	if !waits {
		begun = now
	}
	left := begun.Add(gatherFor).Sub(now)
	if left <= 0 || hurries(was, is) || equality.Semantic.DeepEqual(was, is) {
		delete(g.since, of)
		return 0
	}
	g.since[of] = begun
	return left
}

// forget a deleted Topology.
func (g *gathering) forget(of types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.since, of)
}

// hurries reports whether a change is urgent. Only what comes with a starting member may wait: until there was a first leader, or
// while there is one. Roles, service and every fault are reported at once.
func hurries(was, is v1alpha1.TopologyObservation) bool {
	if was.Phase == "" || is.Leader == "" && is.SystemIdentifier != "" {
		return true
	}
	before := was.DeepCopy()
	if was.Phase == v1alpha1.TopologyEmpty && is.Phase == v1alpha1.TopologyBootstrapping {
		before.Phase = is.Phase
	}
	if !slices.ContainsFunc(was.Volumes, func(name string) bool { return !slices.Contains(is.Volumes, name) }) {
		before.Volumes = is.Volumes
	}
	if was.Backup == nil {
		before.Backup = is.Backup
	}
	for i, m := range is.Members {
		at := slices.IndexFunc(before.Members, func(b v1alpha1.TopologyMember) bool { return b.Name == m.Name })
		if at < 0 {
			at = min(i, len(before.Members))
			before.Members = slices.Insert(before.Members, at, v1alpha1.TopologyMember{Name: m.Name, State: v1alpha1.MemberStopped})
		}
		arrive(&before.Members[at], m)
	}
	return !equality.Semantic.DeepEqual(*before, is)
}

// arrive makes what was known of a member what is, as far as it came up since.
func arrive(was *v1alpha1.TopologyMember, is v1alpha1.TopologyMember) {
	for _, f := range []struct {
		was *string
		is  string
	}{
		{&was.Node, is.Node},
		{&was.Zone, is.Zone},
		{&was.Revision, is.Revision},
		{&was.VolumeSize, is.VolumeSize},
		{&was.Version, is.Version},
	} {
		if *f.was == "" {
			*f.was = f.is
		}
	}
	if was.State == v1alpha1.MemberStopped && is.State == v1alpha1.MemberStarting {
		was.State = is.State
	}
	if was.Role == "" && is.Role == v1alpha1.RoleReplica && !is.Ready {
		was.Role = is.Role
	}
	if was.Lag == "" && is.Lag == v1alpha1.LagUnknown {
		was.Lag = is.Lag
	}

	// Any other value means trouble.
	if was.Disk == "" && is.Disk == diskOK {
		was.Disk = is.Disk
	}
	if was.Volume == nil && was.Disk == diskOK {
		was.Volume = is.Volume
	}
	if was.WALDisk == "" && is.WALDisk == diskOK {
		was.WALDisk = is.WALDisk
	}
	if was.WALVolume == nil && was.WALDisk == diskOK {
		was.WALVolume = is.WALVolume
	}
}
