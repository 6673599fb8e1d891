// SPDX-License-Identifier: Apache-2.0

package members

import (
	rbacv1 "k8s.io/api/rbac/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applyrbacv1 "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// Account of the members of a generation, which agree on the leader by objects of the API server.
func Account(d *compose.Draft, s *facts.Cluster) {
	name := s.OwnMembers()
	d.Add(s.In(names.ServiceAccount), applycorev1.ServiceAccount(name, s.Namespace).
		WithLabels(s.Labels()).
		WithAutomountServiceAccountToken(false), s.Side)
	d.Add(s.In(names.RoleBinding), applyrbacv1.RoleBinding(name, s.Namespace).
		WithLabels(s.Labels()).
		WithRoleRef(applyrbacv1.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(s.Traits.Role)).
		WithSubjects(applyrbacv1.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(name).WithNamespace(s.Namespace)), s.Side)
}
