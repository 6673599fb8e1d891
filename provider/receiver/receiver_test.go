// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/events/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/signals"
)

const (
	token      = "a-token-of-some-length"
	signingKey = "a-key-of-some-length-too"
)

// A rig is a Server with the clients that it uses.
type rig struct {
	t      *testing.T
	kube   client.Client
	server *Server
	now    time.Time
	broken bool
	reads  int // of Secrets
}

func newRig(t *testing.T, receivers ...*v1alpha1.Receiver) *rig {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, observev1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	r := &rig{t: t, now: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)}
	objects := []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "keys"}, Data: map[string][]byte{
			v1alpha1.KeyToken: []byte(token + "\n"), v1alpha1.KeySigning: []byte(signingKey),
		}},
		&observev1alpha1.Analysis{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "tested"}, Spec: observev1alpha1.AnalysisSpec{
			ForProvider: observev1alpha1.AnalysisParameters{Algorithm: "tested", Metrics: &observev1alpha1.MetricsParameters{
				Canary: &observev1alpha1.CanaryParameters{Epoch: 1, Slot: "b"},
			}},
		}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "tested-b-1",
			Labels:      map[string]string{observev1alpha1.LabelAlgorithm: "tested", observev1alpha1.LabelSlot: "b"},
			Annotations: map[string]string{observev1alpha1.AnnotationRevision: "b55f458aac"},
		}},
	}
	for _, cr := range receivers {
		objects = append(objects, cr)
	}
	r.kube = fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, secret := o.(*corev1.Secret); secret {
				r.reads++
			}
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if r.broken {
				return errors.New("the API server is away")
			}
			o.SetCreationTimestamp(metav1.NewTime(r.now))
			return c.Create(ctx, o, opts...)
		},
	}).Build()
	r.server = &Server{Cache: r.kube, Kube: r.kube, Now: func() time.Time { return r.now }, Log: logging.NewNopLogger()}
	return r
}

// receiver shop/alerts with rules.
func receiver(format v1alpha1.Format, rules ...v1alpha1.ReceiverRule) *v1alpha1.Receiver {
	return &v1alpha1.Receiver{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "alerts", UID: "0123"},
		Spec:       v1alpha1.ReceiverSpec{ForProvider: v1alpha1.ReceiverParameters{Format: format, SecretName: "keys", Rules: rules}},
	}
}

func rule(name string, do v1alpha1.Act, target string) v1alpha1.ReceiverRule {
	r := v1alpha1.ReceiverRule{
		Name: name, Match: map[string]string{"alertname": "Errors"}, Do: do,
		Target: v1alpha1.SignalTarget{Kind: v1alpha1.TargetAlgorithm, Name: target}, For: &metav1.Duration{Duration: time.Hour},
	}
	if do == v1alpha1.ActBackup {
		r.Target.Kind = v1alpha1.TargetDatabase
	}
	if do == v1alpha1.ActMinReplicas {
		r.Replicas = new(int32(4))
	}
	if do == v1alpha1.ActHook {
		r.Hook = "flush"
	}
	return r
}

// post a body to shop/alerts.
func (r *rig) post(path, body string, header map[string]string) (int, string) {
	r.t.Helper()
	req := httptest.NewRequestWithContext(r.t.Context(), http.MethodPost, path, strings.NewReader(body))
	for k, v := range header {
		req.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	r.server.Handler().ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

var bearer = map[string]string{"Authorization": "Bearer " + token}

// signed headers at a time.
func signed(at time.Time, key, body string) map[string]string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	return map[string]string{headerTimestamp: stamp, headerSignature: sign(key, stamp, []byte(body))}
}

// alert message with the status of an alert Errors that began at a minute past noon.
func alert(status string, minute int) string {
	return fmt.Sprintf(`{"version":"4","alerts":[{"status":%q,"labels":{"alertname":"Errors","severity":"critical"},
		"annotations":{"summary":"7 %% of requests fail"},"startsAt":"2026-11-26T12:%02d:00Z"}]}`, status, minute)
}

// signals that exist, in words.
func (r *rig) signals() []string {
	r.t.Helper()
	l := &v1alpha1.SignalList{}
	if err := r.kube.List(r.t.Context(), l); err != nil {
		r.t.Fatal(err)
	}
	var all []string
	for _, s := range l.Items {
		p := s.Spec.ForProvider
		text := fmt.Sprintf("%s %s %s until %s", p.Do, p.Target.Kind, p.Target.Name, p.ExpiresAt.UTC().Format("15:04"))
		if p.Revision != "" {
			text += " revision " + p.Revision
		}
		if p.Replicas != nil {
			text += fmt.Sprintf(" replicas %d", *p.Replicas)
		}
		if p.Hook != "" {
			text += " hook " + p.Hook
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

func TestSenders(t *testing.T) {
	body := alert("firing", 0)
	cases := map[string]struct {
		reason string
		path   string
		header func(now time.Time) map[string]string
		body   string
		want   int
	}{
		"Token":       {reason: "the token is right", header: func(time.Time) map[string]string { return bearer }, want: 200},
		"WrongToken":  {reason: "another token", header: func(time.Time) map[string]string { return map[string]string{"Authorization": "Bearer x"} }, want: 401},
		"Nothing":     {reason: "a stranger", header: func(time.Time) map[string]string { return nil }, want: 401},
		"Signed":      {reason: "the signature is right", header: func(now time.Time) map[string]string { return signed(now, signingKey, body) }, want: 200},
		"SignedEarly": {reason: "clocks differ", header: func(now time.Time) map[string]string { return signed(now.Add(4*time.Minute), signingKey, body) }, want: 200},
		"SignedLate":  {reason: "a request that was kept", header: func(now time.Time) map[string]string { return signed(now.Add(-6*time.Minute), signingKey, body) }, want: 401},
		"OtherKey":    {reason: "another key", header: func(now time.Time) map[string]string { return signed(now, "another-key-of-length", body) }, want: 401},
		"OtherBody":   {reason: "the body was changed", header: func(now time.Time) map[string]string { return signed(now, signingKey, body+" ") }, want: 401},
		"NoTimestamp": {reason: "a signature without a time could be used again for ever", header: func(time.Time) map[string]string {
			return map[string]string{headerSignature: sign(signingKey, "", []byte(body))}
		}, want: 401},
		"NoReceiver":   {reason: "strangers learn no names", path: "/v1/shop/none", header: func(time.Time) map[string]string { return bearer }, want: 401},
		"TooLarge":     {reason: "a body has bounds", header: func(time.Time) map[string]string { return bearer }, body: strings.Repeat("x", maxBody+1), want: 413},
		"NoMessage":    {reason: "it must be a message", header: func(time.Time) map[string]string { return bearer }, body: "hello", want: 400},
		"Unknown":      {reason: "a status that does not exist", header: func(time.Time) map[string]string { return bearer }, body: alert("pending", 0), want: 400},
		"TooManyAlert": {reason: "a message has bounds", header: func(time.Time) map[string]string { return bearer }, body: `{"alerts":[` + strings.Repeat(`{"status":"firing"},`, maxAlerts) + `{"status":"firing"}]}`, want: 400},
		"OtherPath":    {reason: "there is nothing else", path: "/metrics", header: func(time.Time) map[string]string { return bearer }, want: 404},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, receiver(v1alpha1.FormatAlertmanager, rule("errors", v1alpha1.ActHold, "reco")))
			path, sent := tc.path, tc.body
			if path == "" {
				path = "/v1/shop/alerts"
			}
			if sent == "" {
				sent = body
			}
			status, said := r.post(path, sent, tc.header(r.now))
			if status != tc.want {
				t.Errorf("%s: status %d, want %d: %s", tc.reason, status, tc.want, said)
			}
			if got := len(r.signals()); (got == 1) != (tc.want == 200) {
				t.Errorf("%s: there are %d signals", tc.reason, got)
			}
		})
	}
}

// TestReplay shows that a signed request counts once, and that its sender can repeat it when it could not be carried out.
func TestReplay(t *testing.T) {
	r := newRig(t, receiver(v1alpha1.FormatAlertmanager, rule("errors", v1alpha1.ActHold, "reco")))
	body := alert("firing", 0)
	h := signed(r.now, signingKey, body)
	r.broken = true
	if status, _ := r.post("/v1/shop/alerts", body, h); status != 503 {
		t.Errorf("while the API server is away: status %d", status)
	}
	r.broken = false
	if status, _ := r.post("/v1/shop/alerts", body, h); status != 200 {
		t.Errorf("the repetition after that: status %d", status)
	}
	r.now = r.now.Add(4 * time.Minute)
	if status, _ := r.post("/v1/shop/alerts", body, h); status != 409 {
		t.Errorf("a replay: status %d", status)
	}
}

// TestActs shows what alerts and their repetitions do.
func TestActs(t *testing.T) {
	type sent struct {
		after time.Duration
		body  string
	}
	fires, resolved := alert("firing", 0), alert("resolved", 0)
	cases := map[string]struct {
		reason string
		rules  []v1alpha1.ReceiverRule
		sent   []sent
		want   []string
	}{
		"Holds":      {"as long as the rule says", []v1alpha1.ReceiverRule{rule("e", v1alpha1.ActHold, "reco")}, []sent{{0, fires}}, []string{"Hold Algorithm reco until 13:00"}},
		"Repeated":   {"a repetition soon after writes nothing", []v1alpha1.ReceiverRule{rule("e", v1alpha1.ActHold, "reco")}, []sent{{0, fires}, {10 * time.Minute, fires}}, []string{"Hold Algorithm reco until 13:00"}},
		"Extended":   {"a later one extends it", []v1alpha1.ReceiverRule{rule("e", v1alpha1.ActHold, "reco")}, []sent{{0, fires}, {40 * time.Minute, fires}}, []string{"Hold Algorithm reco until 13:40"}},
		"Resolved":   {"an alert that is resolved ends it", []v1alpha1.ReceiverRule{rule("e", v1alpha1.ActHold, "reco")}, []sent{{0, fires}, {time.Minute, resolved}}, []string{"Hold Algorithm reco until 12:01"}},
		"FiresAgain": {"and it holds again when the alert comes back", []v1alpha1.ReceiverRule{rule("e", v1alpha1.ActHold, "reco")}, []sent{{0, fires}, {time.Minute, resolved}, {time.Minute, alert("firing", 2)}}, []string{"Hold Algorithm reco until 13:02"}},
		"Unmatched":  {"nothing else does anything", []v1alpha1.ReceiverRule{rule("e", v1alpha1.ActHold, "reco")}, []sent{{0, strings.ReplaceAll(fires, "Errors", "Other")}}, nil},
		"Scales":     {"replicas come from the rule", []v1alpha1.ReceiverRule{rule("e", v1alpha1.ActMinReplicas, "reco")}, []sent{{0, fires}}, []string{"MinReplicas Algorithm reco until 13:00 replicas 4"}},
		"Aborts":     {"the revision under test", []v1alpha1.ReceiverRule{rule("e", v1alpha1.ActAbort, "tested")}, []sent{{0, fires}}, []string{"Abort Algorithm tested until 13:00 revision b55f458aac"}},
		"AbortsNone": {"nothing is under test", []v1alpha1.ReceiverRule{rule("e", v1alpha1.ActAbort, "reco")}, []sent{{0, fires}}, nil},
		"BacksUp":    {"once for each time that the alert begins", []v1alpha1.ReceiverRule{rule("e", v1alpha1.ActBackup, "orders")}, []sent{{0, fires}, {10 * time.Minute, fires}, {0, resolved}, {30 * time.Minute, alert("firing", 40)}}, []string{"Backup Database orders until 13:00", "Backup Database orders until 13:40"}},
		"StaysDone":  {"what an alert did is known as long as it is repeated", []v1alpha1.ReceiverRule{rule("e", v1alpha1.ActBackup, "orders")}, []sent{{0, fires}, {40 * time.Minute, fires}, {40 * time.Minute, fires}}, []string{"Backup Database orders until 14:20"}},
		"NotRevived": {"one that has ended does not begin another time", []v1alpha1.ReceiverRule{rule("e", v1alpha1.ActBackup, "orders")}, []sent{{0, fires}, {61 * time.Minute, fires}}, []string{"Backup Database orders until 13:00"}},
		"RunsAHook":  {"the one that the rule names, once for each time that the alert begins", []v1alpha1.ReceiverRule{rule("e", v1alpha1.ActHook, "reco")}, []sent{{0, fires}, {0, fires}, {0, strings.ReplaceAll(alert("firing", 1), `"labels":{`, `"labels":{"hook":"other",`)}}, []string{"Hook Algorithm reco until 13:00 hook flush", "Hook Algorithm reco until 13:00 hook flush"}},
		"TwoRules":   {"each rule that matches", []v1alpha1.ReceiverRule{rule("e", v1alpha1.ActHold, "reco"), rule("f", v1alpha1.ActHold, "other")}, []sent{{0, fires}}, []string{"Hold Algorithm other until 13:00", "Hold Algorithm reco until 13:00"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, receiver(v1alpha1.FormatAlertmanager, tc.rules...))
			for _, s := range tc.sent {
				r.now = r.now.Add(s.after)
				if status, said := r.post("/v1/shop/alerts", s.body, bearer); status != 200 {
					t.Fatalf("status %d: %s", status, said)
				}
			}
			if diff := cmp.Diff(tc.want, r.signals()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCloudEvents in both modes.
func TestCloudEvents(t *testing.T) {
	cr := receiver(v1alpha1.FormatCloudEvents, v1alpha1.ReceiverRule{
		Name: "deploy", Match: map[string]string{"type": "org.example.deploy", "stage": "production"}, Do: v1alpha1.ActBackup,
		Target: v1alpha1.SignalTarget{Kind: v1alpha1.TargetDatabase, Name: "orders"}, For: &metav1.Duration{Duration: time.Hour},
	})
	header := func(more map[string]string) map[string]string {
		h := map[string]string{"Authorization": bearer["Authorization"]}
		maps.Copy(h, more)
		return h
	}
	binary := header(map[string]string{
		"ce-specversion": "1.0", "ce-id": "7", "ce-source": "/ci", "ce-type": "org.example.deploy", "ce-stage": "production", "Content-Type": "text/plain",
	})
	structured := header(map[string]string{"Content-Type": "application/cloudevents+json"})
	event := `{"specversion":"1.0","id":"8","source":"/ci","type":"org.example.deploy","stage":"production","data":{"any":"thing"}}`
	r := newRig(t, cr)
	for _, s := range []struct {
		reason, body string
		header       map[string]string
		status, want int
	}{
		{"binary mode", "hello", binary, 200, 1},
		{"a repetition is the same event", "hello", binary, 200, 1},
		{"structured mode", event, structured, 200, 2},
		{"another stage", strings.Replace(event, "production", "test", 1), structured, 200, 2},
		{"no source", strings.Replace(event, `"source":"/ci",`, "", 1), structured, 400, 2},
		{"no event", "hello", bearer, 400, 2},
	} {
		status, said := r.post("/v1/shop/alerts", s.body, s.header)
		if got := len(r.signals()); status != s.status || got != s.want {
			t.Errorf("%s: status %d and %d signals, want %d and %d: %s", s.reason, status, got, s.status, s.want, said)
		}
	}
}

// TestEventOnce shows that an event which arrives a second time extends nothing, and brings nothing back that has ended.
func TestEventOnce(t *testing.T) {
	hold := rule("deploy", v1alpha1.ActHold, "reco")
	hold.Match = map[string]string{"type": "org.example.deploy"}
	r := newRig(t, receiver(v1alpha1.FormatCloudEvents, hold))
	header := map[string]string{
		"Authorization": bearer["Authorization"], "ce-specversion": "1.0", "ce-id": "7", "ce-source": "/ci", "ce-type": "org.example.deploy",
	}
	for _, after := range []time.Duration{0, 40 * time.Minute, 40 * time.Minute} {
		r.now = r.now.Add(after)
		if status, said := r.post("/v1/shop/alerts", "", header); status != 200 {
			t.Fatalf("status %d: %s", status, said)
		}
	}
	if diff := cmp.Diff([]string{"Hold Algorithm reco until 13:00"}, r.signals()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestStorm shows that a Receiver takes so many requests of known senders a second, that unknown senders take none of them, and that neither
// costs other Receivers anything.
func TestStorm(t *testing.T) {
	other := receiver(v1alpha1.FormatAlertmanager, rule("errors", v1alpha1.ActHold, "reco"))
	other.Name, other.UID = "others", "4567"
	r := newRig(t, receiver(v1alpha1.FormatAlertmanager, rule("errors", v1alpha1.ActHold, "reco")), other)
	got := map[string]map[int]int{"unknown": {}, "known": {}}
	for range 10 * burst {
		status, _ := r.post("/v1/shop/alerts", alert("firing", 0), map[string]string{"Authorization": "Bearer guess"})
		got["unknown"][status]++
	}
	if diff := cmp.Diff(map[int]int{401: 10 * burst}, got["unknown"]); diff != "" {
		t.Errorf("unknown senders learn nothing: -want, +got:\n%s", diff)
	}
	if r.reads != 1 {
		t.Errorf("the Secret was read %d times for %d requests, want once", r.reads, 10*burst)
	}
	for range 10 * burst {
		status, _ := r.post("/v1/shop/alerts", alert("firing", 0), bearer)
		got["known"][status]++
	}
	if ok, refused := got["known"][200], got["known"][429]; ok < burst || refused < 5*burst || ok+refused != 10*burst {
		t.Errorf("known senders: want some to be refused with 429, got %v", got["known"])
	}
	if status, said := r.post("/v1/shop/others", alert("firing", 0), bearer); status != 200 {
		t.Errorf("another Receiver: status %d: %s", status, said)
	}
}

// TestFlood shows that a Receiver has so many Signals and no more, and that alerts which are resolved still end theirs.
func TestFlood(t *testing.T) {
	r := newRig(t, receiver(v1alpha1.FormatAlertmanager, rule("errors", v1alpha1.ActHold, "reco")))
	message := func(from, to int, status string) string {
		var alerts []string
		for i := from; i < to; i++ {
			alerts = append(alerts, fmt.Sprintf(`{"status":%q,"labels":{"alertname":"Errors","pod":"p-%d"},"startsAt":"2026-11-26T12:00:00Z"}`, status, i))
		}
		return `{"alerts":[` + strings.Join(alerts, ",") + `]}`
	}
	for i := range 3 {
		want := map[bool]int{true: 200, false: 429}[i < 2]
		if status, said := r.post("/v1/shop/alerts", message(100*i, 100*(i+1), "firing"), bearer); status != want {
			t.Fatalf("message %d: status %d, want %d: %s", i, status, want, said)
		}
	}
	if got := len(r.signals()); got != maxSignals {
		t.Errorf("there are %d Signals, want %d", got, maxSignals)
	}
	mixed := strings.TrimSuffix(message(400, 401, "firing"), "]}") + "," + strings.TrimPrefix(message(0, 1, "resolved"), `{"alerts":[`)
	if status, _ := r.post("/v1/shop/alerts", mixed, bearer); status != 429 {
		t.Errorf("status %d, want 429", status)
	}
	if !slices.Contains(r.signals(), "Hold Algorithm reco until 12:00") {
		t.Error("the alert that is resolved should end its Signal, although there is no room for the other one")
	}
}

// TestWeek shows that an alert that fires for longer than a Signal can last gets another Signal.
func TestWeek(t *testing.T) {
	r := newRig(t, receiver(v1alpha1.FormatAlertmanager, rule("errors", v1alpha1.ActHold, "reco")))
	if status, said := r.post("/v1/shop/alerts", alert("firing", 0), bearer); status != 200 {
		t.Fatalf("status %d: %s", status, said)
	}
	r.now = r.now.Add(signals.Longest)
	if status, said := r.post("/v1/shop/alerts", alert("firing", 0), bearer); status != 200 {
		t.Fatalf("status %d: %s", status, said)
	}
	l := &v1alpha1.SignalList{}
	if err := r.kube.List(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if len(l.Items) != 1 || !signals.End(&l.Items[0]).After(r.now) {
		t.Errorf("want one Signal that is in force, got %v", l.Items)
	}
}

// TestSignaturesOfOthers shows that the signatures of one namespace take no room of another's.
func TestSignaturesOfOthers(t *testing.T) {
	r := newRig(t, receiver(v1alpha1.FormatAlertmanager, rule("errors", v1alpha1.ActHold, "reco")))
	for i := range maxSignatures {
		r.server.signed("other").first(strconv.Itoa(i), r.now)
	}
	body := alert("firing", 0)
	if status, said := r.post("/v1/shop/alerts", body, signed(r.now, signingKey, body)); status != 200 {
		t.Errorf("status %d: %s", status, said)
	}
}

// TestObserve shows what is reported of a Receiver.
func TestObserve(t *testing.T) {
	cases := map[string]struct {
		reason string
		on     bool
		secret string
		want   xpv2.ConditionReason
	}{
		"Ready":  {"it can be used", true, "keys", xpv2.ReasonAvailable},
		"Off":    {"the platform has not switched it on", false, "keys", ReasonOff},
		"Secret": {"there is no key", true, "none", ReasonSecret},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cr := receiver(v1alpha1.FormatAlertmanager, rule("errors", v1alpha1.ActHold, "reco"))
			cr.Spec.ForProvider.SecretName = tc.secret
			r := newRig(t, cr)
			if tc.secret == "keys" {
				r.post("/v1/shop/alerts", alert("firing", 0), bearer)
			}
			if _, err := (&watcher{kube: r.kube, on: tc.on}).Observe(t.Context(), cr); err != nil {
				t.Fatal(err)
			}
			if got := cr.GetCondition(xpv2.TypeReady).Reason; got != tc.want {
				t.Errorf("%s: reason %s, want %s", tc.reason, got, tc.want)
			}
			if got := cr.Status.AtProvider; got.Path != "/v1/shop/alerts" || (got.LastSignal != nil) != (tc.secret == "keys") {
				raw, _ := json.Marshal(got)
				t.Errorf("%s: %s", tc.reason, raw)
			}
		})
	}
}

// FuzzParse: whatever a known sender sends, it is refused or has bounds.
func FuzzParse(f *testing.F) {
	f.Add([]byte(alert("firing", 0)), "", true)
	f.Add([]byte(`{"alerts":[{"status":"firing","labels":{"alertname":"a\u001b[31mb"}}]}`), "", true)
	f.Add([]byte(`{"specversion":"1.0","id":"8","source":"/ci","type":"t","data":1}`), "application/cloudevents+json", false)
	f.Add([]byte(`[{}]`), "application/cloudevents-batch+json", false)
	f.Fuzz(func(t *testing.T, body []byte, contentType string, alerts bool) {
		format := v1alpha1.FormatCloudEvents
		if alerts {
			format = v1alpha1.FormatAlertmanager
		}
		all, err := parse(t.Context(), format, http.Header{"Content-Type": []string{contentType}}, body)
		if err != nil {
			return
		}
		for _, h := range all {
			if s := shortened(h.reason); len(s) > maxReason || strings.ContainsFunc(s, unicode.IsControl) {
				t.Errorf("the reason is too long or has control characters: %q", s)
			}
		}
	})
}
