// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/release"
)

// sized is what follows from the size of a Database for those who take and verify its backups.
type sized struct {
	Processes               int64
	Backup, Verify          float64 // hours
	Limit                   string
	CPU, Memory             string // of a pod that takes a backup
	VerifyCPU, VerifyMemory string
	VerifyRequest           string
}

// TestBackupAtSize: processes follow the CPUs, and deadlines what is on the volumes.
func TestBackupAtSize(t *testing.T) {
	small := sized{Backup: 6, Verify: 12, CPU: "100m", Memory: "512Mi", VerifyCPU: "2", VerifyMemory: "1Gi", VerifyRequest: "100m"}
	with := func(change func(*sized)) sized { c := small; change(&c); return c }
	report := func(fs string, used int32) *observev1alpha1.VolumeReport {
		return &observev1alpha1.VolumeReport{FileSystem: fs, UsedPercent: used}
	}
	for name, tc := range map[string]struct {
		reason, storage, cpu, rate string
		volume                     *observev1alpha1.VolumeReport
		want                       sized
	}{
		"Small":    {"Nothing changes for what has always been quick enough.", "50Gi", "", "", nil, small},
		"JustFits": {"420 GiB take six hours.", "420Gi", "", "", nil, small},
		"Terabyte": {
			"Nothing is known of the volumes, so they are full.", "1Ti", "", "", nil,
			with(func(c *sized) { c.Backup, c.Verify, c.Limit = 15, 30, "29h30m0s" }),
		},
		"MostlyEmpty": {"What is on the volume counts.", "1Ti", "", "", report("1031000Mi", 5), small},
		"HalfFull": {
			"Members round down, so the next step may be on it.", "1Ti", "", "", report("1048576Mi", 50),
			with(func(c *sized) { c.Backup, c.Verify, c.Limit = 9, 17, "16h30m0s" }),
		},
		"FasterPlatform": {"The platform knows its rate.", "4Ti", "", "200Mi", nil, small},
		"SlowerPlatform": {
			"And it may be slower.", "200Gi", "", "5Mi", nil,
			with(func(c *sized) { c.Backup, c.Verify, c.Limit = 12, 23, "22h30m0s" }),
		},
		"Four": {
			"One process for each CPU, and CPU for each process.", "50Gi", "4", "", nil,
			with(func(c *sized) {
				c.Processes, c.CPU, c.VerifyRequest, c.VerifyCPU = 4, "400m", "400m", "4"
			}),
		},
		"Fraction": {
			"A started CPU counts.", "50Gi", "1500m", "", nil,
			with(func(c *sized) { c.Processes, c.CPU, c.VerifyRequest = 2, "200m", "200m" }),
		},
		"Many": {
			"More processes would be refused by the bucket.", "50Gi", "64", "", nil,
			with(func(c *sized) {
				c.Processes, c.CPU, c.VerifyRequest, c.VerifyCPU, c.Memory, c.VerifyMemory = 16, "1600m", "1600m", "16", "1280Mi", "1792Mi"
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			cpu := ""
			if tc.cpu != "" {
				cpu = fmt.Sprintf(", resources: {cpu: %q}", tc.cpu)
			}
			w := newWorld(t, fmt.Sprintf(`{engine: postgres, version: "17", replicas: 3, storage: %s, backup: {verify: {}}%s}`, tc.storage, cpu))
			if tc.rate != "" {
				w.request.Settings.Database.Backup.LeastRate = new(resource.MustParse(tc.rate))
			}
			w.backup = wellBackedUp()
			if tc.volume != nil {
				w.filled["orders-db-a"] = filled{disk: "Ok", VolumeReport: *tc.volume}
			}
			for range 6 {
				w.pass()
			}
			if diff := cmp.Diff(tc.want, sizedOf(w)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// sizedOf what was composed.
func sizedOf(w *world) sized {
	job := func(object string) map[string]any {
		return compose.Map(w.request.Observed[object].Map(), "spec", "jobTemplate", "spec")
	}
	container := func(object string) map[string]any {
		return compose.List(job(object), "template", "spec", "containers")[0].(map[string]any)
	}
	hours := func(object string) float64 {
		seconds, _ := job(object)["activeDeadlineSeconds"].(float64)
		return (time.Duration(seconds) * time.Second).Hours()
	}
	taking, verifying := container(names.Backup), container(names.Verify)
	out := sized{
		Processes: w.memberTold().Backup.Processes, Backup: hours(names.Backup), Verify: hours(names.Verify),
		CPU: compose.Text(taking, "resources", "requests", "cpu"), Memory: compose.Text(taking, "resources", "limits", "memory"),
		VerifyCPU: compose.Text(verifying, "resources", "limits", "cpu"), VerifyMemory: compose.Text(verifying, "resources", "limits", "memory"),
		VerifyRequest: compose.Text(verifying, "resources", "requests", "cpu"),
	}
	for _, word := range compose.List(verifying, "command") {
		if text, _ := word.(string); len(text) > 8 && text[:8] == "--limit=" {
			out.Limit = text[8:]
		}
	}
	return out
}

// TestBackupOfTerabytesIsNotLate: a backup that may still run is neither lost nor overdue.
func TestBackupOfTerabytesIsNotLate(t *testing.T) {
	w := newWorld(t, `{engine: postgres, version: "17", replicas: 3, storage: 2Ti, backup: {schedule: "0 */6 * * *", verify: {}}}`)
	w.backup = wellBackedUp()
	for range 6 {
		w.pass()
	}
	for after, want := range map[time.Duration]string{8 * time.Hour: "True", 40 * time.Hour: "False"} {
		w.request.Now = now.Add(after)
		if status, reason, message := condition(w.plan(), string(v1alpha1.TypeBackupFresh)); status != want {
			t.Errorf("after %s BackupFresh is %s %s: %s", after, status, reason, message)
		}
	}
	s, err := gather(w.request, release.Release{Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	if got := backup.VerifyDeadline(s); got != 59*time.Hour {
		t.Errorf("a verification of 2 TiB may take %s", got)
	}
}

// TestBackupSizeRestartsNothing: neither another rate nor other contents of volumes reach the pods of members.
func TestBackupSizeRestartsNothing(t *testing.T) {
	w := running(t, withBackup(`{verify: {}}`))
	before := map[string]string{}
	for name, o := range w.request.Observed {
		if compose.Text(o.Map(), "kind") == "StatefulSet" {
			before[name] = compose.Hash(fmt.Append(nil, compose.Map(o.Map(), "spec")))
		}
	}
	w.request.Settings.Database.Backup.LeastRate = new(resource.MustParse("1Mi"))
	w.filled["orders-db-a"] = filled{disk: "Low", VolumeReport: observev1alpha1.VolumeReport{FileSystem: "51200Mi", UsedPercent: 90, Fill: observev1alpha1.FillData}}
	w.react()
	w.pass()
	if len(before) == 0 {
		t.Fatal("there are no StatefulSets")
	}
	for name, was := range before {
		if is := compose.Hash(fmt.Append(nil, compose.Map(w.request.Observed[name].Map(), "spec"))); is != was {
			t.Errorf("%s changes", name)
		}
	}
}
