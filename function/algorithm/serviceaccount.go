// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

// serviceAccount without rights and without a token, so that what a right is
// given to some day is this Algorithm and not the default account of the
// namespace.
func serviceAccount(s *state) error {
	if s.spec.ServiceAccountName != "" {
		return nil
	}

	s.ask(nameServiceAccount, applycorev1.ServiceAccount(s.name, s.namespace).
		WithLabels(s.labels()).
		WithAutomountServiceAccountToken(false))

	return nil
}
