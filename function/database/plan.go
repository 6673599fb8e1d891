// SPDX-License-Identifier: Apache-2.0

// Package database plans one Database: from its spec and the objects that exist, what should exist and what is reported. It is
// pure, and knows nothing of gRPC or protobuf. Start reading at the steps in this file.
package database

import (
	"cmp"
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
)

// composing is what an accepted spec becomes, in order.
var composing = []func(*state){
	accessCredential,
	certificates,
	topology,
	account,
	config,
	services,
	poolers,
	external,
	backup,
	storage,
	members,
	otherGenerations,
	disruptionBudget,
	networkPolicy,
	hooks,
	access,
	consumers,
	monitor,
	rules,
}

// conditions by their types, in order. One without a status is not reported.
var conditions = []struct {
	name xpv2.ConditionType
	of   func(*state) xpv2.Condition
}{
	{v1alpha1.TypeAvailable, available},
	{v1alpha1.TypeHighlyAvailable, highlyAvailable},
	{v1alpha1.TypeTopologySafe, topologySafe},
	{v1alpha1.TypeStorageHealthy, storageHealthy},
	{v1alpha1.TypeConsumersReady, consumersReady},
	{v1alpha1.TypeCredentialsFresh, credentialsFresh},
	{v1alpha1.TypePooled, poolersReady},
	{v1alpha1.TypeExposed, exposedCondition},
	{v1alpha1.TypeDeletionProtected, deletionProtected},
	{v1alpha1.TypeBackupFresh, backupsFresh},
	{v1alpha1.TypeArchiveHealthy, archiveHealthy},
	{v1alpha1.TypePITRContinuous, pitrContinuous},
	{v1alpha1.TypeBackupVerified, backupVerified},
	{v1alpha1.TypeBackupEncrypted, backupEncrypted},
	{v1alpha1.TypeRestorePointMade, restorePointMade},
	{v1alpha1.TypeRestored, restored},
	{v1alpha1.TypeUpgraded, upgraded},
	{v1alpha1.TypeUpdated, updated},
	{v1alpha1.TypeSwitchedOver, switchedOver},
}

// Planner of Databases, of the function of a version. It fails only for a composite resource that has no name or namespace;
// whatever a user can write becomes a condition.
func Planner(version string) compose.Planner {
	return func(r compose.Request) (*compose.Plan, error) {
		c, err := gather(r, version)
		if err != nil {
			return nil, err
		}
		s := &state{decision: &decision{cluster: c}, remember: cmp.Or(c.pending, c.told), draft: compose.NewDraft(r, ready)}
		// A spec that cannot be carried out changes nothing.
		if len(c.problems) == 0 {
			s = decideAll(c, s.draft)
			s.forgotten()
			for _, step := range composing {
				step(s)
			}
		}
		s.draft.KeepRest()
		return s.report(), nil
	}
}

// report of what was decided.
func (s *state) report() *compose.Plan {
	p := &compose.Plan{Objects: s.draft.Objects(), Ready: s.isReady(), Status: s.status()}
	p.Conditions = append(p.Conditions, check.Accepted(slices.Concat(s.problems, s.refused)), s.draft.Composed(len(s.problems) == 0))
	for _, c := range conditions {
		if reported := c.of(s); reported.Status != "" {
			reported.Type = c.name
			p.Conditions = append(p.Conditions, reported)
		}
	}
	p.TTL = s.ttl(p.Ready)
	// In a preview nothing is written, and what an edit will do is what one looks for.
	preview := len(compose.List(s.Composite.Map(), "metadata", "managedFields")) == 0
	s.draft.Settle(p, preview)
	return p
}
