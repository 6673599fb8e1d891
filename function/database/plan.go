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

// composing an accepted spec: the objects that it becomes, in order.
func composing(d *compose.Draft, s *state) {
	c := s.cluster
	forgotten(d, c)
	accessCredential(d, c, s.remember)
	certificates(d, c)
	topology(d, s.decision)
	account(d, c)
	config(d, s.decision)
	services(d, c)
	poolers(d, c)
	external(d, c)
	backup(d, c)
	storage(d, c)
	members(d, s.decision, s.awaits())
	otherGenerations(d, s)
	disruptionBudget(d, s.decision)
	networkPolicy(d, c)
	hooks(d, s.decision)
	access(d, c)
	consumers(d, c)
	monitor(d, c)
	rules(d, c)
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
		s, d := &state{decision: &decision{cluster: c}, remember: cmp.Or(c.pending, c.told)}, compose.NewDraft(r, ready)
		// A spec that cannot be carried out changes nothing.
		if len(c.problems) == 0 {
			s = decideAll(c)
			composing(d, s)
		}
		d.KeepRest()
		return s.report(d), nil
	}
}

// report of what was decided.
func (s *state) report(d *compose.Draft) *compose.Plan {
	p := &compose.Plan{Objects: d.Objects(), Ready: s.isReady(d), Status: s.status(d)}
	p.Conditions = append(p.Conditions, check.Accepted(slices.Concat(s.problems, s.refused)), d.Composed(len(s.problems) == 0))
	for _, c := range conditions {
		if reported := c.of(s); reported.Status != "" {
			reported.Type = c.name
			p.Conditions = append(p.Conditions, reported)
		}
	}
	p.TTL = s.ttl(d, p.Ready)
	// In a preview nothing is written, and what an edit will do is what one looks for.
	preview := len(compose.List(s.Composite.Map(), "metadata", "managedFields")) == 0
	d.Settle(p, preview)
	return p
}
