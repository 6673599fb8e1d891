// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/json"
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
			Name: name + "-0", Labels: map[string]string{v1alpha1.LabelMember: name},
			Annotations: map[string]string{v1alpha1.AnnotationMember: string(raw)},
		},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
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
			"The leader tells, and of what was let go each of them.", "a", nil,
			[]corev1.Pod{telling(t, "a", leads), telling(t, "b", v1alpha1.BackupReport{Dropped: "2026-11-20T05:00:00Z"})},
			with(leads, "2026-11-20T05:00:00Z"),
		},
		"Later": {
			"The last of what was let go counts.", "a", &before,
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
	})

	got := report(&p).Backup
	if len(got.Archive) > maxReason+4 || len(got.Message) > maxMessage+4 || strings.Contains(got.Label, "\n") || got.Ended != "" || got.Began == "" || got.Size != 0 {
		t.Errorf("what a member tells is believed: %+v", got)
	}
}
