// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// follower is a standby of the primary whose backups the bucket has, with room for more fields.
const follower = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, backup: {enabled: true},
	from: {backup: {connectionSecretRef: {name: dr}, database: orders-db, follow: true}}%s}`

// standby world: one that runs and has replayed what there is.
func standby(tb testing.TB) *world {
	tb.Helper()
	w := running(tb, fmt.Sprintf(follower, ""))
	w.following = &observev1alpha1.FollowReport{State: observev1alpha1.FollowCaughtUp, Stanza: "orders-db-0a1b2c3d-17", ReplayedTo: "2026-11-20T11:58:00Z"}
	w.react()
	return w
}

// configured is what Patroni of a world is told to follow; nil when members lead.
func (w *world) configured() map[string]any {
	w.t.Helper()
	var c struct {
		Standby map[string]any `json:"standby_cluster"`
	}
	text := compose.Text(w.request.Observed[names.DCS].Map(), "metadata", "annotations", names.AnnotationConfig)
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		w.t.Fatal(err)
	}
	return c.Standby
}

// TestStandby: members follow the archive, nothing that writes runs, and conditions say so.
func TestStandby(t *testing.T) {
	w := standby(t)
	p := w.pass()
	want := map[string]any{"restore_command": "/usr/local/bin/capstan-member fetch --source %f %p", "create_replica_methods": []any{"basebackup", "standby"}}
	if diff := cmp.Diff(want, w.configured()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if file := compose.Text(w.request.Observed[names.Config].Map(), "data", fileMember); !strings.Contains(file, `"follow":true`) {
		t.Errorf("members are not told to follow: %s", file)
	}
	for name, expected := range map[string]string{
		"Following": "True CaughtUp", "Promoted": " ", "Available": "False Standby", "ConsumersReady": "False Standby", "BackupFresh": "False Standby",
		"HighlyAvailable": "True StandbyInSync", "Updated": "True Updated", "Accepted": "True Valid",
	} {
		if s, reason, message := condition(p, name); s+" "+reason != expected {
			t.Errorf("%s is %s %s (%s), want %s", name, s, reason, message, expected)
		}
	}
	if !p.Ready {
		t.Error("a standby that has replayed all is not ready")
	}
	if suspended, _ := compose.Map(w.request.Observed[names.Access].Map(), "spec", "forProvider")["suspended"].(bool); !suspended {
		t.Error("logins are made on a standby, which takes no writes")
	}
	for name := range w.request.Observed {
		if name == names.Backup || strings.HasPrefix(name, names.BackupNowPrefix) {
			t.Errorf("a standby is backed up: %s", name)
		}
	}
	rules, err := json.Marshal(w.request.Observed[names.Rules].Map())
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range []string{"DatabaseHasNoLeader", "DatabaseFollowerBehind", "DatabaseBackupOverdue", "DatabaseArchiveGap"} {
		if strings.Contains(string(rules), alert) {
			t.Errorf("the alert %s watches a standby", alert)
		}
	}
	if !strings.Contains(string(rules), "DatabaseNotFollowing") {
		t.Errorf("nobody is alerted when a standby does not follow: %s", rules)
	}
	if st := told(t, p); st.Leader != "" || st.Standby == nil || !st.Standby.Standby || st.Standby.ReplayedTo == nil || st.Standby.Stanza == "" {
		t.Errorf("the status is %+v, leader %q", st.Standby, st.Leader)
	}
}

// TestStandbyTells what is wrong with the archive that a standby follows, and is not ready then.
func TestStandbyTells(t *testing.T) {
	for state, want := range map[string]string{
		observev1alpha1.FollowBehind: "False FollowingBehind", observev1alpha1.FollowReplaced: "False PrimaryReplaced",
		observev1alpha1.FollowUnreachable: "False ArchiveUnreachable", "": "Unknown FollowingUnknown",
	} {
		w := standby(t)
		w.following = &observev1alpha1.FollowReport{State: state, Message: "it says why"}
		w.react()
		p := w.plan()
		if s, reason, _ := condition(p, "Following"); s+" "+reason != want || p.Ready {
			t.Errorf("%q: Following is %s %s, want %s; ready: %t", state, s, reason, want, p.Ready)
		}
	}
}

// TestPromote a standby once its primary archives no more, by one edit: members are promoted and not restarted, and the fact is remembered.
func TestPromote(t *testing.T) {
	w := standby(t)
	before := w.revisions()
	w.following.Active = true
	w.react()
	w.edit(fmt.Sprintf(follower, ", promote: {id: lost-1}"))
	for range 3 {
		w.pass()
	}
	p := w.plan()
	if s, reason, message := condition(p, "Promoted"); s+reason != "FalsePrimaryActive" || !strings.Contains(message, `spec.promote.id: "lost-1"`) ||
		!strings.Contains(message, "orders-db-0a1b2c3d-17") || !strings.Contains(message, "spec.hibernated: true") {
		t.Errorf("while the primary writes: %s %s %s", s, reason, message)
	}
	if w.configured() == nil || w.remembers().Promoted != nil {
		t.Fatal("it is promoted while the primary writes")
	}

	w.following.Active = false
	w.react()
	w.pass() // it is remembered first
	if w.configured() == nil {
		t.Error("members are promoted before that is remembered")
	}
	for range 4 {
		w.pass()
	}
	w.following = &observev1alpha1.FollowReport{Stanza: "orders-db-0a1b2c3d-17"}
	w.backup = &observev1alpha1.BackupReport{Asked: true, Archive: observev1alpha1.ArchiveOK}
	w.react()
	p = w.pass()
	if got := w.configured(); got != nil {
		t.Errorf("members still follow: %v", got)
	}
	if diff := cmp.Diff(before, w.revisions()); diff != "" {
		t.Errorf("a promotion restarts members: -before, +after:\n%s", diff)
	}
	for name, expected := range map[string]string{"Promoted": "True Promoted", "Following": " ", "Available": "True Leading", "BackupFresh": "False FirstBackupPending"} {
		if s, reason, message := condition(p, name); s+" "+reason != expected {
			t.Errorf("%s is %s %s (%s), want %s", name, s, reason, message, expected)
		}
	}
	rules, err := json.Marshal(w.request.Observed[names.Rules].Map())
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range []string{"DatabaseSecondPrimary", "DatabaseHasNoLeader", "DatabaseBackupOverdue"} {
		if !strings.Contains(string(rules), alert) {
			t.Errorf("a promoted Database lacks the alert %s", alert)
		}
	}
	if w.request.Observed[names.Backup] == nil || !slices.ContainsFunc(compose.SortedKeys(w.request.Observed), func(n string) bool { return strings.HasPrefix(n, names.BackupNowPrefix) }) {
		t.Error("its own backups do not begin")
	}
	if st := told(t, p).Standby; st.Standby || st.Promotion != "lost-1" || st.PromotedAt == nil {
		t.Errorf("the status is %+v", st)
	}

	// It stays promoted, whatever becomes of the field.
	w.edit(fmt.Sprintf(follower, ""))
	w.pass()
	if w.pass(); w.configured() != nil {
		t.Error("without spec.promote a promoted Database becomes a standby again")
	}
	kept := w.secret
	w.secret = ""
	for range 2 {
		if w.react(); w.configured() != nil {
			t.Error("without its record a promoted Database becomes a standby again")
		}
		w.pass()
	}
	w.secret = kept
	w.react()
	w.pass()
	w.following = &observev1alpha1.FollowReport{State: observev1alpha1.FollowSecondPrimary, Message: "the former primary has archived more"}
	w.react()
	if s, reason, message := condition(w.plan(), "Promoted"); s+reason != "FalseSecondPrimary" || !strings.Contains(message, "spec.from.backup") || !strings.Contains(message, "stop it") {
		t.Errorf("a second primary: %s %s %s", s, reason, message)
	}
}

// TestPromoteAtCreation: a copied manifest promotes nothing.
func TestPromoteAtCreation(t *testing.T) {
	w := running(t, fmt.Sprintf(follower, ", promote: {id: copied}"))
	w.following = &observev1alpha1.FollowReport{State: observev1alpha1.FollowCaughtUp, Stanza: "orders-db-0a1b2c3d-17"}
	w.secret = compose.Text(w.request.Observed[names.AccessCredential].Map(), "status", "atProvider", "remembered")
	w.react()
	w.pass()
	p := w.pass()
	if s, reason, _ := condition(p, "Promoted"); s+reason != "FalsePromotionSkipped" || w.configured() == nil {
		t.Errorf("Promoted is %s %s", s, reason)
	}
	w.edit(fmt.Sprintf(follower, ", promote: {id: another}"))
	for range 4 {
		p = w.pass()
	}
	if w.configured() != nil {
		_, reason, message := condition(p, "Promoted")
		t.Errorf("another id does not promote it: %s %s", reason, message)
	}
}

// TestStandbyRefuses what it cannot do, before anything moves.
func TestStandbyRefuses(t *testing.T) {
	for spec, field := range map[string]string{
		strings.Replace(fmt.Sprintf(follower, ""), `"17"`, `"18"`, 1): `spec.version: "18"`, fmt.Sprintf(follower, ", restore: {id: r1}"): `spec.restore.id: "r1"`,
	} {
		w := standby(t)
		before := w.configured()
		w.edit(spec)
		p := w.pass()
		if s, _, message := condition(p, "Accepted"); s != "False" || !strings.Contains(message, field) || !strings.Contains(message, "promote") {
			t.Errorf("%s: Accepted is %s: %s", field, s, message)
		}
		if diff := cmp.Diff(before, w.configured()); diff != "" {
			t.Errorf("%s changes members: %s", field, diff)
		}
	}
	w := running(t, basic)
	w.edit(`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, promote: {id: p1}}`)
	if s, reason, _ := condition(w.pass(), "Promoted"); s+reason != "FalseNotStandby" {
		t.Errorf("a primary is asked to be promoted: %s %s", s, reason)
	}
}
