// SPDX-License-Identifier: Apache-2.0

// Package report has the conditions and the status of a Database, and the time of its next reconcile.
package report

import (
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/decision"
)

// conditions by their types, in order. One without a status is not reported.
var conditions = []struct {
	name xpv2.ConditionType
	of   func(*decision.Pass) xpv2.Condition
}{
	{v1alpha1.TypeAvailable, available},
	{v1alpha1.TypeFollowing, following},
	{v1alpha1.TypePromoted, promoted},
	{v1alpha1.TypeImported, imported},
	{v1alpha1.TypeHighlyAvailable, highlyAvailable},
	{v1alpha1.TypeTopologySafe, topologySafe},
	{v1alpha1.TypeStorageHealthy, storageHealthy},
	{v1alpha1.TypeConsumersReady, consumersReady},
	{v1alpha1.TypeCredentialsFresh, credentialsFresh},
	{v1alpha1.TypePooled, poolersReady},
	{v1alpha1.TypeExposed, exposedCondition},
	{v1alpha1.TypeQueriesHealthy, queriesHealthy},
	{v1alpha1.TypeDeletionProtected, deletionProtected},
	{v1alpha1.TypeBackupFresh, ofBackups(backupsFresh)},
	{v1alpha1.TypeArchiveHealthy, ofBackups(archiveHealthy)},
	{v1alpha1.TypePITRContinuous, ofBackups(pitrContinuous)},
	{v1alpha1.TypeBackupVerified, ofBackups(backupVerified)},
	{v1alpha1.TypeBackupEncrypted, backupEncrypted},
	{v1alpha1.TypeSnapshotFresh, ofBackups(snapshotFresh)},
	{v1alpha1.TypeRestorePointMade, ofBackups(restorePointMade)},
	{v1alpha1.TypeRestored, restored},
	{v1alpha1.TypeUpgraded, upgraded},
	{v1alpha1.TypeUpdated, updated},
	{v1alpha1.TypeHooksPassed, hooksPassed},
	{v1alpha1.TypeSwitchedOver, switchedOver},
}

// Plan of what was decided.
func Plan(s *decision.Pass, d *compose.Draft) *compose.Plan {
	p := &compose.Plan{Objects: d.Objects(), Ready: isReady(s, d), Status: status(s, d), Events: s.HookRuns.Events(s.ToldRuns), Requires: backup.Requires(s.Cluster)}
	p.Conditions = append(p.Conditions, check.Accepted(slices.Concat(s.Problems, s.Refused)), d.Composed(len(s.Problems) == 0))
	for _, c := range conditions {
		if reported := c.of(s); reported.Status != "" {
			reported.Type = c.name
			p.Conditions = append(p.Conditions, reported)
		}
	}
	p.TTL = ttl(s, d, p.Ready)
	// A preview writes nothing, and shows what an edit will do.
	preview := len(s.Composite.Managed()) == 0
	d.Settle(p, preview)
	return p
}
