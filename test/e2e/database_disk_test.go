// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// grows is the storage class of the embedded cluster whose volumes have exactly the requested size, and can grow.
const grows = "capstan-xfs"

// TestDatabaseStorageClass proves what the other tests of this file assume about the embedded cluster's storage: on
// every node it enforces sizes, grows while it is full and in use, and leaves nothing behind.
func TestDatabaseStorageClass(t *testing.T) {
	ns := namespace(t)
	nodes := &corev1.NodeList{}
	if err := kube.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes.Items[:2] {
		t.Run(n.Name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: n.Name},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new(grows),
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("400Mi")}},
				},
			}
			if err := kube.Create(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			p := usingVolume(ns, n.Name)
			start(t, p)

			sh := func(script string) (string, error) { return execIn(t.Context(), p, "client", script, "sh") }
			if out, err := sh(`dd if=/dev/zero of=/data/fill bs=1M count=600 2>&1`); err == nil || !strings.Contains(out, "No space left on device") {
				t.Fatalf("a volume of 400 MiB takes 600: %v: %s", err, out)
			}
			since := time.Now()
			resize(t, claim, "800Mi")
			eventually(t, "the volume has grown", granted("800Mi", claim))
			t.Logf("400 to 800 MiB while it is full: %s", time.Since(since).Round(100*time.Millisecond))
			if out, err := sh(`dd if=/dev/zero of=/data/more bs=1M count=300 2>&1 && rm /data/fill`); err != nil {
				t.Errorf("the pod does not see the room: %v: %s", err, out)
			}

			volume := claim.Spec.VolumeName
			if err := kube.Delete(t.Context(), p, client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
			if err := kube.Delete(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the volume is gone", func(ctx context.Context) error {
				err := kube.Get(ctx, client.ObjectKey{Name: volume}, &corev1.PersistentVolume{})
				if apierrors.IsNotFound(err) {
					return nil
				}

				return fmt.Errorf("it is there: %w", err)
			})
		})
	}
}

// usingVolume is a pod on a node with the volume of that name.
func usingVolume(ns, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: node},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{corev1.LabelHostname: node},
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  new(false),
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: ptr.To[int64](65532), FSGroup: ptr.To[int64](65532),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "client", Image: os.Getenv("CAPSTAN_BUSYBOX"), Command: []string{"sleep", "3600"},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: node},
			}}},
		},
	}
}

// resize changes the request of a claim.
func resize(t *testing.T, claim *corev1.PersistentVolumeClaim, size string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"resources":{"requests":{"storage":%q}}}}`, size)
	if err := kube.Patch(t.Context(), claim, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// granted waits until claims have a size, including their file systems.
func granted(size string, claims ...*corev1.PersistentVolumeClaim) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, c := range claims {
			if err := kube.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
				return err
			}
			if has := c.Status.Capacity.Storage(); has.Cmp(resource.MustParse(size)) != 0 {
				return fmt.Errorf("%s has %s, want %s: %+v", c.Name, has, size, c.Status.Conditions)
			}
		}

		return nil
	}
}

// withGrowingPlan gives the platform a plan whose volumes grow, until the test ends.
func withGrowingPlan(t *testing.T) {
	t.Helper()
	settings := &unstructured.Unstructured{}
	settings.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1beta1", Kind: "EnvironmentConfig"})
	settings.SetName("capstan")
	set := func(ctx context.Context, plans string) error {
		return kube.Patch(ctx, settings, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"database":{"plans":%s}}}`, plans)))
	}
	if err := set(t.Context(), `[
		{"name": "default", "cpu": "50m", "memory": "512Mi"},
		{"name": "grows", "cpu": "50m", "memory": "512Mi", "storageClassName": "`+grows+`"}]`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set(context.Background(), "null"); err != nil {
			t.Errorf("cannot take the plan away: %v", err)
		}
	})
}

// TestDatabaseFullDisk fills the disks of all members. No acknowledged write is lost, nothing restarts repeatedly, and
// the leader stays. With more space everything works again without manual steps.
func TestDatabaseFullDisk(t *testing.T) {
	withGrowingPlan(t)
	ns := namespace(t)
	d := database(ns, "full", func(d *v1alpha1.Database) {
		d.Spec.Storage, d.Spec.Plan, d.Spec.Resources = resource.MustParse("1Gi"), "grows", nil
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "app"}, {Name: "writer"}}
	})
	t.Logf("Ready after %s", createDatabase(t, d).Round(time.Second))

	app := psql(t, d, "app")
	app.must(t, `create table fill (t text); alter table fill alter t set storage external`)
	led := leader(t, d)
	w := write(t, d, led.Spec.NodeName, byService, 0)
	stop := oneLeader(t, d)
	defer stop()
	before := generations(t, d)

	fill(t, app, 100, true)
	filled := time.Now()
	within(t, creation, "the status reports that volumes are full", databaseCondition(d, v1alpha1.TypeStorageHealthy, corev1.ConditionFalse, v1alpha1.ReasonStorageFull,
		led.Labels[observev1alpha1.LabelMember], "data fills it", "Raise spec.storage (1Gi)"))
	t.Logf("reported %s after the first statement failed", time.Since(filled).Round(time.Second))
	time.Sleep(45 * time.Second) // for as long as it takes to start something over and over
	if now := generations(t, d); !maps.Equal(before, now) {
		t.Errorf("full volumes must not restart anything: before %v, now %v", before, now)
	}
	if now := leader(t, d); now.Name != led.Name {
		t.Errorf("%s is the leader after %s, although it is as full", now.Name, led.Name)
	}

	t.Run("Grows", func(t *testing.T) {
		d.Spec.Storage = resource.MustParse("3Gi")
		grown := growTo(t, d, "3Gi", before)
		t.Logf("full volumes of 1 GiB have 3 GiB %s after the edit", grown.Round(100*time.Millisecond))
	})
	a := w.end(t)
	t.Logf("%d rows acknowledged, %d failed, %d lost, longest gap %.1f s", a.Acknowledged, a.Failed, len(a.Lost), a.Longest)
	if len(a.Lost) > 0 {
		t.Errorf("rows that were acknowledged are lost: %v", a.Lost)
	}
}

// TestDatabaseGrowth has volumes grow automatically while a client writes, also with a class that does not allow it.
func TestDatabaseGrowth(t *testing.T) {
	withGrowingPlan(t)
	ns := namespace(t)
	d := database(ns, "grows", func(d *v1alpha1.Database) {
		d.Spec.Storage, d.Spec.Plan, d.Spec.Resources = resource.MustParse("1Gi"), "grows", nil
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "app"}, {Name: "writer"}}
	})
	createDatabase(t, d)
	app := psql(t, d, "app")
	app.must(t, `create table fill (t text); alter table fill alter t set storage external`)
	led := leader(t, d)
	before := generations(t, d)

	t.Run("GrowsByItself", func(t *testing.T) {
		d.Spec.StorageGrowth = &v1alpha1.StorageGrowth{WhenFreePercent: 50, ByPercent: 20, Max: resource.MustParse("1200Mi")}
		if err := apply(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		fill(t, app, 25, false)
		eventually(t, "volumes have grown by themselves", granted("1200Mi", volumesOf(t, d)...))
		eventually(t, "the status reports it", func(ctx context.Context) error {
			got, err := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
			if err != nil {
				return err
			}
			if s := got.Status.Storage; s == nil || s.Wanted != "1200Mi" || s.Size != "1200Mi" {
				return fmt.Errorf("status.storage is %+v", s)
			}

			return nil
		})
		if now := generations(t, d); !maps.Equal(before, now) {
			t.Errorf("growth must not restart anything: before %v, now %v", before, now)
		}
		d.Spec.StorageGrowth = nil
	})

	t.Run("NotExpandable", func(t *testing.T) {
		let := func(ctx context.Context, grow bool) error {
			return kube.Patch(ctx, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: grows}},
				client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"allowVolumeExpansion":%t}`, grow)))
		}
		if err := let(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = let(context.Background(), true) })
		d.Spec.Storage = resource.MustParse("2Gi")
		if err := apply(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the status reports that the class does not grow", databaseCondition(d, v1alpha1.TypeStorageHealthy, corev1.ConditionFalse,
			v1alpha1.ReasonGrowthUnsupported, "2Gi", grows, "allowVolumeExpansion"))
		if now := generations(t, d); !maps.Equal(before, now) {
			t.Errorf("a class that does not grow must touch nothing: before %v, now %v", before, now)
		}
		if err := let(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		growTo(t, d, "2Gi", before)
	})

	t.Run("GrowsUnderLoad", func(t *testing.T) {
		w := write(t, d, led.Spec.NodeName, byService, 0)
		time.Sleep(5 * time.Second)
		d.Spec.Storage = resource.MustParse("3Gi")
		grown := growTo(t, d, "3Gi", before)
		a := w.end(t)
		t.Logf("grown in %s, %d rows acknowledged, %d failed, %d lost, longest gap %.1f s",
			grown.Round(100*time.Millisecond), a.Acknowledged, a.Failed, len(a.Lost), a.Longest)
		if len(a.Lost) > 0 || a.Longest > slack {
			t.Errorf("growth must not be felt by those who write: %+v", a)
		}
	})
}

// TestDatabaseWALVolume adds a volume for the write-ahead log to a Database that is written to: the plan shows the change, members move their
// logs one by one, no acknowledged row is lost, and the volumes grow without a restart.
func TestDatabaseWALVolume(t *testing.T) {
	withGrowingPlan(t)
	ns := namespace(t)
	d := database(ns, "apart", func(d *v1alpha1.Database) {
		d.Spec.Storage, d.Spec.Plan, d.Spec.Resources = resource.MustParse("1Gi"), "grows", nil
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "writer"}}
	})
	createDatabase(t, d)
	w := write(t, d, leader(t, d).Spec.NodeName, byService, 0)
	time.Sleep(5 * time.Second)
	d.Spec.WALStorage = new(resource.MustParse("1Gi"))
	d.Spec.Maintenance = &v1alpha1.DatabaseMaintenance{Approval: v1alpha1.ApprovalManual}
	if err := apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	var hash string
	eventually(t, "the change is planned", func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
		if err != nil {
			return err
		}
		c := got.Status.Change
		if c == nil || len(c.Order) != 3 || c.Order[2] != got.Status.Leader || !strings.Contains(c.Summary, "spec.walStorage") {
			return fmt.Errorf("status.change is %+v", c)
		}
		hash = c.Hash
		t.Logf("%s: %s", c.Hash, c.Summary)
		return nil
	})
	since := time.Now()
	d.Spec.Maintenance.Approve = hash
	if err := apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	within(t, 2*creation, "every member is as requested", databaseCondition(d, v1alpha1.TypeUpdated, corev1.ConditionTrue, v1alpha1.ReasonUpdated))
	within(t, creation, "all members follow", running(d))
	took, gaps := time.Since(since), w.gapsSince(t.Context(), since)
	var volumes []*corev1.PersistentVolumeClaim
	for name, p := range members(t.Context(), t, d) {
		out, err := execIn(t.Context(), &p, "postgres", `readlink /data/pgdata/pg_wal && ls /wal/pg_wal | grep -c ^0000 && ls -d /data/pgdata.wal* /wal/pg_wal.* 2>/dev/null; true`, "sh")
		if lines := strings.Fields(out); err != nil || len(lines) != 2 || lines[0] != "/wal/pg_wal" || lines[1] == "0" {
			t.Errorf("the write-ahead log of %s is not on its volume, or something is left over: %v: %s", name, err, out)
		}
		volumes = append(volumes, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "wal-" + p.Name}})
	}
	before := generations(t, d)
	d.Spec.WALStorage = new(resource.MustParse("2Gi"))
	if err := apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	within(t, creation, "volumes of logs have grown", granted("2Gi", volumes...))
	within(t, creation, "the status reports that everything is healthy", databaseCondition(d, v1alpha1.TypeStorageHealthy, corev1.ConditionTrue, v1alpha1.ReasonStorageReady))
	if now := generations(t, d); !maps.Equal(before, now) {
		t.Errorf("growth must not restart anything: before %v, now %v", before, now)
	}
	a := w.end(t)
	t.Logf("three members moved their logs in %s, longest gap %.1f s of %d; %d rows acknowledged, %d failed, %d lost",
		took.Round(100*time.Millisecond), longest(gaps), len(gaps), a.Acknowledged, a.Failed, len(a.Lost))
	if len(a.Lost) > 0 || longest(gaps) > planned+slack {
		t.Errorf("a move must cost no more than one change of the leader: %+v", a)
	}
}

// panicked is the error of a client when the leader can no longer write its log: its server recovers, and it stays the
// leader.
const panicked = "because of crash of another server process"

// fill the database with this many times 20 MB, or until neither data nor log fits any more.
func fill(t *testing.T, s session, times int, untilFull bool) {
	t.Helper()
	for range times {
		out, err := s.run(t, `insert into fill select repeat(md5(random()::text), 250) from generate_series(1, 2500)`)
		switch {
		case err == nil:
		case untilFull && (strings.Contains(out, "No space left on device") || strings.Contains(out, panicked)):
			t.Logf("the volume is full: %s", strings.TrimSpace(out))

			return
		default:
			t.Fatalf("cannot fill the database: %v: %s", err, out)
		}
	}
	if untilFull {
		t.Fatal("the volume does not become full")
	}
}

// growTo a size by an edit, and return how long it took until every file system had it. In the end all standbys
// replicate, and no container has restarted.
func growTo(t *testing.T, d *v1alpha1.Database, size string, before map[string]string) time.Duration {
	t.Helper()
	since := time.Now()
	if err := apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	within(t, creation, "every volume has "+size, granted(size, volumesOf(t, d)...))
	took := time.Since(since)
	within(t, creation, "all members follow", running(d))
	within(t, creation, "the status reports that everything is healthy", databaseCondition(d, v1alpha1.TypeStorageHealthy, corev1.ConditionTrue, v1alpha1.ReasonStorageReady))
	if now := generations(t, d); !maps.Equal(before, now) {
		t.Errorf("growth must not restart anything: before %v, now %v", before, now)
	}

	return took
}

// volumesOf a Database.
func volumesOf(t *testing.T, d *v1alpha1.Database) []*corev1.PersistentVolumeClaim {
	t.Helper()
	list := &corev1.PersistentVolumeClaimList{}
	if err := kube.List(t.Context(), list, client.InNamespace(d.Namespace), client.MatchingLabels{observev1alpha1.LabelDatabase: d.Name}); err != nil {
		t.Fatal(err)
	}
	var out []*corev1.PersistentVolumeClaim
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}

	return out
}

// generations of the containers of members: the pods, and how often their containers have started.
func generations(t *testing.T, d *v1alpha1.Database) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, p := range members(t.Context(), t, d) {
		out[name] = string(p.UID)
		for _, c := range p.Status.ContainerStatuses {
			out[name] += fmt.Sprintf(" %s %d", c.Name, c.RestartCount)
		}
	}

	return out
}
