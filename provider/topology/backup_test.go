// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// telling is the pod of a member that tells of backups.
func telling(t *testing.T, name string, b v1alpha1.BackupReport) corev1.Pod {
	t.Helper()
	raw, err := json.Marshal(v1alpha1.MemberReport{Backup: b})
	if err != nil {
		t.Fatal(err)
	}
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name + "-0", Labels: map[string]string{v1alpha1.LabelMember: name, labelApp: "postgres"},
			Annotations: map[string]string{v1alpha1.AnnotationMember: string(raw)},
		},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "postgres", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}},
	}
}

func TestBackup(t *testing.T) {
	leads := v1alpha1.BackupReport{Archive: v1alpha1.ArchiveOK, Asked: true, Label: "20261120-060000F", Ended: "2026-11-20T06:04:10Z"}
	before := v1alpha1.BackupReport{Archive: v1alpha1.ArchiveFailing, Label: "20261119-060000F", Dropped: "2026-11-19T09:00:00Z"}
	with := func(b v1alpha1.BackupReport, dropped string) *v1alpha1.BackupReport {
		b.Dropped = dropped
		return &b
	}
	for name, tc := range map[string]struct {
		reason, leader string
		was            *v1alpha1.BackupReport
		pods           []corev1.Pod
		want           *v1alpha1.BackupReport
	}{
		"None": {"Without backups there is nothing to tell.", "a", nil, []corev1.Pod{telling(t, "a", v1alpha1.BackupReport{})}, nil},
		"Leader": {
			"The leader tells, and of what was discarded each of them.", "a", nil,
			[]corev1.Pod{telling(t, "a", leads), telling(t, "b", v1alpha1.BackupReport{Dropped: "2026-11-20T05:00:00Z"})},
			with(leads, "2026-11-20T05:00:00Z"),
		},
		"Later": {
			"The last of what was discarded counts.", "a", &before,
			[]corev1.Pod{telling(t, "a", leads), telling(t, "b", v1alpha1.BackupReport{Dropped: "2026-11-18T05:00:00Z"})},
			with(leads, "2026-11-19T09:00:00Z"),
		},
		"NoLeader": {"Between two leaders it is what the last one told.", "", &before, []corev1.Pod{telling(t, "a", leads)}, &before},
		"Off":      {"Backups that were switched off are not told of, but for the gap.", "a", &before, []corev1.Pod{telling(t, "a", v1alpha1.BackupReport{})}, &v1alpha1.BackupReport{Dropped: before.Dropped}},
	} {
		t.Run(name, func(t *testing.T) {
			v := &view{was: v1alpha1.TopologyObservation{Backup: tc.was}, pods: tc.pods}
			if diff := cmp.Diff(tc.want, v.backup(tc.leader)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBackupBounded: whoever may annotate a pod could write what is told.
func TestBackupBounded(t *testing.T) {
	p := telling(t, "a", v1alpha1.BackupReport{
		Archive: strings.Repeat("x", 1000), Label: "a\nb", Message: strings.Repeat("y", 5000), Ended: "soon", Began: "2026-11-20T06:00:00Z", Size: -1,
		Verification: v1alpha1.VerificationReport{Failure: strings.Repeat("x", 1000), Message: strings.Repeat("y", 5000), Ended: "soon", Passed: v1alpha1.VerificationPassed{Seconds: -1}},
		Repository:   v1alpha1.RepositoryReport{Disk: strings.Repeat("x", 1000), FileSystem: "a\nb", UsedPercent: 1000},
	})
	got := report(&p).Backup
	if len(got.Archive) > maxReason+4 || len(got.Message) > maxMessage+4 || strings.Contains(got.Label, "\n") || got.Ended != "" || got.Began == "" || got.Size != 0 {
		t.Errorf("what a member tells is believed: %+v", got)
	}
	if v := got.Verification; len(v.Failure) > maxReason+4 || len(v.Message) > maxMessage+4 || v.Ended != "" || v.Passed.Seconds != 0 {
		t.Errorf("what a member tells of verifications is believed: %+v", v)
	}
	if r := got.Repository; len(r.Disk) > maxReason+4 || strings.Contains(r.FileSystem, "\n") || r.UsedPercent != 100 {
		t.Errorf("what a member tells of the volume of backups is believed: %+v", r)
	}
}

// TestRestorePoints: the leader tells them, once for each name and no more than are kept; between two leaders they are those of
// the last.
func TestRestorePoints(t *testing.T) {
	var many []v1alpha1.RestorePoint
	for i := range 40 {
		many = append(many, v1alpha1.RestorePoint{Name: "v" + strconv.Itoa(i), LSN: strings.Repeat("0", 1000)})
	}
	many = append(many, many[39])
	raw, err := json.Marshal(v1alpha1.MemberReport{RestorePoints: many})
	if err != nil {
		t.Fatal(err)
	}
	p := telling(t, "a", v1alpha1.BackupReport{})
	p.Annotations[v1alpha1.AnnotationMember] = string(raw)
	was := []v1alpha1.RestorePoint{{Name: "old"}}
	v := &view{was: v1alpha1.TopologyObservation{RestorePoints: was}, pods: []corev1.Pod{p}}
	got := v.restorePoints("a")
	if len(got) != maxPoints-1 || got[len(got)-1].Name != "v39" || len(got[0].LSN) > maxReason+4 {
		t.Errorf("%d restore points are told, the last %+v", len(got), got[len(got)-1])
	}
	if diff := cmp.Diff(was, v.restorePoints("")); diff != "" {
		t.Errorf("between two leaders: -want, +got:\n%s", diff)
	}
}

func TestVerification(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		told       v1alpha1.VerificationReport
		at, failed float64
		ended      bool
	}{
		"None":   {"Before the first there is nothing to measure.", v1alpha1.VerificationReport{Asked: true, Began: "2026-11-20T06:00:00Z"}, 0, 0, false},
		"Passed": {"When it was passed.", v1alpha1.VerificationReport{Ended: "2026-11-20T06:00:00Z", Passed: v1alpha1.VerificationPassed{At: "2026-11-20T06:00:00Z"}}, 1795154400, 0, true},
		"Failed": {"The last one counts, and when one was passed stays.", v1alpha1.VerificationReport{
			Ended: "2026-11-27T06:00:00Z", Failure: v1alpha1.VerifyData, Passed: v1alpha1.VerificationPassed{At: "2026-11-20T06:00:00Z"},
		}, 1795154400, 1, true},
		"Never": {"None was ever passed.", v1alpha1.VerificationReport{Ended: "2026-11-27T06:00:00Z", Failure: v1alpha1.VerifyData}, 0, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			cr := &v1alpha1.Topology{}
			cr.Status.AtProvider.Backup = &v1alpha1.BackupReport{Verification: tc.told}
			at, failed, ended := verification(cr)
			if at != tc.at || failed != tc.failed || ended != tc.ended {
				t.Errorf("%s: it is told as %.0f, %.0f, %t", tc.reason, at, failed, ended)
			}
		})
	}
}

func TestVolumeUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		told   *v1alpha1.BackupReport
		want   float64
		ok     bool
	}{
		"None":   {"A Database without backups has no such volume.", nil, 0, false},
		"Bucket": {"Nor has one with a bucket.", &v1alpha1.BackupReport{Asked: true}, 0, false},
		"Empty":  {"One that is empty is told of, too.", &v1alpha1.BackupReport{Repository: v1alpha1.RepositoryReport{FileSystem: "1024Mi"}}, 0, true},
		"Used":   {"So much is used.", &v1alpha1.BackupReport{Repository: v1alpha1.RepositoryReport{FileSystem: "1024Mi", UsedPercent: 85}}, 85, true},
	} {
		t.Run(name, func(t *testing.T) {
			cr := &v1alpha1.Topology{}
			cr.Status.AtProvider.Backup = tc.told
			if got, ok := volumeUsed(cr); got != tc.want || ok != tc.ok {
				t.Errorf("%s: it is told as %.0f, %t", tc.reason, got, ok)
			}
		})
	}
}

func TestFollowed(t *testing.T) {
	report := func(state string) *v1alpha1.FollowReport {
		return &v1alpha1.FollowReport{State: state, Stanza: "orders-db-1"}
	}
	for name, tc := range map[string]struct {
		reason    string
		leader    string
		following *v1alpha1.FollowReport
		want      [2]float64
		known     bool
	}{
		"Primary":     {"It follows nobody.", "a", nil, [2]float64{}, false},
		"CaughtUp":    {"All is well.", "a", report(v1alpha1.FollowCaughtUp), [2]float64{0, 0}, true},
		"NoLeader":    {"What the last leader reported is over: nobody replays.", "", report(v1alpha1.FollowCaughtUp), [2]float64{1, 0}, true},
		"Behind":      {"It lacks what waits.", "a", report(v1alpha1.FollowBehind), [2]float64{1, 0}, true},
		"Unreachable": {"It may lack anything.", "a", report(v1alpha1.FollowUnreachable), [2]float64{1, 0}, true},
		"Replaced":    {"It lacks what the primary writes elsewhere.", "a", report(v1alpha1.FollowReplaced), [2]float64{1, 0}, true},
		"Promoted":    {"It follows no more, as it should.", "a", report(""), [2]float64{0, 0}, true},
		"Second":      {"Two take writes.", "a", report(v1alpha1.FollowSecondPrimary), [2]float64{0, 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			cr := &v1alpha1.Topology{}
			cr.Status.AtProvider.Leader, cr.Status.AtProvider.Following = tc.leader, tc.following
			behind, second, known := followed(cr)
			if got := [2]float64{behind, second}; got != tc.want || known != tc.known {
				t.Errorf("%s followed: %v, %t, want %v, %t", tc.reason, got, known, tc.want, tc.known)
			}
		})
	}
}
