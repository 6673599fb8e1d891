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

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/validation"
	"github.com/capstan-dev/capstan/function/release"
)

// withBackup is a Database with a backup block.
func withBackup(block string) string {
	return `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, backup: ` + block + `}`
}

// wellBackedUp is what a leader tells when all is well.
func wellBackedUp() *observev1alpha1.BackupReport {
	return &observev1alpha1.BackupReport{
		Archive: observev1alpha1.ArchiveOK, Asked: true, Label: "20261120-060000F", Type: "full", Size: 3 << 30, Added: 1 << 30,
		Began: "2026-11-20T06:00:00Z", Ended: "2026-11-20T06:04:10Z", Earliest: "2026-11-01T06:03:00Z",
	}
}

// memberTold is what members are told of backups.
func (w *world) memberTold() (told struct {
	Backup *pgmember.Backup `json:"backup"`
	From   *pgmember.Source `json:"from"`
},
) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(compose.Text(w.request.Observed[names.Config].Map(), "data", fileMember)), &told); err != nil {
		w.t.Fatal(err)
	}
	return told
}

func TestBackup(t *testing.T) {
	w := running(t, withBackup(`{enabled: true, schedule: "0 */6 * * *", retention: 30d}`))
	w.backup = &observev1alpha1.BackupReport{Archive: observev1alpha1.ArchiveOK, Asked: true}
	w.react()
	w.pass()
	listed := compose.SortedKeys(w.request.Observed)
	for _, want := range []string{names.Backup, names.BackupBucket, names.BackupCertificate, names.BackupNowPrefix + backup.NowName(backup.FirstBackup)} {
		if !slices.Contains(listed, want) {
			t.Errorf("no object %s among %v", want, listed)
		}
	}
	cron := w.request.Observed[names.Backup].Map()
	if got := compose.Text(cron, "spec", "schedule"); got != "0 */6 * * *" {
		t.Errorf("backups are taken at %q", got)
	}
	bucket := w.request.Observed[names.BackupBucket].Map()
	if slices.Contains(compose.List(bucket, "spec", "managementPolicies"), any("Delete")) || slices.Contains(compose.List(bucket, "spec", "managementPolicies"), any("*")) {
		t.Error("the bucket goes with the Database although nobody asked for it")
	}
	want := &pgmember.Backup{
		Enabled: true, Stanza: "orders-db-3f2a9c1b-17", Path: "/shop/orders-db", Queue: 10 << 30, UntilLow: true, RetentionDays: 30,
		Members: []string{"orders-db-a-0.orders-db-pods.shop.svc", "orders-db-b-0.orders-db-pods.shop.svc", "orders-db-c-0.orders-db-pods.shop.svc"},
	}
	if diff := cmp.Diff(want, w.memberTold().Backup); diff != "" {
		t.Errorf("what members are told of backups: -want, +got:\n%s", diff)
	}

	// Once there is a backup, the Job that took it goes, and nothing changes any more.
	w.backup = wellBackedUp()
	w.react()
	w.pass()
	if w.request.Observed[names.BackupNowPrefix+backup.NowName(backup.FirstBackup)] != nil {
		t.Error("the Job of the first backup stays for ever")
	}
	p := w.plan()
	for _, c := range p.Conditions {
		if c.Status != "True" {
			t.Errorf("condition %s is %s, %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	if st := told(t, p).Backup; st == nil || st.Last == nil || st.Last.ID != "20261120-060000F" || st.Last.Took != "4m10s" || st.Last.Size != "3.0Gi" || st.LatestRestorable != nil {
		t.Errorf("the status tells %+v", st)
	}
}

func TestBackupConditions(t *testing.T) {
	on := withBackup(`{schedule: "0 6 * * *", maxArchiveBacklog: 5Gi}`)
	for name, tc := range map[string]struct {
		reason, spec string
		told         func(*observev1alpha1.BackupReport)
		want         map[string]string
	}{
		"Well": {
			"All is well.", on, func(*observev1alpha1.BackupReport) {},
			map[string]string{"BackupFresh": "True Fresh", "ArchiveHealthy": "True Archiving", "PITRContinuous": "True Continuous"},
		},
		"Unknown": {
			"Nobody told yet.", on, func(b *observev1alpha1.BackupReport) { *b = observev1alpha1.BackupReport{} },
			map[string]string{"BackupFresh": "Unknown BackupUnknown", "ArchiveHealthy": "Unknown BackupUnknown", "PITRContinuous": "Unknown BackupUnknown"},
		},
		"Unread": {"The bucket does not answer.", on, func(b *observev1alpha1.BackupReport) {
			*b = observev1alpha1.BackupReport{Unread: "no connection", Archive: observev1alpha1.ArchiveFailing, Message: "no connection"}
		}, map[string]string{"BackupFresh": "Unknown BackupUnknown", "ArchiveHealthy": "False ArchiveFailing", "PITRContinuous": "Unknown BackupUnknown"}},
		"First": {"There is none yet.", on, func(b *observev1alpha1.BackupReport) {
			*b = observev1alpha1.BackupReport{Asked: true, Archive: observev1alpha1.ArchiveOK}
		}, map[string]string{"BackupFresh": "False FirstBackupPending", "ArchiveHealthy": "True Archiving", "PITRContinuous": "False FirstBackupPending"}},
		"Overdue": {
			"One did not come.", on, func(b *observev1alpha1.BackupReport) { b.Began = "2026-11-18T06:00:00Z" },
			map[string]string{"BackupFresh": "False BackupOverdue", "ArchiveHealthy": "True Archiving", "PITRContinuous": "True Continuous"},
		},
		"Failing": {"The bucket is away.", on, func(b *observev1alpha1.BackupReport) {
			b.Archive, b.Since, b.Message = observev1alpha1.ArchiveFailing, "2026-11-20T11:00:00Z", "no connection"
		}, map[string]string{"BackupFresh": "True Fresh", "ArchiveHealthy": "False ArchiveFailing", "PITRContinuous": "True Continuous"}},
		"Gap": {
			"Something was discarded after the last backup.", on, func(b *observev1alpha1.BackupReport) { b.Dropped = "2026-11-20T11:00:00Z" },
			map[string]string{"BackupFresh": "True Fresh", "ArchiveHealthy": "True Archiving", "PITRContinuous": "False ArchiveGap"},
		},
		"OldGap": {
			"Something was discarded before the last backup.", on, func(b *observev1alpha1.BackupReport) { b.Dropped = "2026-11-19T11:00:00Z" },
			map[string]string{"BackupFresh": "True Fresh", "ArchiveHealthy": "True Archiving", "PITRContinuous": "True Continuous"},
		},
		"Off": {
			"Backups are off.", withBackup(`{enabled: false}`), func(*observev1alpha1.BackupReport) {},
			map[string]string{"BackupFresh": "False BackupsOff", "ArchiveHealthy": "False BackupsOff", "PITRContinuous": "False BackupsOff"},
		},
		"None": {
			"Nobody asked for backups.", basic, func(*observev1alpha1.BackupReport) {},
			map[string]string{"BackupFresh": " ", "ArchiveHealthy": " ", "PITRContinuous": " "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, tc.spec)
			w.backup = wellBackedUp()
			tc.told(w.backup)
			w.react()
			p := w.plan()
			got := map[string]string{}
			for c := range tc.want {
				status, reason, _ := condition(p, c)
				got[c] = status + " " + reason
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBackupBucket: a Bucket that cannot be made is why there are no backups.
func TestBackupBucket(t *testing.T) {
	w := running(t, withBackup(`{enabled: true}`))
	w.backup = &observev1alpha1.BackupReport{Unread: "the connection Secret of the bucket is not there"}
	w.react()
	bucket := w.request.Observed[names.BackupBucket].Map()
	bucket["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": "False", "reason": "Creating"},
		map[string]any{"type": "Connected", "status": "False", "reason": "ConfigNotFound", "message": "there is no ClusterProviderConfig"},
	}}
	w.request.Observed[names.BackupBucket] = composetest.Object(bucket)
	status, reason, message := condition(w.plan(), string(v1alpha1.TypeBackupFresh))
	got := []string{status, reason, message}
	want := []string{"False", "BucketUnready", `Bucket "orders-db-backup": there is no ClusterProviderConfig`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestBackupOff: switching backups on restarts members once, and off and on again none. What the bucket has stays.
func TestBackupOff(t *testing.T) {
	w := running(t, basic)
	plain := w.revisions()
	w.edit(withBackup(`{enabled: true}`))
	w.backup = wellBackedUp()
	for range 8 {
		w.pass()
	}
	on := w.revisions()
	for letter := range plain {
		if on[letter] == plain[letter] {
			t.Errorf("member %s cannot archive: it was not restarted", letter)
		}
	}
	for _, spec := range []string{withBackup(`{enabled: false}`), withBackup(`{enabled: true}`), basic} {
		w.edit(spec)
		for range 3 {
			w.pass()
		}
		if diff := cmp.Diff(on, w.revisions()); diff != "" {
			t.Errorf("%s restarts members: -before, +after:\n%s", spec, diff)
		}
		if w.request.Observed[names.BackupBucket] == nil {
			t.Errorf("%s removes the bucket", spec)
		}
		if takes := w.request.Observed[names.Backup] != nil; takes != strings.Contains(spec, "enabled: true") {
			t.Errorf("%s: there is a schedule: %t", spec, takes)
		}
	}
}

// TestBackupNow: an id is one Job, whose template does not change with the spec, and another id another.
func TestBackupNow(t *testing.T) {
	w := running(t, withBackup(`{now: one}`))
	w.backup = wellBackedUp()
	w.pass()
	first := names.BackupNowPrefix + backup.NowName("one")
	job := w.request.Observed[first]
	if job == nil {
		t.Fatalf("no Job among %v", compose.SortedKeys(w.request.Observed))
	}
	before := maps.Clone(job.Map()["spec"].(map[string]any))
	w.edit(withBackup(`{now: one, to: {connectionSecretRef: {name: other}}}`))
	w.pass()
	if diff := cmp.Diff(before, w.request.Observed[first].Map()["spec"]); diff != "" {
		t.Errorf("a Job is changed, which the API server refuses: -before, +after:\n%s", diff)
	}
	w.edit(withBackup(`{now: two}`))
	w.pass()
	if w.request.Observed[first] != nil || w.request.Observed[names.BackupNowPrefix+backup.NowName("two")] == nil {
		t.Errorf("another id is not another backup: %v", compose.SortedKeys(w.request.Observed))
	}
}

// TestBackupFollowsGap: after a gap a backup is taken by itself, one at a time, and only where the archive takes what follows.
func TestBackupFollowsGap(t *testing.T) {
	w := running(t, withBackup(`{enabled: true}`))
	w.backup = wellBackedUp()
	job := names.BackupNowPrefix + backup.NowName(backup.GapBackup)
	step := func(reason string, want bool) {
		t.Helper()
		w.react()
		w.pass()
		if got := w.request.Observed[job] != nil; got != want {
			t.Fatalf("%s: there is a Job: %t", reason, got)
		}
	}
	step("no gap", false)
	w.backup.Dropped, w.backup.Archive = "2026-11-20T11:00:00Z", observev1alpha1.ArchiveFailing
	step("the archive is down", false)
	w.backup.Archive = observev1alpha1.ArchiveOK
	step("the archive works again", true)
	w.backup.Archive, w.backup.Dropped = observev1alpha1.ArchiveFailing, "2026-11-20T11:30:00Z"
	step("what runs is kept, also when more is missing", true)
	w.backup.Archive = observev1alpha1.ArchiveOK
	now := w.request.Now
	w.fails(job, now.Add(-2*time.Minute), now.Add(-time.Minute))
	step("one that failed is kept for its log", true)
	w.fails(job, now.Add(-time.Hour), now.Add(-11*time.Minute))
	step("and goes", false)
	step("for the next one", true)
	w.backup.Began = "2026-11-20T11:40:00Z"
	w.fails(job, now.Add(-time.Minute), now)
	step("the gap is over", false)
}

// fails a Job, which has run from one time to another.
func (w *world) fails(resource string, began, ended time.Time) {
	w.t.Helper()
	o := w.request.Observed[resource]
	if o == nil {
		w.t.Fatalf("no object %s among %v", resource, compose.SortedKeys(w.request.Observed))
	}
	m := o.Map()
	m["status"] = map[string]any{"startTime": began.Format(time.RFC3339), "conditions": []any{map[string]any{
		"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "lastTransitionTime": ended.Format(time.RFC3339),
	}}}
	w.request.Observed[resource] = composetest.Object(m)
}

// TestFirstBackupFails: the first backup is tried again until there is one, each time by a Job of its own, and what failed is
// kept for its log until then.
func TestFirstBackupFails(t *testing.T) {
	w := running(t, withBackup(`{enabled: true}`))
	w.backup = &observev1alpha1.BackupReport{Archive: observev1alpha1.ArchiveOK, Asked: true}
	w.react()
	w.pass()
	first := names.BackupNowPrefix + backup.NowName(backup.FirstBackup)
	now := w.request.Now
	w.fails(first, now.Add(-2*time.Minute), now.Add(-time.Minute))
	w.pass()
	if w.request.Observed[first] == nil {
		t.Fatal("the Job that failed goes at once, and its log with it")
	}
	p := w.plan()
	if status, reason, message := condition(p, "BackupFresh"); status != "False" || reason != "BackupFailed" || !strings.Contains(message, "tries again at 2026-11-20T12:09:00Z") {
		t.Errorf("BackupFresh is %s %s: %s", status, reason, message)
	}
	if want := 9 * time.Minute; p.TTL > want {
		t.Errorf("the next look comes in %s, want %s at most", p.TTL, want)
	}
	w.fails(first, now.Add(-20*time.Minute), now.Add(-10*time.Minute-time.Second))
	w.pass()
	if w.request.Observed[first] != nil {
		t.Fatal("the Job that failed stays for ever")
	}
	w.pass()
	if w.request.Observed[first] == nil {
		t.Error("the first backup is not tried again")
	}
}

// TestBackupFails: a backup that was due or asked for and failed is told, until one is taken.
func TestBackupFails(t *testing.T) {
	// The clock of tests is Friday, the 20th of November 2026, noon, and the last backup ended at 06:04.
	for name, tc := range map[string]struct {
		reason string
		status map[string]any
		now    time.Duration
		want   string
	}{
		"Schedule": {"Of the last one on schedule nothing came.", map[string]any{"lastScheduleTime": "2026-11-20T11:00:00Z", "lastSuccessfulTime": "2026-11-20T06:05:00Z"}, 0, "False BackupFailed"},
		"Never":    {"The first on schedule may fail, too.", map[string]any{"lastScheduleTime": "2026-11-20T11:00:00Z"}, 0, "False BackupFailed"},
		"Running": {"It is not over yet.", map[string]any{
			"lastScheduleTime": "2026-11-20T11:00:00Z", "lastSuccessfulTime": "2026-11-20T06:05:00Z", "active": []any{map[string]any{"name": "x"}},
		}, 0, "True Fresh"},
		"Taken":   {"All is well.", map[string]any{"lastScheduleTime": "2026-11-20T06:00:00Z", "lastSuccessfulTime": "2026-11-20T06:05:00Z"}, 0, "True Fresh"},
		"MadeUp":  {"Somebody took another since.", map[string]any{"lastScheduleTime": "2026-11-20T05:00:00Z"}, 0, "True Fresh"},
		"Asked":   {"So may one that is asked for.", nil, time.Hour, "False BackupFailed"},
		"AskedOk": {"Another was taken since.", nil, 7 * time.Hour, "True Fresh"},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, withBackup(`{schedule: "0 6 * * *", now: one}`))
			w.backup = wellBackedUp()
			w.react()
			w.pass()
			if tc.now > 0 {
				w.fails(names.BackupNowPrefix+backup.NowName("one"), w.request.Now.Add(-tc.now), w.request.Now.Add(-tc.now+time.Minute))
			}
			cron := w.request.Observed[names.Backup].Map()
			cron["status"] = tc.status
			w.request.Observed[names.Backup] = composetest.Object(cron)
			status, reason, message := condition(w.plan(), "BackupFresh")
			if got := status + " " + reason; got != tc.want {
				t.Errorf("%s: BackupFresh is %s: %s; want %s", tc.reason, got, message, tc.want)
			}
		})
	}
}

func TestBackupProblems(t *testing.T) {
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"Cron":      {"There is no hour 25.", withBackup(`{schedule: "0 25 * * *"}`), "spec.backup.schedule"},
		"Never":     {"There is no 30th of February.", withBackup(`{schedule: "0 0 30 2 *"}`), "must name a time that comes"},
		"Zone":      {"Times are in UTC.", withBackup(`{schedule: "TZ=Asia/Tokyo 0 1 * * *"}`), "spec.backup.schedule"},
		"Retention": {"Nothing is no retention.", withBackup(`{retention: 0d}`), "spec.backup.retention"},
		"Backlog":   {"Data needs room, too.", withBackup(`{maxArchiveBacklog: 40Gi}`), "at most half of spec.storage"},
		"Itself":    {"A Database is no copy of itself.", `{engine: postgres, version: "17", replicas: 1, storage: 1Gi, from: {database: {name: orders-db}}}`, "must be another Database"},
		"Moment":    {"There is no month 13.", `{engine: postgres, version: "17", replicas: 1, storage: 1Gi, from: {database: {name: b, at: "2026-13-01T00:00:00Z"}}}`, "must be a time with its zone"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newWorld(t, tc.spec).plan()
			if status, _, message := condition(p, "Accepted"); status != "False" || !strings.Contains(message, tc.want) {
				t.Errorf("%s: Accepted is %s: %s", tc.reason, status, message)
			}
		})
	}
}

func TestFrom(t *testing.T) {
	at := time.Date(2026, 11, 20, 8, 59, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason, from, secret string
		want                 pgmember.Source
	}{
		"Latest": {"A copy of the latest there is.", `{database: {name: other}}`, "other-pg-backup-bucket", pgmember.Source{Path: "/shop/other", Either: "other-repository.shop.svc"}},
		"Moment": {"A copy of a moment.", `{database: {name: other, at: "2026-11-20T09:59:00+01:00"}}`, "other-pg-backup-bucket", pgmember.Source{Path: "/shop/other", Either: "other-repository.shop.svc", At: &at}},
		"Point":  {"A copy of a name.", `{database: {name: other, restorePoint: v1}}`, "other-pg-backup-bucket", pgmember.Source{Path: "/shop/other", Either: "other-repository.shop.svc", RestorePoint: "v1"}},
		"Backup": {
			"A Database that is gone.", `{backup: {connectionSecretRef: {name: old}, database: other, namespace: gone, stanza: other-1-16}}`, "old",
			pgmember.Source{Path: "/gone/other", Stanza: "other-1-16"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, `{engine: postgres, version: "17", replicas: 1, storage: 1Gi, from: `+tc.from+`}`)
			if diff := cmp.Diff(&tc.want, w.memberTold().From); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			member := w.request.Observed[names.MemberPrefix+"a"].Map()
			if got := facts.SecretOf(compose.List(member, "spec", "template", "spec", "volumes"), names.VolumeSource); got != tc.secret {
				t.Errorf("the bucket is opened with %q, want %q", got, tc.secret)
			}
			if file := compose.Text(w.request.Observed[names.Config].Map(), "data", "patroni.yaml"); !strings.Contains(file, "method: restore") {
				t.Errorf("the first member begins with nothing:\n%s", file)
			}
		})
	}
}

func TestSchedule(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"a", "b", "c", "d", "orders-db"} {
		w := newWorld(t, withBackup(`{}`))
		w.request.Composite.Map()["metadata"].(map[string]any)["name"] = name
		s, err := gather(w.request, release.Release{Version: "v1"})
		if err != nil {
			t.Fatal(err)
		}
		first := backup.Schedule(s)
		if first != backup.Schedule(s) || validation.Never(first, now) {
			t.Errorf("the schedule of %s is %q", name, first)
		}
		seen[first] = true
	}
	if len(seen) < 3 {
		t.Errorf("five Databases begin at %d times", len(seen))
	}
}
