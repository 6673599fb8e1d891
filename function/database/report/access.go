// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/access"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/names"
)

// credentialsFresh reports whether every consumer has the login that it should have by now.
func credentialsFresh(s *decision.Pass) xpv2.Condition {
	if len(s.Problems) > 0 || !slices.ContainsFunc(s.Spec.Consumers, func(c v1alpha1.Consumer) bool { return access.Rotation(s.Cluster, c) != nil }) {
		return xpv2.Condition{}
	}
	var making, waiting, overlapping []string
	for _, c := range s.Spec.Consumers {
		o := s.Observed[names.ConsumerPrefix+c.Name]
		if o == nil {
			continue
		}
		staged := compose.Text(o.Map(), "status", "atProvider", "staged") != ""
		st := access.ConnectionSecret(s.Cluster, c)
		switch {
		case staged && st.Retiring != "":
			waiting = append(waiting, fmt.Sprintf("login %s of consumer %s (expires at %s)", st.Retiring, c.Name, until(st)))
		case staged:
			making = append(making, c.Name)
		case st.Retiring != "":
			overlapping = append(overlapping, fmt.Sprintf("login %s of consumer %s until %s", st.Retiring, c.Name, until(st)))
		}
	}
	switch {
	case len(waiting) > 0:
		return no(v1alpha1.ReasonRotationWaits, fmt.Sprintf(
			"the next rotation starts when these logins have expired: %s; to expire them now, set credentials.overlap of the consumer to 0s", strings.Join(waiting, ", ")))
	case len(making) > 0 && (s.Asleep() || !s.Leads()):
		return no(v1alpha1.ReasonRotating, fmt.Sprintf(
			"the next login of %s is created when there is a leader; the current login stays valid", strings.Join(making, ", ")))
	case len(making) > 0:
		return no(v1alpha1.ReasonRotating, fmt.Sprintf(
			"the next login of %s is being created, and the current login stays valid: if this takes minutes, see Access %q and Credential %q",
			strings.Join(making, ", "), s.Name, s.Called(making[0])))
	case len(overlapping) > 0:
		return yes(v1alpha1.ReasonCredentialsOverlap,
			"every Secret has the newest login; for clients that have not read it yet, these older logins still work: "+strings.Join(overlapping, ", "))
	default:
		return yes(v1alpha1.ReasonCredentialsFresh, "every Secret has the newest login, and no older login works")
	}
}

// until is the time at which the previous login expires.
func until(st v1alpha1.ConnectionSecret) string {
	if st.RetiresAt == nil {
		return "the end of its overlap"
	}
	return st.RetiresAt.UTC().Format(time.RFC3339)
}
