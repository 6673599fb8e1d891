// SPDX-License-Identifier: Apache-2.0

package database

import (
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
)

// metadata of an object of the Database.
func (s *state) metadata(name string) *applymetav1.ObjectMetaApplyConfiguration {
	return applymetav1.ObjectMeta().WithName(name).WithNamespace(s.namespace).WithLabels(s.labels())
}
