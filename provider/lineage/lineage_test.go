// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/openlineage"
	"github.com/capstan-dev/capstan/provider/internal/openlineage/openlineagetest"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

var began = time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)

// run that began some minutes after the first, and took one if it does not run any more.
func run(name string, minutes int, state v1alpha1.LineageRunState) v1alpha1.LineageRun {
	at := began.Add(time.Duration(minutes) * time.Minute)
	r := v1alpha1.LineageRun{Name: name, StartedAt: metav1.NewTime(at), State: state}
	if state != v1alpha1.LineageRunning {
		r.EndedAt = new(metav1.NewTime(at.Add(time.Minute)))
	}
	return r
}

// writes of a run beside the outputs of all runs.
func writes(r v1alpha1.LineageRun, datasets ...string) v1alpha1.LineageRun {
	for _, d := range datasets {
		namespace, name, _ := strings.Cut(d, " ")
		r.Outputs = append(r.Outputs, v1alpha1.LineageDataset{Namespace: namespace, Name: name})
	}
	return r
}

// lineage of a job with some runs.
func lineage(config string, runs ...v1alpha1.LineageRun) *v1alpha1.Lineage {
	cr := &v1alpha1.Lineage{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "daily-pipeline", UID: "lineage"}}
	cr.Spec.ProviderConfigReference = &xpv2.ProviderConfigReference{Kind: config, Name: apis.DefaultOpenLineageConfig}
	cr.Spec.ForProvider = v1alpha1.LineageParameters{
		Job: "daily", Runs: runs,
		Inputs:  []v1alpha1.LineageDataset{{Namespace: "s3://lake", Name: "raw/clicks"}},
		Outputs: []v1alpha1.LineageDataset{{Namespace: "postgres://orders-db-rw.shop.svc:5432", Name: "shop.public.features"}},
	}
	return cr
}

// reconcile a Lineage once, as the runtime does, with a config of each kind that names the server. Both have the token.
func reconcile(ctx context.Context, t *testing.T, url string, cr *v1alpha1.Lineage, objects ...client.Object) error {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, apis.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	config := &apis.OpenLineageConfig{
		URL: url, JobNamespace: "test/{namespace}",
		Credentials: &apis.HTTPCredentials{Bearer: &apis.BearerCredentials{SecretRef: apis.SecretReference{Name: "lineage"}}, AllowPlaintext: true},
	}
	named := metav1.ObjectMeta{Name: apis.DefaultOpenLineageConfig, UID: "config"}
	own := named
	own.Namespace, own.UID = "shop", "own-config"
	objects = append(objects,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "cluster"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "crossplane-system", Name: "lineage"}, Data: map[string][]byte{"token": []byte("key-of-the-platform\n")}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lineage"}, Data: map[string][]byte{"token": []byte("key-of-shop")}},
		&apis.ClusterProviderConfig{ObjectMeta: named, Spec: apis.ClusterProviderConfigSpec{OpenLineage: config, SecretsNamespace: "crossplane-system"}},
		&apis.ProviderConfig{ObjectMeta: own, Spec: apis.ProviderConfigSpec{OpenLineage: config}})
	guard := &outside.Guard{APIServer: func(context.Context) ([]netip.Addr, error) { return nil, nil }}
	kube := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()
	c := newConnector(outside.NewPool(outside.NewResolver(kube, guard), outside.OpenLineage, openlineage.Service()))
	e, err := c.Connect(ctx, cr)
	if err != nil {
		return err
	}
	if o, err := e.Observe(ctx, cr); err != nil || o.ResourceUpToDate {
		return err
	}
	_, err = e.Update(ctx, cr)
	return err
}

// seen of an event: what a table can say.
type seen struct{ Type, At, Namespace, Job, Processing, Data string }

func read(t *testing.T, bodies []string) (events []seen, ids []string) {
	t.Helper()
	for _, body := range bodies {
		var e struct {
			EventType string `json:"eventType"`
			EventTime string `json:"eventTime"`
			Run       struct {
				ID string `json:"runId"`
			} `json:"run"`
			Job struct {
				Namespace string `json:"namespace"`
				Name      string `json:"name"`
				Facets    struct {
					JobType struct {
						ProcessingType string `json:"processingType"`
					} `json:"jobType"`
				} `json:"facets"`
			} `json:"job"`
			Inputs  []openlineage.Dataset `json:"inputs"`
			Outputs []openlineage.Dataset `json:"outputs"`
		}
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			t.Fatal(err)
		}
		events = append(events, seen{
			e.EventType, strings.TrimPrefix(e.EventTime, "2026-11-20T"), e.Job.Namespace, e.Job.Name, e.Job.Facets.JobType.ProcessingType,
			fmt.Sprint(e.Inputs, " to ", e.Outputs),
		})
		ids = append(ids, e.Run.ID)
	}
	return events, ids
}

const data = "[{s3://lake raw/clicks}] to [{postgres://orders-db-rw.shop.svc:5432 shop.public.features}]"

// TestEvents: each run has one event when it began and one when it ended, in order, and each is sent once.
func TestEvents(t *testing.T) {
	event := func(of, at string) seen { return seen{of, at, "test/shop", "daily", "BATCH", data} }
	cases := map[string]struct {
		reason string
		runs   []v1alpha1.LineageRun
		want   []seen
	}{
		"None":      {reason: "There is nothing to say."},
		"Running":   {reason: "A run that goes on has begun.", runs: []v1alpha1.LineageRun{run("a", 0, v1alpha1.LineageRunning)}, want: []seen{event("START", "03:00:00Z")}},
		"Succeeded": {reason: "It has begun, too.", runs: []v1alpha1.LineageRun{run("a", 0, v1alpha1.LineageSucceeded)}, want: []seen{event("START", "03:00:00Z"), event("COMPLETE", "03:01:00Z")}},
		"Failed":    {reason: "The program gave up.", runs: []v1alpha1.LineageRun{run("a", 0, v1alpha1.LineageFailed)}, want: []seen{event("START", "03:00:00Z"), event("FAIL", "03:01:00Z")}},
		"Ended":     {reason: "An edit ended it.", runs: []v1alpha1.LineageRun{run("a", 0, v1alpha1.LineageEnded)}, want: []seen{event("START", "03:00:00Z"), event("ABORT", "03:01:00Z")}},
		"Outputs": {
			reason: "What only this run writes is in the event about its end, once.", runs: []v1alpha1.LineageRun{writes(
				run("a", 0, v1alpha1.LineageSucceeded), "mlflow://mlflow fraud/7", "postgres://orders-db-rw.shop.svc:5432 shop.public.features")},
			want: []seen{
				event("START", "03:00:00Z"),
				{"COMPLETE", "03:01:00Z", "test/shop", "daily", "BATCH", strings.TrimSuffix(data, "]") + " {mlflow://mlflow fraud/7}]"},
			},
		},
		"Two": {
			reason: "Runs go out in their order, and names of runs may come again.",
			runs:   []v1alpha1.LineageRun{run("a", 0, v1alpha1.LineageSucceeded), run("a", 5, v1alpha1.LineageRunning)},
			want:   []seen{event("START", "03:00:00Z"), event("COMPLETE", "03:01:00Z"), event("START", "03:05:00Z")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := openlineagetest.NewServer(t)
			s.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
				if got := r.Header.Get("Authorization"); got != "Bearer key-of-the-platform" {
					t.Errorf("the token should be sent, got %q", got)
				}
				return false
			}
			cr := lineage(outside.KindClusterProviderConfig, tc.runs...)
			for range 2 {
				if err := reconcile(t.Context(), t, s.URL, cr); err != nil {
					t.Fatal(err)
				}
			}
			got, ids := read(t, s.Bodies())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if c := cr.GetCondition(apis.TypeConnected); c.Status != corev1.ConditionTrue {
				t.Errorf("want Connected, got %+v", c)
			}
			for _, id := range ids {
				if _, err := uuid.Parse(id); err != nil {
					t.Errorf("the ID of a run should be a UUID: %v", err)
				}
			}
			// All is forgotten, as when the Lineage is made again: a server sees the same bytes.
			again := lineage(outside.KindClusterProviderConfig, tc.runs...)
			if err := reconcile(t.Context(), t, s.URL, again); err != nil {
				t.Fatal(err)
			}
			all := s.Bodies()
			if diff := cmp.Diff(all[:len(got)], all[len(got):]); diff != "" {
				t.Errorf("repeated events should be the same. -first, +again:\n%s", diff)
			}
		})
	}
}

// TestIDs: the two events of a run have one ID, and no other run has it.
func TestIDs(t *testing.T) {
	s := openlineagetest.NewServer(t)
	cr := lineage(outside.KindClusterProviderConfig, run("a", 0, v1alpha1.LineageSucceeded), run("b", 0, v1alpha1.LineageSucceeded), run("a", 5, v1alpha1.LineageSucceeded))
	other := cr.DeepCopy()
	other.Namespace = "bank"
	for _, one := range []*v1alpha1.Lineage{cr, other} {
		one.Spec.ForProvider.Streaming = true
		if err := reconcile(t.Context(), t, s.URL, one); err != nil {
			t.Fatal(err)
		}
	}
	events, ids := read(t, s.Bodies())
	of := map[string]int{}
	for i, id := range ids {
		of[id]++
		if i%2 == 1 && ids[i-1] != id {
			t.Errorf("events of one run have IDs %s and %s", ids[i-1], id)
		}
		if events[i].Processing != "STREAMING" {
			t.Errorf("want a stream, got %+v", events[i])
		}
	}
	if len(of) != 6 {
		t.Errorf("six runs should have six IDs, got %v", of)
	}
}

// TestStarted: the end of a run is sent when it has ended, and its start not again.
func TestStarted(t *testing.T) {
	s := openlineagetest.NewServer(t)
	cr := lineage(outside.KindClusterProviderConfig, run("a", 0, v1alpha1.LineageRunning))
	for _, state := range []v1alpha1.LineageRunState{v1alpha1.LineageRunning, v1alpha1.LineageFailed} {
		cr.Spec.ForProvider.Runs = []v1alpha1.LineageRun{run("a", 0, state)}
		if err := reconcile(t.Context(), t, s.URL, cr); err != nil {
			t.Fatal(err)
		}
	}
	cr.Spec.ForProvider.Runs = []v1alpha1.LineageRun{run("b", 9, v1alpha1.LineageRunning)}
	if err := reconcile(t.Context(), t, s.URL, cr); err != nil {
		t.Fatal(err)
	}
	got, _ := read(t, s.Bodies())
	var types []string
	for _, e := range got {
		types = append(types, e.Type)
	}
	if diff := cmp.Diff([]string{"START", "FAIL", "START"}, types); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	want := []v1alpha1.LineageSent{{Run: "b", StartedAt: run("b", 9, v1alpha1.LineageRunning).StartedAt, Event: "START"}}
	if diff := cmp.Diff(want, cr.Status.AtProvider.Sent); diff != "" {
		t.Errorf("runs that left the spec should be forgotten. -want, +got:\n%s", diff)
	}
}

// TestHostile: a server that misbehaves costs no event but its own, and its words reach nobody.
func TestHostile(t *testing.T) {
	status := func(code int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(code)
			_, _ = fmt.Fprint(w, "secret words of another tenant")
			return true
		}
	}
	cases := map[string]struct {
		reason  string
		answer  func(http.ResponseWriter, *http.Request) bool
		want    xpv2.ConditionReason
		refused bool
	}{
		"Refused":     {reason: "What is wrong stays wrong, and other runs do not wait for it.", answer: status(422), want: apis.ReasonAnswered, refused: true},
		"BadRequest":  {reason: "The same.", answer: status(400), want: apis.ReasonAnswered, refused: true},
		"Credentials": {reason: "The platform can correct it.", answer: status(401), want: apis.ReasonCredentialsRefused},
		"Forbidden":   {reason: "The same.", answer: status(403), want: apis.ReasonForbidden},
		"Elsewhere":   {reason: "The path may be wrong.", answer: status(404), want: apis.ReasonUnknownAnswer},
		"Busy":        {reason: "It wants fewer.", answer: status(429), want: apis.ReasonThrottled},
		"Down":        {reason: "It may recover.", answer: status(503), want: apis.ReasonServerError},
		"Slow": {
			reason: "Nothing waits without end.",
			answer: func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }, want: apis.ReasonTimedOut,
		},
		"HangsUp": {
			reason: "An answer that is none may be followed by one.",
			answer: func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, want: apis.ReasonUnknownAnswer,
		},
		"Endless": {
			reason: "It has taken the event, and what it says more is not read.",
			answer: func(w http.ResponseWriter, r *http.Request) bool {
				for r.Context().Err() == nil {
					if _, err := fmt.Fprint(w, strings.Repeat("words ", 1<<16)); err != nil {
						return true
					}
				}
				return true
			}, want: apis.ReasonAnswered,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openlineagetest.NewServer(t)
			s.Answer = tc.answer
			cr := lineage(outside.KindClusterProviderConfig, run("a", 0, v1alpha1.LineageRunning), run("b", 1, v1alpha1.LineageRunning))
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			err := reconcile(ctx, t, s.URL, cr)
			c := cr.GetCondition(apis.TypeConnected)
			if c.Reason != tc.want {
				t.Errorf("%s want %s, got %s: %s", tc.reason, tc.want, c.Reason, c.Message)
			}
			if (err == nil) != (tc.want == apis.ReasonAnswered) {
				t.Errorf("%s got error %v", tc.reason, err)
			}
			sent := cr.Status.AtProvider.Sent
			if want := map[bool]int{true: 2}[tc.want == apis.ReasonAnswered]; len(sent) != want {
				t.Errorf("%s want %d runs, got %+v", tc.reason, want, sent)
			}
			for _, one := range sent {
				if (one.Refused != "") != tc.refused {
					t.Errorf("%s got %+v", tc.reason, one)
				}
			}
			for _, said := range []string{fmt.Sprint(err), c.Message, fmt.Sprint(sent)} {
				if strings.Contains(said, "words") || strings.Contains(said, "key-of") {
					t.Errorf("it says what is secret: %s", said)
				}
			}
		})
	}
}

// TestRecovers: after an outage the events follow that were due, in their order.
func TestRecovers(t *testing.T) {
	s := openlineagetest.NewServer(t)
	var down atomic.Bool
	s.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
		if down.Load() {
			w.WriteHeader(http.StatusBadGateway)
		}
		return down.Load()
	}
	cr := lineage(outside.KindClusterProviderConfig, run("a", 0, v1alpha1.LineageRunning))
	if err := reconcile(t.Context(), t, s.URL, cr); err != nil {
		t.Fatal(err)
	}
	down.Store(true)
	cr.Spec.ForProvider.Runs = []v1alpha1.LineageRun{run("a", 0, v1alpha1.LineageSucceeded), run("b", 5, v1alpha1.LineageEnded)}
	if err := reconcile(t.Context(), t, s.URL, cr); err == nil {
		t.Error("an outage should be an error, so that the queue tries again")
	}
	down.Store(false)
	if err := reconcile(t.Context(), t, s.URL, cr); err != nil {
		t.Fatal(err)
	}
	got, _ := read(t, s.Bodies())
	var types []string
	for _, e := range got {
		types = append(types, e.Type)
	}
	if diff := cmp.Diff([]string{"START", "COMPLETE", "START", "ABORT"}, types); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestAddresses: the server of a tenant is in no private network, and no redirect is followed there.
func TestAddresses(t *testing.T) {
	var asked atomic.Int32
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer private.Close()
	cr := lineage(outside.KindProviderConfig, run("a", 0, v1alpha1.LineageRunning))
	err := reconcile(t.Context(), t, private.URL, cr)
	if f := (*outside.Failure)(nil); !errors.As(err, &f) || f.Reason != apis.ReasonAddressRefused || len(cr.Status.AtProvider.Sent) > 0 {
		t.Errorf("a private address of a tenant should be refused, got %v, %+v", err, cr.Status.AtProvider)
	}
	s := openlineagetest.NewServer(t)
	s.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, private.URL, http.StatusTemporaryRedirect)
		return true
	}
	shared := lineage(outside.KindClusterProviderConfig, run("a", 0, v1alpha1.LineageRunning))
	err = reconcile(t.Context(), t, s.URL, shared)
	if f := (*outside.Failure)(nil); !errors.As(err, &f) || f.Reason != apis.ReasonUnknownAnswer || len(shared.Status.AtProvider.Sent) > 0 {
		t.Errorf("a redirect should be no success, got %v, %+v", err, shared.Status.AtProvider)
	}
	if asked.Load() > 0 {
		t.Error("what is private was asked")
	}
}
