// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// canary is part of every value that must not leave the cluster.
const canary = "c4n4ry"

func TestText(t *testing.T) {
	cases := map[string]struct{ reason, in, want string }{
		"URL":        {"A URL has a password.", "dial postgres://app:c4n4ry@db:5432/x failed", "dial postgres://REDACTED@db:5432/x failed"},
		"URLToken":   {"Or only a token.", "clone https://c4n4ry@example.org/x", "clone https://REDACTED@example.org/x"},
		"Variable":   {"As a shell writes it.", "export DB_PASSWORD=c4n4ry; run", "export DB_PASSWORD=REDACTED; run"},
		"JSON":       {"As JSON writes it.", `{"client_secret": "c4n4ry and more", "n": 1}`, `{"client_secret": REDACTED, "n": 1}`},
		"Header":     {"A header has a token.", "Authorization: Bearer c4n4ry.abc-def", "Authorization: Bearer REDACTED"},
		"Conninfo":   {"As libpq writes it.", "host=db user=app password='c4n4ry x' sslmode=require", "host=db user=app password=REDACTED sslmode=require"},
		"SQL":        {"As SQL writes it.", "ALTER ROLE app PASSWORD 'c4n4ry'", "ALTER ROLE app PASSWORD REDACTED"},
		"MySQL":      {"As MySQL writes it.", "CREATE USER a IDENTIFIED BY 'c4n4ry'", "CREATE USER a IDENTIFIED BY REDACTED"},
		"Key":        {"A key has several lines.", "x\n-----BEGIN RSA PRIVATE KEY-----\nc4n4ry\n-----END RSA PRIVATE KEY-----\ny", "x\nREDACTED\ny"},
		"KeyCut":     {"A log may end within a key.", "-----BEGIN PRIVATE KEY-----\nc4n4ry", "REDACTED"},
		"AWS":        {"An access key has a form.", "key AKIAIOSFODNN7EXAMPLE", "key REDACTED"},
		"JWT":        {"A token has a form.", "sent eyJhbGciOiJIUzI1NiJ9.c4n4ryc4n4ry.sig", "sent REDACTED"},
		"SCRAM":      {"A hash can be tried.", "SCRAM-SHA-256$4096:c4n4ry$x:y", "REDACTED"},
		"Message":    {"What conditions say stays.", `waiting for Secret "orders-db-access"`, `waiting for Secret "orders-db-access"`},
		"Standby":    {"Words of servers stay.", "LOG: started streaming WAL from primary at 0/3000000 on timeline 1", "LOG: started streaming WAL from primary at 0/3000000 on timeline 1"},
		"HTTPNoUser": {"A URL without a user stays.", "GET http://reco.demo.svc/predict", "GET http://reco.demo.svc/predict"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Text(tc.in)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestObject(t *testing.T) {
	const text = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: reco-a
  managedFields: [{manager: c4n4ry}]
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"spec":"c4n4ry"}'
    example.org/api-token: c4n4ry
    example.org/url: https://u:c4n4ry@example.org/
    capstan.dev/revision: 7c9f7c9f7c
spec:
  secretName: orders-db-api
  password: c4n4ry
  template:
    spec:
      containers:
        - name: algorithm
          args: [--port=80, --token, c4n4ry, --password=c4n4ry]
          env:
            - {name: PLAIN, value: c4n4ry}
            - {name: FROM, valueFrom: {secretKeyRef: {name: s, key: password}}}
  config: {app.ini: "[db]\npassword = c4n4ry\nport = 5432\n"}
  httpGet: {httpHeaders: [{name: X-Any, value: c4n4ry}]}
`
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(Object(o))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), canary) {
		t.Errorf("a credential is left: %s", data)
	}
	for _, want := range []string{"7c9f7c9f7c", `"secretName":"orders-db-api"`, `"key":"password"`, "--port=80", "port = 5432", `"name":"PLAIN"`, "https://REDACTED@example.org/"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%q is not a credential, and is left out: %s", want, data)
		}
	}
	secret := Object(map[string]any{"kind": "Secret", "data": map[string]any{"any": canary}})
	if diff := cmp.Diff(map[string]any{"kind": "Secret", "data": map[string]any{"any": redacted}}, secret); diff != "" {
		t.Errorf("values of a Secret: -want, +got:\n%s", diff)
	}
}
