// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

const (
	snapshotted = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, backup: {snapshots: {className: fast-snapshots, schedule: "0 */4 * * *", keep: 6}}}`
	fromShot    = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, from: {database: {name: stock-db, snapshot: stock-db-1, at: "2026-11-21T08:00:00Z"}}}`
	sourceOf    = "0011223344556677"
)

// withSnapshots is a cluster that serves snapshots, in which required objects are found.
func withSnapshots(w *world, found map[string]compose.Object) *world {
	w.request.Kinds = maps.Clone(w.request.Kinds)
	w.request.Kinds[names.VolumeSnapshotGVK], w.request.Kinds[names.VolumeSnapshotClassGVK] = compose.Available, compose.Available
	w.request.Sought = map[string]bool{facts.RequiredSnapshotClass: true, facts.RequiredSourceSnapshot: true}
	w.request.Required = found
	return w
}

// settled world after some passes.
func settled(w *world) *world {
	for range 6 {
		w.pass()
	}
	return w
}

func theClass() map[string]compose.Object {
	return map[string]compose.Object{facts.RequiredSnapshotClass: composetest.Object{"metadata": map[string]any{"name": "fast-snapshots"}}}
}

// shot is a VolumeSnapshot of stock-db.
func shot(tb testing.TB, shows members.Snapshot, size string, ready bool) map[string]compose.Object {
	tb.Helper()
	raw, err := json.Marshal(shows)
	if err != nil {
		tb.Fatal(err)
	}
	return map[string]compose.Object{facts.RequiredSourceSnapshot: composetest.Object{
		"metadata": map[string]any{"name": "stock-db-1", "annotations": map[string]any{members.AnnotationSnapshot: string(raw)}},
		"status":   map[string]any{"readyToUse": ready, "restoreSize": size},
	}}
}

func goodShot() members.Snapshot {
	return members.Snapshot{Database: "stock-db", Identity: sourceOf, Stanza: "stock-db-00112233-17", Version: "17", Member: "stock-db-b", Cut: "2026-11-21T06:00:04Z"}
}

// record of the last run, as its pod writes it.
func (w *world) recordSnapshot(last members.SnapshotTaken, failure string) {
	w.t.Helper()
	data := map[string]any{members.KeyRecord: composetest.Encoded(members.SnapshotRecord{Last: last, Kept: 1})}
	if failure != "" {
		data[members.KeyFailure] = composetest.Encoded(members.SnapshotFailure{At: "2026-11-20T08:00:00Z", Message: failure})
	}
	w.request.Observed[names.SnapshotsRecord].Map()["data"] = data
}

func TestSnapshots(t *testing.T) {
	w := settled(withSnapshots(newWorld(t, snapshotted), theClass()))
	cron := w.request.Observed[names.Snapshots]
	if cron == nil {
		t.Fatalf("no CronJob among %v", compose.SortedKeys(w.request.Observed))
	}
	m := cron.Map()
	pod := compose.Map(m, "spec", "jobTemplate", "spec", "template", "spec")
	c := facts.First(compose.List(pod, "containers"))
	want := map[string]any{
		"schedule": "0 */4 * * *", "account": "orders-db-snapshots",
		"command": []any{"/usr/local/bin/capstan-member", "snapshot"}, "args": []any{"--class=fast-snapshots", "--keep=6", "--stanza=orders-db-3f2a9c1b-17"},
	}
	got := map[string]any{
		"schedule": compose.Text(m, "spec", "schedule"), "account": compose.Text(pod, "serviceAccountName"),
		"command": c["command"], "args": c["args"],
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the CronJob: -want, +got:\n%s", diff)
	}
	if got := compose.Text(w.request.Observed[names.SnapshotsBinding].Map(), "roleRef", "name"); got != "capstan:snapshot" {
		t.Errorf("its account has the role %q", got)
	}
	if labels := compose.Map(m, "spec", "jobTemplate", "spec", "template", "metadata", "labels"); labels["capstan.dev/snapshot-of"] != "orders-db" || labels["capstan.dev/database"] != nil {
		t.Errorf("its pods must be no members: %v", labels)
	}
	p := w.plan()
	if status, reason, _ := condition(p, string(v1alpha1.TypeSnapshotFresh)); status != "Unknown" || reason != "FirstSnapshotPending" {
		t.Errorf("before the first snapshot: %s/%s", status, reason)
	}
	if diff := cmp.Diff(map[string]compose.Requirement{facts.RequiredSnapshotClass: {Kind: names.VolumeSnapshotClassGVK, Name: "fast-snapshots"}}, p.Requires); diff != "" {
		t.Errorf("required: -want, +got:\n%s", diff)
	}

	// A pod takes one. What it writes stays when the function composes again.
	w.recordSnapshot(members.SnapshotTaken{
		Name: "orders-db-20261120-080000", Member: "orders-db-b", Began: "2026-11-20T08:00:00Z", Cut: "2026-11-20T08:00:03Z", Ready: "2026-11-20T08:01:00Z", Size: "50Gi",
	}, "")
	w.pass()
	st := told(t, w.plan()).Backup.Snapshots
	wantStatus := &v1alpha1.SnapshotsStatus{Schedule: "0 */4 * * *", Kept: 1, Last: &v1alpha1.SnapshotTaken{
		Name: "orders-db-20261120-080000", Member: "orders-db-b", At: facts.Stamp("2026-11-20T08:00:03Z"), Size: "50Gi", Took: "1m0s",
	}}
	if diff := cmp.Diff(wantStatus, st); diff != "" {
		t.Errorf("status.backup.snapshots: -want, +got:\n%s", diff)
	}

	// Without the block, nothing takes any.
	w.edit(withBackup(`{}`))
	w.pass()
	for _, gone := range []string{names.Snapshots, names.SnapshotsAccount, names.SnapshotsBinding, names.SnapshotsRecord} {
		if w.request.Observed[gone] != nil {
			t.Errorf("%s stays without spec.backup.snapshots", gone)
		}
	}
}

// TestSnapshotFresh by what the last run wrote, and what its CronJob shows.
func TestSnapshotFresh(t *testing.T) {
	made := settled(withSnapshots(newWorld(t, snapshotted), theClass()))
	last := members.SnapshotTaken{Name: "x", Began: now.Add(-time.Hour).Format(time.RFC3339), Cut: now.Add(-time.Hour).Format(time.RFC3339)}
	old := members.SnapshotTaken{Name: "x", Began: now.Add(-24 * time.Hour).Format(time.RFC3339)}
	lost := map[string]any{"lastScheduleTime": now.Add(-time.Minute).Format(time.RFC3339)}
	for name, tc := range map[string]struct {
		reason  string
		last    members.SnapshotTaken
		failure string
		cron    map[string]any
		want    string
	}{
		"Fresh":   {reason: "It is an hour old, and one is taken every four.", last: last, want: "True/Fresh"},
		"Overdue": {reason: "The next should have been ready.", last: old, want: "False/SnapshotOverdue"},
		"Failed":  {reason: "A run says why it failed.", last: last, failure: "the driver has no room", want: "False/SnapshotFailed"},
		"Lost":    {reason: "A run that ended without a word has failed.", last: last, cron: lost, want: "False/SnapshotFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := withSnapshots(newWorld(t, snapshotted), theClass())
			w.request.Observed, w.request.Composite = map[string]compose.Object{}, made.request.Composite
			for name, o := range made.request.Observed {
				w.request.Observed[name] = copied(t, o)
			}
			w.recordSnapshot(tc.last, tc.failure)
			if tc.cron != nil {
				w.request.Observed[names.Snapshots].Map()["status"] = tc.cron
			}
			status, reason, message := condition(w.plan(), string(v1alpha1.TypeSnapshotFresh))
			if got := status + "/" + reason; got != tc.want {
				t.Errorf("\n%s\nwant %s, got %s: %s", tc.reason, tc.want, got, message)
			}
			if tc.failure != "" && !strings.Contains(message, tc.failure) {
				t.Errorf("the message has no cause: %s", message)
			}
		})
	}
}

// TestSnapshotAlerts: snapshots that fail or do not come are noticed, by the name of the Database in each of its generations.
func TestSnapshotAlerts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, spec string
		want         map[string]string
	}{
		"Taken": {"One is taken every four hours, and may take six.", snapshotted, map[string]string{
			"DatabaseSnapshotFailed": `max((capstan_database_snapshot_failed{exported_namespace="shop",database="orders-db"} or capstan_database_snapshot_failed{namespace="shop",database="orders-db"})) > 0`,
			"DatabaseSnapshotOverdue": `time() - max((capstan_database_last_snapshot_timestamp_seconds{exported_namespace="shop",database="orders-db"} or ` +
				`capstan_database_last_snapshot_timestamp_seconds{namespace="shop",database="orders-db"})) > 36000`,
		}},
		"None": {"None is taken.", withBackup(`{}`), map[string]string{}},
		"Off":  {"Backups are off.", strings.Replace(snapshotted, "backup: {", "backup: {enabled: false, ", 1), map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := settled(withSnapshots(newWorld(t, tc.spec), theClass()))
			got := map[string]string{}
			for _, g := range compose.List(w.request.Observed[names.Rules].Map(), "spec", "groups") {
				for _, r := range compose.List(g.(map[string]any), "rules") {
					if r := r.(map[string]any); strings.HasPrefix(compose.Text(r, "alert"), "DatabaseSnapshot") {
						got[compose.Text(r, "alert")] = compose.Text(r, "expr")
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if o := w.request.Observed[names.SnapshotsRecord]; o != nil && compose.Text(o.Map(), "metadata", "labels", names.LabelSnapshotOf) != "orders-db" {
				t.Errorf("the provider does not find what the last run wrote: %v", o.Map()["metadata"])
			}
		})
	}
}

// TestSnapshotsRefused before anything is made, with what helps.
func TestSnapshotsRefused(t *testing.T) {
	none := map[schema.GroupVersionKind]compose.Availability{names.VolumeSnapshotGVK: compose.Unavailable, names.VolumeSnapshotClassGVK: compose.Unavailable}
	with := func(change func(*members.Snapshot)) members.Snapshot {
		s := goodShot()
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		reason string
		spec   string
		kinds  map[schema.GroupVersionKind]compose.Availability
		found  map[string]compose.Object
		want   []string
	}{
		"NoKinds":       {"The cluster has no snapshots.", snapshotted, none, nil, []string{"SnapshotsUnavailable", "snapshot controller"}},
		"NoClass":       {"It has not the class.", snapshotted, nil, nil, []string{"SnapshotsUnavailable", `"fast-snapshots"`, "kubectl get volumesnapshotclasses"}},
		"Schedule":      {"It names no time.", strings.Replace(snapshotted, "0 */4 * * *", "0 0 30 2 *", 1), nil, theClass(), []string{"spec.backup.snapshots.schedule"}},
		"WAL":           {"Two volumes are not of one moment.", strings.Replace(snapshotted, "storage: 50Gi", "storage: 50Gi, walStorage: 20Gi", 1), nil, theClass(), []string{"InvalidSpec", "spec.backup.snapshots", "spec.walStorage", "remove spec.backup.snapshots", "backups"}},
		"MySQL":         {"The engine has none.", `{engine: mysql, version: "9.7", replicas: 3, storage: 50Gi, backup: {snapshots: {className: x}}}`, nil, theClass(), []string{"MySQL"}},
		"SourceNoKinds": {"The cluster has no snapshots.", fromShot, none, nil, []string{"SnapshotsUnavailable"}},
		"SourceMissing": {"It has not this one.", fromShot, nil, nil, []string{"SnapshotsUnavailable", "stock-db-1", "capstan.dev/snapshot-of=stock-db"}},
		"Foreign":       {"What it shows is unknown.", fromShot, nil, map[string]compose.Object{facts.RequiredSourceSnapshot: composetest.Object{}}, []string{"was not made by"}},
		"Begun":         {"A run that did not end says not when it was cut.", fromShot, nil, shot(t, with(func(s *members.Snapshot) { s.Cut = "" }), "50Gi", true), []string{"not completely"}},
		"Pending":       {"Its storage has not ended it.", fromShot, nil, shot(t, goodShot(), "50Gi", false), []string{"not ready"}},
		"Another":       {"It shows another Database.", fromShot, nil, shot(t, with(func(s *members.Snapshot) { s.Database = "users-db" }), "50Gi", true), []string{`"users-db"`}},
		"Version":       {"Its data has another version.", fromShot, nil, shot(t, with(func(s *members.Snapshot) { s.Version = "16" }), "50Gi", true), []string{"version 16", "spec.version"}},
		"Small":         {"A volume cannot shrink.", fromShot, nil, shot(t, goodShot(), "80Gi", true), []string{"spec.storage", "80Gi"}},
		"Late":          {"It has later commits than requested.", fromShot, nil, shot(t, with(func(s *members.Snapshot) { s.Cut = "2026-11-21T08:00:01Z" }), "50Gi", true), []string{"earlier snapshot"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := withSnapshots(newWorld(t, tc.spec), tc.found)
			maps.Copy(w.request.Kinds, tc.kinds)
			p := w.plan()
			status, reason, message := condition(p, "Accepted")
			if status != "False" || len(p.Objects) > 0 {
				t.Errorf("\n%s\nit is accepted (%s), and makes %v", tc.reason, status, compose.SortedKeys(p.Objects))
			}
			for _, words := range tc.want {
				if !strings.Contains(reason+": "+message, words) {
					t.Errorf("\n%s\nno %q in %s: %s", tc.reason, words, reason, message)
				}
			}
		})
	}
}

// TestSnapshotClassGoes from a cluster whose Databases use it: they stay as they are, and can be changed.
func TestSnapshotClassGoes(t *testing.T) {
	w := settled(withSnapshots(newWorld(t, snapshotted), theClass()))
	w.request.Required = nil
	if status, _, message := condition(w.plan(), "Accepted"); status != "True" {
		t.Errorf("the spec is refused: %s", message)
	}
}

// TestFromSnapshot: the provider makes the volume of the first member, then there are members. The others have empty volumes.
func TestFromSnapshot(t *testing.T) {
	w := withSnapshots(newWorld(t, fromShot), shot(t, goodShot(), "40Gi", true))
	var before []string
	for range 8 {
		if claim := w.request.Observed[names.VolumeClaim]; claim != nil && w.request.Observed[names.MemberPrefix+"a"] == nil {
			if diff := cmp.Diff(map[string]any{"member": "orders-db-a", "snapshot": "stock-db-1", "labels": map[string]any{"capstan.dev/generation": "1"}},
				compose.Map(claim.Map(), "spec", "forProvider", "filled")); diff != "" {
				t.Fatalf("the VolumeClaim: -want, +got:\n%s", diff)
			}
			before = append(before, "claim")
		}
		w.pass()
	}
	if len(before) == 0 {
		t.Error("members are made before the volume is")
	}
	if claim := compose.Map(w.request.Observed[names.VolumeClaim].Map(), "spec", "forProvider"); claim["filled"] != nil {
		t.Errorf("once there are members no volume must be filled again: %v", claim)
	}
	for _, letter := range []string{"a", "b", "c"} {
		o := w.request.Observed[names.MemberPrefix+letter]
		if o == nil {
			t.Fatalf("there is no member %s", letter)
		}
		if source := compose.Map(facts.First(compose.List(o.Map(), "spec", "volumeClaimTemplates")), "spec")["dataSource"]; source != nil {
			t.Errorf("a volume of member %s that is made again would begin with the snapshot: %v", letter, source)
		}
	}
	want := &pgmember.Snapshot{Identity: sourceOf, Stanza: "stock-db-00112233-17", Member: "orders-db-a"}
	if diff := cmp.Diff(want, w.memberTold().From.Snapshot); diff != "" {
		t.Errorf("what members are told: -want, +got:\n%s", diff)
	}

	// The snapshot is removed by its Database, and members still know.
	w.request.Required = nil
	settled(w)
	if diff := cmp.Diff(want, w.memberTold().From.Snapshot); diff != "" {
		t.Errorf("what members are told after the snapshot was removed: -want, +got:\n%s", diff)
	}
	if status, _, message := condition(w.plan(), "Accepted"); status != "True" {
		t.Errorf("without the snapshot the spec is refused: %s", message)
	}
}

// TestFromSnapshotTakesBack the volumes that there are.
func TestFromSnapshotTakesBack(t *testing.T) {
	w := withSnapshots(newWorld(t, fromShot), shot(t, goodShot(), "40Gi", true))
	w.volumes = []string{"orders-db-a", "orders-db-b"}
	for range 8 {
		w.pass()
		if o := w.request.Observed[names.VolumeClaim]; o != nil && w.request.Observed[names.Topology] != nil && len(w.revisions()) > 0 &&
			compose.Map(o.Map(), "spec", "forProvider")["filled"] != nil {
			t.Fatal("a volume is filled beside those of the Database")
		}
	}
	if !slices.Contains(compose.SortedKeys(w.request.Observed), names.MemberPrefix+"a") {
		t.Error("there are no members")
	}
}
