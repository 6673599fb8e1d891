// SPDX-License-Identifier: Apache-2.0

//go:build integration

package web

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	xpextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"

	"github.com/capstan-dev/capstan/apis"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/console/internal/kube"
	"github.com/capstan-dev/capstan/console/internal/session"
	"github.com/capstan-dev/capstan/internal/plan"
	"github.com/capstan-dev/capstan/test/browser"
	"github.com/capstan-dev/capstan/test/outside"
)

// A world has a real API server with the kinds of Capstan, a console, and a browser.
type world struct {
	*browser.Browser

	t      *testing.T
	people *kubernetes.Clientset
	admin  dynamic.Interface
}

func newWorld(t *testing.T, change ...func(*Options)) world {
	t.Helper()
	config := outside.APIServer(t)
	install(t, config, apis.Algorithm, apis.Database, apis.Training)
	people, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := session.New([]byte(strings.Repeat("k", 32)), false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	server := httptest.NewUnstartedServer(nil)
	address, _ := url.Parse("http://" + server.Listener.Addr().String())
	options := Options{
		URL: address, Kube: kube.NewServer(config), Sessions: sessions, Paste: true, Streams: 10, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Version: "v0.0.0",
	}
	for _, c := range change {
		c(&options)
	}
	server.Config.Handler = New(ctx, options)
	server.Start()
	t.Cleanup(func() {
		stop()
		server.CloseClientConnections()
		server.Close()
	})

	return world{Browser: browser.Start(t, address.String()), t: t, people: people, admin: admin}
}

// person with rights on the kinds of Capstan in a namespace of that name, and the token.
func (w world) person(ns string) string {
	w.t.Helper()
	ctx := w.t.Context()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	who := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "person"}}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "person"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"capstan.dev", "storage.capstan.dev", "registry.capstan.dev"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{APIGroups: []string{"observe.capstan.dev"}, Resources: []string{"analyses"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"list"}},
	}}
	may := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "person"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "person"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "person"}},
	}
	if _, err := w.people.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.people.CoreV1().ServiceAccounts(ns).Create(ctx, who, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.people.RbacV1().Roles(ns).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.people.RbacV1().RoleBindings(ns).Create(ctx, may, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	got, err := w.people.CoreV1().ServiceAccounts(ns).CreateToken(ctx, "person", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}

	return got.Status.Token
}

func (w world) logIn(token string) {
	w.t.Helper()
	w.Open("/login")
	w.Fill("token", token)
	w.Press("main form button")
	w.Sees("Namespaces")
}

// TestPages: people create, edit at the same time, and see each other's changes, on a real API server.
func TestPages(t *testing.T) {
	w := newWorld(t)
	shop, bank := w.person("shop"), w.person("bank")
	w.Open("/n/shop")
	w.Sees("Log in")
	w.Fill("token", "wrong")
	w.Press("main form button")
	w.Sees("The API server does not accept this token")
	w.logIn(shop)

	// The form alone gives what was typed and nothing else.
	w.Open("/n/shop/databases/new")
	w.Fill("f-name", "orders-db")
	w.Choose("f-engine", "postgres")
	w.Fill("f-version", "17")
	w.Fill("f-replicas", "3")
	w.Fill("f-storage", "50")
	w.Click("check")
	w.Sees("spec.storage", "must be")
	w.Fill("f-storage", "50Gi")
	w.Click("check")
	w.Sees("The API server accepts it")
	w.Click("apply")
	w.Sees("Database orders-db", "It is created")
	databases := w.admin.Resource(v1alpha1.GroupVersion.WithResource("databases")).Namespace("shop")
	got, err := databases.Get(t.Context(), "orders-db", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec, _ := got.Object["spec"].(map[string]any)
	for name := range spec {
		switch name {
		case "engine", "version", "replicas", "storage", "deletionProtection", "hibernated", "crossplane":
		default:
			t.Errorf("the form set spec.%s, which nobody typed: %v", name, spec[name])
		}
	}

	// A name that exists.
	w.Open("/n/shop/databases/new")
	w.SeesNot("orders-db")
	w.Fill("f-name", "orders-db")
	w.Choose("f-engine", "postgres")
	w.Fill("f-version", "17")
	w.Fill("f-replicas", "3")
	w.Fill("f-storage", "50Gi")
	w.Click("check")
	w.Sees("The name is taken")

	// Somebody else edits meanwhile.
	w.Open("/n/shop/databases/o/orders-db/edit")
	w.Fill("f-replicas", "5")
	patch := []byte(`{"spec": {"storage": "60Gi", "replicas": 4}}`)
	if _, err := databases.Patch(t.Context(), "orders-db", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Click("check")
	w.Screenshot("console-conflict")
	w.Sees("Another user changed it meanwhile", "Both of you changed: spec.replicas", "60Gi")
	w.Click("check")
	w.Sees("The API server accepts it", "replicas: 5")
	w.Click("apply")
	w.Sees("The change is applied")
	if got, err = databases.Get(t.Context(), "orders-db", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	spec, _ = got.Object["spec"].(map[string]any)
	if fmt.Sprintf("%v %v", spec["replicas"], spec["storage"]) != "5 60Gi" {
		t.Errorf("want the changes of both, got %v", spec)
	}

	// What changes is seen without loading the page again.
	member := func(name, role, state, zone string) any {
		return map[string]any{"name": "orders-db-" + name, "role": role, "state": state, "zone": zone, "node": "node-" + name, "lag": "InSync", "updated": true}
	}
	got.Object["status"] = map[string]any{
		"phase": "Running", "leader": "orders-db-b", "readyReplicas": int64(3), "replicas": int64(3), "version": "17.6",
		"endpoints": map[string]any{"readWrite": "orders-db-rw.shop.svc:5432", "readOnly": "orders-db-ro.shop.svc:5432"},
		"members":   []any{member("a", "SyncStandby", "Streaming", "west"), member("b", "Leader", "Running", "east"), member("c", "Replica", "Streaming", "north")},
		"backup":    map[string]any{"stanza": "s", "last": map[string]any{"id": "20261126-060000F", "at": time.Now().Add(-2 * time.Hour).UTC().Format(time.RFC3339)}, "earliestRestorable": "2026-11-20T06:00:00Z"},
	}
	if got, err = databases.UpdateStatus(t.Context(), got, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until(20*time.Second, "document.getElementById('phase').textContent === 'Running'")
	w.Sees("orders-db-rw.shop.svc:5432", "2 h ago")
	w.Screenshot("console-database")
	w.Open("/n/shop")
	w.Sees("3 of 5 members, 60Gi each", "2 h ago")
	w.Screenshot("console-namespace")
	w.Open("/n/shop/databases/o/orders-db")

	// A message of others is a text.
	hostile := `<script>alert(1)</script><img src=x onerror="alert(2)">`
	got.Object["status"] = map[string]any{
		"phase": "Degraded", "leader": hostile, "readyReplicas": int64(1), "replicas": int64(3),
		"members":    []any{map[string]any{"name": hostile, "zone": hostile, "role": hostile, "state": hostile, "node": hostile, "lag": hostile, "updated": true}},
		"conditions": []any{map[string]any{"type": "Available", "status": "False", "reason": "NoLeader", "message": hostile, "lastTransitionTime": "2026-11-26T09:00:00Z"}},
	}
	if _, err := databases.UpdateStatus(t.Context(), got, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until(20*time.Second, "document.getElementById('phase').textContent === 'Degraded'")
	w.Sees("Needs attention", hostile)
	w.Open("/n/shop")
	w.Sees("Degraded")
	if n := browser.Value[int](w.Browser, "document.querySelectorAll('main script, main img').length"); n != 0 {
		t.Errorf("%d elements came from messages", n)
	}
	w.audit("/n/shop", "/n/shop/databases/o/orders-db", "/n/shop/databases/o/orders-db/edit", "/n/shop/algorithms/new")

	// Somebody without rights there.
	w.Press("body > header button")
	w.Sees("You are logged out")
	w.logIn(bank)
	w.Open("/n/shop/databases/o/orders-db")
	w.Sees("You may not get databases.capstan.dev in namespace shop")
	w.Open("/n/shop")
	w.Sees("You may not list databases.capstan.dev in namespace shop")
	w.SeesNot("orders-db")
	if ran := w.Ran(); len(ran) > 0 {
		t.Errorf("scripts opened dialogs or failed: %q", ran)
	}
}

// TestPlanOnPage: the page of a draft that was checked gets its plan, with what this user may read, and without a load.
func TestPlanOnPage(t *testing.T) {
	w := newWorld(t)
	w.logIn(w.person("shop"))
	const planned = "document.getElementById('plan-state').textContent === 'The plan is ready.'"
	w.Open("/n/shop/databases/new")
	w.Fill("f-name", "orders-db")
	w.Choose("f-engine", "postgres")
	w.Fill("f-version", "17")
	w.Fill("f-replicas", "2")
	w.Fill("f-storage", "50Gi")
	w.Click("check")
	w.Sees("The API server accepts it", "What it would become")
	w.Until(time.Minute, planned)
	w.Sees("would be created", "StatefulSet orders-db-a", "In the end it is ready.", "You may not read EnvironmentConfig capstan: it is taken as not there.")
	w.SeesNot("Show the plan", "would be removed")
	w.Click("apply")
	w.Sees("Database orders-db", "It is created")

	// Crossplane has composed it. The person may read none of that, which stands in.
	databases := w.admin.Resource(v1alpha1.GroupVersion.WithResource("databases")).Namespace("shop")
	got, err := databases.Get(t.Context(), "orders-db", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	end, err := plan.Surroundings{Version: "v0.0.0", Now: time.Now()}.Of(t.Context(), got.DeepCopy().Object)
	if err != nil || !end.Ready {
		t.Fatalf("the Database should run: %v, %v", end.Waits, err)
	}
	refs, _, _ := unstructured.NestedSlice(end.End.XR, "spec", "crossplane", "resourceRefs")
	if err := unstructured.SetNestedSlice(got.Object, refs, "spec", "crossplane", "resourceRefs"); err != nil {
		t.Fatal(err)
	}
	if _, err := databases.Update(t.Context(), got, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Open("/n/shop/databases/o/orders-db/edit")
	w.Set("f-resources.cpu", "2")
	w.Click("check")
	w.Until(time.Minute, planned)
	w.Sees("pods of 2 restart", "StatefulSet orders-db-a, StatefulSet orders-db-b", "spec.resources.cpu: Restart", "each is taken to be as the planner makes it.")
	// The person may read VolumeClaims, and there is none.
	w.Sees("1 would be created\nVolumeClaim orders-db\n")
	w.SeesNot("would be removed")
	if ran := w.Ran(); len(ran) > 0 {
		t.Errorf("scripts opened dialogs or failed: %q", ran)
	}
}

// audit pages with axe, where CAPSTAN_AXE names its file: nothing serious may be wrong.
func (w world) audit(paths ...string) {
	w.t.Helper()
	file := os.Getenv("CAPSTAN_AXE")
	if file == "" {
		return
	}
	axe, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, path := range paths {
		w.Open(path)
		browser.Value[bool](w.Browser, string(axe)+"; true")
		if n := browser.Wait[int](w.Browser, "axe.run().then((r) => r.passes.length)"); n == 0 {
			w.t.Errorf("%s: axe has checked nothing", path)
		}
		found := browser.Wait[[]string](w.Browser, `axe.run().then((r) => r.violations.filter((v) => ['serious', 'critical'].includes(v.impact))
			.flatMap((v) => v.nodes.map((n) => v.id + ': ' + v.help + ': ' + n.html)))`)
		for _, f := range found {
			w.t.Errorf("%s: %s", path, f)
		}
	}
}

// TestCost loads the list of a namespace with 500 objects, as they are when they run and some are blocked.
func TestCost(t *testing.T) {
	w := newWorld(t)
	w.logIn(w.person("shop"))
	run := func(resource, kind, name string, spec, status map[string]any) {
		t.Helper()
		u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		u.SetAPIVersion(v1alpha1.GroupVersion.String())
		u.SetKind(kind)
		u.SetName(name)
		objects := w.admin.Resource(v1alpha1.GroupVersion.WithResource(resource)).Namespace("shop")
		got, err := objects.Create(t.Context(), u, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got.Object["status"] = status
		if _, err := objects.UpdateStatus(t.Context(), got, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 250 {
		var conditions []any
		if i%5 == 0 {
			conditions = []any{map[string]any{
				"type": "Ready", "status": "False", "reason": "ImagePullFailed", "lastTransitionTime": "2026-11-26T09:00:00Z",
				"message": "the image registry.example.org/algo/recommendation:2.1.5 does not exist: correct spec.image, or push it to the registry" + strings.Repeat(" and wait", 20),
			}}
		}
		algorithm, db := fmt.Sprintf("recommendation-engine-%d", i), fmt.Sprintf("orders-database-%d", i)
		run("algorithms", "Algorithm", algorithm, map[string]any{"image": "registry.example.org/algo/recommendation:2.1.4"}, map[string]any{
			"phase": "Ready", "replicas": int64(3), "readyReplicas": int64(3), "endpoint": "http://" + algorithm + ".shop.svc", "conditions": conditions,
			"rollout": map[string]any{"phase": "Stepping", "epoch": int64(3), "weight": int64(20)},
		})
		run("databases", "Database", db, map[string]any{"engine": "postgres", "version": "17", "replicas": int64(3), "storage": "50Gi"}, map[string]any{
			"phase": "Running", "readyReplicas": int64(3), "endpoints": map[string]any{"readWrite": db + "-rw.shop.svc:5432"}, "conditions": conditions,
			"backup": map[string]any{"stanza": "s", "last": map[string]any{"id": "20261126-060000F", "at": time.Now().Add(-2 * time.Hour).UTC().Format(time.RFC3339)}},
		})
	}
	cost := w.Cost("/n/shop")
	w.Sees("recommendation-engine-249", "orders-database-249")
	// The time is of a busy machine: it is measured and not judged.
	if cost.Bytes > 300_000 {
		t.Errorf("the list has %.0f bytes, want at most 300 kB", cost.Bytes)
	}
}

// install the kinds that Crossplane makes of definitions, and Analyses.
func install(t *testing.T, config *rest.Config, definitions ...[]byte) {
	t.Helper()
	var crds []*extv1.CustomResourceDefinition
	for _, text := range definitions {
		xrd := &xpextv1.CompositeResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, xrd); err != nil {
			t.Fatal(err)
		}
		crd, err := xcrd.ForCompositeResource(xrd)
		if err != nil {
			t.Fatal(err)
		}
		// The owner is the definition, which has no UID here.
		crd.OwnerReferences = nil
		crds = append(crds, crd)
	}
	composed := []string{filepath.Join("..", "..", "..", "package", "provider", "crds", "observe.capstan.dev_analyses.yaml")}
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: crds, Paths: composed, ErrorIfPathMissing: true}); err != nil {
		t.Fatal(err)
	}
}
