// SPDX-License-Identifier: Apache-2.0

package database

import (
	rbacv1 "k8s.io/api/rbac/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applyrbacv1 "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/capstan-dev/capstan/function/compose"
)

// account of the members of a generation: they agree on the leader by objects of the API server.
func account(d *compose.Draft, s *cluster) {
	name := s.ownMembers()
	d.Add(s.in(nameServiceAccount), applycorev1.ServiceAccount(name, s.namespace).
		WithLabels(s.labels()).
		WithAutomountServiceAccountToken(false), s.side)
	d.Add(s.in(nameRoleBinding), applyrbacv1.RoleBinding(name, s.namespace).
		WithLabels(s.labels()).
		WithRoleRef(applyrbacv1.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(s.traits.Role)).
		WithSubjects(applyrbacv1.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(name).WithNamespace(s.namespace)), s.side)
}
