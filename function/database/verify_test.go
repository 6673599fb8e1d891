// SPDX-License-Identifier: Apache-2.0

package database

import (
	"math/rand/v2"
	"slices"
	"strconv"
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
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/release"
)

// verifying is a Database whose backups are verified on Mondays.
const verifying = `{schedule: "0 6 * * *", verify: {schedule: "0 3 * * 1", maxRestoreTime: 45m, assertions: [{database: orders_db, sql: "select true"}]}}`

// wellVerified is what a leader tells when the last verification was passed.
func wellVerified() *observev1alpha1.BackupReport {
	b := wellBackedUp()
	b.Verification = observev1alpha1.VerificationReport{
		Asked: true, Ended: "2026-11-20T06:10:00Z", Backup: b.Label,
		Passed: observev1alpha1.VerificationPassed{
			Backup: b.Label, At: "2026-11-20T06:10:00Z", Seconds: 95, ReplayedTo: "2026-11-20T06:09:00Z", Assertions: 1,
		},
	}
	return b
}

// verifyJobs that there are.
func (w *world) verifyJobs() []string {
	var listed []string
	for _, resource := range compose.SortedKeys(w.request.Observed) {
		if name, ok := strings.CutPrefix(resource, names.VerifyNowPrefix); ok {
			listed = append(listed, name)
		}
	}
	return listed
}

// TestVerify: the first backup is verified at once, all others on schedule, on a volume of the members' size, by pods that are
// neither members nor let in by them.
func TestVerify(t *testing.T) {
	w := running(t, withBackup(verifying))
	w.backup = wellBackedUp()
	w.backup.Verification.Asked = true
	w.react()
	w.pass()
	first := w.request.Observed[names.VerifyNowPrefix+backup.FirstVerify]
	if first == nil {
		t.Fatalf("the first backup is not verified: %v", compose.SortedKeys(w.request.Observed))
	}
	cron := w.request.Observed[names.Verify].Map()
	if got := compose.Text(cron, "spec", "schedule"); got != "0 3 * * 1" {
		t.Errorf("backups are verified at %q", got)
	}
	template := compose.Map(cron, "spec", "jobTemplate", "spec", "template")
	labels := compose.Map(template, "metadata", "labels")
	for _, label := range []string{observev1alpha1.LabelDatabase, names.LabelBackupOf} {
		if labels[label] != nil {
			t.Errorf("pods that verify have the label %s of others: %v", label, labels)
		}
	}
	for _, v := range compose.List(template, "spec", "volumes") {
		m, _ := v.(map[string]any)
		claim := compose.Map(m, "ephemeral", "volumeClaimTemplate")
		if m["name"] == names.VolumeData && (compose.Text(claim, "spec", "resources", "requests", "storage") != "50Gi" || compose.Text(claim, "metadata", "labels", observev1alpha1.LabelDatabase) != "") {
			t.Errorf("the volume of a verification is %v", m)
		}
	}
	want := &pgmember.Verify{Assertions: []pgmember.Assertion{{Database: "orders_db", SQL: "select true"}}, MaxRestoreSeconds: 2700}
	got := w.memberTold().Backup.Verify
	got.Preload = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what those who verify are told: -want, +got:\n%s", diff)
	}
	w.backup = wellVerified()
	w.react()
	w.pass()
	if jobs := w.verifyJobs(); len(jobs) > 0 {
		t.Errorf("the Job of the first verification stays: %v", jobs)
	}
	st := told(t, w.plan()).Backup
	if v := st.LastVerified; v == nil || v.Took != "1m35s" || v.Backup != "20261120-060000F" || v.Assertions != 1 || st.VerifySchedule != "0 3 * * 1" {
		t.Errorf("the status tells %+v", st)
	}
	for _, spec := range []string{withBackup(`{schedule: "0 6 * * *"}`), withBackup(`{enabled: false, verify: {}}`), basic} {
		w.edit(withBackup(verifying))
		w.pass()
		w.edit(spec)
		w.pass()
		if w.request.Observed[names.Verify] != nil || w.request.Observed[names.VerifyPolicy] != nil {
			t.Errorf("with %s backups go on being verified", spec)
		}
	}
}

func TestBackupVerified(t *testing.T) {
	// The clock of tests is Friday, the 20th of November 2026, noon.
	for name, tc := range map[string]struct {
		reason, spec string
		told         func(*observev1alpha1.BackupReport)
		want, words  string
	}{
		"Passed": {"All is well.", verifying, func(*observev1alpha1.BackupReport) {}, "True Verified", "status.backup.lastVerified"},
		"Untold": {
			"A new leader has not asked yet.", verifying,
			func(b *observev1alpha1.BackupReport) { b.Verification = observev1alpha1.VerificationReport{} },
			"Unknown BackupUnknown", "not reported the results",
		},
		"Pending": {
			"The first is on its way.", verifying,
			func(b *observev1alpha1.BackupReport) {
				b.Earliest, b.Verification = b.Ended, observev1alpha1.VerificationReport{Asked: true}
			},
			"Unknown VerificationPending", "get pods",
		},
		"NoBackup": {
			"There is nothing to verify.", verifying,
			func(b *observev1alpha1.BackupReport) {
				*b = observev1alpha1.BackupReport{Asked: true, Verification: observev1alpha1.VerificationReport{Asked: true}}
			},
			"Unknown VerificationPending", "BackupFresh",
		},
		"Again":     {"Another one that goes on changes nothing.", verifying, func(b *observev1alpha1.BackupReport) { b.Verification.Began = "2026-11-20T11:00:00Z" }, "True Verified", ""},
		"Lost":      {"One that began and never ended is no success.", verifying, func(b *observev1alpha1.BackupReport) { b.Verification.Began = "2026-11-19T11:00:00Z" }, "False VerificationLost", "lost its node"},
		"Overdue":   {"One did not come.", verifying, func(b *observev1alpha1.BackupReport) { b.Verification.Ended = "2026-11-13T06:10:00Z" }, "False VerificationOverdue", "get pods"},
		"Assertion": {"The assertion is named.", verifying, fails(observev1alpha1.VerifyAssertion, "assertions[1]: it does not hold"), "False AssertionFailed", "backup 20261120-060000F: assertions[1]"},
		"Restore":   {"What pgBackRest says is told.", verifying, fails(observev1alpha1.VerifyRestore, "checksum"), "False RestoreFailed", "spec.backup.verify.now"},
		"Slow":      {"Too slow is a failure.", verifying, fails(observev1alpha1.VerifySlow, "45m"), "False RestoreTooSlow", "45m"},
		"Archive":   {"So is an archive with a gap.", verifying, fails(observev1alpha1.VerifyArchive, "missing"), "False ArchiveIncomplete", "missing"},
		"Damaged":   {"So is damaged data.", verifying, fails(observev1alpha1.VerifyData, "checksums"), "False DataDamaged", "checksums"},
		"Stranger":  {"A member of another version may know other words.", verifying, fails("Sunspots", "flare"), "False VerificationFailed", "flare"},
		"Off":       {"Backups are off.", `{enabled: false, verify: {}}`, func(*observev1alpha1.BackupReport) {}, "False BackupsOff", "spec.backup.enabled"},
		"None":      {"Nobody asked for it.", `{}`, func(*observev1alpha1.BackupReport) {}, " ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, withBackup(tc.spec))
			w.backup = wellVerified()
			tc.told(w.backup)
			w.react()
			status, reason, message := condition(w.plan(), string(v1alpha1.TypeBackupVerified))
			if got := status + " " + reason; got != tc.want || !strings.Contains(message, tc.words) {
				t.Errorf("%s: it is %s: %s; want %s with %q", tc.reason, got, message, tc.want, tc.words)
			}
		})
	}
}

// TestVerificationTellsNothing: a verification whose pod could not tell why it failed is no success, and does not look as if it
// went on.
func TestVerificationTellsNothing(t *testing.T) {
	began := time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason, ended string
		scheduled     bool
		want          string
	}{
		"First":     {"The first one.", "", false, "False VerificationLost"},
		"Told":      {"It told in time.", "2026-11-20T11:00:30Z", false, "True Verified"},
		"Scheduled": {"One on schedule.", "2026-11-19T06:10:00Z", true, "False VerificationLost"},
		"Later":     {"Another was passed since.", "2026-11-20T11:30:00Z", true, "True Verified"},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, withBackup(verifying))
			w.backup = wellBackedUp()
			w.backup.Earliest, w.backup.Verification.Asked = w.backup.Ended, true
			w.react()
			w.pass()
			if tc.scheduled {
				cron := w.request.Observed[names.Verify].Map()
				cron["status"] = map[string]any{"lastScheduleTime": began.Format(time.RFC3339)}
				w.request.Observed[names.Verify] = composetest.Object(cron)
			} else {
				w.fails(names.VerifyNowPrefix+backup.FirstVerify, began, began.Add(time.Minute))
			}
			w.backup.Verification.Ended = tc.ended
			w.react()
			status, reason, message := condition(w.plan(), string(v1alpha1.TypeBackupVerified))
			if got := status + " " + reason; got != tc.want {
				t.Errorf("%s: it is %s: %s; want %s", tc.reason, got, message, tc.want)
			}
		})
	}
}

// fails the last verification.
func fails(kind, message string) func(*observev1alpha1.BackupReport) {
	return func(b *observev1alpha1.BackupReport) { b.Verification.Failure, b.Verification.Message = kind, message }
}

// TestVerifyOnce: whatever happens in between, and however often a spec is applied, an id begins one verification, and what ended
// is not begun again. While it is not known what verifications came to, none begins.
func TestVerifyOnce(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := running(t, withBackup(`{verify: {now: "0"}}`))
		w.backup = wellBackedUp()

		// What the bucket remembers, and how often each id has begun.
		var kept observev1alpha1.VerificationReport
		begun, ended := map[string]int{}, map[string]bool{}
		ids := map[string]string{backup.NowName("0"): "0"}
		for range 25 {
			before := w.verifyJobs()
			switch r.IntN(5) {
			case 0:
				id := strconv.Itoa(len(ids))
				ids[backup.NowName(id)] = id
				w.edit(withBackup(`{verify: {now: "` + id + `"}}`))
			case 1: // A Job tells its result.
				if len(before) > 0 {
					job := before[r.IntN(len(before))]
					if id := ids[job]; id != "" {
						kept.ID = id
					}
					kept.Ended, kept.Failure = "2026-11-20T06:10:00Z", []string{"", observev1alpha1.VerifyData}[r.IntN(2)]
					ended[job] = true
				}
			case 2: // Another leader has not asked yet.
				w.backup.Verification = observev1alpha1.VerificationReport{}
			case 3: // Somebody removes a Job whose result the leader tells.
				for _, name := range before {
					if ended[name] && w.backup.Verification.Asked && w.backup.Verification.Ended == kept.Ended && w.backup.Verification.ID == kept.ID {
						delete(w.request.Observed, names.VerifyNowPrefix+name)
					}
				}
				before = w.verifyJobs()
			default:
				w.backup.Verification = kept
				w.backup.Verification.Asked = true
			}
			w.react()
			w.pass()
			for _, name := range w.verifyJobs() {
				if slices.Contains(before, name) {
					continue
				}
				begun[name]++
				if !w.backup.Verification.Asked {
					t.Fatalf("seed %d: a verification begins although it is not known what others came to", seed)
				}
			}
		}
		for name, n := range begun {
			if n > 1 {
				t.Fatalf("seed %d: verification %s began %d times", seed, name, n)
			}
		}
	}
}

// TestVerifyPolicy: those who verify reach names and the bucket.
func TestVerifyPolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, spec, endpoint string
		want                   map[string]any
	}{
		"Inside":  {"The port of a Service is not that of its pods.", verifying, "https://s3.storage.svc:9000", map[string]any{"namespace": "storage", "port": 0.0}},
		"Outside": {"Elsewhere its port is known.", verifying, "https://s3.example.org:8443", map[string]any{"namespace": "", "port": 8443.0}},
		"HTTPS":   {"Without a port it is that of HTTPS.", verifying, "https://s3.example.org", map[string]any{"namespace": "", "port": 443.0}},
		"Unknown": {"While nothing is known, all of TCP is let out.", verifying, "", map[string]any{"namespace": "", "port": 0.0}},
		"Other":   {"Of another's bucket only the Secret tells.", `{to: {connectionSecretRef: {name: x}}, verify: {}}`, "https://s3.example.org", map[string]any{"namespace": "", "port": 0.0}},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, withBackup(tc.spec))
			if o := w.request.Observed[names.BackupBucket]; o != nil {
				bucket := o.Map()
				bucket["status"] = map[string]any{"atProvider": map[string]any{"endpoint": tc.endpoint}}
				w.request.Observed[names.BackupBucket] = composetest.Object(bucket)
			}
			w.pass()
			spec := compose.Map(w.request.Observed[names.VerifyPolicy].Map(), "spec")
			if len(compose.List(spec, "ingress")) > 0 || len(compose.List(spec, "policyTypes")) != 2 || len(compose.List(spec, "egress")) != 2 {
				t.Fatalf("the policy is %v", spec)
			}
			rule, _ := compose.List(spec, "egress")[1].(map[string]any)
			got := map[string]any{"namespace": "", "port": 0.0}
			for _, v := range compose.List(rule, "to") {
				p, _ := v.(map[string]any)
				got["namespace"] = compose.Text(p, "namespaceSelector", "matchLabels", "kubernetes.io/metadata.name")
			}
			for _, v := range compose.List(rule, "ports") {
				p, _ := v.(map[string]any)
				got["port"] = float64(compose.Number(p, 0, "port"))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestVerifyProblems(t *testing.T) {
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"Cron":     {"There is no hour 25.", `{verify: {schedule: "0 25 * * *"}}`, "spec.backup.verify.schedule"},
		"Never":    {"There is no 30th of February.", `{verify: {schedule: "0 0 30 2 *"}}`, "must name a time that comes"},
		"Database": {"Nobody can be asked.", `{verify: {assertions: [{database: nowhere, sql: select true}]}}`, "spec.backup.verify.assertions[0].database"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newWorld(t, withBackup(tc.spec)).plan()
			if status, _, message := condition(p, "Accepted"); status != "False" || !strings.Contains(message, tc.want) {
				t.Errorf("%s: Accepted is %s: %s", tc.reason, status, message)
			}
		})
	}
}

// TestVerifySchedule: not all Databases are verified at once, and none while backups are usually taken.
func TestVerifySchedule(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"a", "b", "c", "d", "orders-db"} {
		w := newWorld(t, withBackup(`{verify: {}}`))
		w.request.Composite.Map()["metadata"].(map[string]any)["name"] = name
		s, err := gather(w.request, release.Release{Version: "v1"})
		if err != nil {
			t.Fatal(err)
		}
		schedule := backup.VerifySchedule(s)
		if pause := backup.LongestPause(schedule); pause != 7*24*time.Hour {
			t.Errorf("the schedule of %s is %q, with pauses of %s", name, schedule, pause)
		}
		seen[schedule] = true
	}
	if len(seen) < 3 {
		t.Errorf("five Databases are verified at %d times", len(seen))
	}
}

func TestRestorePoint(t *testing.T) {
	point := []observev1alpha1.RestorePoint{{Name: "v1", Label: "v1@x", At: "2026-11-20T07:00:00Z", LSN: "0/3000148", Timeline: 1}}
	for name, tc := range map[string]struct {
		reason, spec string
		points       []observev1alpha1.RestorePoint
		told         func(*observev1alpha1.BackupReport)
		want, words  string
	}{
		"Made":   {"It is there.", `{restorePoint: v1}`, point, func(*observev1alpha1.BackupReport) {}, "True RestorePointMade", "v1"},
		"Coming": {"The leader is about to make it.", `{restorePoint: v2}`, point, func(*observev1alpha1.BackupReport) {}, "False RestorePointPending", "v2"},
		"Waits": {
			"The leader says why.", `{restorePoint: v2}`, point,
			func(b *observev1alpha1.BackupReport) { b.RestorePointWait = "it waits for the first backup" }, "False RestorePointPending", "first backup",
		},
		"Unread": {"Nobody knows.", `{restorePoint: v1}`, nil, func(b *observev1alpha1.BackupReport) { b.Asked = false }, "Unknown BackupUnknown", ""},
		"Off":    {"Backups are off.", `{enabled: false, restorePoint: v1}`, nil, func(*observev1alpha1.BackupReport) {}, "False BackupsOff", ""},
		"None":   {"Nobody asked for one.", `{}`, point, func(*observev1alpha1.BackupReport) {}, " ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, withBackup(tc.spec))
			w.backup, w.points = wellBackedUp(), tc.points
			tc.told(w.backup)
			w.react()
			p := w.plan()
			status, reason, message := condition(p, string(v1alpha1.TypeRestorePointMade))
			if got := status + " " + reason; got != tc.want || !strings.Contains(message, tc.words) {
				t.Errorf("%s: it is %s: %s; want %s with %q", tc.reason, got, message, tc.want, tc.words)
			}
			if got := told(t, p).Backup.RestorePoints; len(got) != len(tc.points) || len(got) > 0 && (got[0].Name != "v1" || got[0].LSN != "0/3000148" || got[0].At == nil) {
				t.Errorf("%s: the status tells %+v", tc.reason, got)
			}
		})
	}
}
