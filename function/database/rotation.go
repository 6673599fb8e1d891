// SPDX-License-Identifier: Apache-2.0

package database

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	accessv1alpha1 "github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// defaultOverlap is how long the login before is good after a rotation.
const defaultOverlap = "24h"

// suffixAlternate ends the second login of a consumer. No login of another consumer has a - in it.
const suffixAlternate = "-b"

// alternate is the login that takes turns with that of a consumer.
func alternate(consumer string) string { return login(consumer) + suffixAlternate }

// credentials of a consumer: what it says itself, and else what all have. None when nothing asks for a rotation.
func (s *cluster) credentials(c v1alpha1.Consumer) *v1alpha1.DatabaseCredentials {
	if c.Credentials == nil && s.spec.Credentials == nil {
		return nil
	}
	own, all := v1alpha1.DatabaseCredentials{}, v1alpha1.DatabaseCredentials{}
	if c.Credentials != nil {
		own = *c.Credentials
	}
	if s.spec.Credentials != nil {
		all = *s.spec.Credentials
	}
	return &v1alpha1.DatabaseCredentials{
		RotateEvery: cmp.Or(own.RotateEvery, all.RotateEvery),
		Overlap:     cmp.Or(own.Overlap, all.Overlap, defaultOverlap),
		ID:          cmp.Or(own.ID, all.ID),
	}
}

// rotation of a consumer's login. What was staged is accepted once the Access has logged in with it: nobody is told of a login
// before that.
func (s *cluster) rotation(c v1alpha1.Consumer) *credentialsv1alpha1.Rotation {
	w := s.credentials(c)
	if w == nil || w.RotateEvery == "" && w.ID == "" {
		return nil
	}
	return &credentialsv1alpha1.Rotation{
		Every: hours(w.RotateEvery), ID: w.ID, KeepPrevious: hours(w.Overlap),
		Accepted: compose.Text(s.pairOf(c), "accepted"),
	}
}

// hasTwoLogins reports whether a consumer has two logins that take turns. Who has had them keeps them, because the second may be
// the one in use.
func (s *cluster) hasTwoLogins(c v1alpha1.Consumer) bool {
	if s.rotation(c) != nil {
		return true
	}
	o := s.Observed[nameConsumerPrefix+c.Name]
	return o != nil && compose.Text(o.Map(), "spec", "forProvider", "connection", "alternateUsername") != ""
}

// retiresWhenIdle reports whether the server that leads knows of all sessions of a consumer. It knows nothing of those on other
// members, and poolers keep clients whose sessions have ended.
func (s *cluster) retiresWhenIdle(c v1alpha1.Consumer) bool {
	return !s.pooled() && (c.Access != v1alpha1.ConsumerReadOnly || s.spec.Replicas == 1)
}

// accessLogin of a consumer.
func (s *cluster) accessLogin(c v1alpha1.Consumer) accessv1alpha1.Login {
	l := accessv1alpha1.Login{
		Name: login(c.Name), Database: c.Database, Access: string(c.Access),
		PasswordSecretRef: accessv1alpha1.SecretKeyReference{Name: s.called(c.Name), Key: keyPassword},
	}
	if s.hasTwoLogins(c) {
		l.Alternate, l.RetireWhenIdle = alternate(c.Name), s.retiresWhenIdle(c)
	}
	return l
}

// poolLimits of databases with a consumer that has two logins: each login has a pool, and in an overlap there would be more
// connections than the server was asked for.
func (s *cluster) poolLimits() map[string]int32 {
	limits, alternating := map[string]int32{}, map[string]bool{}
	for _, c := range s.spec.Consumers {
		limits[c.Database] += s.poolSize()
		alternating[c.Database] = alternating[c.Database] || s.hasTwoLogins(c)
	}
	maps.DeleteFunc(limits, func(d string, _ int32) bool { return !alternating[d] })
	return limits
}

// pairOf the logins of a consumer, as the Access tells of it, or nothing.
func (s *cluster) pairOf(c v1alpha1.Consumer) map[string]any {
	o := s.Observed[nameAccess]
	if o == nil {
		return nil
	}
	for _, v := range compose.List(o.Map(), "status", "atProvider", "alternating") {
		if m, ok := v.(map[string]any); ok && compose.Text(m, "name") == login(c.Name) {
			return m
		}
	}
	return nil
}

// connectionSecret of a consumer, as far as it is there.
func (s *cluster) connectionSecret(c v1alpha1.Consumer) v1alpha1.ConnectionSecret {
	st := v1alpha1.ConnectionSecret{Consumer: c.Name, Secret: s.called(c.Name), Ready: s.loggedIn(c)}
	o := s.Observed[nameConsumerPrefix+c.Name]
	if o == nil || !s.hasTwoLogins(c) {
		return st
	}
	at := compose.Map(o.Map(), "status", "atProvider")
	st.Generation = compose.Number(at, 0, "generation")
	st.Login = compose.Text(at, "username")
	st.RotatesAt = stamp(compose.Text(at, "nextRotation"))
	st.Retiring = compose.Text(s.pairOf(c), "retiring")
	if st.Retiring != "" {
		st.RetiresAt = stamp(compose.Text(at, "previousUntil"))
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
		return text // It is told by checkCredentials.
	}
	return strconv.Itoa(24*n) + "h"
}

// credentialsFresh reports whether every consumer has the login that it should have by now.
func credentialsFresh(s *state) xpv2.Condition {
	if len(s.problems) > 0 || !slices.ContainsFunc(s.spec.Consumers, func(c v1alpha1.Consumer) bool { return s.rotation(c) != nil }) {
		return xpv2.Condition{}
	}
	var making, waiting, overlapping []string
	for _, c := range s.spec.Consumers {
		o := s.Observed[nameConsumerPrefix+c.Name]
		if o == nil {
			continue
		}
		staged := compose.Text(o.Map(), "status", "atProvider", "staged") != ""
		st := s.connectionSecret(c)
		switch {
		case staged && st.Retiring != "":
			waiting = append(waiting, fmt.Sprintf("login %s of consumer %s, which is good until %s", st.Retiring, c.Name, until(st)))
		case staged:
			making = append(making, c.Name)
		case st.Retiring != "":
			overlapping = append(overlapping, fmt.Sprintf("login %s of consumer %s until %s", st.Retiring, c.Name, until(st)))
		}
	}
	switch {
	case len(waiting) > 0:
		return no(v1alpha1.ReasonRotationWaits, fmt.Sprintf(
			"the next rotation waits for %s: set its overlap to 0s to end it now", strings.Join(waiting, ", ")))
	case len(making) > 0 && (s.asleep() || !s.leads()):
		return no(v1alpha1.ReasonRotating, fmt.Sprintf(
			"the next login of %s is made once a member leads; the present one stays", strings.Join(making, ", ")))
	case len(making) > 0:
		return no(v1alpha1.ReasonRotating, fmt.Sprintf(
			"the next login of %s is being made; the present one stays: if that lasts, see Access %q and Credential %q",
			strings.Join(making, ", "), s.name, s.called(making[0])))
	case len(overlapping) > 0:
		return yes(v1alpha1.ReasonCredentialsOverlap,
			"every Secret has the login of its last rotation; still good for clients that have not read it: "+strings.Join(overlapping, ", "))
	default:
		return yes(v1alpha1.ReasonCredentialsFresh, "every Secret has the login of its last rotation, and no other is good")
	}
}

// until when the login before is good.
func until(st v1alpha1.ConnectionSecret) string {
	if st.RetiresAt == nil {
		return "its overlap ends"
	}
	return st.RetiresAt.UTC().Format(time.RFC3339)
}
