// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// A use of a feature: the field that asks for it, and its value. A block has no value to show.
type use struct {
	feature engine.Feature
	field   string
	value   any
}

// block of a spec.
var block = field.OmitValueType{}

// uses of features that not every engine has.
func uses(s *facts.Cluster) []use {
	var all []use
	add := func(used bool, f engine.Feature, field string, value any) {
		if used {
			all = append(all, use{feature: f, field: field, value: value})
		}
	}
	spec := s.Spec
	add(backup.IsOnVolume(s), engine.FeatureBackupVolume, volumeField(s), block)
	if from := spec.From; from != nil && from.Backup != nil {
		add(from.Backup.Follow, engine.FeatureStandby, "spec.from.backup.follow", from.Backup.Follow)
	}
	if from := spec.From; from != nil {
		add(len(from.Mask) > 0, engine.FeatureMask, "spec.from.mask", block)
		add(s.SourceSnapshot() != "", engine.FeatureSnapshots, snapshotField(s), s.SourceSnapshot())
		add(from.Server != nil, engine.FeatureImport, "spec.from.server", block)
		add(from.Dump != nil, engine.FeatureDump, "spec.from.dump", block)
	}
	add(spec.Backup != nil && spec.Backup.Snapshots != nil, engine.FeatureSnapshots, "spec.backup.snapshots", block)
	add(spec.Promote != nil, engine.FeatureStandby, "spec.promote", block)
	add(spec.Upgrade != nil, engine.FeatureUpgrade, "spec.upgrade", block)
	data := s.DataVersion()
	add(data != "" && s.Engine.CompareVersions(data, spec.Version) < 0, engine.FeatureUpgrade, "spec.version", spec.Version)
	if a := spec.Availability; a != nil {
		add(a.Durability != v1alpha1.DurabilitySynchronous, engine.FeatureDurability, "spec.availability.durability", string(a.Durability))
	}
	add(spec.Pooler != nil, engine.FeaturePooler, "spec.pooler", block)
	add(len(spec.Extensions) > 0, engine.FeatureExtensions, "spec.extensions", spec.Extensions)
	add(spec.Replication != nil, engine.FeatureReplication, "spec.replication", block)
	add(spec.Monitoring != nil && len(spec.Monitoring.Queries) > 0, engine.FeatureQueries, "spec.monitoring.queries", block)
	if r := spec.Resources; r != nil && r.HugePages != nil {
		add(true, engine.FeatureHugePages, "spec.resources.hugePages", r.HugePages.Amount.String())
	}
	if role := s.Role(); role != "" {
		add(true, engine.FeatureWorkloadIdentity, "spec.workloadIdentity.roleArn", role)
	}
	if q := spec.WALStorage; q != nil {
		add(true, engine.FeatureWALVolume, "spec.walStorage", q.String())
	}
	return all
}

// volumeField is the field that chooses a volume for backups. Where none does, the platform's settings have chosen it.
func volumeField(s *facts.Cluster) string {
	if b := s.Spec.Backup; b != nil && b.To != nil {
		return "spec.backup.to.volume"
	}
	return "spec.backup"
}

// checkFeatures finds what a spec asks for and its engine does not have.
func checkFeatures(s *facts.Cluster) []check.Problem {
	var ps []check.Problem
	for _, u := range uses(s) {
		if remedy := s.Engine.Lacks(u.feature); remedy != "" {
			p := check.Invalid(u.field, u.value, remedy)
			p.Reason = reasons[u.feature]
			if p.Reason == "" {
				p.Reason = v1alpha1.ReasonUnsupportedByEngine
			}
			ps = append(ps, p)
		}
	}
	return ps
}

// reasons of features that have one of their own.
var reasons = map[engine.Feature]xpv2.ConditionReason{engine.FeatureUpgrade: v1alpha1.ReasonVersionChangeUnsupported}
