// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// copying is the maximum time until a Preview with a small copy of a Database is ready, on a machine that is busy.
const copying = 8 * time.Minute

// preview with a specification.
func preview(ns, name string, spec v1alpha1.PreviewSpec) *v1alpha1.Preview {
	return &v1alpha1.Preview{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Preview"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       spec,
	}
}

// previewed fails until the status of a Preview is as it should be.
func previewed(ns, name string, is func(v1alpha1.PreviewStatus) bool) func(context.Context) error {
	return func(ctx context.Context) error {
		p, err := get(ctx, &v1alpha1.Preview{}, ns, name)
		if err != nil {
			return err
		}
		if !is(p.Status) {
			return fmt.Errorf("the Preview is %s, url %q, copies %+v: %+v", p.Status.Phase, p.Status.URL, p.Status.Copies, p.Status.Conditions)
		}
		return nil
	}
}

// previewSays fails until a condition of a Preview has a reason, and words in its message.
func previewSays(ns, name string, ct xpv2.ConditionType, reason xpv2.ConditionReason, words ...string) func(context.Context) error {
	return previewed(ns, name, func(st v1alpha1.PreviewStatus) bool {
		c := st.GetCondition(ct)
		return c.Reason == reason && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(c.Message, w) })
	})
}

// inPhase fails until a Preview is in a phase.
func inPhase(ns, name string, phase v1alpha1.PreviewPhase) func(context.Context) error {
	return previewed(ns, name, func(st v1alpha1.PreviewStatus) bool { return st.Phase == phase })
}

// patchPreview edits the spec of a Preview.
func patchPreview(t *testing.T, ns, name, fields string, values ...any) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":`+fields+`}`, values...)
	if err := kube.Patch(t.Context(), preview(ns, name, v1alpha1.PreviewSpec{}), client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// ofPreview lists what exists of a Preview: everything whose name begins with its own.
func ofPreview(ctx context.Context, ns, name string) ([]string, error) {
	lists := []client.ObjectList{
		&v1alpha1.AlgorithmList{}, &v1alpha1.DatabaseList{}, &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &corev1.PodList{},
		&corev1.PersistentVolumeClaimList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.ServiceList{},
		&credentialsv1alpha1.CredentialList{}, &observev1alpha1.TopologyList{}, &storagev1alpha1.BucketList{},
	}
	var found []string
	for _, l := range lists {
		if err := kube.List(ctx, l, client.InNamespace(ns)); err != nil {
			return nil, err
		}
		items, err := meta.ExtractList(l)
		if err != nil {
			return nil, err
		}
		for _, i := range items {
			o, err := meta.Accessor(i)
			if err != nil {
				return nil, err
			}
			if ofName(o.GetName(), name) {
				found = append(found, fmt.Sprintf("%T %s", i, o.GetName()))
			}
		}
	}
	return found, nil
}

// ofName reports whether the name of an object begins with that of a Preview.
func ofName(object, preview string) bool {
	return object == preview || strings.HasPrefix(object, preview+"-") || strings.HasPrefix(object, "data-"+preview+"-") || strings.HasPrefix(object, preview+".")
}

// nothingOf fails until nothing of a Preview exists.
func nothingOf(ns, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		left, err := ofPreview(ctx, ns, name)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("left: %s", strings.Join(left, ", "))
		}
		return err
	}
}

// backupObjects are the objects in the bucket of a Database, with the hash of each.
func backupObjects(t *testing.T, d *v1alpha1.Database) map[string]string {
	t.Helper()
	secret, err := get(t.Context(), &corev1.Secret{}, d.Namespace, d.Name+"-pg-backup-bucket")
	if err != nil {
		t.Fatal(err)
	}
	c := s3.New(s3.Options{
		BaseEndpoint: aws.String("https://s3.outside.svc"), Region: "us-east-1", UsePathStyle: true, HTTPClient: outsideClient(t),
		Credentials: credentials.NewStaticCredentialsProvider(string(secret.Data["accessKeyId"]), string(secret.Data["secretAccessKey"]), ""),
	})
	objects := map[string]string{}
	pages := s3.NewListObjectsV2Paginator(c, &s3.ListObjectsV2Input{Bucket: aws.String(string(secret.Data["bucket"]))})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Contents {
			objects[*o.Key] = *o.ETag
		}
	}
	return objects
}

// apart lists what is in a namespace beside what Previews with a prefix have, each with its uid. Pods and what ends by itself are left out.
func apart(t *testing.T, ns, prefix string) map[string]types.UID {
	t.Helper()
	lists := []client.ObjectList{
		&v1alpha1.AlgorithmList{}, &v1alpha1.DatabaseList{}, &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &corev1.PersistentVolumeClaimList{},
		&corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.ServiceList{}, &credentialsv1alpha1.CredentialList{}, &storagev1alpha1.BucketList{},
	}
	all := map[string]types.UID{}
	for _, l := range lists {
		if err := kube.List(t.Context(), l, client.InNamespace(ns)); err != nil {
			t.Fatal(err)
		}
		items, err := meta.ExtractList(l)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range items {
			o, err := meta.Accessor(i)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(o.GetName(), prefix) && !strings.HasPrefix(o.GetName(), "data-"+prefix) {
				all[fmt.Sprintf("%T %s", i, o.GetName())] = o.GetUID()
			}
		}
	}
	return all
}

// TestPreviewOfBoth makes a copy of an Algorithm and of a Database with its data, reaches it under its own address, and lets its time pass while
// Crossplane does not run: nothing is left but the record, and the originals are as they were. What is not the preview's is never taken
// over or deleted. The data is masked as the owner of the original demands, and a mask that fails hands nothing out.
func TestPreviewOfBoth(t *testing.T) {
	ns := namespace(t)
	d := database(ns, "orders-db", func(d *v1alpha1.Database) {
		d.Annotations = map[string]string{v1alpha1.AnnotationPreviews: v1alpha1.PreviewsAllowed, v1alpha1.AnnotationPreviewsMask: "orders-mask"}
		d.Spec.Replicas = 1
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "app"}, {Name: "auditor", Access: v1alpha1.ConsumerReadOnly}}
		d.Spec.Backup = &v1alpha1.DatabaseBackup{OnDelete: v1alpha1.BackupsDeleted}
	})
	base := algorithm(ns, "shop", func(a *v1alpha1.Algorithm) {
		a.Annotations = map[string]string{v1alpha1.AnnotationPreviews: v1alpha1.PreviewsAllowed}
		a.Spec.Env = []v1alpha1.EnvVar{{Name: "DATABASE_URI", ValueFrom: &v1alpha1.EnvVarSource{
			SecretKeyRef: &v1alpha1.KeyReference{Name: "orders-db-app", Key: "uri"},
		}}}
	}, routed("shop."+ns+".example.org"))
	plain := algorithm(ns, "plain")
	taken := algorithm(ns, "taken")
	for _, a := range []*v1alpha1.Algorithm{base, plain, taken} {
		if err := apply(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []*corev1.ConfigMap{
		{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "orders-mask"}, Data: map[string]string{
			v1alpha1.KeyMask: `[{database: orders_db, sql: "update ledger set owner = 'person ' || id"}]`,
		}},
		// The label alone makes nothing the Preview's.
		{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "notes", Labels: map[string]string{v1alpha1.LabelPreview: "pr-1"}}},
	} {
		if err := apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if t.Failed() {
			for _, name := range []string{"pr-1", "pr-2", "pr-3", "taken"} {
				t.Log(previewed(ns, name, func(v1alpha1.PreviewStatus) bool { return false })(ctx))
			}
			c := d.DeepCopy()
			c.Name = "pr-1-db"
			t.Log(reportDatabase(ctx, c))
		}
		_ = kube.DeleteAllOf(ctx, &v1alpha1.Preview{}, client.InNamespace(ns))
	})
	createDatabase(t, d)
	first := nextBackup(t, d, "")
	app := psql(t, d, "app")
	app.must(t, `create table ledger (id int primary key, owner text); insert into ledger select g, 'jane ' || g from generate_series(1, 50) g`)
	// The rows are in the next backup, which waits for its archive.
	patchBackup(t, d, `{"now":"with-rows"}`)
	nextBackup(t, d, first)
	before := backupObjects(t, d)

	originals := apart(t, ns, "pr-")

	// What is refused changes nothing.
	none := v1alpha1.PreviewSpec{Algorithm: &v1alpha1.PreviewAlgorithm{Of: "plain"}}
	own := v1alpha1.PreviewSpec{Algorithm: &v1alpha1.PreviewAlgorithm{Of: "shop"}}
	for _, p := range []*v1alpha1.Preview{preview(ns, "pr-2", none), preview(ns, "taken", own)} {
		if err := apply(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "an Algorithm that does not allow it is not copied", previewSays(ns, "pr-2", v1alpha1.TypeBaseAllowed, v1alpha1.ReasonPreviewsNotAllowed, "capstan.dev/previews: Allowed"))
	eventually(t, "an Algorithm that exists is not taken over", previewSays(ns, "taken", v1alpha1.TypeComposed, v1alpha1.ReasonRefused, "Algorithm taken exists"))

	host := "pr-1." + ns + ".example.org"
	spec := v1alpha1.PreviewSpec{
		Owner: "jane", TTL: &metav1.Duration{Duration: time.Hour},
		Algorithm: &v1alpha1.PreviewAlgorithm{Of: "shop", Host: host, Env: []v1alpha1.EnvVar{{Name: "PULL_REQUEST", Value: "1"}}},
		Database:  &v1alpha1.PreviewDatabase{Of: d.Name, Data: v1alpha1.PreviewLatest},
	}
	unmasked := v1alpha1.PreviewSpec{TTL: spec.TTL, Database: &v1alpha1.PreviewDatabase{
		Of: d.Name, Data: v1alpha1.PreviewLatest, Mask: &v1alpha1.PreviewMask{Statements: []v1alpha1.MaskStatement{{Database: "orders_db", SQL: "update nothing set id = 1"}}},
	}}
	start := time.Now()
	if err := apply(t.Context(), preview(ns, "pr-1", spec)); err != nil {
		t.Fatal(err)
	}
	within(t, copying, "the Preview is ready", inPhase(ns, "pr-1", v1alpha1.PreviewReady))
	t.Logf("the Preview is ready after %s", time.Since(start).Round(time.Second))
	eventually(t, "its address is in the status", previewed(ns, "pr-1", func(st v1alpha1.PreviewStatus) bool { return strings.Contains(st.URL, host) }))
	eventually(t, "it answers there", answers(host, "/predict", http.StatusOK))
	copied, err := get(t.Context(), &v1alpha1.Database{}, ns, "pr-1-db")
	if err != nil {
		t.Fatal(err)
	}
	inCopy := psql(t, copied, "app")
	if got := inCopy.must(t, `select count(*) from ledger`); got != "50" {
		t.Errorf("the copy has %s rows, want 50", got)
	}
	if got := inCopy.must(t, `select count(*) from ledger where owner like '%jane%'`); got != "0" {
		t.Errorf("the copy has %s rows that are not masked, want 0", got)
	}
	inCopy.must(t, `insert into ledger values (1000)`)
	if got := app.must(t, `select count(*) from ledger where owner like 'jane%'`); got != "50" {
		t.Errorf("the original has %s rows as they were, want 50", got)
	}
	inCopy.end(t)
	// One after the other: a restore on a busy node of two cores takes minutes.
	if err := apply(t.Context(), preview(ns, "pr-3", unmasked)); err != nil {
		t.Fatal(err)
	}
	within(t, copying, "a mask that fails is reported with its statement", previewSays(ns, "pr-3", v1alpha1.TypePreviewReady, v1alpha1.ReasonCopyNotReady,
		"statement 2 of 2", `relation \"nothing\" does not exist`))
	within(t, timeout, "its consumers cannot log in", previewed(ns, "pr-3", func(st v1alpha1.PreviewStatus) bool {
		return !slices.ContainsFunc(st.ConnectionSecrets, func(s v1alpha1.PreviewSecret) bool { return s.Ready })
	}))
	if len(copied.Spec.Consumers) != 1 || copied.Spec.Consumers[0].Name != "app" {
		t.Errorf("the copy has consumers %v, want the one that its Algorithm uses", copied.Spec.Consumers)
	}
	a, err := get(t.Context(), &v1alpha1.Algorithm{}, ns, "pr-1")
	if err != nil || len(a.Spec.Env) != 2 || a.Spec.Env[0].ValueFrom.SecretKeyRef.Name != "pr-1-db-app" {
		t.Errorf("the copy should use the Secret of the Preview's Database, got %+v, %v", a.Spec.Env, err)
	}

	// Its time passes while Crossplane does not run: nothing but the time decides.
	for _, name := range []string{"pr-2", "pr-3", "taken"} {
		if err := kube.Delete(t.Context(), preview(ns, name, none)); err != nil {
			t.Fatal(err)
		}
	}
	within(t, 2*timeout, "nothing is left of the Preview that failed", nothingOf(ns, "pr-3"))
	end := time.Now().Add(2 * time.Minute)
	patchPreview(t, ns, "pr-1", `{"ttl":null,"expiresAt":%q}`, end.UTC().Format(time.RFC3339))
	eventually(t, "the new time is in the status", previewed(ns, "pr-1", func(st v1alpha1.PreviewStatus) bool {
		return st.ExpiresAt != nil && time.Until(st.ExpiresAt.Time) < 3*time.Minute
	}))
	again := stopCapstan(t)
	if time.Now().After(end) {
		again()
		t.Fatal("Capstan was to be stopped before the time was up")
	}
	time.Sleep(time.Until(end.Add(10 * time.Second)))
	if left, err := ofPreview(t.Context(), ns, "pr-1"); err != nil || len(left) == 0 {
		t.Errorf("without Crossplane nothing should be removed, got %v, %v", left, err)
	}
	again()
	within(t, 2*timeout, "nothing is left but the record", nothingOf(ns, "pr-1"))
	eventually(t, "the record says so", previewed(ns, "pr-1", func(st v1alpha1.PreviewStatus) bool {
		return st.Phase == v1alpha1.PreviewExpired && st.ExpiredAt != nil && len(st.Copies) == 2 && st.Copies[0].State == v1alpha1.CopyRemoved
	}))

	// The originals are as they were.
	after := backupObjects(t, d)
	maps.DeleteFunc(before, func(key, hash string) bool { return after[key] == hash })
	if len(before) > 0 {
		t.Errorf("objects of the backups were changed: %v", before)
	}
	for key := range after {
		if strings.Contains(key, "pr-") {
			t.Errorf("object %s is a preview's", key)
		}
	}
	now := apart(t, ns, "pr-")
	maps.DeleteFunc(originals, func(name string, uid types.UID) bool { return now[name] == uid })
	if len(originals) > 0 {
		t.Errorf("what is not the preview's was removed or made again: %v", slices.Sorted(maps.Keys(originals)))
	}
	if got := app.must(t, `select count(*) from ledger`); got != "50" {
		t.Errorf("the original has %s rows, want 50", got)
	}
	for _, name := range []string{"shop", "plain", "taken"} {
		eventually(t, "Algorithm "+name+" serves", ready(ns, name, v1alpha1.PhaseReady, 1))
	}

	// A longer time makes it again; without its Database, which is quicker. Then it is deleted.
	patchPreview(t, ns, "pr-1", `{"database":null,"expiresAt":%q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	within(t, 2*timeout, "it is made again", inPhase(ns, "pr-1", v1alpha1.PreviewReady))
	if err := kube.Delete(t.Context(), preview(ns, "pr-1", spec)); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "a Preview that is deleted leaves nothing", nothingOf(ns, "pr-1"))
}
