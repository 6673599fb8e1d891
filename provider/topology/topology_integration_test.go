// SPDX-License-Identifier: Apache-2.0

//go:build integration

package topology

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/signals"
	"github.com/capstan-dev/capstan/provider/internal/testbench"
	"github.com/capstan-dev/capstan/test/outside"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(outside.Main(m))
}

// A bench is a real API server with the controller of Topologies, and a hand that writes what members write.
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
	if _, err := envtest.InstallCRDs(cfg, envtest.CRDInstallOptions{Paths: []string{filepath.Join("testdata", "certificates.yaml")}}); err != nil {
		t.Fatal(err)
	}
	kube := testbench.Controllers(t, cfg, ctrl.Options{
		Scheme: scheme,
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
		Cache:  cache.Options{ReaderFailOnMissingInformer: true},
	}, Setup(new(signals.Board)))
	return &bench{Client: kube, t: t}
}

func (b *bench) create(all ...client.Object) {
	b.t.Helper()
	testbench.Create(b.t, b.Client, all...)
}

// annotate as Patroni does, with a patch; "" takes an annotation away.
func (b *bench) annotate(o client.Object, annotations map[string]string) {
	b.t.Helper()
	var parts []string
	for k, v := range annotations {
		value := "null"
		if v != "" {
			value = fmt.Sprintf("%q", v)
		}
		parts = append(parts, fmt.Sprintf("%q:%s", k, value))
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{`+strings.Join(parts, ",")+`}}}`))
	if err := b.Patch(b.t.Context(), o, patch); err != nil {
		b.t.Fatal(err)
	}
}

func scoped(namespace, suffix string, annotations map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "orders-db-3f2a9c1b-" + suffix, Annotations: annotations,
		Labels: map[string]string{v1alpha1.LabelDatabase: "orders-db", v1alpha1.LabelScope: "orders-db-3f2a9c1b"},
	}}
}

func (b *bench) member(namespace, letter, status string) *corev1.Pod {
	b.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "orders-db-" + letter + "-0",
			Labels: map[string]string{
				v1alpha1.LabelDatabase: "orders-db", v1alpha1.LabelMember: "orders-db-" + letter,
				v1alpha1.LabelScope: "orders-db-3f2a9c1b", labelApp: "postgres", labelRevision: "r1",
			},
			Annotations: map[string]string{members.AnnotationStatus: status, v1alpha1.AnnotationMember: `{"version":"17.6","disk":"Ok"}`},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-" + letter, Containers: []corev1.Container{{Name: "postgres", Image: "postgres:17"}},
			AutomountServiceAccountToken: new(false),
		},
	}
	b.create(p)
	p.Status = corev1.PodStatus{
		Phase:             corev1.PodRunning,
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "postgres", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}},
	}
	if err := b.Status().Update(b.t.Context(), p); err != nil {
		b.t.Fatal(err)
	}
	return p
}

func (b *bench) topology(namespace string) *v1alpha1.Topology {
	t := &v1alpha1.Topology{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "orders-db"}}
	t.Spec.ForProvider = v1alpha1.TopologyParameters{
		Database: "orders-db", Scope: "orders-db-3f2a9c1b",
		Members:       []string{"orders-db-a", "orders-db-b"},
		RemoveSecrets: []string{"orders-db-members", "orders-db-server", "orders-db-other"},
	}
	return t
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

func (b *bench) see(tp *v1alpha1.Topology) v1alpha1.TopologyObservation {
	b.t.Helper()
	if err := b.Get(b.t.Context(), client.ObjectKeyFromObject(tp), tp); err != nil {
		b.t.Fatal(err)
	}
	return tp.Status.AtProvider
}

func (b *bench) gone(o client.Object) bool {
	return kerrors.IsNotFound(b.Get(b.t.Context(), client.ObjectKeyFromObject(o), o))
}

// end a pod as a kubelet does.
func (b *bench) end(p *corev1.Pod) {
	b.t.Helper()
	if err := b.Delete(b.t.Context(), p, client.GracePeriodSeconds(0)); err != nil {
		b.t.Fatal(err)
	}
}

// counted is what the metrics of Databases tell.
func (b *bench) counted() []string {
	b.t.Helper()
	all, err := metrics.Registry.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for _, f := range all {
		if !strings.HasPrefix(f.GetName(), "capstan_database") {
			continue
		}
		for _, m := range f.GetMetric() {
			parts := []string{f.GetName()}
			for _, l := range m.GetLabel() {
				parts = append(parts, l.GetName()+"="+l.GetValue())
			}
			parts = append(parts, fmt.Sprint(m.GetGauge().GetValue()+m.GetCounter().GetValue()))
			out = append(out, strings.Join(parts, " "))
		}
	}
	return out
}

// TestLife of a Topology on a real API server: quiet while Patroni writes, a failover, and what is left behind.
func TestLife(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	for _, l := range []string{"a", "b"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + l, Labels: map[string]string{corev1.LabelTopologyZone: "zone-" + l}}}
		b.create(n)
		n.Spec.Taints = nil
		if err := b.Update(ctx, n); err != nil {
			t.Fatal(err)
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if err := b.Status().Update(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	tp := b.topology("shop")
	b.create(tp)
	b.eventually("an empty Topology", func() bool { return b.see(tp).Phase == v1alpha1.TopologyEmpty })
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-orders-db-a-0", Labels: map[string]string{
			v1alpha1.LabelDatabase: "orders-db", v1alpha1.LabelMember: "orders-db-a",
		}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	leader := scoped("shop", members.SuffixLeader, map[string]string{
		members.AnnotationLeader: "orders-db-a-0", annotationTTL: "30", members.AnnotationAcquired: time.Now().UTC().Format(time.RFC3339),
		annotationRenewed: "1", annotationWritten: strconv.FormatInt(at, 10), "transitions": "0",
	})
	config := scoped("shop", members.SuffixConfig, map[string]string{members.AnnotationInitialize: "7575", members.AnnotationConfig: `{"ttl":30}`})
	config.OwnerReferences = []metav1.OwnerReference{{APIVersion: "capstan.dev/v1alpha1", Kind: "Database", Name: "orders-db", UID: "1"}}
	sync := scoped("shop", suffixSync, map[string]string{members.AnnotationLeader: "orders-db-a-0", annotationSyncStandby: "orders-db-b-0"})
	failover := scoped("shop", members.SuffixFailover, nil)
	b.create(claim, leader, config, sync, failover)
	podA, podB := b.member("shop", "a", fmt.Sprintf(leads, at)), b.member("shop", "b", fmt.Sprintf(follows, at))
	b.eventually("a Topology that runs", func() bool { return b.see(tp).Phase == v1alpha1.TopologyRunning })

	// The first classes of lag need as long as followers may take to tell.
	b.eventually("the follower in sync", func() bool {
		b.annotate(leader, map[string]string{annotationRenewed: time.Now().String()})
		m := b.see(tp).Members
		return len(m) == 2 && m[1].Lag == v1alpha1.LagInSync && m[1].Role == v1alpha1.RoleSyncStandby && m[0].Zone == "zone-a"
	})

	// Patroni writes all the time, and nothing happens.
	time.Sleep(2 * settle)
	version := tp.ResourceVersion
	for i := range 100 {
		p := at + int64(i)*1000
		b.annotate(leader, map[string]string{annotationRenewed: strconv.Itoa(i), annotationWritten: strconv.FormatInt(p, 10)})
		b.annotate(podA, map[string]string{members.AnnotationStatus: fmt.Sprintf(leads, p)})
		b.annotate(podB, map[string]string{members.AnnotationStatus: fmt.Sprintf(follows, p)})
	}
	time.Sleep(2 * settle)
	if b.see(tp); tp.ResourceVersion != version {
		t.Errorf("Nothing happened, and yet the status was written: %+v", tp.Status)
	}

	// Somebody asks for another leader, Patroni obeys.
	b.annotate(failover, map[string]string{members.AnnotationLeader: "orders-db-a-0", members.AnnotationCandidate: "orders-db-b-0"})
	b.annotate(leader, map[string]string{members.AnnotationLeader: ""})
	b.annotate(failover, map[string]string{members.AnnotationLeader: "", members.AnnotationCandidate: ""})
	b.annotate(leader, map[string]string{members.AnnotationLeader: "orders-db-b-0", members.AnnotationAcquired: time.Now().UTC().Format(time.RFC3339)})
	b.annotate(podA, map[string]string{members.AnnotationStatus: fmt.Sprintf(follows, at)})
	b.annotate(podB, map[string]string{members.AnnotationStatus: strings.Replace(fmt.Sprintf(leads, at), `"timeline":3`, `"timeline":4`, 1)})
	b.annotate(sync, map[string]string{members.AnnotationLeader: "orders-db-b-0", annotationSyncStandby: "orders-db-a-0"})
	b.eventually("another leader", func() bool {
		s := b.see(tp)
		return s.Leader == "orders-db-b" && s.Timeline == 4 && s.Phase == v1alpha1.TopologyRunning
	})
	if f := tp.Status.AtProvider.LastFailover; f == nil || f.From != "orders-db-a" || f.To != "orders-db-b" || f.Cause != v1alpha1.CauseSwitchover {
		t.Errorf("want a switchover from a to b, got %+v", f)
	}
	if diff := cmp.Diff([]string{
		"capstan_database_failovers_total cause=Switchover namespace=shop 1", "capstan_databases namespace=shop phase=Running 1",
	}, b.counted()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	// A follower whose pod is not made again because of a quota.
	b.end(podA)
	b.create(&corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: "orders-db-a.1"},
		InvolvedObject: corev1.ObjectReference{Kind: "StatefulSet", Namespace: "shop", Name: "orders-db-a"},
		Reason:         "FailedCreate", LastTimestamp: metav1.Now(),
		Message: `create Pod orders-db-a-0 in StatefulSet orders-db-a failed error: pods "orders-db-a-0" is forbidden: exceeded quota: small, requested: cpu=2, used: cpu=2, limited: cpu=3`,
	})
	b.annotate(tp, map[string]string{"look": "again"})
	b.eventually("the quota being told", func() bool {
		s := b.see(tp)
		return s.Phase == v1alpha1.TopologyDegraded && s.Members[0].Reason == "QuotaExceeded" && s.Members[0].State == v1alpha1.MemberStopped
	})

	// Deletion waits for the last member.
	certificates := map[string]string{annotationCertificate: "orders-db-members"}
	inner := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-db-members", Annotations: certificates}}
	server := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-db-server", Annotations: map[string]string{annotationCertificate: "orders-db-server"}}}
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-db-other"}}
	access := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-db-access", Annotations: certificates}}
	certificate := &unstructured.Unstructured{}
	certificate.SetAPIVersion("cert-manager.io/v1")
	certificate.SetKind("Certificate")
	certificate.SetNamespace("shop")
	certificate.SetName("orders-db-members")
	b.create(inner, server, other, access, certificate)
	if err := b.Delete(ctx, tp); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * settle)
	if b.gone(tp) || b.gone(leader) || b.gone(inner) {
		t.Error("As long as there is a member, nothing goes.")
	}
	b.end(podB)
	b.eventually("Patroni's ConfigMaps gone", func() bool { return b.gone(leader) && b.gone(sync) && b.gone(failover) && b.gone(server) })
	if b.gone(tp) || b.gone(inner) {
		t.Error("As long as there is a Certificate, its Secret stays: it would be made again.")
	}
	if err := b.Delete(ctx, certificate); err != nil {
		t.Fatal(err)
	}
	b.eventually("the Topology gone", func() bool { return b.gone(tp) && b.gone(inner) })
	var kept []string
	for _, o := range []client.Object{config, other, access, claim} {
		if !b.gone(o) {
			kept = append(kept, o.GetName())
		}
	}
	if diff := cmp.Diff([]string{config.Name, other.Name, access.Name, claim.Name}, kept); diff != "" {
		t.Errorf("What is somebody else's stays: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"capstan_database_failovers_total cause=Switchover namespace=shop 1"}, b.counted()); diff != "" {
		t.Errorf("A Database that is gone is not counted: -want, +got:\n%s", diff)
	}

	// Without a scope, and in a namespace that goes, nothing holds it up.
	b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank"}})
	tp = b.topology("bank")
	tp.Spec.ForProvider.Scope = ""
	b.create(tp)
	b.eventually("an empty Topology", func() bool { return b.see(tp).Phase == v1alpha1.TopologyEmpty })
	if err := b.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank"}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(ctx, tp); err != nil {
		t.Fatal(err)
	}
	b.eventually("the Topology of a namespace that goes gone", func() bool { return b.gone(tp) })
}
