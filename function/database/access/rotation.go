// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"strconv"
	"strings"

	accessv1alpha1 "github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// defaultOverlap is how long the login before is good after a rotation.
const defaultOverlap = "24h"

// suffixAlternate ends the second login of a consumer. No login of another consumer has a - in it.
const suffixAlternate = "-b"

// alternate is the second login of a consumer, which takes turns with the first.
func alternate(consumer string) string { return facts.Login(consumer) + suffixAlternate }

// credentials of a consumer: its own settings, or else those for all consumers. Nil when neither has any.
func credentials(s *facts.Cluster, c v1alpha1.Consumer) *v1alpha1.DatabaseCredentials {
	if c.Credentials == nil && s.Spec.Credentials == nil {
		return nil
	}
	none := &v1alpha1.DatabaseCredentials{}
	own, all := cmp.Or(c.Credentials, none), cmp.Or(s.Spec.Credentials, none)
	return &v1alpha1.DatabaseCredentials{
		RotateEvery: cmp.Or(own.RotateEvery, all.RotateEvery),
		Overlap:     cmp.Or(own.Overlap, all.Overlap, defaultOverlap),
		ID:          cmp.Or(own.ID, all.ID),
	}
}

// Rotation of a consumer's login. A staged password is accepted once the Access has logged in with it: no connection Secret has a
// login before that.
func Rotation(s *facts.Cluster, c v1alpha1.Consumer) *credentialsv1alpha1.Rotation {
	w := credentials(s, c)
	if w == nil || w.RotateEvery == "" && w.ID == "" {
		return nil
	}
	return &credentialsv1alpha1.Rotation{
		Every: hours(w.RotateEvery), ID: w.ID, KeepPrevious: hours(w.Overlap),
		Accepted: compose.Text(pairOf(s, c), "accepted"),
	}
}

// HasTwoLogins reports whether a consumer has two logins that take turns. A consumer that had two keeps them, because the
// second may be the one in use.
func HasTwoLogins(s *facts.Cluster, c v1alpha1.Consumer) bool {
	if Rotation(s, c) != nil {
		return true
	}
	o := s.Observed[names.ConsumerPrefix+c.Name]
	return o != nil && compose.Text(o.Map(), "spec", "forProvider", "connection", "alternateUsername") != ""
}

// retiresWhenIdle reports whether the leader knows of all sessions of a consumer. It knows nothing of sessions on other members,
// and poolers keep clients whose sessions have ended.
func retiresWhenIdle(s *facts.Cluster, c v1alpha1.Consumer) bool {
	return !s.Pooled() && (c.Access != v1alpha1.ConsumerReadOnly || s.Spec.Replicas == 1)
}

func accessLogin(s *facts.Cluster, c v1alpha1.Consumer) accessv1alpha1.Login {
	l := accessv1alpha1.Login{
		Name: facts.Login(c.Name), Database: c.Database, Access: string(c.Access),
		PasswordSecretRef: accessv1alpha1.SecretKeyReference{Name: s.Called(c.Name), Key: names.KeyPassword},
	}
	if HasTwoLogins(s, c) {
		l.Alternate, l.RetireWhenIdle = alternate(c.Name), retiresWhenIdle(s, c)
	}
	return l
}

// pairOf the logins of a consumer, as the Access reports it, or nil.
func pairOf(s *facts.Cluster, c v1alpha1.Consumer) map[string]any {
	o := s.Observed[names.Access]
	if o == nil {
		return nil
	}
	for _, v := range compose.List(o.Map(), "status", "atProvider", "alternating") {
		if m, ok := v.(map[string]any); ok && compose.Text(m, "name") == facts.Login(c.Name) {
			return m
		}
	}
	return nil
}

// ConnectionSecret of a consumer, as far as it exists.
func ConnectionSecret(s *facts.Cluster, c v1alpha1.Consumer) v1alpha1.ConnectionSecret {
	st := v1alpha1.ConnectionSecret{Consumer: c.Name, Secret: s.Called(c.Name), Ready: LoggedIn(s, c)}
	o := s.Observed[names.ConsumerPrefix+c.Name]
	if o == nil || !HasTwoLogins(s, c) {
		return st
	}
	at := compose.Map(o.Map(), "status", "atProvider")
	st.Generation = compose.Number(at, 0, "generation")
	st.Login = compose.Text(at, "username")
	st.RotatesAt = facts.Stamp(compose.Text(at, "nextRotation"))
	st.Retiring = compose.Text(pairOf(s, c), "retiring")
	if st.Retiring != "" {
		st.RetiresAt = facts.Stamp(compose.Text(at, "previousUntil"))
	}
	return st
}

// hours of a time that may be in days, which Credentials do not know.
func hours(text string) string {
	days, ok := strings.CutSuffix(text, "d")
	if !ok {
		return text
	}
	n, err := strconv.Atoi(days)
	if err != nil {
		return text // The schema refuses such a spec.
	}
	return strconv.Itoa(24*n) + "h"
}
