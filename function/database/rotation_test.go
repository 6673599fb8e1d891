// SPDX-License-Identifier: Apache-2.0

package database

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

const rotating = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi,
  consumers: [{name: web-api, credentials: {overlap: 1h, id: leak-1}}, {name: reports, access: ReadOnly}],
  credentials: {rotateEvery: 30d}}`

// TestRotation looks at what consumers' Credentials and the Access are asked for.
func TestRotation(t *testing.T) {
	w := running(t, rotating)
	cases := map[string]struct {
		reason string
		spec   string
		// accepted as the Access tells.
		accepted string
		consumer string
		rotation map[string]any
		second   string
		login    map[string]any
	}{
		"Own": {
			reason: "What a consumer says stands instead of what all have.", spec: rotating, consumer: "web-api",
			rotation: map[string]any{"every": "720h", "id": "leak-1", "keepPrevious": "1h"}, second: "web_api-b",
			login: map[string]any{"name": "web_api", "alternate": "web_api-b", "retireWhenIdle": true, "access": "ReadWrite"},
		},
		"ReadOnly": {
			reason: "The leader does not know of sessions on members that follow.", spec: rotating, consumer: "reports",
			rotation: map[string]any{"every": "720h", "keepPrevious": "24h"}, second: "reports-b",
			login: map[string]any{"name": "reports", "alternate": "reports-b", "access": "ReadOnly"},
		},
		"Accepted": {
			reason: "What the Access has logged in with may be used.", spec: rotating, consumer: "web-api", accepted: "2-3f2a9c1b",
			rotation: map[string]any{"every": "720h", "id": "leak-1", "keepPrevious": "1h", "accepted": "2-3f2a9c1b"}, second: "web_api-b",
			login: map[string]any{"name": "web_api", "alternate": "web_api-b", "retireWhenIdle": true, "access": "ReadWrite"},
		},
		"TakenOut": {
			reason:   "Without a rotation the login stays, and it may be the second.",
			spec:     `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, consumers: [{name: web-api}, {name: reports, access: ReadOnly}]}`,
			consumer: "web-api", second: "web_api-b",
			login: map[string]any{"name": "web_api", "alternate": "web_api-b", "retireWhenIdle": true, "access": "ReadWrite"},
		},
		"Pooler": {
			reason: "Poolers keep clients whose sessions have ended.", consumer: "web-api",
			spec: `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, pooler: {},
			  consumers: [{name: web-api}], credentials: {id: a, overlap: 2d}}`,
			rotation: map[string]any{"id": "a", "keepPrevious": "48h"}, second: "web_api-b",
			login: map[string]any{"name": "web_api", "alternate": "web_api-b", "access": "ReadWrite"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &world{t: t, planner: w.planner, request: w.request}
			w.request.Observed = map[string]compose.Object{}
			maps.Copy(w.request.Observed, running(t, rotating).request.Observed)
			if tc.accepted != "" {
				at := compose.Map(w.request.Observed[names.Access].Map(), "status", "atProvider")
				at["alternating"] = []any{map[string]any{"name": "web_api", "active": "web_api", "accepted": tc.accepted}}
			}
			w.edit(tc.spec)
			p := w.plan()
			c, err := compose.AsMap(p.Objects[names.ConsumerPrefix+tc.consumer].Object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.rotation, compose.Map(c, "spec", "forProvider", "rotation")); diff != "" {
				t.Errorf("\n%s\nrotation: -want, +got:\n%s", tc.reason, diff)
			}
			if got := compose.Text(c, "spec", "forProvider", "connection", "alternateUsername"); got != tc.second {
				t.Errorf("\n%s\nwant the second login %q, got %q", tc.reason, tc.second, got)
			}
			a, err := compose.AsMap(p.Objects[names.Access].Object)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range compose.List(a, "spec", "forProvider", "logins") {
				l := v.(map[string]any)
				if l["name"] != tc.login["name"] {
					continue
				}
				delete(l, "database")
				delete(l, "passwordSecretRef")
				if diff := cmp.Diff(tc.login, l); diff != "" {
					t.Errorf("\n%s\nlogin: -want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// TestPlainConsumers shows that nothing is asked for that was not before there were rotations.
func TestPlainConsumers(t *testing.T) {
	p := running(t, basic).plan()
	c, err := compose.AsMap(p.Objects[names.ConsumerPrefix+"app"].Object)
	if err != nil {
		t.Fatal(err)
	}
	if r, c := compose.Map(c, "spec", "forProvider", "rotation"), compose.Text(c, "spec", "forProvider", "connection", "alternateUsername"); r != nil || c != "" {
		t.Errorf("want neither a rotation nor a second login, got %v and %q", r, c)
	}
	if status, _, _ := condition(p, "CredentialsFresh"); status != "" {
		t.Errorf("want no condition CredentialsFresh, got %s", status)
	}
}

// TestPoolLimits shows that two logins at a time have no more connections than one.
func TestPoolLimits(t *testing.T) {
	for spec, want := range map[string]string{
		`pooler: {poolSize: 7}`: "orders_db = host=orders-db-rw.shop.svc port=5432\n",
		`pooler: {poolSize: 7}, credentials: {rotateEvery: 30d}, consumers: [{name: api}, {name: web}]`: "orders_db = host=orders-db-rw.shop.svc port=5432 max_db_connections=14\n",
	} {
		p := running(t, `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, `+spec+`}`).plan()
		o, err := compose.AsMap(p.Objects[names.PoolerConfig].Object)
		if err != nil {
			t.Fatal(err)
		}
		if got := compose.Text(o, "data", "pgbouncer.ini"); !strings.Contains(got, want) {
			t.Errorf("%s: want %q, got %s", spec, want, got)
		}
	}
}

func TestCredentialsFresh(t *testing.T) {
	spec := `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, credentials: {rotateEvery: 30d}}`
	until := "2026-11-21T12:00:00Z"
	cases := map[string]struct {
		reason           string
		credential, pair map[string]any
		status, because  string
		message          string
		login, retiring  string
	}{
		"Fresh": {
			reason: "Nothing is to be done.", credential: map[string]any{"username": "app", "generation": 1.0},
			pair: map[string]any{"active": "app"}, status: "True", because: "CredentialsFresh",
			message: "every Secret has the newest login, and no older login works", login: "app",
		},
		"Rotating": {
			reason: "The next one is being made.", credential: map[string]any{"username": "app", "generation": 1.0, "staged": "2-3f2a9c1b"},
			pair: map[string]any{"active": "app"}, status: "False", because: "Rotating",
			message: `the next login of app is being created, and the current login stays valid: if this takes minutes, see Access "orders-db" and Credential "orders-db-app"`, login: "app",
		},
		"Overlap": {
			reason: "Both are good.", credential: map[string]any{"username": "app-b", "generation": 2.0, "previousUntil": until},
			pair: map[string]any{"active": "app-b", "retiring": "app"}, status: "True", because: "CredentialsOverlap",
			message: "every Secret has the newest login; for clients that have not read it yet, these older logins still work: login app of consumer app until " + until,
			login:   "app-b", retiring: "app",
		},
		"Waits": {
			reason:     "There are two logins and no third.",
			credential: map[string]any{"username": "app-b", "generation": 2.0, "previousUntil": until, "staged": "3-3f2a9c1b"},
			pair:       map[string]any{"active": "app-b", "retiring": "app"}, status: "False", because: "RotationWaits",
			message: "the next rotation starts when these logins have expired: login app of consumer app (expires at " + until + "); to expire them now, set credentials.overlap of the consumer to 0s",
			login:   "app-b", retiring: "app",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := running(t, spec)
			at := compose.Map(w.request.Observed[names.ConsumerPrefix+"app"].Map(), "status", "atProvider")
			maps.Copy(at, tc.credential)
			tc.pair["name"] = "app"
			compose.Map(w.request.Observed[names.Access].Map(), "status", "atProvider")["alternating"] = []any{tc.pair}
			p := w.plan()
			status, because, message := condition(p, "CredentialsFresh")
			if status != tc.status || because != tc.because || message != tc.message {
				t.Errorf("\n%s\nwant %s %s %q, got %s %s %q", tc.reason, tc.status, tc.because, tc.message, status, because, message)
			}
			if w.plan(); tc.retiring != "" {
				w.compose(p)
				p = w.plan()
			}
			w.compose(p)
			got := told(t, w.plan()).ConnectionSecrets[0]
			if got.Login != tc.login || got.Retiring != tc.retiring || (got.RetiresAt != nil) != (tc.retiring != "") {
				t.Errorf("\n%s\nwant login %q, retiring %q, got %+v", tc.reason, tc.login, tc.retiring, got)
			}
		})
	}
}

func TestCheckCredentials(t *testing.T) {
	for text, bad := range map[string]bool{
		"30d": false, "1h": false, "999d": false, "": true, "30": true, "59m": true, "x": true, "xd": true,
	} {
		w := newWorld(t, `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, credentials: {rotateEvery: "`+text+`"}}`)
		status, _, message := condition(w.plan(), "Accepted")
		if (status == "False") != bad {
			t.Errorf("rotateEvery %q: got Accepted %s %q", text, status, message)
		}
	}
}
