// SPDX-License-Identifier: Apache-2.0

package database

import (
	"slices"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// watch the members of a generation, and tell its Topology, as the provider does.
func (w *world) watch(generation int, members []observev1alpha1.TopologyMember, leads string) observev1alpha1.TopologyObservation {
	w.t.Helper()
	seen := observev1alpha1.TopologyObservation{
		Phase: observev1alpha1.TopologyEmpty, Zones: []string{"a", "b", "c"}, Nodes: 3, Members: members, Leader: leads, RestorePoints: w.points,
	}
	seen.Signals = w.signals
	w.lead(&seen)
	w.upgrade(generation, &seen)
	seen.Backup = w.backups[generation]
	if generation == 1 {
		seen.Switchovers, seen.Backup, seen.Following = w.requestedMove, w.backup, w.following
		seen.Import = w.imports
		seen.Volumes = slices.Clone(w.volumes)
	}
	for _, m := range seen.Members {
		seen.Volumes = append(seen.Volumes, m.Name)
	}
	slices.Sort(seen.Volumes)
	seen.Volumes = slices.Compact(seen.Volumes)
	at := &names.Names{Generation: generation}
	if o := w.request.Observed[at.In(names.Topology)]; o != nil {
		told, err := compose.AsMap(seen)
		if err != nil {
			w.t.Fatal(err)
		}
		o.Map()["status"] = map[string]any{
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "Synced", "status": "True"}}, "atProvider": told,
		}
	}
	return seen
}
