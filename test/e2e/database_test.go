// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	accessv1alpha1 "github.com/capstan-dev/capstan/apis/access/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// creation is the maximum time from nothing to Ready on two cores: certificates, volumes, and one copy of the data
// after another.
const creation = 4 * time.Minute

// database is the smallest highly available one, with modifications. Tests delete their databases, so it is not
// protected.
func database(ns, name string, modify ...func(*v1alpha1.Database)) *v1alpha1.Database {
	d := &v1alpha1.Database{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Database"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: v1alpha1.DatabaseSpec{
			Engine:             v1alpha1.EnginePostgres,
			Version:            "17",
			Replicas:           3,
			Storage:            resource.MustParse("2Gi"),
			Resources:          &v1alpha1.DatabaseResources{CPU: new(resource.MustParse("50m")), Memory: new(resource.MustParse("512Mi"))},
			Availability:       &v1alpha1.DatabaseAvailability{Profile: v1alpha1.FailoverFast},
			DeletionProtection: new(false),
		},
	}
	for _, m := range modify {
		m(d)
	}

	return d
}

// createDatabase applies a Database, waits until it is Ready, and returns how long that took.
func createDatabase(t *testing.T, d *v1alpha1.Database) time.Duration {
	t.Helper()
	woken := &wakings{}
	stop := woken.count(t, databaseKinds, client.InNamespace(d.Namespace), client.MatchingLabels{observev1alpha1.LabelDatabase: d.Name})
	start := time.Now()
	if err := apply(t.Context(), d); err != nil {
		t.Fatalf("cannot apply the Database: %v", err)
	}
	t.Cleanup(func() { deleteDatabase(t, d) })
	within(t, creation, "Database "+d.Name+" is Ready", running(d))
	took := time.Since(start)
	for _, f := range stop {
		f()
	}
	t.Logf("until Database %s is Ready: %s", d.Name, woken.cost())

	return took
}

// databaseKinds are the kinds that a Database composes and that another client also writes to, or that change during
// creation.
var databaseKinds = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"},
	{Group: "cert-manager.io", Version: "v1", Kind: "Issuer"},
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"},
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "PrometheusRule"},
	{Group: "access.capstan.dev", Version: "v1alpha1", Kind: "Access"},
	{Group: "credentials.capstan.dev", Version: "v1alpha1", Kind: "Credential"},
	{Group: "observe.capstan.dev", Version: "v1alpha1", Kind: "Topology"},
	{Group: "storage.capstan.dev", Version: "v1alpha1", Kind: "VolumeClaim"},
}

// running reports whether a Database is Ready with all of its members.
func running(d *v1alpha1.Database) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
		if err != nil {
			return err
		}
		if got.Status.Phase != v1alpha1.DatabaseRunning || got.Status.ReadyReplicas != d.Spec.Replicas ||
			got.Status.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue {
			return fmt.Errorf("phase is %q, %d of %d members are ready, leader %q; %s",
				got.Status.Phase, got.Status.ReadyReplicas, d.Spec.Replicas, got.Status.Leader, unhappy(got))
		}

		return nil
	}
}

// unhappy conditions of a Database, in one line.
func unhappy(d *v1alpha1.Database) string {
	var words []string
	for _, c := range d.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			words = append(words, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}

	return strings.Join(words, "; ")
}

// databaseCondition waits for a condition of a Database.
func databaseCondition(d *v1alpha1.Database, ct xpv2.ConditionType, status corev1.ConditionStatus, reason xpv2.ConditionReason, words ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
		if err != nil {
			return err
		}
		c := got.Status.GetCondition(ct)
		if c.Status != status || c.Reason != reason {
			return fmt.Errorf("condition %s is %s %s (%s), want %s %s", ct, c.Status, c.Reason, c.Message, status, reason)
		}
		for _, w := range words {
			if !strings.Contains(c.Message, w) {
				return fmt.Errorf("condition %s says %q, which lacks %q", ct, c.Message, w)
			}
		}

		return nil
	}
}

// deleteDatabase with all of its data, on purpose.
func deleteDatabase(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if t.Failed() {
		t.Log(reportDatabase(ctx, d))
	}
	unprotected := []byte(`{"spec":{"deletionProtection":false}}`)
	err := kube.Patch(ctx, d.DeepCopy(), client.RawPatch(types.MergePatchType, unprotected))
	if err := client.IgnoreNotFound(errors.Join(err, kube.Delete(ctx, d.DeepCopy()))); err != nil {
		t.Errorf("cannot delete the Database: %v", err)
	}
	for ctx.Err() == nil && !apierrors.IsNotFound(kube.Get(ctx, client.ObjectKeyFromObject(d), &v1alpha1.Database{})) {
		time.Sleep(200 * time.Millisecond)
	}
	labels := client.MatchingLabels{observev1alpha1.LabelDatabase: d.Name}
	for _, list := range []client.ObjectList{&corev1.PersistentVolumeClaimList{}, &corev1.SecretList{}} {
		if err := release(ctx, list, client.InNamespace(d.Namespace), labels); err != nil {
			t.Errorf("cannot delete what the Database left: %v", err)
		}
	}
}

// release guarded objects, and delete them.
func release(ctx context.Context, list client.ObjectList, of ...client.ListOption) error {
	if err := kube.List(ctx, list, of...); err != nil {
		return err
	}
	var all []client.Object
	switch l := list.(type) {
	case *corev1.PersistentVolumeClaimList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	case *corev1.SecretList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	}
	for _, o := range all {
		before := o.DeepCopyObject().(client.Object)
		o.SetAnnotations(map[string]string{observev1alpha1.AnnotationRelease: o.GetName()})
		if err := errors.Join(kube.Patch(ctx, o, client.MergeFrom(before)), kube.Delete(ctx, o)); err != nil {
			return err
		}
	}

	return nil
}

// reportDatabase logs what a person would read first after a failed test.
func reportDatabase(ctx context.Context, d *v1alpha1.Database) string {
	var b strings.Builder
	got, _ := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
	fmt.Fprintf(&b, "Database %s: phase %s, leader %s, %d ready\n", d.Name, got.Status.Phase, got.Status.Leader, got.Status.ReadyReplicas)
	for _, c := range got.Status.Conditions {
		fmt.Fprintf(&b, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, m := range got.Status.Members {
		fmt.Fprintf(&b, "  member %+v\n", m)
	}
	topology, _ := get(ctx, &observev1alpha1.Topology{}, d.Namespace, d.Name)
	fmt.Fprintf(&b, "Topology: %+v\n", topology.Status)
	access, _ := get(ctx, &accessv1alpha1.Access{}, d.Namespace, d.Name)
	fmt.Fprintf(&b, "Access: %+v\n", access.Status)
	pods := &corev1.PodList{}
	_ = kube.List(ctx, pods, client.InNamespace(d.Namespace))
	for _, p := range pods.Items {
		fmt.Fprintf(&b, "Pod %s on %s: %s %v %v\n", p.Name, p.Spec.NodeName, p.Status.Phase, p.Labels, p.Annotations["status"])
		if p.Labels[observev1alpha1.LabelDatabase] == d.Name {
			fmt.Fprintln(&b, logs(ctx, &p, serverContainer(p), 40))
		}
	}

	return b.String()
}

// members of a Database that exist, as pods by the name of the member.
func members(ctx context.Context, t *testing.T, d *v1alpha1.Database) map[string]corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := kube.List(ctx, list, client.InNamespace(d.Namespace), client.MatchingLabels{observev1alpha1.LabelDatabase: d.Name}); err != nil {
		t.Fatalf("cannot list the members: %v", err)
	}
	out := map[string]corev1.Pod{}
	for _, p := range list.Items {
		out[p.Labels[observev1alpha1.LabelMember]] = p
	}

	return out
}

// leader of a Database: the pod that the Service selects.
func leader(t *testing.T, d *v1alpha1.Database) corev1.Pod {
	t.Helper()
	var found corev1.Pod
	eventually(t, "there is a leader", func(ctx context.Context) error {
		list := &corev1.PodList{}
		if err := kube.List(ctx, list, client.InNamespace(d.Namespace), client.MatchingLabels{
			observev1alpha1.LabelDatabase: d.Name, observev1alpha1.LabelRole: observev1alpha1.RoleLabelLeader,
		}); err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("%d pods are labelled as leader", len(list.Items))
		}
		found = list.Items[0]

		return nil
	})

	return found
}

// statefulSets of a Database with their generations.
func statefulSets(t *testing.T, d *v1alpha1.Database) map[string]int64 {
	t.Helper()
	list := &appsv1.StatefulSetList{}
	if err := kube.List(t.Context(), list, client.InNamespace(d.Namespace), client.MatchingLabels{observev1alpha1.LabelDatabase: d.Name}); err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, s := range list.Items {
		out[s.Name] = s.Generation
	}

	return out
}

// TestDatabase creates one and does to it what production does. Its parts follow each other, because another Database
// takes a minute each time.
func TestDatabase(t *testing.T) {
	ns := namespace(t)
	d := database(ns, "orders-db", func(d *v1alpha1.Database) {
		d.Spec.Databases = []v1alpha1.LogicalDatabase{{Name: "orders"}, {Name: "audit"}}
		d.Spec.Consumers = []v1alpha1.Consumer{
			{Name: "api"}, {Name: "writer"}, {Name: "reports", Access: v1alpha1.ConsumerReadOnly},
		}
		d.Spec.Extensions = []string{"pg_trgm", "pg_stat_statements"}
		d.Spec.Config = map[string]v1alpha1.ParameterValue{"work_mem": "5MB"}
		d.Spec.DeletionProtection = nil
	})
	t.Logf("Ready after %s", createDatabase(t, d).Round(time.Second))

	for _, part := range []struct {
		name string
		do   func(*testing.T, *v1alpha1.Database)
	}{
		{"Serves", serves},
		{"Quiet", quiet}, // first, because edits make Crossplane's breaker open, and looks go on for as long
		{"ConsumersComeAndGo", consumersComeAndGo},
		{"BadEditTouchesNothing", badEditTouchesNothing},
		{"IsProtected", isProtected},
		{"OutlivesCapstan", outlivesCapstan},
		{"FailsOver", failsOver},
		{"ComesBack", comesBack},
	} {
		t.Run(part.name, func(t *testing.T) { part.do(t, d) })
	}
}

// serves: ten lines of YAML create a database with logins and everything to connect, spread over zones.
func serves(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	zones := map[string]bool{}
	for name, p := range members(t.Context(), t, d) {
		node, err := get(t.Context(), &corev1.Node{}, "", p.Spec.NodeName)
		if err != nil {
			t.Fatal(err)
		}
		zone := node.Labels[corev1.LabelTopologyZone]
		if zones[zone] {
			t.Errorf("member %s shares zone %s", name, zone)
		}
		zones[zone] = true
	}

	// It is Ready as soon as it takes writes; a standby with every commit follows a moment later.
	eventually(t, "it survives the loss of a zone", func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
		if err != nil {
			return err
		}
		if got.Status.Resilience == nil || !slices.Contains(got.Status.Resilience.Survives, "zone") {
			return fmt.Errorf("resilience is %+v", got.Status.Resilience)
		}

		return nil
	})

	secret, err := get(t.Context(), &corev1.Secret{}, d.Namespace, d.Name+"-api")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"type", "host", "port", "database", "username", "password", "uri", "multi-host-uri", "jdbc-url", "ca.crt"} {
		if len(secret.Data[key]) == 0 {
			t.Errorf("the Secret of the consumer lacks %s", key)
		}
	}

	api, reports := psql(t, d, "api"), psql(t, d, "reports")
	api.must(t, `create table items (id int primary key, name text); insert into items values (1, 'one')`)
	// It reads from a standby, which applies a row a moment after the commit.
	eventually(t, "a consumer that may only read finds the row that the other wrote", func(context.Context) error {
		out, err := reports.run(t, `select name from items`)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if strings.TrimSpace(out) != "one" {
			return fmt.Errorf("it finds %q", out)
		}

		return nil
	})
	if out, err := reports.run(t, `insert into items values (2, 'two')`); err == nil {
		t.Errorf("a consumer that only reads could write: %s", out)
	}
	if out := api.must(t, `select tableowner from pg_tables where tablename = 'items'`); out != "orders_owner" {
		t.Errorf("the table belongs to %q, want the owner of the database", out)
	}
	if out, err := api.run(t, `\c audit`); err == nil {
		t.Errorf("a consumer could connect to the database of others: %s", out)
	}
	if out := api.must(t, `select count(*) from pg_extension where extname in ('pg_trgm', 'pg_stat_statements')`); out != "2" {
		t.Errorf("%s of 2 extensions are there", out)
	}
	if out := api.must(t, `show work_mem`); out != "5MB" {
		t.Errorf("work_mem is %q", out)
	}
	if out := api.must(t, `set role none; select ssl::text || ' ' || version from pg_stat_ssl where pid = pg_backend_pid()`); !strings.HasPrefix(out, "true TLSv1.") {
		t.Errorf("the connection is %q, want TLS", out)
	}
}

// consumersComeAndGo: a removed consumer can no longer log in, and its objects stay.
func consumersComeAndGo(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	api := psql(t, d, "api")
	edit := d.DeepCopy()
	edit.Spec.Consumers = edit.Spec.Consumers[:2]
	if err := apply(t.Context(), edit); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the consumer cannot log in any more", func(context.Context) error {
		out, err := api.run(t, `select rolcanlogin from pg_roles where rolname = 'reports'`)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if strings.TrimSpace(out) != "f" {
			return fmt.Errorf("rolcanlogin is %q", out)
		}

		return nil
	})
	if out := api.must(t, `select count(*) from items`); out != "1" {
		t.Errorf("%s rows are left", out)
	}
}

// quiet: an idle database causes no write by Capstan or Crossplane.
func quiet(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	eventually(t, "it runs", running(d))
	// The last pass after a change comes half a minute later, and passes continue for five minutes after Crossplane's
	// breaker has opened.
	const settled = 40 * time.Second
	within(t, 4*timeout, "what went before has settled", func(context.Context) error {
		before := audit(t)
		time.Sleep(settled)
		if w := of(writes(before()), d.Namespace); len(w) > 0 {
			return fmt.Errorf("%d writes in %s: %s", len(w), settled, tally(w, 1))
		}

		return nil
	})
	since, start := audit(t), time.Now()
	time.Sleep(idleTime(t))
	if w := of(writes(since()), d.Namespace); len(w) > 0 {
		t.Errorf("%d writes while nothing happened: %s", len(w), tally(w, 1))
	}
	t.Logf("requests of Capstan and Crossplane in %s: %s", time.Since(start).Round(time.Second), tally(of(since(), d.Namespace), 1))
}

// isProtected: no Database, volume or Secret of a volume can be deleted by mistake.
func isProtected(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	object := metav1.ObjectMeta{Namespace: d.Namespace}
	for name, o := range map[string]client.Object{
		d.Name:                    &v1alpha1.Database{ObjectMeta: object},
		"data-" + d.Name + "-a-0": &corev1.PersistentVolumeClaim{ObjectMeta: object},
		d.Name + "-api":           &corev1.Secret{ObjectMeta: object},
		d.Name + "-access":        &corev1.Secret{ObjectMeta: object},
	} {
		o.SetName(name)
		if err := kube.Delete(t.Context(), o); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("to delete %T %s gave %v, want a refusal", o, name, err)
		}
	}
}

// comesBack: a Database that is deleted and applied again has its data, identity and Secrets.
func comesBack(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	ns := d.Namespace
	api := connect(t, d, "api")
	api.must(t, dialectOf(d).thousand)
	api.end(t)
	before, err := get(t.Context(), &corev1.Secret{}, ns, d.Name+"-api")
	if err != nil {
		t.Fatal(err)
	}
	was, err := get(t.Context(), &v1alpha1.Database{}, ns, d.Name)
	if err != nil {
		t.Fatal(err)
	}

	open := d.DeepCopy()
	open.Spec.DeletionProtection = new(false)
	if err := apply(t.Context(), open); err != nil {
		t.Fatal(err)
	}
	if err := kube.Delete(t.Context(), d.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing but data and Secrets is left", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(d), &v1alpha1.Database{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Database is still there (%w)", err)
		}
		maps := &corev1.ConfigMapList{}
		if err := kube.List(ctx, maps, client.InNamespace(ns), client.MatchingLabels{observev1alpha1.LabelDatabase: d.Name}); err != nil {
			return err
		}
		if n := len(members(ctx, t, d)); n > 0 || len(maps.Items) > 0 {
			return fmt.Errorf("%d members and %d ConfigMaps are left", n, len(maps.Items))
		}

		return nil
	})

	start := time.Now()
	if err := apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	within(t, creation, "it is Ready again", running(d))
	t.Logf("back after %s", time.Since(start))

	after, err := get(t.Context(), &corev1.Secret{}, ns, d.Name+"-api")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"password", "uri", "ca.crt"} {
		if string(before.Data[key]) != string(after.Data[key]) {
			t.Errorf("%s of the consumer's Secret changed", key)
		}
	}
	is, err := get(t.Context(), &v1alpha1.Database{}, ns, d.Name)
	if err != nil {
		t.Fatal(err)
	}
	if is.Status.Identity == "" || is.Status.Identity != was.Status.Identity {
		t.Errorf("the identity was %q and is %q", was.Status.Identity, is.Status.Identity)
	}
	if out := connect(t, d, "api").must(t, `select count(*) from kept`); out != "1000" {
		t.Errorf("%s of 1000 rows are back", out)
	}
}
