// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	apimembers "github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// unavailable is a problem of what the cluster does not have.
func unavailable(field, value, remedy string) []check.Problem {
	p := check.Invalid(field, value, remedy)
	p.Reason = v1alpha1.ReasonSnapshotsUnavailable
	return []check.Problem{p}
}

// noSnapshots is the remedy where no VolumeSnapshots are served.
const noSnapshots = "the cluster has no VolumeSnapshots (snapshot.storage.k8s.io/v1): ask the platform team for a CSI driver with snapshots and its snapshot controller, or remove it"

// checkSnapshots holds what the schema cannot express about snapshots. A class that is removed later does not refuse the spec: the condition
// SnapshotFresh reports it.
func checkSnapshots(s *facts.Cluster) []check.Problem {
	if s.Spec.Backup == nil || s.Spec.Backup.Snapshots == nil || s.Engine.Lacks(engine.FeatureSnapshots) != "" {
		return nil
	}
	c := s.Spec.Backup.Snapshots
	ps := checkSchedule(s, "spec.backup.snapshots.schedule", c.Schedule)
	if s.Spec.WALStorage != nil {
		ps = append(ps, check.Invalid("spec.backup.snapshots", block, fmt.Sprintf("must not be set with spec.walStorage: data and %[1]s are on two volumes then, and no snapshot shows both at one moment. "+
			"A volume for the %[1]s cannot be removed from members that have it: remove spec.backup.snapshots, and restore from backups", s.Traits.Log)))
	}
	if o := s.Observed[names.Snapshots]; o != nil && compose.Text(o.Map(), "metadata", "annotations", names.AnnotationClass) == c.ClassName {
		return ps
	}
	const field = "spec.backup.snapshots.className"
	switch kind := s.Kinds[names.VolumeSnapshotClassGVK]; {
	case kind == compose.Unavailable || s.Kinds[names.VolumeSnapshotGVK] == compose.Unavailable:
		return append(ps, unavailable(field, c.ClassName, noSnapshots)...)
	case s.TakesSnapshots() && s.Sought[facts.RequiredSnapshotClass] && s.Required[facts.RequiredSnapshotClass] == nil:
		return append(ps, unavailable(field, c.ClassName, "there is no VolumeSnapshotClass of this name: choose one of kubectl get volumesnapshotclasses, with the driver of the members' volumes")...)
	}
	return ps
}

// snapshotField is the field that names the snapshot that a Database begins with.
func snapshotField(s *facts.Cluster) string {
	if s.Spec.From.Database != nil {
		return "spec.from.database.snapshot"
	}
	return "spec.from.backup.snapshot"
}

// checkSourceSnapshot finds a snapshot that the Database cannot begin with. Once its volume was filled, the snapshot may be removed.
func checkSourceSnapshot(s *facts.Cluster) []check.Problem {
	name := s.SourceSnapshot()
	if name == "" || !s.FillsVolume() || s.Filled() || s.Engine.Lacks(engine.FeatureSnapshots) != "" {
		return nil
	}
	field := snapshotField(s)
	if s.Kinds[names.VolumeSnapshotGVK] == compose.Unavailable {
		return unavailable(field, name, noSnapshots)
	}
	if !s.Sought[facts.RequiredSourceSnapshot] {
		return nil // Crossplane seeks it first.
	}
	o := s.Required[facts.RequiredSourceSnapshot]
	if o == nil {
		return unavailable(field, name, fmt.Sprintf("there is no VolumeSnapshot of this name: choose one of kubectl get volumesnapshots -l %s=%s", names.LabelSnapshotOf, s.SourceName()))
	}
	shown, ok := s.SnapshotShown()
	switch {
	case !ok || shown.Cut == "":
		return []check.Problem{check.Invalid(field, name, "was not made by spec.backup.snapshots of a Database, or not completely, so that it is unknown what it shows: choose another one, or none to restore a backup")}
	case !ready(o):
		return unavailable(field, name, "is not ready to use yet: wait until kubectl get volumesnapshot shows that it is")
	}
	return usable(s, o, shown)
}

// ready reports whether a snapshot can fill volumes.
func ready(o compose.Object) bool {
	is, _ := compose.Map(o.Map(), "status")["readyToUse"].(bool)
	return is
}

// usable snapshot: of the requested Database, its version, a volume that is large enough, and a time before the requested one.
func usable(s *facts.Cluster, o compose.Object, shown apimembers.Snapshot) []check.Problem {
	var ps []check.Problem
	name, field, from := s.SourceSnapshot(), snapshotField(s), s.Spec.From
	if shown.Database != s.SourceName() {
		ps = append(ps, check.Invalid(field, name, fmt.Sprintf("shows a volume of Database %q: choose one of Database %q", shown.Database, s.SourceName())))
	}
	if from.Backup != nil && from.Backup.Stanza != "" && from.Backup.Stanza != shown.Stanza {
		ps = append(ps, check.Invalid(field, name, fmt.Sprintf("continues in the archive of stanza %q: set spec.from.backup.stanza to it, or remove that field", shown.Stanza)))
	}
	if shown.Version != s.Spec.Version {
		ps = append(ps, check.Invalid(field, name, fmt.Sprintf("has data of version %s: set spec.version to it", shown.Version)))
	}
	if size, err := resource.ParseQuantity(compose.Text(o.Map(), "status", "restoreSize")); err == nil && s.Sizes.Created.Cmp(size) < 0 {
		ps = append(ps, check.Invalid("spec.storage", s.Spec.Storage.String(), fmt.Sprintf("is less than the volume of snapshot %q: set %s or more", name, size.String())))
	}
	at, cut := s.SourceMoment(), facts.Stamp(shown.Cut)
	if at != nil && cut != nil && at.Before(cut.Time) {
		ps = append(ps, check.Invalid(field, name, fmt.Sprintf("shows commits up to %s, and an earlier moment is requested: choose an earlier snapshot, or none to restore a backup", cut.UTC().Format(time.RFC3339))))
	}
	return ps
}
