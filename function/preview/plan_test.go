// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// TestLife of a Preview: its Database first, then its Algorithm, until the time is up, and the record after it.
func TestLife(t *testing.T) {
	w := newWorld(t, usualSpec)
	w.settle()
	if w.composed[Database] == nil || w.composed[Algorithm] != nil {
		t.Fatalf("the Algorithm should wait for the Database that it uses, got %v", slices.Sorted(maps.Keys(w.composed)))
	}
	w.serve()
	w.settle()
	if w.composed[Algorithm] == nil || w.phase() != v1alpha1.PreviewStarting {
		t.Fatalf("the Algorithm should follow, got %v in phase %s", slices.Sorted(maps.Keys(w.composed)), w.phase())
	}
	w.serve()
	w.settle()
	if w.phase() != v1alpha1.PreviewReady || compose.Text(w.status, "url") != "http://pr-1.payments.svc" {
		t.Errorf("want a Preview that is ready with its address, got %v", w.status)
	}
	if want := 30 * time.Minute; w.plan.TTL != want {
		t.Errorf("want no look for %s, got %s", want, w.plan.TTL)
	}
	w.now = begin.Add(24*time.Hour - time.Minute)
	w.settle()
	if w.plan.TTL != time.Minute {
		t.Errorf("want the next look when the time is up, got one in %s", w.plan.TTL)
	}
	w.now = begin.Add(24 * time.Hour)
	w.pass()
	if len(w.composed) != 0 || w.phase() != v1alpha1.PreviewExpiring {
		t.Errorf("want nothing composed in phase Expiring, got %v in %s", slices.Sorted(maps.Keys(w.composed)), w.phase())
	}
	w.settle()
	if w.phase() != v1alpha1.PreviewExpiring {
		t.Errorf("as long as copies exist it is not Expired, got %s", w.phase())
	}
	clear(w.ending)
	w.settle()
	want := []any{
		map[string]any{"kind": "Database", "name": "pr-1-db", "of": "orders-db", "image": "postgres 17", "state": "Removed"},
		map[string]any{"kind": "Algorithm", "name": "pr-1", "of": "shop", "image": "x:2", "state": "Removed"},
	}
	if diff := cmp.Diff(want, compose.List(w.status, "copies")); w.phase() != v1alpha1.PreviewExpired || diff != "" {
		t.Errorf("want a record in phase Expired, got %s: -want, +got:\n%s", w.phase(), diff)
	}
	if len(w.plan.Requires) != 0 {
		t.Errorf("a record needs no look at others, and requires %v", w.plan.Requires)
	}
	w.edit(`{ttl: 72h}`)
	w.settle()
	if w.composed[Database] == nil || w.phase() != v1alpha1.PreviewStarting {
		t.Errorf("an edit should make it again, got %v in phase %s", slices.Sorted(maps.Keys(w.composed)), w.phase())
	}
	if got := compose.Text(w.status, "expiredAt"); got != "" {
		t.Errorf("it has not expired any more, got %s", got)
	}
}

// TestExtended while copies of before are removed: it begins only when they are gone.
func TestExtended(t *testing.T) {
	w := newWorld(t, usualSpec)
	w.settle()
	w.now = begin.Add(25 * time.Hour)
	w.settle()
	w.edit(`{ttl: 72h}`)
	w.settle()
	if len(w.composed) != 0 || w.phase() != v1alpha1.PreviewExpiring {
		t.Errorf("want to wait until the former copies are gone, got %v in phase %s", slices.Sorted(maps.Keys(w.composed)), w.phase())
	}
	clear(w.ending)
	w.settle()
	if w.composed[Database] == nil {
		t.Error("want the Database again")
	}
}

// TestEdited: a copy that is ready as it was before an edit is not taken for ready.
func TestEdited(t *testing.T) {
	w := newWorld(t, usualSpec)
	for range 2 {
		w.settle()
		w.serve()
	}
	w.settle()
	w.edit(`{algorithm: {of: shop, image: "x:3"}}`)
	w.pass()
	if w.plan.Ready {
		t.Error("the pass that edits the copy should not report it ready")
	}
	w.composed[Algorithm] = composetest.With(w.composed[Algorithm], composetest.Parse(t, `{status: {conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`))
	w.settle()
	if w.plan.Ready || w.phase() != v1alpha1.PreviewStarting {
		t.Errorf("nor is one whose condition is about an earlier spec, got phase %s", w.phase())
	}
	w.composed[Algorithm] = composetest.With(w.composed[Algorithm], composetest.Parse(t, `{status: {conditions: [{type: Ready, status: "True", observedGeneration: 2}, {type: Updated, status: "False"}]}}`))
	w.settle()
	if w.plan.Ready {
		t.Error("nor one whose revision of before serves")
	}
	w.serve()
	w.settle()
	if !w.plan.Ready || w.phase() != v1alpha1.PreviewReady {
		t.Errorf("want it ready, got phase %s", w.phase())
	}
}

// TestClockGoesBack: a Preview that has expired stays so for its deadline.
func TestClockGoesBack(t *testing.T) {
	w := newWorld(t, usualSpec)
	w.settle()
	w.now = begin.Add(24 * time.Hour)
	w.settle()
	clear(w.ending)
	w.settle()
	w.now = begin.Add(23 * time.Hour)
	w.settle()
	if len(w.composed) != 0 || w.phase() != v1alpha1.PreviewExpired {
		t.Errorf("want a record, got %v in phase %s", slices.Sorted(maps.Keys(w.composed)), w.phase())
	}
}

func TestConditions(t *testing.T) {
	cases := map[string]struct {
		reason string
		do     func(w *world)
		kind   string
		want   string // status, reason, and words of the message
		kept   bool
	}{
		"BaseMissing": {
			"An original that does not exist is named.", func(w *world) { delete(w.originals, "Database/orders-db") },
			"BaseAllowed", `False BaseMissing spec.database.of: "orders-db"`, false,
		},
		"BaseGoes": {
			"Once there is a copy, it outlives its original.", func(w *world) { w.settle(); delete(w.originals, "Database/orders-db") },
			"BaseAllowed", `False BaseMissing stays as it is`, true,
		},
		"NotAllowed": {
			"The team of the original decides.", func(w *world) { delete(compose.Map(w.originals["Database/orders-db"], "metadata"), "annotations") },
			"BaseAllowed", `False PreviewsNotAllowed capstan.dev/previews: Allowed`, false,
		},
		"NoBackups": {
			"Without backups there is no data to copy.", func(w *world) { w.original("Database", "orders-db", `{engine: postgres, version: "17", storage: 1Gi}`) },
			"BaseAllowed", `False BaseUnusable set spec.backup of the Database`, false,
		},
		"OfAPreview": {
			"A copy is no original.", func(w *world) {
				w.originals["Database/orders-db"] = composetest.With(w.originals["Database/orders-db"], composetest.Parse(t, `{metadata: {ownerReferences: [{apiVersion: capstan.dev/v1alpha1, kind: Preview, name: other, controller: true}]}}`))
			},
			"BaseAllowed", `False BaseUnusable Preview other`, false,
		},
		"TooLong": {
			"The platform limits how long it lives.", func(w *world) { w.settings.Preview.MaxTTL = &metav1.Duration{Duration: time.Hour} },
			"Accepted", `False InvalidSpec spec.ttl: "24h"`, false,
		},
		"TooLate": {
			"Also for a time.", func(w *world) { w.edit(`{ttl: null, expiresAt: "2027-11-20T12:00:00Z"}`) },
			"Accepted", `False InvalidSpec spec.expiresAt`, false,
		},
		"Settings": {
			"Settings that cannot be used change nothing.", func(w *world) { w.settle(); w.settings.Preview.MaxTTL = &metav1.Duration{Duration: time.Hour} },
			"Accepted", `False InvalidSpec spec.ttl`, true,
		},
		"CopyFails": {
			"What the copy says is said here.", func(w *world) {
				w.settle()
				w.composed[Database] = composetest.With(w.composed[Database], composetest.Parse(t, `{status: {conditions: [{type: Accepted, status: "True"}, {type: Available, status: "False", reason: RestoreFailed, message: no room}]}}`))
			},
			"PreviewReady", `False CopyNotReady Database pr-1-db is not ready: Available is False (RestoreFailed): no room`, true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, usualSpec)
			tc.do(w)
			w.settle()
			c := w.condition(tc.kind)
			got := fmt.Sprintf("%v %v %v", c["status"], c["reason"], c["message"])
			words := strings.SplitN(tc.want, " ", 3)
			if !strings.HasPrefix(got, words[0]+" "+words[1]) || !strings.Contains(got, words[2]) {
				t.Errorf("%s want %s=%q, got %q", tc.reason, tc.kind, tc.want, got)
			}
			if kept := w.composed[Database] != nil; kept != tc.kept {
				t.Errorf("%s the copy of the Database is there: %t, want %t", tc.reason, kept, tc.kept)
			}
		})
	}
}

// TestUnusableSettings keep what exists, and the time that was accepted last holds.
func TestUnusableSettings(t *testing.T) {
	w := newWorld(t, usualSpec)
	w.settle()
	r := w.request()
	r.SettingsErr = errors.New("broken")
	p, err := Plan(r)
	if err != nil || len(p.Objects) != 1 {
		t.Fatalf("want the Database kept, got %v, %v", p.Objects, err)
	}
	r.Now = begin.Add(24 * time.Hour)
	if p, err = Plan(r); err != nil || len(p.Objects) != 0 {
		t.Errorf("want nothing when its time is up, got %v, %v", p.Objects, err)
	}
}

// TestLimitChanges: a Preview that says nothing about its life keeps its deadline when the platform's limit changes.
func TestLimitChanges(t *testing.T) {
	hours := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Hour} }
	cases := map[string]struct {
		reason        string
		before, after *metav1.Duration
		at            int // hours after the creation, when the limit changes
		then          string
		composed      bool
	}{
		"Lowered": {"A lower limit ends nothing early.", nil, hours(1), 2, "2026-11-22T12:00:00Z", true},
		"Raised":  {"Before the end a higher limit is one for it, too.", hours(12), nil, 2, "2026-11-22T12:00:00Z", true},
		"Expired": {"What has expired is not made again by the platform.", hours(12), nil, 13, "2026-11-21T00:00:00Z", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, `{algorithm: {of: shop}, database: {of: orders-db, data: LatestBackup}}`)
			w.settings.Preview.MaxTTL = tc.before
			w.settle()
			w.now = begin.Add(time.Duration(tc.at) * time.Hour)
			w.settle()
			clear(w.ending)
			w.settle()
			w.settings.Preview.MaxTTL = tc.after
			w.settle()
			if got := compose.Text(w.status, "expiresAt"); got != tc.then || (w.composed[Database] != nil) != tc.composed {
				t.Errorf("%s It expires at %s, want %s, with %v in phase %s", tc.reason, got, tc.then, slices.Sorted(maps.Keys(w.composed)), w.phase())
			}
		})
	}
}

// TestEditThatIsNotAccepted does not extend it.
func TestEditThatIsNotAccepted(t *testing.T) {
	w := newWorld(t, usualSpec)
	w.settings.Preview.MaxTTL = &metav1.Duration{Duration: 48 * time.Hour}
	w.settle()
	w.edit(`{ttl: 72h}`)
	w.settle()
	if w.composed[Database] == nil || compose.Text(w.status, "expiresAt") != "2026-11-21T12:00:00Z" {
		t.Errorf("want the copy and the time of before, got %v", w.status)
	}
	w.now = begin.Add(24 * time.Hour)
	w.settle()
	if len(w.composed) != 0 {
		t.Error("the time that was accepted last is up")
	}
}

// TestCopies compares the specs of copies with what they should be.
// TestStatusLost: without the deadline that was accepted last, a spec that is not accepted ends nothing.
func TestStatusLost(t *testing.T) {
	w := newWorld(t, usualSpec)
	w.settle()
	before := composetest.Encoded(w.composed)
	w.edit(`{ttl: "0"}`)
	w.status = nil
	w.settle()
	if got := composetest.Encoded(w.composed); got != before || w.phase() == v1alpha1.PreviewExpiring {
		t.Errorf("phase %s, and the copies became %s", w.phase(), got)
	}
	w.edit(`{ttl: 24h}`)
	w.settle()
	if got, want := compose.Text(w.status, "expiresAt"), begin.Add(24*time.Hour).Format(time.RFC3339); got != want {
		t.Errorf("with a spec that is accepted it lives until %s, want %s", got, want)
	}
}

func TestCopies(t *testing.T) {
	cases := map[string]struct {
		reason              string
		spec, shop, db      string
		algorithm, database string
		domain              string
	}{
		"Usual": {
			reason: "One replica, the Preview's image, its own Database's Secret, and one consumer with a password of its own.",
			spec:   usualSpec, shop: usualShop, db: usualDB,
			algorithm: `{image: "x:2", replicas: 1, revisionHistoryLimit: 0, env: [{name: URI, valueFrom: {secretKeyRef: {name: pr-1-db-app, key: uri}}}]}`,
			database: `{engine: postgres, version: "17", replicas: 1, storage: 50Gi, databases: [{name: orders_db}], consumers: [{name: app}],
				monitoring: {enabled: false}, deletionProtection: false, from: {database: {name: orders-db}}}`,
		},
		"Everything": {
			reason: "What belongs to the original alone is left out.",
			spec: `{idleAfter: 30m, algorithm: {of: shop, replicas: 2, args: [--x], env: [{name: A, value: "2"}], host: pr.example.org},
				database: {of: orders-db, data: Moment, at: "2026-11-20T08:00:00Z", replicas: 2, storage: 100Gi}}`,
			shop: `{image: "x:1", args: [--y], env: [{name: A, value: "1"}, {name: B, value: "1"}], lifecycle: {canaryWeight: 10}, rollout: {pause: true}, slo: {objective: 0.9},
				objectives: {successRatio: 0.9}, experiment: e, replicas: 9, scaling: {minReplicas: 3, maxReplicas: 9}, crossplane: {compositionRef: {name: x}},
				model: {uri: "models:/m@champion", liveAlias: live, candidateAlias: next, credentials: orders-db-auditor}, secrets: [{name: orders-db-api}],
				route: {host: shop.example.org, path: /p, gateway: {name: shared}},
				metrics: {port: 9090, queries: [{name: requests, query: r}, {name: revenue, query: q, min: 1}]},
				pod: {volumes: [{name: v, persistentVolumeClaim: {claimName: shared}}, {name: s, secret: {secretName: orders-db-api}}, {name: p, projected: {sources: [{secret: {name: other}}]}}]}}`,
			db: `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, plan: small, databases: [{name: orders}], storageGrowth: {maxSize: 1Ti},
				consumers: [{name: api, access: ReadWrite, replication: true}, {name: auditor, database: orders, access: ReadOnly}, {name: etl}],
				backup: {to: {connectionSecretRef: {name: bucket}}, encryption: {secretRef: {name: key}}, verify: {}}, replication: {slots: []}, expose: {},
				pooler: {replicas: 3, readOnly: true}, restore: {id: x}, maintenance: {}, hibernated: true, crossplane: {}}`,
			algorithm: `{image: "x:1", replicas: 2, revisionHistoryLimit: 0, args: [--x], env: [{name: B, value: "1"}, {name: A, value: "2"}],
				model: {uri: "models:/m@champion", credentials: pr-1-db-auditor}, secrets: [{name: pr-1-db-api}],
				scaling: {minReplicas: 0, maxReplicas: 2, idleAfterSeconds: 1800}, route: {host: pr.example.org, path: /p, gateway: {name: shared}},
				metrics: {port: 9090, queries: [{name: requests, query: r}]},
				pod: {volumes: [{name: v, persistentVolumeClaim: {claimName: shared, readOnly: true}}, {name: s, secret: {secretName: pr-1-db-api}}, {name: p, projected: {sources: [{secret: {name: other}}]}}]}}`,
			database: `{engine: postgres, version: "17", replicas: 2, storage: 100Gi, plan: small, databases: [{name: orders}], pooler: {replicas: 1, readOnly: true},
				consumers: [{name: api, access: ReadWrite}, {name: auditor, database: orders, access: ReadOnly}],
				monitoring: {enabled: false}, deletionProtection: false,
				from: {backup: {connectionSecretRef: {name: bucket}, database: orders-db, at: "2026-11-20T08:00:00Z", encryption: {secretRef: {name: key}}}}}`,
		},
		"Domain": {
			reason: "The platform's domain gives every Preview a name that no other has.",
			spec:   `{algorithm: {of: shop}}`, shop: `{image: "x:1"}`, db: usualDB, domain: "preview.example.org",
			algorithm: `{image: "x:1", replicas: 1, revisionHistoryLimit: 0, route: {host: pr-1-` + compose.Hash([]byte("payments/pr-1")) + `.preview.example.org}}`,
		},
		"Empty": {
			reason: "Without data nothing is read from backups, and they need not exist.",
			spec:   `{database: {of: orders-db, data: Empty}}`, shop: usualShop, db: `{engine: mysql, version: "9.7", storage: 5Gi, consumers: [{name: api}]}`,
			database: `{engine: mysql, version: "9.7", replicas: 1, storage: 5Gi, databases: [{name: orders_db}], consumers: [{name: app, access: ReadWrite}],
				monitoring: {enabled: false}, deletionProtection: false}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.spec)
			w.settings.Preview.Domain = tc.domain
			w.original("Algorithm", "shop", tc.shop)
			w.original("Database", "orders-db", tc.db)
			for range 2 {
				w.settle()
				w.serve()
			}
			for resource, want := range map[string]string{Algorithm: tc.algorithm, Database: tc.database} {
				var got map[string]any
				if o := w.composed[resource]; o != nil {
					got = compose.Map(o.Map(), "spec")
				}
				if diff := cmp.Diff(composetest.Parse(t, want), got); diff != "" {
					t.Errorf("%s %s: -want, +got:\n%s", tc.reason, resource, diff)
				}
			}
		})
	}
}

// TestOriginalChanges: a copy follows its original, except for what a Database cannot change.
func TestOriginalChanges(t *testing.T) {
	w := newWorld(t, usualSpec)
	for range 2 {
		w.settle()
		w.serve()
	}
	w.original("Algorithm", "shop", `{image: "x:3", port: 9000, env: [{name: URI, valueFrom: {secretKeyRef: {name: orders-db-app, key: uri}}}]}`)
	w.original("Database", "orders-db", `{engine: postgres, version: "18", storage: 20Gi, backup: {enabled: true}, config: {work_mem: 8MB}}`)
	w.settle()
	a, d := compose.Map(w.composed[Algorithm].Map(), "spec"), compose.Map(w.composed[Database].Map(), "spec")
	if a["image"] != "x:2" || compose.Number(a, 0, "port") != 9000 {
		t.Errorf("want the Preview's image and the original's port, got %v", a)
	}
	if d["version"] != "17" || d["storage"] != "50Gi" || compose.Text(d, "config", "work_mem") != "8MB" {
		t.Errorf("want version and size of before and the original's parameters, got %v", d)
	}
}

// TestFields: each field of an original is copied, or known to be set or left out. A new field needs a decision.
func TestFields(t *testing.T) {
	cases := map[string]struct {
		of     reflect.Type
		copied []string
		not    []string
	}{
		"Algorithm": {reflect.TypeFor[v1alpha1.AlgorithmSpec](), algorithmFields, []string{
			"replicas", "scaling", "objectives", "lifecycle", "rollout", "experiment", "slo", "route", "availability", "revisionHistoryLimit",
		}},
		"Database": {reflect.TypeFor[v1alpha1.DatabaseSpec](), databaseFields, []string{
			"replicas", "storage", "storageGrowth", "walStorage", "availability", "consumers", "replication", "credentials", "backup", "from", "promote", "cutOver", "restore",
			"upgrade", "expose", "monitoring", "maintenance", "switchover", "reinitialize", "fence", "hibernated", "deletionProtection",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var fields []string
			for f := range tc.of.Fields() {
				field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				fields = append(fields, field)
			}
			slices.Sort(fields)
			if diff := cmp.Diff(slices.Sorted(slices.Values(append(slices.Clone(tc.copied), tc.not...))), fields); diff != "" {
				t.Errorf("-decided, +fields:\n%s", diff)
			}
		})
	}
}

// TestHistories runs random histories. In each of them nothing is composed once the time is up, also when no pass was made for long; a copy
// is never dropped before that, unless its block is removed; and nothing is made while former copies exist.
func TestHistories(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, usualSpec)
		var log []string
		forgot := false // what only the status remembers
		for range 40 {
			switch e := r.IntN(12); e {
			case 0:
				w.now = w.now.Add(time.Duration(r.IntN(600)) * time.Minute)
			case 1:
				w.now = w.now.Add(-time.Duration(r.IntN(60)) * time.Minute)
			case 2:
				clear(w.ending)
			case 3:
				w.serve()
			case 4:
				w.edit(fmt.Sprintf(`{ttl: %dh, expiresAt: null}`, 1+r.IntN(80)))
			case 5:
				w.edit(`{ttl: 4000h}`) // not accepted
			case 6:
				delete(w.originals, "Algorithm/shop")
			case 7:
				w.original("Algorithm", "shop", usualShop)
			case 8:
				delete(w.originals, "Database/orders-db")
			case 9:
				w.original("Database", "orders-db", usualDB)
			case 10:
				w.status = nil
			case 11:
				w.edit(fmt.Sprintf(`{algorithm: {of: shop, image: "x:%d"}}`, r.IntN(3)))
			}
			before, ending := len(w.composed), len(w.ending)
			forgot = (forgot || w.status == nil) && ending > 0
			w.pass()
			log = append(log, fmt.Sprintf("%s %s %v", w.now.Format(time.RFC3339), w.phase(), slices.Sorted(maps.Keys(w.composed))))
			expires, err := time.Parse(time.RFC3339, compose.Text(w.status, "expiresAt"))
			if err != nil {
				t.Fatal(err)
			}
			up := !w.now.Before(expires)
			switch {
			case up && len(w.composed) > 0:
				t.Fatalf("seed %d: the time is up, and something is composed:\n%s", seed, strings.Join(log, "\n"))
			case up && w.phase() != v1alpha1.PreviewExpiring && w.phase() != v1alpha1.PreviewExpired:
				t.Fatalf("seed %d: the time is up, and the phase is %s:\n%s", seed, w.phase(), strings.Join(log, "\n"))
			case w.phase() == v1alpha1.PreviewExpired && len(w.ending)+len(w.composed) > 0:
				t.Fatalf("seed %d: it is Expired, and something is left:\n%s", seed, strings.Join(log, "\n"))
			case !up && w.phase() != v1alpha1.PreviewExpiring && w.phase() != v1alpha1.PreviewExpired && len(w.composed) < before:
				t.Fatalf("seed %d: a copy is dropped before the time is up:\n%s", seed, strings.Join(log, "\n"))
			case !forgot && ending > 0 && before == 0 && len(w.composed) > 0:
				t.Fatalf("seed %d: a copy is made while a former one exists:\n%s", seed, strings.Join(log, "\n"))
			}
		}
		// However it went: a pass far beyond every time composes nothing.
		w.now = begin.Add(5000 * time.Hour)
		if p := w.ask(); len(p.Objects) > 0 {
			t.Fatalf("seed %d: after the time %v is composed:\n%s", seed, slices.Sorted(maps.Keys(p.Objects)), strings.Join(log, "\n"))
		}
	}
}
