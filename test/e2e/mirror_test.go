// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// mirroring copies all requests to a candidate before it gets traffic.
func mirroring(l *v1alpha1.Lifecycle) { l.MirrorPercent = new(int32(100)) }

// TestMirrorNotOffered requests mirroring from a Gateway without it: the rollout holds, the route stays unchanged, and
// the message has the remedy.
func TestMirrorNotOffered(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	reco := func(v string, modify ...func(*v1alpha1.Lifecycle)) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", versioned(v), draining(drainSeconds), routed(host), rolling(append(modify, canary(50))...))
	}
	stable(t, reco("v1", mirroring))
	calls := callOutside(t, calling(host, 40))

	edit(t, reco("v2", mirroring))
	eventually(t, "it holds", rollout(ns, "reco", v1alpha1.RolloutHolding, string(v1alpha1.ReasonMirrorNotOffered), "HTTPRouteRequestMirror", "remove spec.lifecycle.mirrorPercent"))
	if c := rolloutOf(t.Context(), ns, "reco"); c.Weight != 0 {
		t.Errorf("v2 should get no traffic, got %d %%", c.Weight)
	}

	edit(t, reco("v2"))
	within(t, 2*timeout, "it goes on", stepping(ns, "reco", 50))
	within(t, 2*timeout, "traffic goes to v2", live(ns, "reco", "v2"))
	lossless(t, "all the time", calls())
}
