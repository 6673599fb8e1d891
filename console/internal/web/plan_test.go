// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/console/internal/kube"
	"github.com/capstan-dev/capstan/console/internal/session"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/internal/plan"
)

const (
	databasesPath = "/apis/capstan.dev/v1alpha1/namespaces/shop/databases"
	plannedOrders = `{apiVersion: capstan.dev/v1alpha1, kind: Database, metadata: {name: orders-db, namespace: shop}, spec: {engine: postgres, version: "17", replicas: 2, storage: 10Gi}}`
)

// run a Database on the API server, with everything that is composed of it.
func (r *rig) run(text string) {
	r.t.Helper()
	var xr map[string]any
	if err := yaml.Unmarshal([]byte(text), &xr); err != nil {
		r.t.Fatal(err)
	}
	p, err := plan.Surroundings{Version: "v1", Now: time.Now()}.Of(r.t.Context(), xr)
	if err != nil || !p.Ready {
		r.t.Fatalf("the Database should run: %v, %v", p.Waits, err)
	}
	metadata, _ := p.End.XR["metadata"].(map[string]any)
	metadata["resourceVersion"] = "7"
	r.api.objects[databasesPath+"/orders-db"] = p.End.XR
	for _, o := range p.End.Objects {
		r.api.objects[pathOf(o)] = o
	}
}

// pathOf a composed object.
func pathOf(o map[string]any) string {
	resource := kube.ResourceOf(compose.Text(o, "apiVersion"), compose.Text(o, "kind"))
	group := "/apis/" + resource.Group
	if resource.Group == "" {
		group = "/api"
	}

	return group + "/" + resource.Version + "/namespaces/shop/" + resource.Resource + "/" + compose.Text(o, "metadata", "name")
}

// checked page of a draft, and the form on it.
func (r *rig) checked(t *testing.T, path string, change map[string]string) (string, url.Values) {
	t.Helper()
	values := formOf(t, page2(r, path))
	for name, v := range change {
		values.Set(name, v)
	}
	values.Set("do", "check")
	_, page := r.post(path, values)
	sees(t, page, "The API server accepts it")

	return page, formOf(t, page)
}

// TestPlan: a draft that was checked has a plan, made with the rights of its user, which changes nothing.
func TestPlan(t *testing.T) {
	const edit, create, right = "/n/shop/databases/o/orders-db/edit", "/n/shop/databases/new", `forbidden: User "x" cannot get resource "y"`
	cases := map[string]struct {
		reason string
		path   string
		change map[string]string
		// hidden objects, and those that the user may read beside the namespace's.
		hidden, may []string
		sent        map[string]string
		want, not   []string
	}{
		"New": {
			reason: "A new Database has its members in the end, and says what that assumes.", path: create, change: map[string]string{"yaml": plannedOrders},
			want: []string{"would be created", "StatefulSet orders-db-a", "stages", "In the end it is ready.", "You may not read EnvironmentConfig capstan: it is taken as not there.", "cert-manager issues it."},
			not:  []string{"would be removed", "restart", "may change once it is set"},
		},
		"Settings": {
			reason: "The platform's settings count where the user may read them.", path: create, change: map[string]string{"yaml": plannedOrders}, may: []string{"/environmentconfigs/"},
			want: []string{"Certificate orders-db-server"}, not: []string{"You may not read"},
		},
		"Edit": {
			reason: "An edit that restarts says so, with the expected pause.", path: edit, change: map[string]string{fieldPrefix + "resources.cpu": "2"},
			want: []string{"pods of 2 restart", "StatefulSet orders-db-a, StatefulSet orders-db-b", "spec.resources.cpu: Restart", "expected pause of writes", "In the end it is ready."},
			not:  []string{"would be created", "would be removed"},
		},
		"Hidden": {
			reason: "A composed object that the user may not read stands in, and the plan says so.", path: edit, change: map[string]string{fieldPrefix + "resources.cpu": "2"}, hidden: []string{"RoleBinding"},
			want: []string{"pods of 2 restart", "In the end it is ready.", "You may not read RoleBinding orders-db-members: each is taken to be as the planner makes it."},
			not:  []string{"would be created", "would be removed"},
		},
		"Refused": {
			reason: "What the planner refuses has the condition with field, value and remedy.", path: create, change: map[string]string{"yaml": strings.ReplaceAll(plannedOrders, "storage:", "plan: huge, storage:")},
			want: []string{"The planner does not accept it, with what is assumed below.", "No object would be created", "In the end it is not ready.", "Accepted (", "spec.plan", "huge"},
		},
		"Hostile": {
			reason: "A text of the draft stays a text.", path: create, change: map[string]string{"yaml": strings.ReplaceAll(plannedOrders, "storage:", `plan: "<img src=x onerror=alert(2)>", storage:`)},
			want: []string{"The planner does not accept it, with what is assumed below."},
		},
		"Other": {
			reason: "Only what was checked is planned.", path: create, change: map[string]string{"yaml": plannedOrders}, sent: map[string]string{"checked": "other"},
			want: []string{"There is no plan", "check it again"}, not: []string{"would be"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(o *Options) { o.Version = "v1" })
			if tc.path == edit {
				r.run(plannedOrders)
			}
			r.api.objects["/apis/apiextensions.crossplane.io/v1beta1/environmentconfigs/capstan"] = map[string]any{
				"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig", "metadata": map[string]any{"name": "capstan"},
				"data": map[string]any{"database": map[string]any{"issuerRef": map[string]any{"name": "company"}}},
			}
			r.api.may["alice"] = append(r.api.may["alice"], tc.may...)
			for path, o := range r.api.objects {
				if m, ok := o.(map[string]any); ok {
					for _, kind := range tc.hidden {
						if m["kind"] == kind {
							r.api.answers["GET "+path] = status(403, metav1.StatusReasonForbidden, right)
						}
					}
				}
			}
			r.logIn("alices")
			page, values := r.checked(t, tc.path, tc.change)
			sees(t, page, `data-plan="wanted"`, "Show the plan")
			r.api.asked = nil
			for name, v := range tc.sent {
				values.Set(name, v)
			}
			values.Set("do", "plan")
			values.Set("part", "yes")
			rsp, err := r.client.PostForm(r.address+tc.path, values) //nolint:bodyclose // read closes it.
			code, part := r.read(rsp, err)
			if code != http.StatusOK || rsp.Header.Get("X-Part") != "plan" || strings.Contains(part, "<body") {
				t.Errorf("%s want a part of a page, got %d %v\n%s", tc.reason, code, rsp.Header, part)
			}
			sees(t, part, tc.want...)
			for _, w := range tc.not {
				if strings.Contains(part, w) {
					t.Errorf("%s The plan should not have %q:\n%s", tc.reason, w, part)
				}
			}
			harmless(t, tc.path, part)
			for _, asked := range r.api.asked {
				if !strings.HasPrefix(asked, "alice GET ") && !strings.Contains(asked, "dryRun=All") {
					t.Errorf("%s The API server was sent %s", tc.reason, asked)
				}
			}
			if tc.sent != nil {
				return
			}
			// Without a script the button gives the page with its plan.
			values.Del("part")
			_, page = r.post(tc.path, values)
			sees(t, page, append(tc.want, "What changes", `id="apply"`)...)
			if strings.Contains(page, "data-plan") {
				t.Errorf("%s A plan that is there is not wanted", tc.reason)
			}
			if diff := cmp.Diff(values.Get("yaml"), formOf(t, page).Get("yaml")); diff != "" {
				t.Errorf("%s The draft stays: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPlanNotMade: why there is no plan is on the page, and the draft can be applied nevertheless.
func TestPlanNotMade(t *testing.T) {
	const path = "/n/shop/databases/new"
	cases := map[string]struct {
		reason string
		answer metav1.Status
		object any
		code   int
		want   []string
	}{
		"Right": {
			reason: "The right that is missing is named.", answer: status(403, metav1.StatusReasonForbidden, `forbidden: User "x" cannot get resource "databases"`), code: http.StatusOK,
			want: []string{"You lack a right", "You may not get databases.capstan.dev in namespace shop"},
		},
		"Ended": {reason: "The login is over.", answer: status(401, metav1.StatusReasonUnauthorized, "Unauthorized"), code: http.StatusUnauthorized, want: []string{"Your login has ended"}},
		"Many": {
			reason: "An object of too many is not read.", code: http.StatusOK, want: []string{"There is no plan", "it consists of 301 objects"},
			object: map[string]any{
				"apiVersion": "capstan.dev/v1alpha1", "kind": "Database", "metadata": map[string]any{"name": "orders-db", "namespace": "shop"},
				"spec": map[string]any{"crossplane": map[string]any{"resourceRefs": make([]any, mostRead+1)}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.logIn("alices")
			_, values := r.checked(t, path, map[string]string{"yaml": plannedOrders})
			if tc.object != nil {
				r.api.objects[databasesPath+"/orders-db"] = tc.object
			} else {
				r.api.answers["GET "+databasesPath+"/orders-db"] = tc.answer
			}
			values.Set("do", "plan")
			code, page := r.post(path, values)
			if code != tc.code {
				t.Errorf("%s Got %d", tc.reason, code)
			}
			sees(t, page, tc.want...)
			if tc.code == http.StatusOK {
				sees(t, page, `id="apply"`)
			}
		})
	}
}

// TestPlansAreBounded: few are made at the same time, others wait, and a user who wants too many is refused.
func TestPlansAreBounded(t *testing.T) {
	p := newPlans()
	var free []func()
	for range plansAtOnce {
		f, err := p.take(t.Context(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		free = append(free, f)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := p.take(short, "bob"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one more should wait: %v", err)
	}
	waiting := make(chan error, mostPlans)
	for range mostPlans/5 - plansAtOnce {
		go func() {
			f, err := p.take(t.Context(), "alice")
			if err == nil {
				f()
			}
			waiting <- err
		}()
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		p.wanted.mu.Lock()
		n := p.wanted.of["alice"]
		p.wanted.mu.Unlock()
		if n == mostPlans/5 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d plans are wanted", n)
		}
	}
	if _, err := p.take(t.Context(), "alice"); !errors.Is(err, errPlansBusy) {
		t.Errorf("a user has a fifth of them: %v", err)
	}
	for _, f := range free {
		f()
	}
	for range mostPlans/5 - plansAtOnce {
		if err := <-waiting; err != nil {
			t.Errorf("what waited should be made: %v", err)
		}
	}
	if p.wanted.total != 0 || len(p.slots) != 0 {
		t.Errorf("%d are wanted and %d under way", p.wanted.total, len(p.slots))
	}
}

// TestPlanLate: a plan that is not ready in time is ended, and the page says so.
func TestPlanLate(t *testing.T) {
	s := &Server{plans: newPlans()}
	s.plans.timeout = time.Millisecond
	for range plansAtOnce {
		if _, err := s.plans.take(t.Context(), "bob"); err != nil {
			t.Fatal(err)
		}
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	got, err := s.plan(&call{r: r, session: &session.Session{User: "alice"}}, &unstructured.Unstructured{Object: map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&foreseen{Problem: errPlanLate}, got, cmpopts.EquateErrors(), cmpopts.IgnoreUnexported(kube.Problem{})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
