// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/pooler"
	"github.com/capstan-dev/capstan/function/release"
)

const withPooler = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, pooler: {}}`

// serving poolers, as many as are asked for but the missing.
func (w *world) serving(missing int64) {
	o := w.request.Observed[names.Pooler].Map()
	o["status"] = map[string]any{"readyReplicas": float64(compose.Number(o, 0, "spec", "replicas") - missing)}
}

// TestPoolerRestartsNoMember: to ask for poolers, and to let them go, changes files that members read, and no member.
func TestPoolerRestartsNoMember(t *testing.T) {
	w := running(t, basic)
	before := w.request.Observed
	w.edit(withPooler)
	for range 3 {
		w.pass()
	}
	for _, name := range pooler.Writers.Names() {
		if (w.request.Observed[name] == nil) != (name == names.PoolerServerCertificate) {
			t.Errorf("%s: made is %t", name, w.request.Observed[name] != nil)
		}
	}
	if told := compose.Text(w.request.Observed[names.Config].Map(), "data", fileMember); !strings.Contains(told, `"pooled":true`) {
		t.Errorf("members are not told of poolers: %s", told)
	}
	if dynamic := compose.Text(w.request.Observed[names.DCS].Map(), "metadata", "annotations", names.AnnotationConfig); !strings.Contains(dynamic, "hostssl postgres pooler all cert") {
		t.Errorf("members do not let poolers in: %s", dynamic)
	}
	w.edit(basic)
	for range 3 {
		w.pass()
	}
	for _, name := range pooler.Writers.Names() {
		if w.request.Observed[name] != nil {
			t.Errorf("%s is left", name)
		}
	}
	for name, o := range before {
		if diff := cmp.Diff(o.Map()["spec"], w.request.Observed[name].Map()["spec"]); diff != "" {
			t.Errorf("%s is not what it was: -before, +after:\n%s", name, diff)
		}
	}
}

const withReaders = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, pooler: {readOnly: true},
	consumers: [{name: app}, {name: reports, access: ReadOnly}]}`

// TestPoolerReaders: a second set of poolers before the standbys, which changes neither members nor the first set.
func TestPoolerReaders(t *testing.T) {
	withReaders := strings.Replace(withReaders, "readOnly: true", "readOnly: true, poolSize: 10", 1) // the default is less with two sets
	w := running(t, strings.Replace(withReaders, "readOnly: true, ", "", 1))
	before := w.request.Observed
	w.edit(withReaders)
	for range 3 {
		w.pass()
	}
	for _, name := range pooler.Readers.Names() {
		if (w.request.Observed[name] == nil) != (name == pooler.Readers.In(names.PoolerServerCertificate)) {
			t.Errorf("%s: made is %t", name, w.request.Observed[name] != nil)
		}
	}
	for _, name := range append(pooler.Writers.Names(), names.MemberPrefix+"a", names.MemberPrefix+"b", names.Config, names.DCS) {
		o := before[name]
		if o == nil {
			continue
		}
		for _, field := range []string{"spec", "data"} {
			if diff := cmp.Diff(o.Map()[field], w.request.Observed[name].Map()[field]); diff != "" {
				t.Errorf("%s is not what it was: -before, +after:\n%s", name, diff)
			}
		}
	}
	deployment := w.request.Observed[names.ReaderPooler].Map()
	labels := compose.Map(deployment, "spec", "template", "metadata", "labels")
	if labels[names.LabelPooler] != nil || labels["capstan.dev/database"] != nil || labels[names.LabelReaderPooler] != "orders-db" {
		t.Errorf("the pods have the labels %v: a leader that stops must not let readers wait", labels)
	}
	env := fmt.Sprint(compose.List(deployment, "spec", "template", "spec", "containers"))
	for _, want := range []string{"CAPSTAN_STANDBYS value:orders-db-ro.shop.svc", "CAPSTAN_LEADER value:orders-db-rw.shop.svc"} {
		if !strings.Contains(strings.ReplaceAll(env, "name:", ""), want) {
			t.Errorf("poolers are not told %s: %s", want, env)
		}
	}
	if ini := compose.Text(w.request.Observed[pooler.Readers.In(names.PoolerConfig)].Map(), "data", "pgbouncer.ini"); !strings.Contains(ini, "orders_db = host=orders-db-ro.shop.svc") {
		t.Errorf("they do not connect to standbys: %s", ini)
	}
	if rules := fmt.Sprint(compose.List(w.request.Observed[names.NetworkPolicy].Map(), "spec", "ingress")); !strings.Contains(rules, names.LabelReaderPooler) {
		t.Errorf("members do not let them in: %s", rules)
	}
	goTo := func(reason, reports string) {
		t.Helper()
		w.pass()
		for consumer, suffix := range map[string]string{"app": "pooler", "reports": reports} {
			endpoints := compose.List(w.request.Observed[names.ConsumerPrefix+consumer].Map(), "spec", "forProvider", "connection", "endpoints")
			if want := fmt.Sprint([]any{map[string]any{"name": "pooler", "host": "orders-db-" + suffix + ".shop.svc", "port": 5432.0}}); fmt.Sprint(endpoints) != want {
				t.Errorf("%s: %s has the endpoints %v, want %s", reason, consumer, endpoints, want)
			}
		}
	}
	goTo("Nobody accepts readers yet.", "pooler")
	if st := told(t, w.plan()); st.Endpoints.PoolerReadOnly != "orders-db-pooler-ro.shop.svc:5432" {
		t.Errorf("endpoints: %+v", st.Endpoints)
	}
	if _, reason, message := condition(w.plan(), string(v1alpha1.TypePooled)); reason != "PoolersPending" || strings.Contains(message, "pooler-ro") {
		t.Errorf("%s: %s, want the first set", reason, message)
	}
	w.serving(0)
	if _, reason, message := condition(w.plan(), string(v1alpha1.TypePooled)); reason != "PoolersPending" || !strings.Contains(message, "orders-db-pooler-ro") {
		t.Errorf("%s: %s, want that readers have none", reason, message)
	}
	ready := func(n float64) {
		w.request.Observed[names.ReaderPooler].Map()["status"] = map[string]any{"readyReplicas": n}
	}
	ready(2)
	goTo("Readers are accepted.", "pooler-ro")
	ready(0)
	goTo("They do not go to the leader when poolers start again.", "pooler-ro")
	w.serving(0)
	ready(2)
	if status, reason, message := condition(w.plan(), string(v1alpha1.TypePooled)); status != "True" || reason != "Pooling" {
		t.Errorf("%s: %s", reason, message)
	}
	w.edit(strings.Replace(withReaders, "readOnly: true, ", "", 1))
	for range 3 {
		w.pass()
	}
	for _, name := range pooler.Readers.Names() {
		if w.request.Observed[name] != nil {
			t.Errorf("%s is left", name)
		}
	}
}

// TestPoolerPods: which edits restart poolers.
func TestPoolerPods(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		spec     string
		planner  string
		restarts bool
	}{
		"Version":  {"Another version of the function alone restarts none.", withPooler, "v2", false},
		"Sizes":    {"Sizes are read again.", `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, pooler: {poolSize: 7, maxClients: 900, mode: Session}}`, "v2", false},
		"Replicas": {"More of them are the same ones.", `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, pooler: {replicas: 4}}`, "v2", false},
		"Nodes":    {"They run where members do.", `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, pooler: {}, pod: {nodeSelector: {pool: databases}}}`, "v1", true},
		"Memory":   {"Memory is the pod's.", `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, pooler: {resources: {memory: 1Gi}}}`, "v1", true},
		"Issuer":   {"Another certificate is mounted.", `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, pooler: {}, tls: {issuerRef: {name: company}}}`, "v1", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, withPooler)
			before := compose.Map(w.request.Observed[names.Pooler].Map(), "spec", "template")
			w.planner = Planner(release.Release{Version: tc.planner})
			w.edit(tc.spec)
			w.pass()
			w.pass()
			diff := cmp.Diff(before, compose.Map(w.request.Observed[names.Pooler].Map(), "spec", "template"))
			if (diff != "") != tc.restarts {
				t.Errorf("%s: restarted: %t, want %t\n%s", tc.reason, diff != "", tc.restarts, diff)
			}
		})
	}
}

func TestPoolerConfig(t *testing.T) {
	w := running(t, withPooler)
	w.edit(`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, databases: [{name: stock}, {name: orders}], pooler: {mode: Session, poolSize: 7, replicas: 3, maxClients: 500}}`)
	w.pass()
	ini := compose.Text(w.request.Observed[names.PoolerConfig].Map(), "data", "pgbouncer.ini")
	for _, want := range []string{
		"[databases]\norders = host=orders-db-rw.shop.svc port=5432\nstock = host=orders-db-rw.shop.svc port=5432\n",
		"\npool_mode = session\n", "\ndefault_pool_size = 7\n", "\nmax_client_conn = 500\n",
	} {
		if !strings.Contains(ini, want) {
			t.Errorf("the file of PgBouncer does not have %q:\n%s", want, ini)
		}
	}
	if n := compose.Number(w.request.Observed[names.Pooler].Map(), 0, "spec", "replicas"); n != 3 {
		t.Errorf("there are %v poolers, want 3", n)
	}
}

func TestPoolSize(t *testing.T) {
	const head = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, `
	many := make([]string, 0, 16)
	for i := range 16 {
		many = append(many, fmt.Sprintf("{name: app-%d}", i))
	}
	for name, tc := range map[string]struct {
		reason, spec string
		want         int32
		refused      string
	}{
		"Default":   {"Two poolers for one consumer have room for 20 each.", head + `pooler: {}}`, 20, ""},
		"Many":      {"With many consumers there is less for each.", head + `pooler: {}, consumers: [` + strings.Join(many, ", ") + `]}`, 2, ""},
		"MoreRoom":  {"A server that takes more has more for each.", head + `pooler: {}, config: {max_connections: "400"}, consumers: [` + strings.Join(many, ", ") + `]}`, 10, ""},
		"Asked":     {"What is asked for is taken.", head + `pooler: {poolSize: 40}}`, 40, ""},
		"TooMany":   {"What the server cannot take is not.", head + `pooler: {poolSize: 41}}`, 41, "more than 80"},
		"OutOfRoom": {"One for each is the least.", head + `pooler: {replicas: 9}, consumers: [` + strings.Join(many, ", ") + `]}`, 1, "spec.pooler.poolSize: 1: 9 poolers"},
		"Readers":   {"A standby that is promoted has connections of both.", head + `pooler: {readOnly: true}, consumers: [{name: app}, {name: web}]}`, 10, ""},
		"TooMany2":  {"So their sum counts.", head + `pooler: {readOnly: true, poolSize: 21}}`, 21, "4 poolers open that many connections"},
		"NoStandby": {"Readers need a standby.", `{engine: postgres, version: "17", replicas: 1, storage: 50Gi, pooler: {readOnly: true}}`, 20, "spec.pooler.readOnly: true: with one member"},
		"NoMode":    {"The schema holds the same.", head + `pooler: {mode: Statement}}`, 20, "spec.pooler.mode"},
		"NoMemory":  {"The schema holds the same.", head + `pooler: {resources: {memory: 1Mi}}}`, 20, "spec.pooler.resources.memory"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.spec)
			s, err := gather(w.request, release.Release{Version: "v1"})
			if err != nil {
				t.Fatal(err)
			}
			if got := pooler.PoolSize(s); got != tc.want {
				t.Errorf("%s: pools of %d, want %d", tc.reason, got, tc.want)
			}
			_, _, message := condition(w.plan(), string(v1alpha1.TypeAccepted))
			if tc.refused != "" && !strings.Contains(message, tc.refused) || tc.refused == "" && len(s.Problems) > 0 {
				t.Errorf("%s: told %q, want %q", tc.reason, message, tc.refused)
			}
		})
	}
}

func TestPooledCondition(t *testing.T) {
	for name, tc := range map[string]struct {
		reason          string
		change          func(*world)
		status, because string
	}{
		"None":    {"Without poolers there is nothing to tell.", func(w *world) { w.edit(basic) }, "", ""},
		"Pending": {"No pod is ready yet.", func(*world) {}, "False", "PoolersPending"},
		"Some":    {"One of two is better than none.", func(w *world) { w.serving(1) }, "True", "PoolersMissing"},
		"All":     {"Both take clients.", func(w *world) { w.serving(0) }, "True", "Pooling"},
		"Asleep": {
			"They are stopped together with the members.",
			func(w *world) {
				w.serving(0)
				w.edit(strings.Replace(withPooler, "pooler: {}", "pooler: {}, hibernated: true", 1))
			}, "False", "PoolersPending",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, withPooler)
			tc.change(w)
			if status, reason, message := condition(w.plan(), string(v1alpha1.TypePooled)); status != tc.status || reason != tc.because {
				t.Errorf("%s: %s, %s: %s, want %s, %s", tc.reason, status, reason, message, tc.status, tc.because)
			}
		})
	}
}

// TestPoolerIsNoMember: what selects members selects no pooler.
func TestPoolerIsNoMember(t *testing.T) {
	w := running(t, withPooler)
	labels := compose.Map(w.request.Observed[names.Pooler].Map(), "spec", "template", "metadata", "labels")
	if labels["capstan.dev/database"] != nil || labels[names.LabelPooler] != "orders-db" {
		t.Errorf("the pods of poolers have the labels %v", labels)
	}
	pod := compose.Map(w.request.Observed[names.Pooler].Map(), "spec", "template", "spec")
	if pod["automountServiceAccountToken"] != false || pod["serviceAccountName"] != nil {
		t.Errorf("poolers have an account: %v, %v", pod["serviceAccountName"], pod["automountServiceAccountToken"])
	}
	for _, v := range compose.List(pod, "volumes") {
		volume, _ := v.(map[string]any)
		if secret := compose.Text(volume, "secret", "secretName"); secret != "" && !slices.Contains([]string{"orders-db-pooler", "orders-db-pooler-server"}, secret) {
			t.Errorf("poolers have Secret %q", secret)
		}
	}
}

// TestPoolerSecrets: consumers learn of poolers, and members' certificates are for the members alone.
func TestPoolerSecrets(t *testing.T) {
	w := running(t, withPooler)
	endpoints := compose.List(w.request.Observed[names.ConsumerPrefix+"app"].Map(), "spec", "forProvider", "connection", "endpoints")
	want := []any{map[string]any{"name": "pooler", "host": "orders-db-pooler.shop.svc", "port": 5432.0}}
	if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(endpoints)); diff != "" {
		t.Errorf("endpoints of a consumer: -want, +got:\n%s", diff)
	}
	if st := told(t, w.plan()); st.Endpoints.Pooler != "orders-db-pooler.shop.svc:5432" {
		t.Errorf("endpoints: %+v", st.Endpoints)
	}
	for name, want := range map[string]bool{names.MembersCertificate: false, names.PoolerCertificate: true} {
		names := fmt.Sprint(compose.List(w.request.Observed[name].Map(), "spec", "dnsNames"))
		if strings.Contains(names, "orders-db-pooler") != want || strings.Contains(names, "orders-db-rw") == want {
			t.Errorf("%s is for %s", name, names)
		}
	}
	if cn := compose.Text(w.request.Observed[names.PoolerCertificate].Map(), "spec", "commonName"); cn != "capstan-pooler" {
		t.Errorf("poolers are %q, want %q", cn, "capstan-pooler")
	}
}
