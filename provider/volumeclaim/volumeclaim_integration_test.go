// SPDX-License-Identifier: Apache-2.0

//go:build integration

package volumeclaim

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/testbench"
	"github.com/capstan-dev/capstan/test/outside"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(outside.Main(m))
}

// A bench is a real API server, with its admission of resizes, and the controller of VolumeClaims. There is no storage: the test
// writes what a driver would.
type bench struct {
	client.Client

	t *testing.T
}

func newBench(t *testing.T) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cfg := outside.APIServer(t)
	kube := testbench.Controllers(t, cfg, ctrl.Options{
		Scheme: scheme,
		Cache:  cache.Options{ReaderFailOnMissingInformer: true},
	}, Setup)
	return &bench{Client: kube, t: t}
}

func (b *bench) create(all ...client.Object) {
	b.t.Helper()
	testbench.Create(b.t, b.Client, all...)
}

// volume of a member, bound.
func (b *bench) volume(namespace, member, identity, class string) *corev1.PersistentVolumeClaim {
	b.t.Helper()
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "data-" + member + "-0",
			Labels: map[string]string{
				observev1alpha1.LabelDatabase: "orders-db", observev1alpha1.LabelMember: member, observev1alpha1.LabelIdentity: identity,
			},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new(class), VolumeName: namespace + "-" + member,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("50Gi")}},
		},
	}
	b.create(c)
	b.grant(c, "50Gi")
	return c
}

// grant a size, as a driver and the kubelet do.
func (b *bench) grant(c *corev1.PersistentVolumeClaim, size string) {
	b.t.Helper()
	if err := b.Get(b.t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		b.t.Fatal(err)
	}
	c.Status = corev1.PersistentVolumeClaimStatus{
		Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
	}
	if err := b.Status().Update(b.t.Context(), c); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) requested(c *corev1.PersistentVolumeClaim) string {
	b.t.Helper()
	if err := b.Get(b.t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		b.t.Fatal(err)
	}
	return c.Spec.Resources.Requests.Storage().String()
}

func (b *bench) eventually(what string, ok func() bool) {
	b.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if ok() {
			return
		}
	}
	b.t.Fatalf("want %s", what)
}

func (b *bench) state(v *v1alpha1.VolumeClaim) string {
	b.t.Helper()
	if err := b.Get(b.t.Context(), client.ObjectKeyFromObject(v), v); err != nil {
		b.t.Fatal(err)
	}
	return v.Status.AtProvider.State
}

// resize to a size what a VolumeClaim asks for.
func (b *bench) resize(v *v1alpha1.VolumeClaim, size string) {
	b.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"forProvider":{"size":"`+size+`"}}}`))
	if err := b.Patch(b.t.Context(), v, patch); err != nil {
		b.t.Fatal(err)
	}
}

// makesWALVolumes, each once, and lets them grow apart from those of data. A quota that refuses one is told.
func makesWALVolumes(b *bench, v *v1alpha1.VolumeClaim) {
	b.t.Helper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "storage"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsStorage: resource.MustParse("900Gi")}},
	}
	b.create(quota)
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{corev1.ResourceRequestsStorage: resource.MustParse("890Gi")}}
	if err := b.Status().Update(b.t.Context(), quota); err != nil {
		b.t.Fatal(err)
	}
	want := func(size string) {
		b.t.Helper()
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"forProvider":{"wal":{"size":"`+size+`","storageClassName":"grows"}}}}`))
		if err := b.Patch(b.t.Context(), v, patch); err != nil {
			b.t.Fatal(err)
		}
	}
	want("20Gi")
	b.eventually("a refusal that is told", func() bool {
		return b.state(v) == v1alpha1.VolumeFailed && strings.Contains(v.GetCondition(xpv2.TypeReady).Message, "exceeded quota")
	})
	if err := b.Delete(b.t.Context(), quota); err != nil {
		b.t.Fatal(err)
	}
	wal := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "wal-orders-db-a-0"}}
	b.eventually("a claim for the log", func() bool { return b.Get(b.t.Context(), client.ObjectKeyFromObject(wal), wal) == nil })
	if len(wal.OwnerReferences) > 0 || b.requested(wal) != "20Gi" {
		b.t.Errorf("it outlives its Database, with its own size: %+v", wal)
	}
	made := wal.UID
	b.grant(wal, "20Gi")
	want("30Gi")
	b.eventually("growth of the log's volume", func() bool { return b.requested(wal) == "30Gi" })
	b.grant(wal, "30Gi")
	if wal.UID != made {
		b.t.Error("the claim is made twice")
	}
	for _, name := range []string{"wal-orders-db-b-0", "wal-orders-db-d-0"} {
		b.grant(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}, "30Gi")
	}
	b.eventually("volumes of logs that have their size", func() bool {
		b.state(v)
		return !slices.ContainsFunc(v.Status.AtProvider.Volumes, func(o v1alpha1.VolumeObservation) bool {
			return o.Holds == v1alpha1.HoldsWAL && o.State != v1alpha1.VolumeReady
		})
	})
	none := &corev1.PersistentVolumeClaim{}
	if err := b.Get(b.t.Context(), client.ObjectKey{Namespace: "shop", Name: "wal-orders-db-c-0"}, none); err == nil {
		b.t.Error("a member that was removed gets a volume")
	}
}

func TestVolumesGrow(t *testing.T) {
	b := newBench(t)
	b.create(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "grows"}, Provisioner: "disks.example.org", AllowVolumeExpansion: new(true)},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}, Provisioner: "disks.example.org"},
	)
	const identity = "3f2a9c1b"
	a, other := b.volume("shop", "orders-db-a", identity, "grows"), b.volume("shop", "orders-db-b", identity, "grows")
	gone, stranger := b.volume("shop", "orders-db-c", identity, "grows"), b.volume("shop", "orders-db-d", "ffff", "grows")
	v := &v1alpha1.VolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-db"}}
	v.Spec.ForProvider = v1alpha1.VolumeClaimParameters{
		Database: "orders-db", Identity: identity, Size: resource.MustParse("50Gi"),
		Members: []string{"orders-db-a", "orders-db-b", "orders-db-d"},
	}
	b.create(v)
	b.eventually("volumes that have their size", func() bool { return b.state(v) == v1alpha1.VolumeReady })
	b.resize(v, "80Gi")
	b.eventually("claims that ask for more", func() bool { return b.requested(a) == "80Gi" && b.requested(other) == "80Gi" })
	b.eventually("volumes that are on their way", func() bool { return b.state(v) == v1alpha1.VolumeGrowing })
	b.grant(a, "80Gi")
	b.grant(other, "80Gi")
	b.eventually("volumes that have grown", func() bool { return b.state(v) == v1alpha1.VolumeReady })
	if diff := cmp.Diff([]string{"50Gi", "50Gi"}, []string{b.requested(gone), b.requested(stranger)}); diff != "" {
		t.Errorf("volumes of a member that was removed, and of another Database, are left alone: -want, +got:\n%s", diff)
	}
	t.Run("Shrinks", func(t *testing.T) {
		b.resize(v, "60Gi")
		time.Sleep(2 * time.Second)
		if got := b.requested(a); got != "80Gi" || b.state(v) != v1alpha1.VolumeReady {
			t.Errorf("nothing shrinks: want 80Gi and Ready, got %s and %s", got, b.state(v))
		}
	})
	t.Run("Quota", func(t *testing.T) {
		b.create(&corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "storage"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsStorage: resource.MustParse("300Gi")}},
			Status:     corev1.ResourceQuotaStatus{},
		})
		quota := &corev1.ResourceQuota{}
		if err := b.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "storage"}, quota); err != nil {
			t.Fatal(err)
		}

		// No controller counts here.
		quota.Status = corev1.ResourceQuotaStatus{
			Hard: quota.Spec.Hard, Used: corev1.ResourceList{corev1.ResourceRequestsStorage: resource.MustParse("260Gi")},
		}
		if err := b.Status().Update(t.Context(), quota); err != nil {
			t.Fatal(err)
		}
		b.resize(v, "200Gi")
		b.eventually("a refusal that is told", func() bool {
			return b.state(v) == v1alpha1.VolumeFailed && strings.Contains(v.GetCondition(xpv2.TypeReady).Message, "exceeded quota")
		})
		if err := b.Delete(t.Context(), quota); err != nil {
			t.Fatal(err)
		}
		b.eventually("another try", func() bool { return b.requested(a) == "200Gi" && b.requested(other) == "200Gi" })
	})
	t.Run("Class", func(t *testing.T) {
		fixed := b.volume("shop", "orders-db-e", identity, "fixed")
		w := &v1alpha1.VolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "fixed"}, Spec: *v.Spec.DeepCopy()}
		w.Spec.ForProvider.Members = []string{"orders-db-e"}
		b.create(w)
		b.eventually("a class that does not let volumes grow", func() bool { return b.state(w) == v1alpha1.VolumeNotExpandable })
		if err := b.Patch(t.Context(), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}},
			client.RawPatch("application/merge-patch+json", []byte(`{"allowVolumeExpansion":true}`))); err != nil {
			t.Fatal(err)
		}
		b.eventually("growth once the class lets it", func() bool { return b.requested(fixed) == "200Gi" })
	})
	t.Run("WAL", func(t *testing.T) { makesWALVolumes(b, v) })
	t.Run("Quiet", func(t *testing.T) {
		// What came before may still be written.
		b.eventually("three seconds in which no status is written", func() bool {
			b.state(v)
			before := v.GetResourceVersion()
			time.Sleep(3 * time.Second)
			b.state(v)

			return v.GetResourceVersion() == before
		})
	})
	t.Run("Deleted", func(t *testing.T) {
		if err := b.Delete(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		b.eventually("a VolumeClaim that is gone", func() bool { return b.Get(t.Context(), client.ObjectKeyFromObject(v), v) != nil })
		if got := b.requested(a); got != "200Gi" {
			t.Errorf("volumes outlive it: got %s", got)
		}
	})
}
